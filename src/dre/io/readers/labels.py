"""Labels in a file of their own: .npy, .npz, .csv, .tsv, .json, or text with one label per line."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np

from dre.io.formulas import restore
from dre.io.readers.delimited import FORMATS as DELIMITED
from dre.io.readers.delimited import decoded_text, has_row_names, read_text
from dre.io.readers.numpy_files import load_array
from dre.io.readers.source import Array, check_file_kind, match_suffix, summarize_names, to_strings
from dre.io.readers.table import MISSING, blank_missing

NUMPY, JSON = (".npy", ".npz"), ".json"
FLAT_LIST = 'write them as ["a", "b", "a"], one for each row'
INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?")  # float() would also take names like 007 and 1_2


def read_labels(path: Path, count: int, names: Array | None = None) -> Array:
    """Read one label for each of ``count`` rows.

    Parameters
    ----------
    path : Path
        A .npy file; a .npz file, whose first array of that length is taken; a .csv or .tsv file with one column; a .json
        file with a list; any other file is text with one label per line. A table or text may have a header: one line
        more than there are rows, with a first line unlike the others.
    count : int
        Number of rows.
    names : array of shape (count,), default=None
        Names of the rows. A table with a column of names before the labels is matched by them.

    Returns
    -------
    labels : array of shape (count,)
        Numbers where all labels are written as numbers, otherwise strings. A missing label, such as NA, is NaN or empty.

    Raises
    ------
    ValueError
        If the file cannot be read, does not hold ``count`` labels, or names other rows.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "y.txt").write_text("kind\\nB\\nNK\\n")
    ...     read_labels(Path(folder, "y.txt"), 2).tolist()
    ['B', 'NK']
    """
    _check_format(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    check_file_kind(path)
    if path.is_dir():
        raise ValueError(f"{path} is not a file but a folder: pass a file with one label for each row")
    suffix = path.suffix.lower()
    if suffix in NUMPY:
        array = load_array(path, lambda shape: shape in ((count,), (count, 1)))
        return blank_missing(_check_count(path, np.atleast_1d(array), count))
    if suffix == JSON:
        return _check_count(path, _read_json(path), count)
    if suffix in (".csv", ".tsv"):
        table = [values or [""] for _, values in read_text(path).records()]
        by_name = None if names is None else _by_name(path, table, names)
        if by_name is not None:
            return _to_typed_array(by_name)
        lines = _only_column(path, table)
    else:
        lines = [restore(line).strip() for line in decoded_text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) == count + 1 and _is_header(lines[0], lines[1:]):
        lines = lines[1:]
    return _check_count(path, _to_typed_array(lines), count)


def _check_format(path: Path) -> None:
    """Refuse files of rows, such as .h5ad and .parquet, which are no text."""
    from dre.io.readers import FORMATS  # which imports this package's formats

    suffix = match_suffix(path.name, FORMATS)
    if suffix is not None and suffix not in (*NUMPY, JSON) and not any(suffix in each.suffixes for each in DELIMITED):
        raise ValueError(
            f"{path} is no file of labels: pass the name of a column of DATA, or a .csv, .npy or .txt file with one label "
            "for each row"
        )


def _read_json(path: Path) -> Array:
    try:
        labels = json.loads(decoded_text(path))
    except ValueError as problem:  # also numbers of thousands of digits
        raise ValueError(f"{path} is not JSON: {problem}") from problem
    except RecursionError as problem:
        raise ValueError(f"{path} has lists within lists: {FLAT_LIST}") from problem
    if not isinstance(labels, list) or any(isinstance(label, list | dict) for label in labels):
        raise ValueError(f"{path} is not a list of labels: {FLAT_LIST}")
    return blank_missing(np.array(labels, dtype=object))


def _by_name(path: Path, table: list[list[str]], names: Array) -> list[str] | None:
    """Labels in the order of the rows, if the first of two columns has their names; None if it only counts rows."""
    records = [values for values in table if any(values)]
    if not records or any(len(values) != 2 for values in records):
        return None
    wanted, first = list(map(str, names)), [name for name, _ in records]
    if wanted in (first, first[1:]):  # in the same order, even if names occur twice
        return [label for _, label in records[len(first) - len(wanted) :]]
    labels = dict(records)
    lacking = [name for name in wanted if name not in labels]
    if not lacking:
        if len(labels) < len(records):
            twice = next(name for name, count in Counter(first).items() if count > 1)
            raise ValueError(f"{path} has several labels for the row {twice!r}: leave one for each name")
        return [labels[name] for name in wanted]
    if len(lacking) == len(names) and all(name.isdecimal() for name, _ in records[1:]):
        return None
    found = f"{path} has no label for {len(lacking):,} of {len(names):,} rows"
    if len(lacking) == len(names):
        raise ValueError(f"{found}, since all names differ (DATA: {lacking[0]!r}, {path}: {first[-1]!r})")
    raise ValueError(f"{found}: {summarize_names(lacking, 3)}")


def _only_column(path: Path, table: list[list[str]]) -> list[str]:
    """The values of a table with one column; row names may stand before it."""
    if table and len(table[0]) == 2 and has_row_names(table[0]):
        table = [values[1:] for values in table[1:] if any(values)]
    for line, values in enumerate(table):
        if len(values) != 1:
            raise ValueError(
                f"{path} has {len(values)} columns in line {line + 1}: expected one column of labels; "
                "put labels that contain a comma, a semicolon or a tab in quotes"
            )
    return [values[0] for values in table]


def _is_header(first: str, others: list[str]) -> bool:
    return first not in others and not all(map(NUMBER.fullmatch, [first, *others]))


def _to_typed_array(texts: list[str]) -> Array:
    """Convert to numbers if all labels are: they then sort by value, and fractions get a continuous color scale."""
    labels = ["" if text.strip().lower() in MISSING else text for text in texts]
    if "" in labels and all(label == "" or NUMBER.fullmatch(label) for label in labels) and any(labels):
        return np.array([label or "nan" for label in labels], dtype=np.float64)
    if all(map(INTEGER.fullmatch, labels)):
        return np.array(labels, dtype=np.int64)
    return np.array(labels, dtype=np.float64) if all(map(NUMBER.fullmatch, labels)) else to_strings(labels)


def _check_count(path: Path, labels: Array, count: int) -> Array:
    if len(labels) != count:
        raise ValueError(f"{path} has {len(labels)} labels for {count} rows: expected one label per row")
    return labels
