"""Rows and labels of one's own, read from files: .npy, .npz and .csv, and labels also from .json and text."""

from __future__ import annotations

import csv
import json
import math
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
MISSING = {"", "na", "n/a", "nan", "none", "null", "inf", "-inf", "?", "-", "."}  # values in a first line, and no names
COUNTED_FROM = 4  # columns with the names 0, 1, 2, …, as pandas gives them; fewer may be a row of data
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?")  # 007 and 1_2 are names, whatever float() says


def read_rows(path: Path) -> Array:
    """The rows in a file: an array (n, d), or images (n, h, w) in .npy and .npz.

    Of a .npz it is the first array that has columns. A .csv may have a header; where the first column has no name in it, that
    column is the names of the rows, and left out. A cell that is not a number is an error that says where it is.
    """
    kind = _kind(path)
    if kind in (".npy", ".npz"):
        found = _stored(path, lambda held: held.ndim > 1)
        if found.ndim < 2:
            raise ValueError(f"{path} holds an array of the shape {found.shape}: expected rows with columns, (n, d)")
        return found
    if kind == ".csv":
        return _numbers(path)
    raise ValueError(f"{path}: expected .npy, .npz or .csv; save the rows with numpy.save")


def read_labels(path: Path, count: int) -> Array:
    """One label for each of ``count`` rows, numbers or texts.

    From .npy; .npz, the first array of that length; .csv, one column; .json, a list; all else is text with one a line. A .csv
    or text may have a header: where there is one line more than rows, and the first is like none of the others.
    """
    kind = _kind(path)
    if kind in (".npy", ".npz"):
        stored = _stored(path, lambda held: held.shape in ((count,), (count, 1)))
        return _counted(path, np.atleast_1d(stored), count)
    if kind == ".json":
        return _counted(path, _listed(path), count)
    lines = _one_column(path) if kind == ".csv" else [line.strip() for line in _text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) == count + 1 and _is_name(lines[0], lines[1:]):
        lines = lines[1:]
    if "" in lines:
        raise ValueError(f"{path}: label {lines.index('') + 1} of {len(lines)} is empty; give it a name, or drop that row")
    return _counted(path, _typed(lines), count)


def _kind(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"{path} is {'no file' if path.exists() else 'not there'}")
    return path.suffix.lower()


def _stored(path: Path, wanted: Callable[[Array], bool]) -> Array:
    """The array of a .npy; of a .npz the first that is wanted, or else the first."""
    try:
        held = np.load(path, allow_pickle=False)
        if isinstance(held, np.ndarray):
            return held
        with held:
            first, *others = held.files
            found: Array = held[first]
            if not wanted(found):
                found = next((each for each in map(held.get, others) if wanted(each)), found)
    except Exception as problem:  # a damaged file can cause any
        raise ValueError(
            f"{path} can't be read as an array: {problem}. Save numbers with numpy.save(path, X), texts with "
            "numpy.save(path, labels.astype(str)); pickles are not read"
        ) from problem
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path} is not text in UTF-8 ({problem.reason}): save it in that encoding") from problem


def _listed(path: Path) -> Array:
    try:
        told = json.loads(_text(path))
    except json.JSONDecodeError as problem:
        raise ValueError(f"{path} is not JSON: {problem}") from problem
    if not isinstance(told, list) or any(isinstance(label, list | dict) for label in told):
        raise ValueError(f'{path} is not a list of labels: write them as ["a", "b", "a"], one for each row')
    return np.array(told, dtype=object)


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line by line its number and its values; a blank line has none."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        try:
            for cells in reader:
                yield reader.line_num, [cell.strip() for cell in cells]
        except UnicodeDecodeError as problem:
            raise ValueError(f"{path} is not text in UTF-8 ({problem.reason}): save it as CSV UTF-8") from problem
        except csv.Error as problem:
            raise ValueError(f"{path}, line {reader.line_num}: {problem}; expected values between commas") from problem


def _numbers(path: Path) -> Array:
    lines = ((line, cells) for line, cells in _cells(path) if cells)
    head = next(lines, None)
    if head is None:
        raise ValueError(f"{path} is empty")
    width, names = len(head[1]), head[1] if _is_header(head[1]) else None
    skipped = 1 if names is not None and _names_rows(names) else 0
    values = array("d")
    for line, cells in lines if names is not None else chain([head], lines):
        if len(cells) != width:
            raise ValueError(f"{path}, line {line} has {len(cells)} values, the first {width}: there must be as many in each")
        numbers = _finite(cells[skipped:])
        if numbers is None:
            column = next(i for i, cell in enumerate(cells) if i >= skipped and _finite([cell]) is None)
            raise ValueError(
                _not_a_number(f"{path}, line {line}, column {column + 1}", cells[column], names[column] if names else "")
            )
        values.extend(numbers)
    if not values:
        raise ValueError(f"{path} has a header, and no rows")
    return np.frombuffer(values).reshape(-1, width - skipped)


def _is_header(cells: list[str]) -> bool:
    """Whether none of them is a number, and not all are values that are missing; or they count the columns, as pandas does."""
    names = cells[1:] if _names_rows(cells) else cells
    if len(names) >= COUNTED_FROM and names == [str(i) for i in range(len(names))]:
        return True
    return all(_finite([name]) is None for name in names) and any(name.lower() not in MISSING for name in names)


def _names_rows(header: list[str]) -> bool:
    """Whether the first column has no name: pandas and R so write the names of the rows."""
    return len(header) > 1 and not header[0]


def _finite(cells: list[str]) -> list[float] | None:
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _not_a_number(where: str, cell: str, name: str) -> str:
    column = f" ({name!r})" if name else ""
    if cell.lower() in MISSING:
        return f"{where}{column} is missing ({cell!r}): drop that row, or fill it in with sklearn.impute.SimpleImputer"
    hint = "separate the columns by commas" if ";" in cell or "\t" in cell else "leave that column out, or encode it as numbers"
    return f"{where}{column} is not a number: {cell!r}; {hint}"


def _one_column(path: Path) -> list[str]:
    """The values of a .csv with one column, beside which there may be names of the rows."""
    table = [cells or [""] for _, cells in _cells(path)]
    if table and len(table[0]) == 2 and _names_rows(table[0]):
        table = [cells[1:] for cells in table[1:] if any(cells)]
    for line, cells in enumerate(table):
        if len(cells) != 1:
            raise ValueError(f"{path} has {len(cells)} columns in line {line + 1}: expected one, that of the labels")
    return [cells[0] for cells in table]


def _is_name(first: str, others: list[str]) -> bool:
    return first not in others and not all(map(NUMBER.fullmatch, [first, *others]))


def _typed(lines: list[str]) -> Array:
    """As numbers where all are written like numbers: so they are sorted, and fractions get a scale of colours."""
    if all(map(WHOLE.fullmatch, lines)):
        return np.array(lines, dtype=np.int64)
    return np.array(lines, dtype=np.float64 if all(map(NUMBER.fullmatch, lines)) else str)


def _counted(path: Path, labels: Array, count: int) -> Array:
    if len(labels) != count:
        raise ValueError(f"{path} has {len(labels)} labels, but there are {count} rows: there must be one label for each row")
    return labels
