"""The model of a map inside its AnnData: the bytes of its file in ``uns``, so that an .h5ad alone is a reference."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from torch import nn

from dre.data.gene_pca import Components, GenePCA
from dre.model.estimator import DRE
from dre.scanpy.labels import MOST_CELLS, column_names, reference_cells

Array = np.ndarray[Any, Any]
FILE = "model.safetensors"
COMPARED = 100  # cells that are mapped again to see that a representation is the one that was mapped
SAME_PLACE = 0.05  # distance of a cell to its place on the map, relative to the spread of the map


def model(
    adata: Any,
    obs: str | Sequence[str] | None = None,
    *,
    key: str = "dre",
    encoder: nn.Module | None = None,
    device: str | None = None,
) -> DRE:
    """Return the model that ``tl.dre`` fitted, from genes to the map.

    Parameters
    ----------
    adata : AnnData
        To which ``tl.dre`` was applied, with the representation that it mapped, such as ``X_pca``, as it was.
    obs : str or sequence of str, optional
        Columns of labels that go into the model, with up to 10,000 cells: its file alone then labels new cells.
    key : str, default="dre"
        Its place in ``adata.uns``: the ``key_added`` of ``tl.dre``.
    encoder, device
        As in ``DRE.load``.

    Returns
    -------
    DRE

    Examples
    --------
    >>> import dre.scanpy  # doctest: +SKIP
    >>> dre.scanpy.model(adata, "cell_type").save("blood.safetensors")  # doctest: +SKIP
    """
    if key not in adata.uns or "model" not in adata.uns[key]:
        raise ValueError(f"adata.uns has no map {key!r}: {_other_maps(adata)}")
    fitted = unpack(adata.uns[key]["model"], encoder, device)
    if obs is None:
        return fitted
    pca = gene_pca(fitted)
    rows = reference_rows(adata, key, fitted)
    columns = column_names(obs)
    fitted._map.preparation = replace(pca, cells=reference_cells(rows, adata, columns, MOST_CELLS))
    return fitted


def _other_maps(adata: Any) -> str:
    """Return what to do where a map is not found."""
    found = [name for name, value in adata.uns.items() if hasattr(value, "keys") and {"model", "params"} <= set(value)]
    if not found:
        return "run dre.scanpy.tl.dre(adata) first"
    return f"there are: {', '.join(map(repr, found))}; pass key={found[0]!r}"


def pack(fitted: DRE) -> Array:
    """Return the file of a model as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / FILE, stages=False)
        return np.frombuffer((Path(folder) / FILE).read_bytes(), np.uint8).copy()


def unpack(content: Any, encoder: nn.Module | None = None, device: str | None = None) -> DRE:
    """Return the model of such bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        path.write_bytes(np.asarray(content, np.uint8).tobytes())
        return DRE.load(path, encoder=encoder, device=device)


def open_reference(reference: Any, key: str, device: str | None = None) -> DRE:
    """Return the model of a reference: an AnnData, a model, or the file of one."""
    if isinstance(reference, DRE):
        return reference
    if isinstance(reference, (str, os.PathLike)):
        if str(reference).endswith((".h5ad", ".zarr")):
            raise TypeError(f"{os.fspath(reference)!r} is a file of cells: pass anndata.read_h5ad({os.fspath(reference)!r})")
        return DRE.load(reference, device=device)
    if not hasattr(reference, "uns"):
        kind = type(reference).__name__
        raise TypeError(f"the reference is a {kind}: pass an AnnData with a map, a fitted model, or the path of its file")
    return model(reference, key=key, device=device)


def gene_pca(fitted: DRE) -> GenePCA:
    """Return the step of a model that reads genes."""
    found = fitted._map.preparation
    if not isinstance(found, GenePCA):
        raise ValueError(
            f"the model reads rows of the shape {fitted.row_shape_}, not genes: fit the reference with "
            "dre.scanpy.tl.dre(adata_ref), whose X_pca must be the PCA of its X (sc.pp.pca)"
        )
    return found


def reference_rows(adata: Any, key: str, fitted: DRE) -> Any:
    """Return the rows that were mapped; raise a ValueError if they have changed since."""
    params = adata.uns[key]["params"]
    name, width = str(params["use_rep"]), int(params["n_features"])
    where = "X" if name == "X" else f"obsm[{name!r}]"
    if name != "X" and name not in adata.obsm:
        raise ValueError(f"the reference has no {where} any more, of which its map was made")
    rows = adata.X if name == "X" else adata.obsm[name]
    key_obsm = "X_dre" if key == "dre" else key
    if rows.shape[1] < width or not _is_mapped(fitted, rows[:, :width], adata.obsm.get(key_obsm)):
        raise ValueError(
            f"{where} of the reference is not the one of which its map, obsm[{key_obsm!r}], was made: run "
            "dre.scanpy.tl.dre(adata_ref) again after changes such as sc.pp.scale or sc.pp.pca"
        )
    return rows[:, :width]


def _is_mapped(fitted: DRE, rows: Any, embedding: Any) -> bool:
    """Whether some of the rows have these places on the map. Without a map there is nothing to compare."""
    if embedding is None:
        return True
    places = np.asarray(embedding)
    if not len(places):
        raise ValueError("the reference has no cells")
    ids = np.arange(0, len(places), -(-len(places) // COMPARED))
    some = rows[ids]
    again = fitted.transform(Components(some.toarray() if scipy.sparse.issparse(some) else np.asarray(some)))
    return places.shape[1] == again.shape[1] and bool(abs(again - places[ids]).max() <= SAME_PLACE * places.std())
