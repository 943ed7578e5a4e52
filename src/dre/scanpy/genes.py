"""Genes of new cells in the order of a model's, by name, with what the new cells hold made to fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from dre.data.gene_pca import GenePCA
from dre.progress.display import say
from dre.scanpy.expression import kind_of, stated_unit
from dre.scanpy.normalization import from_counts, from_logarithms
from dre.scanpy.representation import check_finite, in_memory

Array = np.ndarray[Any, Any]
FEWEST = 0.2  # share of the genes that must be there
MANY = 0.9  # share below which a warning tells how many are absent
LISTED = 3


@dataclass(frozen=True, eq=False)
class MatchedGenes:
    """Those genes of new cells that a model reads, in its order."""

    X: Any  # csr (n, genes that are present)
    present: Array  # bool (genes of the model,)
    kind: str  # "counts", "log" or "other"

    def project(self, pca: GenePCA) -> tuple[Array, Array]:
        """Return the components of the cells, and the share of their expression that lies outside of them."""
        return pca.project(self.X) if self.present.all() else pca.project_shared(self.X, self.present)


def match_genes(adata: Any, pca: GenePCA, layer: str | None, target_sum: float | None) -> MatchedGenes:
    """Return the genes of ``adata`` by the names of the model's, normalized as these."""
    X, names, where = _matrix(adata, layer)
    position = {str(name): i for i, name in enumerate(names)}
    if len(position) < len(names):
        raise ValueError("adata has several genes of the same name: adata.var_names_make_unique()")
    used = [pca.columns[i] for i in pca.used.tolist()]
    n_found = sum(name in position for name in used)
    _check_overlap(n_found, used, list(position))
    check_finite(adata if where != "raw.X" else adata.raw, X)
    kind = kind_of(X)
    _check_kind(kind, pca, where)
    columns = np.array([position.get(name, -1) for name in pca.columns])
    present = columns >= 0
    if kind == "counts" and pca.normalization is not None:
        X = from_counts(X, pca, columns, target_sum)
    elif kind == "log" and pca.normalization is not None:
        X = from_logarithms(X, pca, columns, target_sum, stated_unit(adata))
    return MatchedGenes(scipy.sparse.csr_array(scipy.sparse.csc_array(X)[:, columns[present]]), present, kind)


def _matrix(adata: Any, layer: str | None) -> tuple[Any, Any, str]:
    """Return the matrix to read, its genes and its name: X, a layer, or raw where X holds scaled genes."""
    if layer is not None:
        if layer not in adata.layers:
            known = ", ".join(map(repr, adata.layers.keys())) or "none"
            raise ValueError(f"layer={layer!r} is not in adata.layers; there are: {known}")
        return in_memory(adata.layers[layer]), adata.var_names, f"layers[{layer!r}]"
    X = in_memory(adata.X)
    if X is None:
        raise ValueError("adata has no X: pass layer=NAME")
    if adata.raw is not None and kind_of(X) == "negative":
        raw = in_memory(adata.raw.X)
        if kind_of(raw) != "negative":
            say("dre: X holds scaled genes: reading those of adata.raw")
            return raw, adata.raw.var_names, "raw.X"
    return X, adata.var_names, "X"


def _check_overlap(n_found: int, used: list[str], given: list[str]) -> None:
    share = n_found / len(used)
    examples = f"the reference has {_listed(used)}, adata has {_listed(given)}"
    if share < FEWEST:
        raise ValueError(
            f"{n_found:,} of the {len(used):,} genes of the reference are in adata, which are too few: {examples}. "
            "Set adata.var_names to names of the same kind, such as symbols or Ensembl ids, of the same species."
        )
    say(f"dre: {n_found:,} of the {len(used):,} genes of the reference are in adata")
    if share < MANY:
        warnings.warn(
            f"{1 - share:.0%} of the genes of the reference are not in adata: labels by the others are less certain "
            f"({examples})",
            stacklevel=4,
        )


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:LISTED])) + (", …" if len(names) > LISTED else "")


def _check_kind(kind: str, pca: GenePCA, where: str) -> None:
    """Raise a ValueError for values that the model can't read: scaled genes, or normalized counts without a logarithm."""
    if kind == "negative" and (pca.normalization is not None or pca.scale is not None):
        raise ValueError(
            f"{where} of adata has negative values, such as genes that were scaled by their own deviations: pass layer=NAME "
            "with counts or with log-normalized genes, or keep these in adata.raw"
        )
    if kind == "other" and pca.normalization is not None:
        raise ValueError(
            f"{where} of adata holds neither counts, which are whole numbers, nor their logarithms: sc.pp.log1p(adata), or "
            "pass layer=NAME"
        )
