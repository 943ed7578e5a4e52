"""GenePCA: from the expression of genes to the principal components of a reference, and the labels of its cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from dre.data.dataframes import select_features
from dre.data.preparation import Preparation, State
from dre.data.rows import chunk_length, is_rows
from dre.data.validation import check_array

Array = np.ndarray[Any, Any]
REMEDY = "Normalize them as the reference was (sc.pp.normalize_total, sc.pp.log1p)"


@dataclass(frozen=True)
class CountNormalization:
    """How counts become the expression that a PCA reads: ``normalize_total`` and ``log1p``.

    Parameters
    ----------
    target_sum : float or None
        Counts of each cell after normalization; None if it is not known.
    over_genes : bool, default=True
        Whether the counts are summed over the genes that the model reads; else over more, of which it does not know.
    base : float or None
        Base of the logarithm; None for e.
    """

    target_sum: float | None
    over_genes: bool = True
    base: float | None = None

    @property
    def unit(self) -> float:
        """What a natural logarithm is divided by."""
        return 1.0 if self.base is None else math.log(self.base)

    def __call__(self, counts: Any, totals: Array) -> Any:
        """Normalize rows of counts, dense or sparse, by their totals."""
        if self.target_sum is None:
            raise ValueError("the model does not know to which total its reference was normalized: pass target_sum=10_000")
        factors = self.target_sum / np.where(totals > 0, totals, 1.0)
        if scipy.sparse.issparse(counts):
            found = counts.astype(np.float64)  # a copy
            found.data = np.log1p(found.data * np.repeat(factors, np.diff(found.indptr))) / self.unit
            return found
        return np.log1p(counts * factors[:, None]) / self.unit


@dataclass(frozen=True, eq=False)
class ReferenceCells:
    """Cells of a reference with their labels, from which new cells get theirs.

    Parameters
    ----------
    rows : Tensor of shape (m, k), float32
        Their coordinates in the space of the PCA.
    labels : dict
        For each column the code of each cell, int32 (m,), -1 for none, and the names of the codes.
    """

    rows: Tensor
    labels: dict[str, tuple[Tensor, list[str]]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Components:
    """Components of cells that were computed before, in place of their genes."""

    rows: Array


@dataclass(frozen=True, eq=False)
class GenePCA(Preparation):
    """Genes by name, normalized and projected on the principal components of a reference.

    Rows of whole numbers are counts, and are normalized as the reference was; other rows must be normalized already. Genes that
    were scaled for the PCA (``sc.pp.scale``) are scaled alike.

    Parameters
    ----------
    columns : list of str
        Genes that are read.
    center : Tensor of shape (u,)
        Mean of the genes that are used, after normalization and scaling.
    used : Tensor of shape (u,), int64
        Which of the genes the PCA uses.
    loadings : Tensor of shape (u, k), optional
        By default the genes themselves are the result.
    normalization : CountNormalization, optional
        By default rows are taken as they are.
    scale : (Tensor, Tensor), optional
        Mean and standard deviation, each (u,), by which normalized genes are scaled.
    largest : float, optional
        At which scaled genes are clipped.
    residual : float, optional
        Largest share of a cell's expression that the components leave, among cells like the reference's.
    cells : ReferenceCells, optional
        For labels of new cells.
    noise : Tensor of shape (k,), optional
        Variance of a gene outside of the components, divided by that of each component. By default zero.
    levels : Tensor of shape (genes,), optional
        Mean of the normalized counts of each gene that is read, before the logarithm.
    distance_ratio : float, default=1
        How far ordinary new cells are from those of the reference, relative to how far these are from each other.

    Examples
    --------
    >>> pca = GenePCA(["CD3E", "MS4A1"], torch.zeros(2), torch.arange(2), torch.eye(2)[:, :1], CountNormalization(10.0))
    >>> pca.transform(np.array([[9, 1], [np.log1p(9.0), np.log1p(1.0)]])).round(3)
    array([[2.303],
           [2.303]], dtype=float32)
    """

    kind = "gene-pca"

    columns: list[str]
    center: Tensor
    used: Tensor
    loadings: Tensor | None = None
    normalization: CountNormalization | None = None
    scale: tuple[Tensor, Tensor] | None = None
    largest: float | None = None
    residual: float | None = None
    cells: ReferenceCells | None = None
    noise: Tensor | None = None
    levels: Tensor | None = None
    distance_ratio: float = 1.0

    @property
    def names_out(self) -> list[str]:  # type: ignore[override]
        if self.loadings is None:
            return [self.columns[i] for i in self.used.tolist()]
        return [f"PC{i + 1}" for i in range(self.loadings.shape[1])]

    def transform(self, X: Any) -> Array:
        """Return the components, float32 (n, k), of rows of genes: an array, a sparse matrix, a DataFrame, an AnnData, Rows."""
        if isinstance(X, Components):
            return X.rows
        return self.project(X)[0]

    def project(self, X: Any) -> tuple[Array, Array]:
        """Return the components, and the share of each cell's expression that lies outside of them."""
        found = [self._project(part) for part in self._parts(X)]
        rows, outside = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return rows, outside

    def project_shared(self, X: Any, present: Array) -> tuple[Array, Array]:
        """Return the components of cells that lack genes, and the share of their expression that lies outside of them.

        The components are fitted to the genes that are there, as in probabilistic PCA [1]_: those that vary little beside the
        noise stay close to the mean of the reference. Without loadings, absent genes have this mean.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, genes that are present)
            Normalized.
        present : array of bool, one for each of ``columns``

        References
        ----------
        .. [1] M. Tipping and C. Bishop, Probabilistic principal component analysis, J. R. Stat. Soc. B 61, 1999.
        """
        is_used = present[self.used.numpy()]
        shared = self._restricted(present, is_used)
        if self.loadings is None:
            rows = np.tile(self.center.float().numpy(), (X.shape[0], 1))
            rows[:, is_used] = shared.project(X)[0]
            return rows, np.zeros(len(rows))
        assert shared.loadings is not None
        loadings = shared.loadings.double().numpy()
        gram = loadings.T @ loadings
        noise = np.diag(self.noise.double().numpy()) if self.noise is not None and not is_used.all() else 0.0
        found = [shared._project(part, gram, np.linalg.pinv(gram + noise)) for part in shared._parts(X)]
        rows, outside = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return rows, outside

    def _restricted(self, present: Array, is_used: Array) -> GenePCA:
        """Return the part of this that belongs to some of the genes, for rows that are normalized."""
        position = np.cumsum(present) - 1
        keep = torch.from_numpy(np.flatnonzero(is_used))
        return GenePCA(
            [name for name, is_there in zip(self.columns, present, strict=True) if is_there],
            self.center[keep],
            torch.from_numpy(position[self.used.numpy()[is_used]]),
            None if self.loadings is None else self.loadings[keep],
            scale=None if self.scale is None else (self.scale[0][keep], self.scale[1][keep]),
            largest=self.largest,
        )

    def _parts(self, X: Any) -> Iterator[Any]:
        """Yield rows of X with the genes in their order, in chunks."""
        X = self._genes_of(X) if hasattr(X, "var_names") else select_features(X, self.columns, self.columns)
        if not hasattr(X, "shape") or isinstance(X, Tensor) or hasattr(X, "columns"):
            X = check_array(X, "X")
        if len(X.shape) != 2 or X.shape[1] != len(self.columns):
            raise ValueError(
                f"X has the shape {tuple(X.shape)}, but the model reads {len(self.columns)} genes, {self.columns[0]!r} first. "
                "dre.scanpy.tl.ingest matches genes by name."
            )
        step = chunk_length(tuple(X.shape[1:]))
        for start in range(0, max(1, X.shape[0]), step):
            stop = min(start + step, X.shape[0])
            part: Any = X.read(start, stop).numpy() if is_rows(X) else X[start:stop]
            yield check_array(part.tocsr() if scipy.sparse.issparse(part) else np.asarray(part), "X")

    def _genes_of(self, adata: Any) -> Any:
        """Return X of an AnnData, with the genes in the order of the model."""
        if not adata.var_names.is_unique:
            raise ValueError("adata has several genes of the same name: adata.var_names_make_unique()")
        where = adata.var_names.get_indexer(self.columns)
        if (where < 0).any():
            absent = self.columns[int((where < 0).argmax())]
            raise ValueError(
                f"adata lacks {int((where < 0).sum()):,} of the {len(where):,} genes that the model reads, {absent!r} first: "
                "dre.scanpy.tl.ingest(adata, model, obs=None) places cells that lack genes"
            )
        X = adata.X[...] if hasattr(adata.X, "id") else adata.X
        return (X.to_memory() if hasattr(X, "to_memory") else X)[:, where]

    def _project(self, part: Any, gram: Array | None = None, inverse: Array | None = None) -> tuple[Array, Array]:
        """Return components and what lies outside; ``gram`` is that of loadings that are not orthonormal, with its inverse."""
        x = self._scaled(self._normalized(part)[:, self.used.numpy()])
        if self.loadings is None:
            rows = np.asarray(x.toarray() if scipy.sparse.issparse(x) else x)
            return rows.astype(np.float32), np.zeros(len(rows))
        center, loadings = self.center.double().numpy(), self.loadings.double().numpy()
        scores = np.asarray(x @ loadings - center @ loadings)
        if gram is None or inverse is None:
            return scores.astype(np.float32), share_outside(x, center, np.square(scores).sum(1))
        rows = scores @ inverse
        return rows.astype(np.float32), share_outside(x, center, (rows * (2 * scores - rows @ gram)).sum(1))

    def _normalized(self, part: Any) -> Any:
        """Normalize the rows that hold counts."""
        part = part.astype(np.float64)
        if self.normalization is not None or self.scale is not None:
            _check_not_negative(part)
        if self.normalization is None:
            return part
        totals, counts = row_totals(part), holds_counts(part)
        if not counts.any():
            return part
        if self.normalization.target_sum is None or not self.normalization.over_genes:
            raise ValueError(f"row {int(counts.argmax())} holds counts, and the model reads a part of their genes. {REMEDY}.")
        if counts[totals > 0].all():
            return self.normalization(part, totals)
        normalized = self.normalization(part, totals)
        if scipy.sparse.issparse(part):
            chosen = scipy.sparse.diags_array(counts.astype(np.float64))
            return scipy.sparse.csr_array(chosen @ normalized + scipy.sparse.diags_array(1.0 - counts) @ part)
        return np.where(counts[:, None], normalized, part)

    def _scaled(self, x: Any) -> Any:
        if self.scale is None:
            return x
        mean, std = (value.double().numpy() for value in self.scale)
        x = ((x.toarray() if scipy.sparse.issparse(x) else x) - mean) / std
        return x if self.largest is None else np.clip(x, -self.largest, self.largest)

    # The file of a model

    def state(self) -> State:
        tensors = {"center": self.center.double(), "used": self.used.long()}
        if self.loadings is not None:
            tensors["loadings"] = self.loadings.float()
        if self.scale is not None:
            tensors |= {"mean": self.scale[0].double(), "std": self.scale[1].double()}
        if self.noise is not None:
            tensors["noise"] = self.noise.double()
        if self.levels is not None:
            tensors["levels"] = self.levels.float()
        config: dict[str, Any] = {"columns": self.columns, "largest": self.largest, "residual": self.residual}
        config["distance_ratio"] = self.distance_ratio
        found = self.normalization
        config["normalization"] = None if found is None else [found.target_sum, found.over_genes, found.base]
        if self.cells is not None:
            tensors["cells"] = self.cells.rows.float()
            tensors |= {f"codes.{i}": codes.int() for i, (codes, _) in enumerate(self.cells.labels.values())}
            config["labels"] = [[name, categories] for name, (_, categories) in self.cells.labels.items()]
        return config, tensors

    @classmethod
    def restore(cls, config: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        genes = _names(config["columns"])
        used = _tensor(tensors, "used", torch.long, 1)
        if not len(used) or int(used.min()) < 0 or int(used.max()) >= len(genes) or len(used.unique()) < len(used):
            raise ValueError("its genes are not those that it names")
        loadings = _tensor(tensors, "loadings", torch.float32, 2, len(used)) if "loadings" in tensors else None
        width = len(used) if loadings is None else loadings.shape[1]
        scale = None
        if "mean" in tensors:
            scale = _tensor(tensors, "mean", torch.double, 1, len(used)), _tensor(tensors, "std", torch.double, 1, len(used))
            if not (scale[1] > 0).all():
                raise ValueError("its genes have standard deviations that are not positive")
        cells = None
        if "labels" in config:
            labels = {
                _text(name): (_codes(_tensor(tensors, f"codes.{i}", torch.int32, 1), names), _names(names))
                for i, (name, names) in enumerate(config["labels"])
            }
            cells = ReferenceCells(_tensor(tensors, "cells", torch.float32, 2), labels)
            if cells.rows.shape[1] != width or any(len(codes) != len(cells.rows) for codes, _ in labels.values()):
                raise ValueError("its labels are not those of its cells")
        restored = cls(
            genes,
            _tensor(tensors, "center", torch.double, 1, len(used)),
            used,
            loadings,
            _normalization(config["normalization"]),
            scale,
            _positive(config["largest"], "largest"),
            _positive(config["residual"], "residual"),
            cells,
            _not_negative(_tensor(tensors, "noise", torch.double, 1, width), "noise") if "noise" in tensors else None,
            _not_negative(_tensor(tensors, "levels", torch.float32, 1, len(genes)), "levels") if "levels" in tensors else None,
            _positive(config["distance_ratio"], "distance_ratio") or 1.0,
        )
        if restored.state()[1].keys() != tensors.keys():
            raise ValueError("its preparation has tensors that do not belong to it")
        return restored

    def module(self) -> nn.Module | None:
        known = self.normalization is None or (self.normalization.over_genes and self.normalization.target_sum is not None)
        return GenePCAModule(self) if known else None


class GenePCAModule(nn.Module):
    """`GenePCA` as a module from dense rows of genes to components."""

    def __init__(self, pca: GenePCA) -> None:
        super().__init__()
        n = len(pca.used)
        mean, std = pca.scale or (torch.zeros(n), torch.ones(n))
        found = pca.normalization
        self.target_sum = None if found is None else found.target_sum
        self.unit = 1.0 if found is None else found.unit
        self.largest = None if pca.scale is None else pca.largest
        self.register_buffer("used", pca.used.clone())
        for name, value in {"center": pca.center, "mean": mean, "std": std}.items():
            self.register_buffer(name, value.double().clone())
        self.register_buffer("loadings", None if pca.loadings is None else pca.loadings.double())

    def forward(self, x: Tensor) -> Tensor:
        x = x.double()
        if self.target_sum is not None:
            counts = ((x == x.round()) & (x >= 0)).all(1, keepdim=True)
            totals = x.sum(1, keepdim=True)
            normalized = (x * (self.target_sum / torch.where(totals > 0, totals, 1.0))).clamp_min(0).log1p() / self.unit
            x = torch.where(counts, normalized, x)
        x = (x[:, self.get_buffer("used")] - self.get_buffer("mean")) / self.get_buffer("std")
        if self.largest is not None:
            x = x.clamp(-self.largest, self.largest)
        if self.loadings is None:
            return x.float()
        return ((x - self.get_buffer("center")) @ self.get_buffer("loadings")).float()


def holds_counts(part: Any) -> Array:
    """Whether each row holds whole numbers from 0 up, and not only zeros."""
    if not scipy.sparse.issparse(part):
        whole: Array = ((part == np.floor(part)) & (part >= 0)).all(1) & (part > 0).any(1)
        return whole
    other = (part.data != np.floor(part.data)) | (part.data < 0)
    rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    positive = np.bincount(rows, weights=part.data > 0, minlength=part.shape[0])
    found: Array = (np.bincount(rows, weights=other, minlength=part.shape[0]) == 0) & (positive > 0)
    return found


def share_outside(x: Any, center: Array, explained: Array) -> Array:
    """Return the length of what a PCA leaves of each cell, divided by the length of the cell; ``explained`` is squared."""
    length = _squared_lengths(x)
    found: Array = np.sqrt(squared_outside(x, center, explained) / np.where(length > 0, length, 1.0))
    return np.where(length > 0, found, np.inf)


def squared_outside(x: Any, center: Array, explained: Array) -> Array:
    """Return the squared length of what is left of each cell, of which components explain so much."""
    left: Array = np.maximum(_squared_lengths(x) - 2 * (x @ center) + center @ center - explained, 0.0)
    return left


def _squared_lengths(x: Any) -> Array:
    squared = x.multiply(x).sum(1) if scipy.sparse.issparse(x) else np.square(x, dtype=np.float64).sum(1)
    return np.asarray(squared, np.float64).ravel()


def _check_not_negative(part: Any) -> None:
    """Raise a ValueError that names the first row with negative values: counts and their logarithms have none."""
    values = part.data if scipy.sparse.issparse(part) else part
    if values.size and float(values.min()) < 0:
        negative = np.asarray(part.tocsr().min(1).toarray() if scipy.sparse.issparse(part) else part.min(1)).ravel() < 0
        raise ValueError(
            f"row {int(negative.argmax())} has negative values, such as genes that were scaled by their own deviations: pass "
            "counts or their logarithms"
        )


def row_totals(part: Any) -> Array:
    return np.asarray(part.sum(1), np.float64).ravel()


def _tensor(tensors: dict[str, Tensor], name: str, dtype: torch.dtype, ndim: int, length: int | None = None) -> Tensor:
    value = tensors.get(name)
    if value is None or value.dtype != dtype or value.ndim != ndim or (length is not None and len(value) != length):
        raise ValueError(f"{name} of its genes is missing, or of another type or shape")
    if value.is_floating_point() and not value.isfinite().all():
        raise ValueError(f"{name} of its genes is not finite")
    return value


def _not_negative(value: Tensor, name: str) -> Tensor:
    if bool((value < 0).any()):
        raise ValueError(f"{name} of its genes is negative")
    return value


def _codes(codes: Tensor, names: Any) -> Tensor:
    if len(codes) and (int(codes.min()) < -1 or int(codes.max()) >= len(names)):
        raise ValueError("its cells have labels without a name")
    return codes


def _names(names: Any) -> list[str]:
    if not isinstance(names, list) or not names or len({_text(name) for name in names}) < len(names):
        raise ValueError("its genes or labels have no names, or the same one")
    return names


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is not a name")
    return name


def _positive(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r} of its genes is not a positive number")
    return float(value)


def _normalization(content: Any) -> CountNormalization | None:
    if content is None:
        return None
    target_sum, over_genes, base = content
    if not isinstance(over_genes, bool) or (base is not None and base == 1):
        raise ValueError("its normalization is not one")
    return CountNormalization(_positive(target_sum, "target_sum"), over_genes, _positive(base, "base"))
