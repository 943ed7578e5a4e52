"""Rows of other libraries, read in pieces: torch datasets, Arrow tables and datasets, lazy frames, Hugging Face and dask.

None of these libraries is imported here: an object tells by its class where it comes from. An adapter is a function from such
an object to Rows, and a line in ``ADAPTERS``, or in ``TABLES``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from dre.data.block_array import BlockArray
from dre.data.column_names import check_known
from dre.data.image_items import image_rows, is_list_of_images
from dre.data.rows import HostRows, chunk_length, is_rows

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...] | None
Columns = str | Sequence[str] | None  # "numbers", names, or all
NUMBERS = "numbers"
LISTED = 5  # names that an error lists
BLOCK_VALUES = 2**20  # values that are read at a time from a table, at least


class ForeignRows:
    """Rows of another library. They are not `HostRows`, so training checks their values as it reads them.

    Parameters
    ----------
    array : array-like
        Read by slices and by arrays of ids.
    columns : list of str, default=None
        Names of the columns.
    """

    def __init__(self, array: Any, columns: list[str] | None = None) -> None:
        self._rows = HostRows(array)
        self.shape, self.columns = self._rows.shape, columns
        self.in_blocks = isinstance(array, BlockArray)

    def read(self, start: int, stop: int) -> Tensor:
        """Read consecutive rows."""
        return self._rows.read(start, stop)

    def take(self, ids: Tensor) -> Tensor:
        """Read rows in any order; each is read once, in increasing order."""
        unique, inverse = np.unique(ids.cpu().numpy(), return_inverse=True)
        return self._rows.take(torch.from_numpy(unique))[torch.from_numpy(inverse)]


def foreign_rows(X: Any, columns: Columns = None, row_shape: Shape = None) -> Any:
    """Return Rows for data of another library that is read in pieces; anything else unchanged.

    Parameters
    ----------
    X : any
    columns : "numbers" or list of str, default=None
        Columns of a table to read: those that hold numbers, or these. By default all, which must hold numbers, or the only
        column of vectors.
    row_shape : tuple of int, default=None
        Shape of the rows of a model, to which images of other sizes are resized.

    Examples
    --------
    >>> foreign_rows(TensorDataset(torch.zeros(5, 3))).shape
    torch.Size([5, 3])
    """
    if is_rows(X) or isinstance(X, np.ndarray | Tensor):
        return X
    if is_list_of_images(X):
        return image_rows(X, row_shape)
    for kind in type(X).__mro__:
        name = (kind.__module__.split(".")[0], kind.__name__)
        if name in TABLES:
            return TABLES[name](X, columns)
        if name in ADAPTERS:
            return ADAPTERS[name](X, row_shape)
    return X


def is_table(X: Any) -> bool:
    """Whether X is a table of another library that is read in pieces."""
    return any((kind.__module__.split(".")[0], kind.__name__) in TABLES for kind in type(X).__mro__)


# torch


def _from_torch_dataset(X: Dataset[Any], row_shape: Shape) -> Any:
    """A map-style dataset: its items are rows, or tuples that begin with one."""
    if isinstance(X, TensorDataset):
        return X.tensors[0]
    if isinstance(X, IterableDataset) or not hasattr(X, "__len__"):
        raise TypeError(
            f"{type(X).__name__} can't be read twice, as training needs it: pass a dataset with __len__ and __getitem__, "
            "or write the rows to a file"
        )
    return image_rows(X, row_shape)


def _from_data_loader(X: DataLoader[Any], row_shape: Shape) -> Any:
    """The dataset behind a loader: the order of the rows is that of the dataset, whatever the loader shuffles."""
    sampler: Any = getattr(X, "sampler", None)
    chooses = hasattr(sampler, "__len__") and hasattr(X.dataset, "__len__") and len(sampler) != len(X.dataset)
    if chooses or getattr(sampler, "replacement", False):
        raise ValueError(
            f"the sampler of the {type(X).__name__}, a {type(sampler).__name__}, chooses items; the rows would be all of them. "
            "Pass torch.utils.data.Subset(dataset, ids) instead of the loader"
        )
    return _from_torch_dataset(X.dataset, row_shape)


# Arrow


def _from_arrow_table(X: Any, chosen: Columns) -> ForeignRows:
    columns = _arrow_features(X.schema, chosen, "X.to_pandas()")
    first = _arrow_block(X.slice(0, 1), columns)
    edges = _edges(X.num_rows, first.shape[1:])
    array = BlockArray(
        (X.num_rows, *first.shape[1:]), first.dtype, edges, lambda a, b: _arrow_block(X.slice(a, b - a), columns)
    )
    return ForeignRows(array, None if _is_vector(X.schema, columns) else columns)


def _from_arrow_dataset(X: Any, chosen: Columns) -> ForeignRows:
    """A dataset of files: row groups are read one by one where the format has them, else files."""
    columns = _arrow_features(X.schema, chosen, "X.to_table().to_pandas()")
    fragments = [part for each in X.get_fragments() for part in _row_groups(each)]
    counts = [_count_rows(part) for part in fragments]
    fragments = [part for part, count in zip(fragments, counts, strict=True) if count]
    edges = np.cumsum([0, *(count for count in counts if count)])
    if not fragments:
        raise ValueError("the Arrow dataset has no rows")

    def load(start: int, stop: int) -> Array:
        fragment = fragments[int(np.searchsorted(edges, start, side="right")) - 1]
        return _arrow_block(fragment.to_table(columns=columns, schema=X.schema), columns)

    first = _arrow_block(fragments[0].head(1, columns=columns), columns)
    array = BlockArray((int(edges[-1]), *first.shape[1:]), first.dtype, edges, load)
    return ForeignRows(array, None if _is_vector(X.schema, columns) else columns)


def _row_groups(fragment: Any) -> Sequence[Any]:
    split = getattr(fragment, "split_by_row_group", None)
    return [fragment] if split is None else list(split())


def _count_rows(fragment: Any) -> int:
    """Rows of a fragment; of one with chosen row groups, ``count_rows`` counts the whole file."""
    groups = getattr(fragment, "row_groups", None)
    return int(fragment.count_rows() if groups is None else sum(group.num_rows for group in groups))


def _arrow_features(schema: Any, chosen: Columns, whole: str) -> list[str]:
    """The columns that the user has chosen; else the one column of vectors, or all columns, which must hold numbers.

    ``whole`` is the code that reads the table into memory, where other columns can be encoded.
    """
    import pyarrow.types as kinds

    def is_number(name: str) -> bool:
        kind = schema.field(name).type
        return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind))

    if chosen == NUMBERS:
        chosen = [name for name in schema.names if is_number(name) and not kinds.is_boolean(schema.field(name).type)]
    check_known(chosen or (), schema.names)
    names = list(chosen or schema.names)
    vectors = [name for name in names if _is_list_of_numbers(schema.field(name).type)]
    if len(vectors) == 1 and (chosen is None or len(names) == 1):
        return vectors
    if vectors:
        raise ValueError(f"columns of vectors: {', '.join(vectors[:LISTED])}; choose one: columns=[{vectors[0]!r}]")
    wrong = [name for name in names if not is_number(name)]
    if wrong or not names:
        listed = ", ".join(map(repr, wrong[:LISTED])) or "all"
        raise ValueError(
            f"columns that do not hold numbers: {listed}. Choose others: columns='numbers', or a list "
            f"of names. {whole} has the table in memory, where categories are mapped, too."
        )
    return names


def _is_list_of_numbers(kind: Any) -> bool:
    import pyarrow.types as kinds

    is_list = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    return bool(is_list and (kinds.is_integer(kind.value_type) or kinds.is_floating(kind.value_type)))


def _is_vector(schema: Any, columns: list[str]) -> bool:
    return len(columns) == 1 and _is_list_of_numbers(schema.field(columns[0]).type)


def _arrow_block(table: Any, columns: list[str]) -> Array:
    """Values of some rows of a table, (m, d)."""
    if _is_vector(table.schema, columns):
        import pyarrow.compute

        column = table[columns[0]].combine_chunks()
        if column.null_count:
            raise ValueError(f"the column {columns[0]!r} has rows without a vector: drop them first")
        lengths = pyarrow.compute.list_value_length(column)
        if len(pyarrow.compute.unique(lengths)) > 1:
            raise ValueError(f"the vectors of the column {columns[0]!r} have different lengths: pad or cut them")
        return np.asarray(column.flatten().to_numpy(zero_copy_only=False)).reshape(len(column), -1)
    return np.column_stack([table[name].to_numpy() for name in columns])  # a gap becomes NaN, and is named later


# Tables and arrays


def _from_lazy_frame(X: Any, chosen: Columns) -> ForeignRows:
    """A lazy frame of polars: each block is a query of its own, so that no more than a block is held."""
    import polars as pl

    n = int(X.select(pl.len()).collect().item())
    first = X.head(1).collect().to_arrow()
    columns = _arrow_features(first.schema, chosen, "X.collect()")
    sample = _arrow_block(first, columns)

    def load(start: int, stop: int) -> Array:
        return _arrow_block(X.select(columns).slice(start, stop - start).collect().to_arrow(), columns)

    array = BlockArray((n, *sample.shape[1:]), sample.dtype, _edges(n, sample.shape[1:]), load)
    return ForeignRows(array, None if _is_vector(first.schema, columns) else columns)


def _from_hugging_face(X: Any, chosen: Columns) -> ForeignRows:
    """A dataset of Hugging Face, which is an Arrow table in files."""
    arrow = X.with_format("arrow")
    columns = _arrow_features(arrow[:1].schema, chosen, "X.to_pandas()")
    first = _arrow_block(arrow[:1], columns)
    array = BlockArray(
        (len(X), *first.shape[1:]),
        first.dtype,
        _edges(len(X), first.shape[1:]),
        lambda start, stop: _arrow_block(arrow[start:stop].select(columns), columns),
    )
    return ForeignRows(array, None if _is_vector(arrow[:1].schema, columns) else columns)


def _from_dask(X: Any, row_shape: Shape) -> ForeignRows:
    """An array of dask; its own chunks are computed one by one."""
    if any(math.isnan(size) for size in X.shape):
        raise ValueError("the dask array does not know its shape: call compute_chunk_sizes() first")
    edges = np.cumsum([0, *X.chunks[0]])
    return ForeignRows(BlockArray(X.shape, X.dtype, edges, lambda start, stop: np.asarray(X[start:stop].compute())))


def _edges(n: int, shape: tuple[int, ...]) -> Array:
    return np.append(np.arange(0, n, chunk_length(shape, BLOCK_VALUES)), n)


# anndata


def _refuse_cells(X: Any, row_shape: Shape) -> Any:
    """An AnnData has several matrices of rows; only a map of ``dre.scanpy.tl.dre`` knows which of its genes to read."""
    del row_shape
    known = ", ".join(f"adata.obsm[{name!r}]" for name in X.obsm) or "adata.X"
    raise TypeError(f"X is an AnnData: map it by dre.scanpy.tl.dre(adata), or pass rows of numbers, such as {known}")


ADAPTERS: dict[tuple[str, str], Callable[[Any, Shape], Any]] = {  # by package and class
    ("torch", "Dataset"): _from_torch_dataset,
    ("torch", "DataLoader"): _from_data_loader,
    ("dask", "Array"): _from_dask,
    ("anndata", "AnnData"): _refuse_cells,
}
TABLES: dict[tuple[str, str], Callable[[Any, Columns], Any]] = {  # of which columns can be chosen
    ("pyarrow", "Table"): _from_arrow_table,
    ("pyarrow", "Dataset"): _from_arrow_dataset,
    ("polars", "LazyFrame"): _from_lazy_frame,
    ("datasets", "Dataset"): _from_hugging_face,
}
