"""What is read from a file or by name: rows, what they and their columns are called, and what stands beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
INSTALL = "pip install 'deep-recursive-embedding[files]'"
MOST_LISTED = 20  # names in an error


class SourceError(ValueError):
    """Data that can't be read: says which, what is wrong with them and what to do."""


@dataclass(frozen=True, eq=False)
class Source:
    """Rows to learn from or to embed, with all that a file told of them."""

    rows: Any  # array (n, d) or images (n, h, w[, c]), a CSR matrix, or `dre.data.rows.Rows` that are read piece by piece
    columns: list[str] | None = None  # the names of the d columns, where the file has them
    names: Array | None = None  # (n,), those of the rows
    metadata: dict[str, Array] = field(default_factory=dict)  # (n,) each: what is no feature, labels among them
    told: list[str] = field(default_factory=list)  # what a user should know, one line each

    def __post_init__(self) -> None:
        beside = self.metadata if self.names is None else {"the names of the rows": self.names, **self.metadata}
        for name, values in beside.items():
            if len(values) != self.rows.shape[0]:
                raise ValueError(f"{name}: {len(values)} values for {self.rows.shape[0]} rows; there must be one for each")


@dataclass(frozen=True)
class Format:
    """One kind of file. A new one is a file in this folder with such a ``FORMAT``."""

    suffixes: tuple[str, ...]  # in lower case, with the dot
    open: Callable[[Path, str | None], Source]  # of a path, and of the part of the file that was asked for
    has_parts: bool = False  # whether there may be several arrays in one file
    is_folder: bool = False  # whether it may be a folder
    marks: tuple[str, ...] = ()  # files by one of which such a folder is known, whatever it is called


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever a damaged file causes is one error that names it; what was already said better is left alone."""
    try:
        yield
    except (SourceError, ImportError, MemoryError):
        raise
    except Exception as problem:  # libraries raise whatever they please: even SyntaxError, for a PNG
        reason = next((line.strip(" .") for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
        raise SourceError(f"{path} can't be read: {reason}.\nIf it is damaged, get it or write it again.") from problem


def listed(names: list[str]) -> str:
    """For an error: the first of them, and how many there are."""
    return ", ".join(names[:MOST_LISTED]) + (f", … ({len(names):,} in all)" if len(names) > MOST_LISTED else "") or "none"


def check_numbers(path: Path, shape: tuple[int, ...], dtype: Any, what: str = "an array") -> None:
    """Rows with columns, of real numbers: those of a file are not looked at before they are read."""
    if len(shape) < 2:
        raise SourceError(f"{path} holds {what} of the shape {tuple(shape)}: expected rows with columns, (n, d)")
    if dtype.kind not in "biuf":
        raise SourceError(f"{path} holds {what} of {dtype}, not of real numbers: convert or encode it first")
