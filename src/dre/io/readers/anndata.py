"""AnnData in HDF5 (.h5ad) and zarr: a matrix of cells, its variants, and tables about cells and genes.

Files hold tables in one of three encodings: a compound array with the categories in ``uns`` (before 0.7), groups with the
categories in ``__categories`` (0.7), and groups whose columns describe themselves (since 0.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre.data.rows import chunk_length, is_rows
from dre.io.readers.arrays import with_options
from dre.io.readers.chunks import read_whole
from dre.io.readers.file_rows import open_array, open_csr, read_csc
from dre.io.readers.hdf5 import get_item, is_array, open_file
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import (
    Array,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    summarize_names,
    to_numbers_or_strings,
    to_strings,
)
from dre.io.readers.table import blank_missing
from dre.notation import unknown

SPARSE_FORMATS = {"csr_matrix": "csr", "csc_matrix": "csc"}
EXAMINED, LARGE_COUNT = 200, 10  # cells that are examined for raw counts, and a count that no binary matrix has
PCA, MOST_GENES = "obsm/X_pca", 50  # scanpy maps its principal components, unless there are no more genes than this
PROJECTED = (
    f"the rows are {PCA}: they must be the components of the fitted cells, as `sc.tl.ingest` or `varm/PCs` give them, "
    "not a PCA of their own"
)
MATRIX_GROUPS = ("layers", "obsm")  # hold matrices with a row per cell, beside X


@dataclass(frozen=True, eq=False)
class AnnotationTable:
    """The table of the cells (``obs``) or of the genes (``var``)."""

    names: Array | None
    columns: dict[str, Array]
    unreadable: list[str]  # columns in an encoding that is not supported


def is_anndata(root: Any) -> bool:
    """Return whether the root of a file has the layout of AnnData."""
    return not is_array(root) and (_attribute(root, "encoding-type") == "anndata" or ("obs" in root and "var" in root))


def open_anndata(path: Path, root: Any, part: str | None, options: ReadOptions) -> Source:
    """Open the matrix that ``part`` names, or the default."""
    name = part or _default_matrix(root, options)
    item = get_item(root, name)
    if item is None:
        hint = "" if part else f"; name a part, as in {path.name}:obsm/X_pca"
        raise SourceError(f"{path}: {unknown('part', name, _matrix_names(root))}{hint}")
    obs = _read_table(path, root, "obs")
    messages = [f"unreadable columns of obs are ignored: {summarize_names(obs.unreadable)}"] if obs.unreadable else []
    if part is None and name == PCA and not options.row_shape:
        messages.append(f"the rows are the principal components {PCA}, as in scanpy; {path.name}:X maps the genes")
    rows: Any
    if is_array(item):
        rows = open_array(path, item, f"an array {name!r}")
    else:
        sparse_format, shape = _sparse_layout(path, name, item, root)
        if sparse_format == "csc":
            rows = read_csc(path, item, shape, f"a matrix {name!r}")
            messages.append(f"{name} is stored by columns (CSC), so all of it was read; save it as CSR to read it in pieces")
        else:
            rows = open_csr(path, item, shape, f"a matrix {name!r}")
    genes = _gene_names(path, root, name, rows.shape[1])
    if genes is not None and _are_counts(rows):
        messages.append(_counts_message(path, name, _matrix_names(root)))
    cautions = [PROJECTED] if name == PCA else []
    columns = {name: blank_missing(values) for name, values in obs.columns.items()}
    found = Source(rows, genes, obs.names, columns, messages, cautions=cautions, aside=_genes(path, root, name))
    return with_options(path, found, options)


def _genes(path: Path, root: Any, name: str) -> Source | None:
    """X with the names of its genes, beside another matrix; sparse matrices by columns are left out."""
    item = None if name == "X" else get_item(root, "X")
    if item is None or _attribute(item, "encoding-type") == "csc_matrix":
        return None
    if is_array(item):
        rows = open_array(path, item, "an array 'X'")
    else:
        rows = open_csr(path, item, _sparse_layout(path, "X", item, root)[1], "a matrix 'X'")
    genes = _gene_names(path, root, "X", rows.shape[1])
    return None if genes is None else Source(rows, genes)


def _default_matrix(root: Any, options: ReadOptions) -> str:
    """X, or the principal components of many genes, as in scanpy. A model that was fitted to genes reads X."""
    genes = get_item(root, "X")
    width = 0 if genes is None else int(np.atleast_1d(_shape(genes))[-1])
    is_wide = genes is None or width > MOST_GENES
    return PCA if is_wide and not options.features and not options.columns and get_item(root, PCA) is not None else "X"


def _shape(item: Any) -> Any:
    return item.shape if is_array(item) else item.attrs.get("shape", item.attrs.get("h5sparse_shape", 0))


def _open_h5ad(path: Path, part: str | None, options: ReadOptions) -> Source:
    with as_source_error(path):
        return open_anndata(path, open_file(path, options), part, options)


def _matrix_names(root: Any) -> list[str]:
    inside = [f"{group}/{name}" for group in MATRIX_GROUPS if group in root for name in root[group]]
    items = {name: get_item(root, name) for name in ("X", *inside, "raw/X")}
    return [name for name, item in items.items() if item is not None and (is_array(item) or "indptr" in item)]


def _sparse_layout(path: Path, name: str, group: Any, root: Any) -> tuple[str, tuple[int, int]]:
    sparse_format = SPARSE_FORMATS.get(_attribute(group, "encoding-type")) or _attribute(group, "h5sparse_format")
    shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    if sparse_format not in SPARSE_FORMATS.values() or shape is None:
        raise SourceError(f"{path}: {name} is not a matrix; name one of {summarize_names(_matrix_names(root))}")
    return sparse_format, (int(shape[0]), int(shape[1]))


def _gene_names(path: Path, root: Any, matrix: str, count: int) -> list[str] | None:
    """Names of the columns of X, of a layer and of raw/X; a matrix of obsm has none."""
    table = "raw/var" if matrix.startswith("raw/") else "var" if matrix == "X" or matrix.startswith("layers/") else None
    names = None if table is None or get_item(root, table) is None else _read_table(path, root, table).names
    return None if names is None or len(names) != count else [str(name) for name in names]


def _are_counts(rows: Any) -> bool:
    """Whether the first cells have counts of reads: integers from 0 to some large number."""
    n = min(EXAMINED, rows.shape[0], chunk_length(rows.shape[1:]))
    values = rows.read(0, n).numpy() if is_rows(rows) else rows[:n].toarray()
    return bool(values.size and values.min() >= 0 and values.max() >= LARGE_COUNT and (values == np.floor(values)).all())


def _counts_message(path: Path, name: str, known: list[str]) -> str:
    pca = next((each for each in known if each.startswith("obsm/") and "pca" in each.lower()), None)
    remedy = (
        "normalize and log-transform them, and map their principal components: sc.pp.normalize_total, sc.pp.log1p, sc.pp.pca"
        if pca is None
        else f"map the principal components instead, {path.name}:{pca}"
    )
    return f"{name} looks like raw counts, whose largest genes decide all distances: {remedy}"


def _attribute(item: Any, name: str) -> str:
    value = item.attrs.get(name, "")
    return value.decode() if isinstance(value, bytes) else str(value)


def _read_table(path: Path, root: Any, name: str) -> AnnotationTable:
    table = get_item(root, name)
    if table is None:
        return AnnotationTable(None, {}, [])
    return _read_compound_table(path, root, table) if is_array(table) else _read_group_table(path, table)


def _read_compound_table(path: Path, root: Any, table: Any) -> AnnotationTable:
    """Read an array with a field per column; the names are the field "index", or else the first."""
    records = read_whole(path, table, "the table of the cells or genes")
    fields = list(records.dtype.names)
    index = "index" if "index" in fields else fields[0]
    columns = {}
    for name in fields:
        values, categories = records[name], get_item(root, f"uns/{name}_categories")
        columns[name] = to_numbers_or_strings(values) if categories is None else _decode(path, values, categories)
    return AnnotationTable(to_strings(columns.pop(index).tolist()), columns, [])


def _read_group_table(path: Path, table: Any) -> AnnotationTable:
    index = _attribute(table, "_index") or next((name for name in ("_index", "index") if name in table), "")
    stored = [name for name in table if name not in (index, "__categories")]
    order = [name.decode() if isinstance(name, bytes) else str(name) for name in table.attrs.get("column-order", [])]
    order = [name for name in order if name in stored]
    columns, unreadable = {}, []
    for name in [*order, *(name for name in stored if name not in order)]:
        values = _read_column(path, table, name)
        if values is None:
            unreadable.append(name)
        else:
            columns[name] = values
    names = _read_column(path, table, index) if index and index in table else None
    return AnnotationTable(None if names is None else to_strings(names.tolist()), columns, unreadable)


def _read_column(path: Path, table: Any, name: str) -> Array | None:
    """Read a column, or return None where its encoding is not supported."""
    item, what = table[name], f"the column {name!r}"
    if is_array(item):
        categories = get_item(table, f"__categories/{name}")
        values = to_numbers_or_strings(read_whole(path, item, what))
        return values if categories is None else _decode(path, values, categories)
    if "codes" in item and "categories" in item:
        categories = item["categories"]
        codes = read_whole(path, item["codes"], what)
        return _decode(path, codes, categories if is_array(categories) else categories["values"])  # nullable strings
    if "values" in item and "mask" in item:  # nullable numbers or strings
        missing = read_whole(path, item["mask"], what).astype(bool)
        return _mask(to_numbers_or_strings(read_whole(path, item["values"], what)), missing)
    return None


def _decode(path: Path, codes: Any, categories: Any) -> Array:
    """Replace the codes of a categorical column by their categories; negative codes are missing values."""
    codes, names = np.asarray(codes), to_numbers_or_strings(read_whole(path, categories, "the categories"))
    missing = codes < 0
    if not len(names):
        return to_strings([""] * len(codes))
    return _mask(names[np.where(missing, 0, codes)], missing)


def _mask(values: Array, missing: Array) -> Array:
    """Replace missing values by NaN or an empty string."""
    if not missing.any():
        return values
    is_number = values.dtype.kind in "iuf"
    texts = values if values.dtype.kind in "OU" else values.astype(str)
    return np.where(missing, np.nan, values) if is_number else np.where(missing, "", texts)


FORMATS = (SourceFormat((".h5ad",), part="array", open_with=_open_h5ad),)
