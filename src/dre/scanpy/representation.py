"""The rows of an AnnData that a map is made of: chosen as scanpy chooses them, and traced back to genes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch

from dre.data.gene_pca import GenePCA, squared_outside
from dre.progress.display import say
from dre.scanpy.expression import find_normalization, find_scale, gene_levels, kind_of, sample_cells
from dre.scanpy.held_out import CALIBRATED, measure_held_out

Array = np.ndarray[Any, Any]
N_PCS = 50  # as in scanpy: up to so many genes are mapped as they are
EXACT = 1e-2  # deviation of components that X and the loadings should give, relative to their spread
PREPROCESS = "sc.pp.normalize_total(adata) and sc.pp.log1p(adata)"


@dataclass(frozen=True, eq=False)
class Representation:
    """Rows to map, and how they are computed from genes, where that is known."""

    name: str
    rows: Any
    pca: GenePCA | None = None


def choose(adata: Any, use_rep: str | None, n_pcs: int | None = None, random_state: int = 0) -> Representation:
    """Return ``obsm[use_rep]`` or X. By default X of up to 50 genes, and otherwise X_pca, which is computed if it is absent."""
    if use_rep is None:
        use_rep = "X" if 0 < adata.n_vars <= N_PCS else "X_pca"
        if use_rep == "X_pca" and "X_pca" not in adata.obsm:
            add_pca(adata, random_state)
        else:
            say(f"dre: using {use_rep} of adata, as scanpy does; use_rep names another representation")
    if use_rep != "X" and use_rep not in adata.obsm:
        known = ", ".join(map(repr, ["X", *adata.obsm.keys()]))
        raise ValueError(f"use_rep={use_rep!r} is not in adata.obsm; there are: {known}")
    if use_rep == "X":
        return _all_genes(adata)
    rows = _dense(adata.obsm[use_rep])[:, :n_pcs]
    _check_finite_rows(adata, rows, use_rep)
    if use_rep != "X_pca":
        return Representation(use_rep, rows)
    pca, reason = _trace_pca(adata, rows)
    if pca is None:
        warnings.warn(
            f"X_pca can't be computed from the genes ({reason}): the map is that of X_pca, but tl.ingest can't place new cells "
            "on it by their genes",
            stacklevel=3,
        )
    return Representation(use_rep, rows, pca)


def _all_genes(adata: Any) -> Representation:
    """Return X itself, whose columns are genes."""
    X = in_memory(adata.X)
    if X is None:
        raise ValueError(f"adata has no X: pass use_rep, one of {', '.join(map(repr, adata.obsm.keys())) or 'none'}")
    if adata.n_vars > N_PCS and kind_of(X) == "counts":
        _warn_of_counts()
    check_finite(adata, X)
    if not adata.var_names.is_unique:
        return Representation("X", X)
    mean = np.asarray(X.mean(0), np.float64).ravel()
    return Representation("X", X, _gene_pca(adata, X, np.arange(adata.n_vars), mean, None))


def add_pca(adata: Any, random_state: int = 0) -> None:
    """Compute the principal components as ``sc.pp.pca`` does: of the highly variable genes, where they are marked."""
    from sklearn.decomposition import PCA

    marked = "highly_variable" in adata.var.columns
    mask = np.asarray(adata.var["highly_variable"], bool) if marked else np.ones(adata.n_vars, bool)
    if adata.n_vars == 0:
        raise ValueError("adata has no genes: pass use_rep, a key of adata.obsm with rows of numbers")
    n = min(N_PCS, min(adata.n_obs, int(mask.sum())) - 1)
    if n < 1:
        raise ValueError(f"{adata.n_obs} cell(s) with {int(mask.sum())} genes have no principal components: pass use_rep='X'")
    say(f"dre: adata has no X_pca: computing the first {n} principal components of {int(mask.sum())} genes, as sc.pp.pca does")
    X = in_memory(adata.X)
    if kind_of(X) == "counts":
        _warn_of_counts()
    check_finite(adata, X)
    X = X[:, np.flatnonzero(mask)].astype(np.float32)
    pca = PCA(n, svd_solver="arpack", random_state=random_state)
    if not (X.max(0) - X.min(0)).max() > 0:
        raise ValueError("X has the same values in all cells, so that nothing tells them apart: check adata.X")
    adata.obsm["X_pca"] = np.asarray(pca.fit_transform(X), np.float32)
    loadings = np.zeros((adata.n_vars, n))
    loadings[mask] = pca.components_.T
    adata.varm["PCs"] = loadings
    params = {"zero_center": True, "use_highly_variable": marked, **({"mask_var": "highly_variable"} if marked else {})}
    adata.uns["pca"] = {
        "params": params,
        "variance": pca.explained_variance_,
        "variance_ratio": pca.explained_variance_ratio_,
    }


def _trace_pca(adata: Any, rows: Array) -> tuple[GenePCA | None, str]:
    """Return how X_pca is computed from genes, or why that is not known."""
    if "PCs" not in adata.varm or adata.varm["PCs"].shape[1] < rows.shape[1]:
        return None, "varm['PCs'] does not have its loadings"
    if not adata.var_names.is_unique:
        return None, "names of genes occur twice: adata.var_names_make_unique()"
    params = (adata.uns.get("pca") or {}).get("params", {})
    X = in_memory(adata.layers[params["layer"]] if params.get("layer") is not None else adata.X)
    if X is None:
        return None, "adata has no X"
    check_finite(adata, X)
    loadings = np.asarray(adata.varm["PCs"], np.float64)[:, : rows.shape[1]]
    used = np.flatnonzero(abs(loadings).sum(1) > 0)
    loadings = loadings[used]
    part, components = sample_cells(X)[:, used], sample_cells(rows)
    difference = np.asarray(part @ loadings) - components
    if difference.std(0).max(initial=0.0) > EXACT * max(float(components.std()), 1e-12):
        return None, "X times varm['PCs'] is not X_pca: X was changed after the PCA, or X_pca was corrected"
    if kind_of(X) == "counts":
        _warn_of_counts()
    mean = np.asarray(X[:, used].mean(0), np.float64).ravel() if params.get("zero_center", True) else np.zeros(len(used))
    center = mean + loadings @ (difference.mean(0) - mean @ loadings)  # that of the PCA, if cells were left out since
    found = _gene_pca(adata, X, used, center, loadings)
    noise = torch.from_numpy(_noise(part, center, loadings, rows))
    held_out = measure_held_out(sample_cells(X, CALIBRATED)[:, used], rows.shape[1], len(rows))
    if held_out is None:
        return replace(found, noise=noise), ""
    return replace(found, noise=noise, residual=held_out.residual, distance_ratio=held_out.distance_ratio), ""


def _noise(part: Any, center: Array, loadings: Array, rows: Array) -> Array:
    """Return the variance that a PCA leaves of a gene, divided by that of each component."""
    scores = np.asarray(part @ loadings - center @ loadings)
    left = float(squared_outside(part, center, np.square(scores).sum(1)).mean()) / part.shape[1]
    variance = rows.var(0, dtype=np.float64)
    noise: Array = left / np.maximum(variance, np.finfo(np.float32).eps * max(float(variance.max()), 1e-12))
    return noise


def _gene_pca(adata: Any, X: Any, used: Array, center: Array, loadings: Array | None) -> GenePCA:
    """Return the step from genes to the rows. Counts that are summed over all genes need all of them, others those used."""
    normalization, scale = find_normalization(adata, X), find_scale(adata, X)
    levels = None
    if normalization is not None and normalization.over_genes:
        levels = torch.from_numpy(gene_levels(X, normalization.unit))
    columns = used if levels is None else np.arange(adata.n_vars)
    return GenePCA(
        [str(adata.var_names[i]) for i in columns],
        torch.from_numpy(center),
        torch.from_numpy(np.arange(len(used)) if levels is None else used),
        None if loadings is None else torch.from_numpy(loadings).float(),
        normalization,
        None if scale is None else (torch.from_numpy(scale.mean[used]), torch.from_numpy(scale.std[used])),
        None if scale is None else scale.largest,
        levels=levels,
    )


def check_finite(adata: Any, X: Any) -> None:
    """Raise a ValueError that names the first cell and gene with NaN or infinity."""
    values = X.data if scipy.sparse.issparse(X) else X
    if values.dtype.kind not in "fc" or bool(np.isfinite(values).all()):
        return
    at = int(np.flatnonzero(~np.isfinite(values).ravel())[0])
    if scipy.sparse.issparse(X):
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
    else:
        row, column = divmod(at, X.shape[1])
    cell, gene = adata.obs_names[row], adata.var_names[column]
    raise ValueError(f"X has NaN or infinity, first in cell {cell!r}, gene {gene!r}: leave such cells or genes out")


def _check_finite_rows(adata: Any, rows: Array, name: str) -> None:
    """Raise a ValueError that names the first cell with NaN or infinity in a representation."""
    if rows.dtype.kind not in "fc" or bool(np.isfinite(rows).all()):
        return
    row, column = np.argwhere(~np.isfinite(rows))[0].tolist()
    cell = adata.obs_names[row]
    raise ValueError(f"obsm[{name!r}] has NaN or infinity, first in cell {cell!r}, column {column}: leave such cells out")


def _warn_of_counts() -> None:
    warnings.warn(f"X holds raw counts, whose largest genes decide all distances: {PREPROCESS} first", stacklevel=4)


def in_memory(X: Any) -> Any:
    """Return a matrix as an array or CSR, whether it is sparse, backed by a file, or both."""
    if X is None:
        return None
    if hasattr(X, "to_memory"):  # sparse in a file
        X = X.to_memory()
    if scipy.sparse.issparse(X):
        return X.tocsr()
    return np.asarray(X[...] if hasattr(X, "id") else X)


def _dense(rows: Any) -> Array:
    if hasattr(rows, "to_numpy"):  # a DataFrame
        return np.asarray(rows.to_numpy())
    rows = in_memory(rows)
    return np.asarray(rows.toarray() if scipy.sparse.issparse(rows) else rows)
