"""Tools in scanpy's manner: ``dre`` maps the cells of an AnnData, and ``ingest`` places new cells on such a map."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from torch import Tensor

from dre.data.gene_pca import Components, ReferenceCells
from dre.data.preparation import Prepared
from dre.model.estimator import DRE
from dre.notation import unknown
from dre.progress.display import muted, say
from dre.scanpy.genes import match_genes
from dre.scanpy.graph import given_neighbors
from dre.scanpy.held_out import OUTSIDE
from dre.scanpy.labels import MOST_COMPARED, NOT_ON_MAP, LabelTransfer, column_names, reference_cells
from dre.scanpy.representation import choose
from dre.scanpy.stored import gene_pca, open_reference, pack, reference_rows

AnnData = Any  # anndata is imported by those who have one
Array = np.ndarray[Any, Any]
N_NEIGHBORS = 15  # that vote; references of fewer cells have fewer
MANY_FOREIGN = 0.5  # share of cells that are refused, beyond which something else may be wrong
REASONS = {  # why many cells may be refused, by what adata holds, and the remedy
    "counts": "counts of another technique. Pass a reference of the same technique",
} | dict.fromkeys(("log", "other", "negative"), "genes that were normalized otherwise than the reference. Pass counts")
OWN = ("n_components", "random_state", "columns")  # parameters of DRE that are none of the options


def dre(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    n_components: int = 2,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    random_state: int = 0,
    copy: bool = False,
    **options: Any,
) -> AnnData | None:
    """Map the cells of an AnnData by Deep Recursive Embedding.

    Parameters
    ----------
    adata : AnnData
    use_rep : str, optional
        A key of ``adata.obsm``, or ``"X"``. By default as in scanpy: X of up to 50 genes, otherwise ``X_pca``, which is
        computed if it is absent.
    n_components : int, default=2
        Dimensions of the map.
    neighbors_key : str, optional
        Use the neighbors that ``adata.uns[neighbors_key]`` describes, such as ``"neighbors"`` of ``sc.pp.neighbors`` or of
        BBKNN, in place of a search. ``use_rep=None`` is then their representation.
    key_added : str, optional
        Key of the map in ``obsm`` and of its parameters in ``uns``, in place of ``"X_dre"`` and ``"dre"``.
    random_state : int, default=0
    copy : bool, default=False
        Return a copy with the map instead of adding it to ``adata``.
    **options
        Parameters of ``DRE``, such as ``recipe="fast"`` or ``perplexity=50``.

    Returns
    -------
    AnnData or None
        The copy, if ``copy=True``. It has ``obsm["X_dre"]``, the map, and ``uns["dre"]``: ``params``, and the bytes of the
        ``model``, which ``dre.scanpy.model`` opens. Both are written to .h5ad.

    Examples
    --------
    >>> import dre.scanpy, scanpy as sc  # doctest: +SKIP
    >>> dre.scanpy.tl.dre(adata)  # doctest: +SKIP
    >>> sc.pl.embedding(adata, "dre", color="cell_type")  # doctest: +SKIP
    """
    _check_anndata(adata)
    _check_options(options)
    if adata.n_obs < 2:
        raise ValueError(f"adata has {adata.n_obs} cell(s): a map needs 2 or more")
    adata = _copy(adata) if copy else adata
    graph, params = (None, {}) if neighbors_key is None else given_neighbors(adata, neighbors_key)
    n_pcs = params.get("n_pcs") if use_rep is None else None
    use_rep = params.get("use_rep") if use_rep is None else use_rep
    with muted() if options.get("verbose") is False else nullcontext():
        found = choose(adata, use_rep, None if n_pcs is None else int(n_pcs), random_state)
    fitted = DRE(**options, n_components=n_components, random_state=random_state)
    rows = found.rows if found.pca is None else Prepared(Components(found.rows), found.pca)
    fitted.fit(rows, precomputed_knn=graph)
    key_obsm, key_uns = ("X_dre", "dre") if key_added is None else (key_added, key_added)
    adata.obsm[key_obsm] = fitted.embedding_
    about = {"n_components": n_components, "neighbors_key": neighbors_key, "random_state": random_state, **options}
    written = {"use_rep": found.name, "n_features": int(found.rows.shape[1])} | _plain(about)
    adata.uns[key_uns] = {"params": written, "model": pack(fitted)}
    return adata if copy else None


def ingest(
    adata: AnnData,
    model_or_adata_ref: DRE | str | os.PathLike[str] | AnnData,
    obs: str | Sequence[str] | None = "cell_type",
    *,
    layer: str | None = None,
    target_sum: float | None = None,
    n_neighbors: int = N_NEIGHBORS,
    refuse: float = 0.01,
    key: str = "dre",
    copy: bool = False,
) -> AnnData | None:
    """Place new cells on the map of a reference, and label them.

    Genes are matched by name. Counts are normalized as the reference was, to its counts in the genes that ``adata`` has. The
    reference's own PCA, of these genes alone, and its network then give the coordinates. The labels are those of the nearest
    cells of the reference, in the space of its PCA, by weighted votes.

    Parameters
    ----------
    adata : AnnData
        New cells, with counts or log-normalized genes in X.
    model_or_adata_ref : AnnData, DRE or path-like
        A reference that ``tl.dre`` has mapped, or its model, ``dre.scanpy.model(adata_ref, obs)``, or the file of that.
    obs : str, sequence of str or None, default="cell_type"
        Columns of labels of the reference; None for the coordinates alone.
    layer : str, optional
        Layer of ``adata`` with the genes, in place of X.
    target_sum : float, optional
        To which counts are normalized, if the reference does not tell.
    n_neighbors : int, default=15
        Cells of the reference that vote.
    refuse : float, default=0.01
        Share of cells like the reference's that are refused, so that foreign cells are: measured on cells that its PCA has not
        seen, and at least 0.005 of them. With 0 all cells get a label.
    key : str, default="dre"
        Place of the map in ``adata_ref.uns``: the ``key_added`` of ``tl.dre``.
    copy : bool, default=False
        Return a copy instead of changing ``adata``.

    Returns
    -------
    AnnData or None
        The copy, if ``copy=True``. It has ``obsm["X_dre"]``, ``obsm["X_pca"]`` and for each column of labels
        ``obs["cell_type"]`` and ``obs["cell_type_confidence"]``, the share of votes for the label, in place of columns of these
        names. Labels are text, also of numbers. Cells that are unlike all of the reference have the label ``"not on this map"``
        and the confidence 0.

    Examples
    --------
    >>> import dre.scanpy  # doctest: +SKIP
    >>> dre.scanpy.tl.dre(adata_ref)  # doctest: +SKIP
    >>> dre.scanpy.tl.ingest(adata, adata_ref, obs="cell_type")  # doctest: +SKIP
    """
    _check_anndata(adata)
    columns = column_names(obs)
    _check_numbers(target_sum, n_neighbors, refuse)
    if adata.n_obs == 0:
        raise ValueError("adata has no cells")
    fitted = open_reference(model_or_adata_ref, key)
    pca = gene_pca(fitted)
    cells = _cells(model_or_adata_ref, fitted, columns, key)
    if cells is not None and n_neighbors > max(len(cells.rows), N_NEIGHBORS):
        raise ValueError(f"n_neighbors={n_neighbors:,}: the reference has {len(cells.rows):,} cells")
    genes = match_genes(adata, pca, layer, target_sum)
    rows, outside = genes.project(pca)
    coordinates = fitted.transform(Components(rows))
    adata = _copy(adata) if copy else adata
    if pca.loadings is not None:
        adata.obsm["X_pca"] = rows
    adata.obsm["X_dre" if key == "dre" else key] = coordinates
    if cells is not None:
        transfer = LabelTransfer(cells, n_neighbors, pca.distance_ratio)
        found = transfer.nearest(rows)
        foreign = np.zeros(len(rows), bool)
        if refuse > 0:
            is_outside = outside > (pca.residual or np.inf)
            foreign = is_outside | transfer.are_unlike(*found, refuse if pca.residual is None else _share_of_far(refuse))
        _label(adata, transfer, found, foreign)
        _tell_of_foreign(foreign, genes.kind)
    return adata if copy else None


def _cells(reference: Any, fitted: DRE, columns: list[str], key: str) -> ReferenceCells | None:
    """Return the cells of a reference that vote; None if there are no labels to vote on."""
    pca = gene_pca(fitted)
    if not columns:
        return None
    if hasattr(reference, "obs_names"):
        return reference_cells(reference_rows(reference, key, fitted), reference, columns, MOST_COMPARED)
    known = {} if pca.cells is None else pca.cells.labels
    lacking = [name for name in columns if name not in known]
    if pca.cells is None or lacking:
        found = ", ".join(map(repr, known)) or "none"
        raise ValueError(
            f"obs={lacking[0]!r}: the model has no such labels; it has: {found}. Pass the AnnData of the reference, or its "
            f"model with labels, dre.scanpy.model(adata_ref, {lacking[0]!r}), or obs=None for the coordinates alone."
        )
    return ReferenceCells(pca.cells.rows, {name: known[name] for name in columns})


def _check_numbers(target_sum: float | None, n_neighbors: int, refuse: float) -> None:
    if not 0 <= refuse < 1 or n_neighbors < 1:
        raise ValueError(f"refuse={refuse}, n_neighbors={n_neighbors}: refuse is a share below 1, n_neighbors from 1 up")
    if target_sum is not None and not 0 < target_sum < np.inf:
        raise ValueError(f"target_sum={target_sum}: counts per cell are more than 0, such as 10_000")


def _share_of_far(refuse: float) -> float:
    """Return the share of ordinary cells to refuse by their distances, if others lie outside of the components."""
    return max(refuse - OUTSIDE, refuse / 2)


def _label(adata: AnnData, transfer: LabelTransfer, nearest: tuple[Tensor, Tensor], foreign: Array) -> None:
    """Write labels and confidences."""
    import pandas as pd

    for column, (_, names) in transfer.cells.labels.items():
        codes, confidence = transfer.vote(*nearest, column)
        categories = [*names, NOT_ON_MAP]
        labels = pd.Categorical.from_codes(np.where(foreign, len(names), codes), pd.Index(categories, dtype=object))
        adata.obs[column] = labels if foreign.any() else labels.remove_categories([NOT_ON_MAP])
        adata.obs[f"{column}_confidence"] = np.where(foreign, np.float32(0), confidence)


def _tell_of_foreign(foreign: Array, kind: str) -> None:
    """Tell how many cells are refused; warn of what may be wrong if most of them are."""
    say(f"dre: {int(foreign.sum()):,} of {len(foreign):,} cells are not on this map")
    if foreign.mean() > MANY_FOREIGN:
        warnings.warn(
            f"{foreign.mean():.0%} of the cells are unlike the reference: other kinds of cells, or {REASONS[kind]}, or "
            "refuse=0 to label them all the same.",
            stacklevel=3,
        )


def _check_anndata(adata: Any) -> None:
    if all(hasattr(adata, name) for name in ("obsm", "obs_names", "var_names", "uns")):
        return
    hint = f": pass anndata.read_h5ad({os.fspath(adata)!r})" if isinstance(adata, (str, os.PathLike)) else ""
    raise TypeError(f"adata is a {type(adata).__name__}, not an AnnData{hint}")


def _check_options(options: dict[str, Any]) -> None:
    known = [name for name in DRE().get_params(deep=False) if name not in OWN]
    for name in options:
        if name not in known:
            raise TypeError(unknown("option", name, known))


def _copy(adata: AnnData) -> AnnData:
    return adata.to_memory() if adata.isbacked else adata.copy()


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return values as an .h5ad holds them: numbers and text; what is None is left out."""
    kinds = (bool, int, float, str, np.generic)
    return {name: value if isinstance(value, kinds) else str(value) for name, value in values.items() if value is not None}
