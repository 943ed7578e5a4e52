"""The layout of AnnData, in HDF5 and in zarr: a matrix of cells, its variants, and tables of what is known of cells and genes.

Three encodings of tables are about: one compound array with the categories in ``uns`` (before 0.7), groups with the categories
in ``__categories`` (0.7), and groups in which each column says what it is (since 0.8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.array_tree import found, is_array
from dre.io.readers.file_rows import FileRows, Held
from dre.io.readers.source import Array, Source, SourceError, listed
from dre.io.readers.sparse_rows import csr_of_csc, csr_rows
from dre.io.readers.texts import plain, texts
from dre.notation import unknown

SPARSE = {"csr_matrix": "csr", "csc_matrix": "csc"}
FOLDERS = ("layers", "obsm")  # what else may be mapped


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of cells, or of genes: their names, and columns with a value each."""

    names: Array | None
    columns: dict[str, Array]
    left_out: list[str]


def is_anndata(root: Any) -> bool:
    return not is_array(root) and (_overrides(root, "encoding-type") == "anndata" or ("obs" in root and "var" in root))


def open_anndata(path: Path, root: Any, part: str | None, pieces: Callable[[Any], Held]) -> Source:
    """X, or what was named instead; ``pieces`` makes of an array what is read piece by piece."""
    name = part or "X"
    item = found(root, name)
    if item is None:
        hint = "" if part else f"; name a part, as in {path.name}:obsm/X_pca"
        raise SourceError(f"{path}: {unknown('part', name, _parts(root))}{hint}")
    obs = _known(root, "obs")
    told = [f"columns of obs that can't be read are left out: {listed(obs.left_out)}"] if obs.left_out else []
    rows: Any
    if is_array(item):
        rows = FileRows(path, pieces(item), f"an array {name!r}")
    else:
        kind, shape = _sparse(path, name, item, root)
        if kind == "csc":
            rows = csr_of_csc(item, shape)
            told.append(f"{name} is stored by columns, so that all of it was read; save it as CSR to read it piece by piece")
        else:
            rows = csr_rows(path, item, shape, f"a matrix {name!r}")
    genes = "raw/var" if name.startswith("raw/") else "var" if name == "X" or name.startswith("layers/") else None
    columns = None if genes is None or found(root, genes) is None else _names(_known(root, genes), rows.shape[1])
    return Source(rows, columns, obs.names, obs.columns, told)


def _parts(root: Any) -> list[str]:
    inside = [f"{folder}/{name}" for folder in FOLDERS if folder in root for name in root[folder]]
    items = {name: found(root, name) for name in ("X", *inside, "raw/X")}
    return [name for name, item in items.items() if item is not None and (is_array(item) or "indptr" in item)]


def _sparse(path: Path, name: str, group: Any, root: Any) -> tuple[str, tuple[int, int]]:
    kind = SPARSE.get(_overrides(group, "encoding-type")) or _overrides(group, "h5sparse_format")
    shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    if kind not in SPARSE.values() or shape is None:
        raise SourceError(f"{path}: {name} is no matrix; name one of {listed(_parts(root))}")
    return kind, (int(shape[0]), int(shape[1]))


def _overrides(item: Any, name: str) -> str:
    told = item.attrs.get(name, "")
    return told.decode() if isinstance(told, bytes) else str(told)


def _names(known: Known, count: int) -> list[str] | None:
    return None if known.names is None or len(known.names) != count else [str(name) for name in known.names]


def _known(root: Any, name: str) -> Known:
    table = found(root, name)
    if table is None:
        return Known(None, {}, [])
    return _of_compound(root, table) if is_array(table) else _of_group(table)


def _of_compound(root: Any, table: Any) -> Known:
    """One array with a field per column, the first of which is the names where none is called index."""
    records = table[:]
    fields = list(records.dtype.names)
    index = "index" if "index" in fields else fields[0]
    columns = {}
    for name in fields:
        categories = found(root, f"uns/{name}_categories")
        columns[name] = plain(records[name]) if categories is None else _decoded(records[name], plain(categories[:]))
    return Known(texts(columns.pop(index).tolist()), columns, [])


def _of_group(table: Any) -> Known:
    index = _overrides(table, "_index") or next((name for name in ("_index", "index") if name in table), "")
    stored = [name for name in table if name not in (index, "__categories")]
    told = [name.decode() if isinstance(name, bytes) else str(name) for name in table.attrs.get("column-order", [])]
    order = [name for name in told if name in stored]
    columns, left_out = {}, []
    for name in [*order, *(name for name in stored if name not in order)]:
        values = _column(table, name)
        if values is None:
            left_out.append(name)
        else:
            columns[name] = values
    names = _column(table, index) if index and index in table else None
    return Known(None if names is None else texts(names.tolist()), columns, left_out)


def _column(table: Any, name: str) -> Array | None:
    """The values, or None where they are of a kind that we don't know."""
    item = table[name]
    if is_array(item):
        values = plain(item[:])
        categories = found(table, f"__categories/{name}")
        return values if categories is None else _decoded(values, plain(categories[:]))
    if "codes" in item and "categories" in item:
        categories = item["categories"]
        if not is_array(categories):  # texts of which some may be missing
            categories = categories["values"]
        return _decoded(item["codes"][:], plain(categories[:]))
    if "values" in item and "mask" in item:  # numbers or texts of which some may be missing
        return _without(plain(item["values"][:]), np.asarray(item["mask"][:], dtype=bool))
    return None


def _decoded(codes: Any, categories: Array) -> Array:
    codes = np.asarray(codes)
    missing = codes < 0
    if not len(categories):
        return texts([""] * len(codes))
    return _without(categories[np.where(missing, 0, codes)], missing)


def _without(values: Array, missing: Array) -> Array:
    """What is missing is no number, or an empty text."""
    if not missing.any():
        return values
    numbers = values.dtype.kind in "iuf"
    return np.where(missing, np.nan, values) if numbers else np.where(missing, "", values.astype(str))
