"""Rows from files of many formats and from datasets by name, all opened by `open_source`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from dre.data.rows import is_rows
from dre.datasets import NAMES, Dataset, load
from dre.datasets.files import Folder
from dre.io.readers import anndata, arrow, delimited, frames, hdf5, images, numpy_files, parquet, spreadsheets, zarr
from dre.io.readers.arrays import with_options
from dre.io.readers.options import ReadOptions
from dre.io.readers.shards import find_shards, open_shards
from dre.io.readers.source import Array, Source, SourceError, SourceFormat, check_file_kind, match_suffix
from dre.notation import unknown

__all__ = ["FORMATS", "ReadOptions", "Source", "SourceError", "SourceFormat", "open_source"]

# All formats by suffix. A new format is a module with FORMATS, listed here.
FORMATS: dict[str, SourceFormat] = {
    suffix: each
    for module in (anndata, arrow, delimited, frames, hdf5, images, numpy_files, parquet, spreadsheets, zarr)
    for each in module.FORMATS
    for suffix in each.suffixes
}
STANDARD_INPUT = "-"  # of other commands
SPLITS = ("train", "test", "all")


def open_source(
    data: str | Path | Sequence[str | Path],
    *,
    part: str | None = None,
    folder: Folder = None,
    options: ReadOptions | None = None,
) -> Source:
    """Open a file, several files, a folder of images, or a dataset of `dre.datasets` by name.

    Parameters
    ----------
    data : str, Path or list of them
        A path, or the name of a dataset. A folder of files of one format, a pattern such as ``part-*.parquet`` and a list of
        paths are the rows of all these files, one after the other. A string that names a dataset is the dataset; write
        ``./mnist`` for a file or folder of that name.
    part : str, default=None
        The array to take from a file that holds several, or ``"train"`` (default), ``"test"`` or ``"all"`` of a dataset.
        It may also follow ``data`` after a colon: ``cells.h5ad:obsm/X_pca``.
    folder : path, default=None
        Folder with the files of datasets.
    options : ReadOptions, default=None
        Which columns are features, labels and names, and what happens to missing values. Everything else is decided by the
        columns' kinds and values.

    Returns
    -------
    source : Source
        The rows with their names and metadata. Large files are opened without reading them: ``source.rows`` are then
        `dre.data.rows.Rows`.

    Raises
    ------
    SourceError
        If the data do not exist or cannot be read.

    Examples
    --------
    >>> source = open_source("digits")
    >>> source.rows.shape, list(source.metadata)
    ((1347, 64), ['digit'])
    """
    options = options or ReadOptions()
    if isinstance(data, str):
        data, part = _split_part(data, part)
        if data in NAMES:
            return _open_dataset(data, part, folder)
    paths = _shards(data)
    if paths is not None:
        return open_shards(paths, lambda path, chosen: _open_file(path, part, chosen), options)
    assert isinstance(data, str | Path)
    path = Path(data).expanduser()
    if not os.fspath(data) or not path.exists():
        raise SourceError(_not_found(path, os.fspath(data)))
    return _open_file(path, part, options)


def _shards(data: str | Path | Sequence[str | Path]) -> list[Path] | None:
    """The files that a list, a pattern or a folder stands for; None for a single file, or a folder that is one array."""
    if not isinstance(data, str | Path):
        if not data:
            raise SourceError("a list of files is empty: name at least one")
        return [Path(each).expanduser() for each in data]
    path = Path(data).expanduser()
    if path.is_dir() and _detect_format(path) is not images.FORMATS[0]:
        return None
    return find_shards(str(path), [suffix for suffix, each in FORMATS.items() if each is not images.FORMATS[0]])


def _open_file(path: Path, part: str | None, options: ReadOptions) -> Source:
    if not path.exists():
        raise SourceError(_not_found(path, str(path)))
    check_file_kind(path)
    format_ = _detect_format(path)
    part = _part(path, format_, part, options)
    if format_.open_with is not None:
        return format_.open_with(path, part, options)
    assert format_.open is not None
    return with_options(path, format_.open(path, part), options)


def _part(path: Path, format_: SourceFormat, part: str | None, options: ReadOptions) -> str | None:
    """The part of a file that is named after a colon, or by an option for files of this kind."""
    if part is not None and not format_.part:
        raise SourceError(f"{path} has no parts: leave out {part!r}")
    size = None if options.size is None else "x".join(map(str, options.size))
    if format_.part == "size" and part is None and size is None and len(options.row_shape) > 1:
        return "x".join(map(str, (*options.row_shape, 1)[:3]))
    for kind, name in (("vector", options.vector), ("size", size)):
        if name is None:
            continue
        if format_.part == kind:
            part = part or name
        elif not options.where_possible:
            what = "columns of vectors" if kind == "vector" else "a folder of images"
            raise SourceError(f"{path} does not hold {what}: leave out the option {kind}={name!r}")
    return part


def _split_part(data: str, part: str | None) -> tuple[str, str | None]:
    """Split at the last colon, unless the colon belongs to a path."""
    before, colon, after = data.rpartition(":")
    if part is not None or not colon or not before or Path(data).expanduser().exists():
        return data, part
    is_known = before in NAMES or Path(before).expanduser().exists() or match_suffix(before, FORMATS) is not None
    return (before, after or None) if is_known else (data, None)


def _detect_format(path: Path) -> SourceFormat:
    suffix = match_suffix(path.name, FORMATS)
    by_suffix = FORMATS[suffix] if suffix is not None else None
    if path.is_dir():
        if by_suffix is not None and by_suffix.is_folder:
            return by_suffix
        by_marker = (each for each in FORMATS.values() if any((path / marker).exists() for marker in each.markers))
        return next(by_marker, images.FORMATS[0])
    if by_suffix is None:
        remedy = (
            "save the sheet as .xlsx or .csv" if path.suffix.lower() in spreadsheets.OTHERS else "save the rows with numpy.save"
        )
        raise SourceError(f"{path}: expected {', '.join(FORMATS)}, or a folder of images; {remedy}")
    return by_suffix


def _not_found(path: Path, data: str) -> str:
    if data == STANDARD_INPUT:
        return "- is standard input, not a file: save its content to a file, and pass that"
    if path.is_symlink():
        return f"{path} is a link to {os.readlink(path)}, which does not exist: check the link"
    if os.sep in data or match_suffix(data, FORMATS) is not None:
        siblings = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, siblings, n=1)
        return f"{path} does not exist" + (f". Did you mean {path.parent / close[0]}?" if close else ": check the path")
    close = difflib.get_close_matches(data.lower(), NAMES, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{data!r} is neither a file nor a dataset; datasets: {', '.join(NAMES)}.{hint}"


def _open_dataset(name: str, part: str | None, folder: Folder) -> Source:
    if part not in (None, *SPLITS):
        raise SourceError(f"{name}: {unknown('part', str(part), list(SPLITS))}")
    data = load(name, folder=folder)
    if part == "all":
        return _concatenate_splits(data)
    split = data.test if part == "test" else data.train
    return Source(split.rows, metadata=_with_label_names(split.levels, data.label_names))


def _concatenate_splits(data: Dataset) -> Source:
    train, test = data.train, data.test
    if is_rows(train.rows):
        raise SourceError(f"{data.name} is a stream, which cannot be concatenated: choose train or test")
    stack = scipy.sparse.vstack if scipy.sparse.issparse(train.rows) else np.concatenate
    levels = {level: np.concatenate([values, test.levels[level]]) for level, values in train.levels.items()}
    part = np.repeat(["train", "test"], [len(train.labels), len(test.labels)])
    return Source(stack([train.rows, test.rows]), metadata={**_with_label_names(levels, data.label_names), "part": part})


def _with_label_names(levels: dict[str, Array], names: tuple[str, ...]) -> dict[str, Array]:
    """Replace the numbers of the first level by their names, where the dataset has names."""
    first = next(iter(levels), None)
    return {level: np.array(names)[values] if names and level == first else values for level, values in levels.items()}
