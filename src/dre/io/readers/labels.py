"""Labels in a file of their own: .npy, .npz, .csv, .tsv, .json, or text with one a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.npz import stored
from dre.io.readers.text_table import KINDS, NUMBER, cells, names_rows, typed

Array = np.ndarray[Any, Any]


def read_labels(path: Path, count: int) -> Array:
    """One label for each of ``count`` rows, numbers or texts.

    From .npy; .npz, the first array of that length; .csv and .tsv, one column; .json, a list; all else is text with one a
    line. A .csv or text may have a header: where there is one line more than rows, and the first is like none of the others.
    """
    kind = _kind(path)
    if kind in (".npy", ".npz"):
        found = stored(path, lambda held: held.shape in ((count,), (count, 1)))
        return _counted(path, np.atleast_1d(found), count)
    if kind == ".json":
        return _counted(path, _listed(path), count)
    lines = _one_column(path) if kind in KINDS else [line.strip() for line in _text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) == count + 1 and _is_name(lines[0], lines[1:]):
        lines = lines[1:]
    if "" in lines:
        raise ValueError(f"{path}: label {lines.index('') + 1} of {len(lines)} is empty; give it a name, or drop that row")
    return _counted(path, typed(lines), count)


def _kind(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"{path} is {'no file' if path.exists() else 'not there'}")
    return path.suffix.lower()


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


def _one_column(path: Path) -> list[str]:
    """The values of a table with one column, beside which there may be names of the rows."""
    table = [values or [""] for _, values in cells(path)]
    if table and len(table[0]) == 2 and names_rows(table[0]):
        table = [values[1:] for values in table[1:] if any(values)]
    for line, values in enumerate(table):
        if len(values) != 1:
            raise ValueError(
                f"{path} has {len(values)} columns in line {line + 1}: expected one, that of the labels; "
                "put labels with a comma, a semicolon or a tab in quotes"
            )
    return [values[0] for values in table]


def _is_name(first: str, others: list[str]) -> bool:
    return first not in others and not all(map(NUMBER.fullmatch, [first, *others]))


def _counted(path: Path, labels: Array, count: int) -> Array:
    if len(labels) != count:
        raise ValueError(f"{path} has {len(labels)} labels, but there are {count} rows: there must be one label for each row")
    return labels
