"""Several files as one: a folder of shards, a pattern such as ``part-*.parquet``, or a list of files.

The first shard decides which columns are features. The others must have them too; they are opened when they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.rows import HostRows, Rows, describe_row, in_blocks, is_rows
from dre.io.readers.lazy_columns import join_columns, join_names
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import Array, DroppedRows, EmptySourceError, Source, SourceError, match_suffix
from dre.progress.activity import activity
from dre.progress.counted import counted

OPEN_FILES = 64  # shards that are open at a time: a process may have about 1,000 files open
HIDDEN = (".", "_")  # first letters of files that are no shards: _SUCCESS, _metadata
OpenOne = Callable[[Path, ReadOptions], Source]


def find_shards(data: str, suffixes: Sequence[str]) -> list[Path] | None:
    """Return the files that a pattern or a folder stands for, in their natural order; None if it is neither.

    A folder is one of shards if files of a single format lie in it, or in folders in it.
    """
    path = Path(data).expanduser()
    if path.is_dir():
        found = [each for each in path.rglob("*") if each.is_file() and not _is_hidden(each.relative_to(path))]
        kinds = {match_suffix(each.name, suffixes) for each in found}
        if len(kinds) != 1 or None in kinds:
            return None
    elif not path.exists() and has_magic(str(path)):
        found = [Path(name) for name in glob(str(path), recursive=True)]
        if not found:
            raise SourceError(f"no file matches {data}: check the pattern, and put it in quotes")
    else:
        return None
    return sorted(found, key=natural_order)


def natural_order(path: Path) -> list[tuple[int, int, str]]:
    """Sort numbers in names by their value.

    >>> sorted([Path("part-10"), Path("part-9")], key=natural_order)[0].name
    'part-9'
    """
    parts = re.split(r"(\d+)", str(path))
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts if part]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(HIDDEN) for part in path.parts)


def open_shards(paths: Sequence[Path], open_one: OpenOne, options: ReadOptions) -> Source:
    """Open files one after the other as one source. Files without rows are left out."""
    sources: list[Source] = []
    kept: list[Path] = []
    with activity("opening files", len(paths)) as opening:
        for path in paths:
            with suppress(EmptySourceError):
                shard = open_one(path, _like(sources[0], kept[0], options) if sources else options)
                if sources:
                    _check_alike(path, shard, kept[0], sources[0])
                sources.append(shard)
                kept.append(path)
                if is_rows(shard.rows) and len(paths) > OPEN_FILES:  # its file is opened again when it is read
                    sources[-1] = replace(shard, rows=_ClosedRows(shard.rows.shape))
            opening.advance()
    if not sources:
        raise SourceError(f"none of the {len(paths)} files has rows; the first is {paths[0]}")

    @lru_cache(OPEN_FILES)
    def reopen(i: int) -> Rows:
        rows: Rows = open_one(kept[i], _like(sources[0], kept[0], options)).rows
        if rows.shape != sources[i].rows.shape:
            raise SourceError(f"{kept[i]} has changed since it was opened: it has {rows.shape[0]:,} rows now. Start again.")
        return rows

    parts = [_opened(source.rows, partial(reopen, i)) for i, source in enumerate(sources)]
    return _join(sources, JoinedRows(parts, [str(path) for path in kept]), len(paths))


def _like(first: Source, path: Path, options: ReadOptions) -> ReadOptions:
    """Read the features of the first shard, and fill their gaps by the same values."""
    found = first.preparation
    features = first.columns if found is None else found.columns
    shape = tuple(first.rows.shape[1:])
    owner = options.owner if options.features else f"the first file, {path}"
    return replace(options, features=features or (), owner=owner, fill=first.fill, preparation=found, row_shape=shape)


def _check_alike(path: Path, shard: Source, first_path: Path, first: Source) -> None:
    here, there = tuple(shard.rows.shape[1:]), tuple(first.rows.shape[1:])
    if here != there:
        sizes = [" x ".join(map(str, shape)) for shape in (here, there)]
        raise SourceError(f"{path} has rows of {sizes[0]} values, {first_path} has rows of {sizes[1]}: leave out one of them")
    if (shard.names is None) != (first.names is None):
        raise SourceError(f"{path} and {first_path}: one has names of rows, the other has none; name a column by id")


class _ClosedRows:
    """The shape of rows whose file is closed."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def read(self, start: int, stop: int) -> Tensor:
        raise NotImplementedError

    def take(self, ids: Tensor) -> Tensor:
        raise NotImplementedError


class _ReopenedRows:
    """Rows whose file is opened when they are read, and closed after others were read."""

    in_blocks = True  # a file may be opened again for each row

    def __init__(self, shape: tuple[int, ...], reopen: Callable[[], Rows]) -> None:
        self.shape, self._reopen = shape, reopen

    def read(self, start: int, stop: int) -> Tensor:
        return self._reopen().read(start, stop)

    def take(self, ids: Tensor) -> Tensor:
        return self._reopen().take(ids)


def _opened(rows: Any, reopen: Callable[[], Rows]) -> Rows:
    if isinstance(rows, _ClosedRows):
        return _ReopenedRows(rows.shape, reopen)
    return rows if is_rows(rows) else HostRows(rows)


class JoinedRows:
    """Rows of several parts, one after the other.

    Parameters
    ----------
    parts : sequence of Rows
        With rows of the same shape.
    names : sequence of str, default=()
        Names of the parts, for messages.

    Examples
    --------
    >>> rows = JoinedRows([HostRows(np.zeros((2, 1))), HostRows(np.ones((3, 1)))])
    >>> rows.read(1, 4).ravel().tolist(), rows.take(torch.tensor([4, 0])).ravel().tolist()
    ([0.0, 1.0, 1.0], [1.0, 0.0])
    """

    def __init__(self, parts: Sequence[Rows], names: Sequence[str] = ()) -> None:
        self._parts, self._names = list(parts), list(names)
        self._starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        self.shape = (int(self._starts[-1]), *parts[0].shape[1:])
        self.thread_safe = all(getattr(part, "thread_safe", False) for part in parts)
        self.in_blocks = any(map(in_blocks, parts))

    def place(self, row: int) -> str:
        """Name a row by its file, for messages."""
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        local = row - int(self._starts[part])
        return f"row {local} of {self._names[part]}" if self._names else describe_row(self._parts[part], local)

    @property
    def edges(self) -> Array:
        """Rows at which the files, or blocks of them, begin and end."""
        blocks = [getattr(part, "edges", None) for part in self._parts]
        inner = [start + block for start, block in zip(self._starts, blocks, strict=False) if block is not None]
        return np.unique(np.concatenate([self._starts, *inner]))

    def read(self, start: int, stop: int) -> Tensor:
        """Read consecutive rows."""
        first, last = np.searchsorted(self._starts, [start, max(start, stop - 1)], side="right") - 1
        pieces = []
        for i in range(int(first), int(last) + 1):
            begin, end = int(self._starts[i]), int(self._starts[i + 1])
            pieces.append(self._parts[i].read(max(start, begin) - begin, min(stop, end) - begin))
        return pieces[0] if len(pieces) == 1 else _concatenate(pieces)

    def take(self, ids: Tensor) -> Tensor:
        """Read rows in any order, those of a part together."""
        wanted = ids.cpu()
        part_of = torch.from_numpy(np.searchsorted(self._starts, wanted.numpy(), side="right") - 1)
        order = part_of.argsort(stable=True)
        present, counts = part_of[order].unique_consecutive(return_counts=True)
        pieces = [
            self._parts[i].take(wanted[which] - int(self._starts[i]))
            for i, which in zip(present.tolist(), order.split(counts.tolist()), strict=True)
        ]
        return _concatenate(pieces)[order.argsort()]


def _concatenate(pieces: list[Tensor]) -> Tensor:
    dtype = pieces[0].dtype
    for piece in pieces[1:]:
        dtype = torch.promote_types(dtype, piece.dtype)
    return torch.cat([piece.to(dtype) for piece in pieces])


def _join_names(parts: Iterable[Source | DroppedRows]) -> Array | None:
    names = [part.names for part in parts if part.names is not None]
    return join_names(names) if names else None


def _join(sources: list[Source], rows: JoinedRows, count: int) -> Source:
    first = sources[0]
    left_out = count - len(sources)
    sizes = f"{counted(len(sources), 'file')}, {counted(rows.shape[0], 'row')}"
    messages = [sizes + (f"; {left_out:,} without rows" if left_out else "")]
    kept = None
    if any(each.dropped is not None for each in sources):
        parts = [np.ones(each.rows.shape[0], bool) if each.dropped is None else each.dropped.kept for each in sources]
        kept = DroppedRows(np.concatenate(parts), _join_names(each.dropped or each for each in sources))
    return replace(
        first,
        rows=rows,
        names=_join_names(sources),
        metadata=join_columns([each.metadata for each in sources]),
        messages=[*messages, *first.messages],
        dropped=kept,
        filled={},
        aside=None,
    )
