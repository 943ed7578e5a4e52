"""A table in a text file: what stands between its columns, its header, its numbers and its texts."""

from __future__ import annotations

import csv
import gzip
import math
import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import numpy as np

from dre.io.readers.source import Array
from dre.io.readers.texts import texts

KINDS = (".csv", ".tsv")
LOOKED_AT = 20  # lines, to see what stands between the columns
MISSING = {"", "na", "n/a", "nan", "none", "null", "inf", "-inf", "?", "-", "."}  # values in a first line, and no names
COUNTED_FROM = 4  # columns with the names 0, 1, 2, …, as pandas gives them; fewer may be a row of data
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?")  # 007 and 1_2 are names, whatever float() says


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers, and what stood beside them."""

    values: Array  # (n, d), or images (n, h, w)
    columns: list[str] | None = None  # the names of the d columns, where there is a header
    names: Array | None = None  # (n,), those of the rows, where there is a column of them
    texts: dict[str, Array] = field(default_factory=dict)  # (n,) each: columns that hold no numbers

    @property
    def named_rows(self) -> bool:
        return self.names is not None


def cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line by line its number and its values; a blank line has none."""
    return _split(path, _delimiter(path))


def _delimiter(path: Path) -> str:
    """Of a tab, a semicolon and a comma the one that leaves the most numbers in the first lines: texts may have any of them."""
    if path.name.lower().removesuffix(".gz").endswith(".tsv"):
        return "\t"
    best, most = ",", -1
    for mark in "\t;,":
        lines = [values for _, values in islice(_split(path, mark), LOOKED_AT) if values]
        numbers = sum(_is_like_a_number(value) for values in lines for value in values)
        if numbers > most and min(map(len, lines), default=0) > 1:
            best, most = mark, numbers
    return best


def _is_like_a_number(value: str) -> bool:
    """Also with a comma for the point, which is an error, but one of the number and not of the columns."""
    return _finite([value.replace(",", ".", 1)]) is not None


def _split(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    with _opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        try:
            for values in reader:
                yield reader.line_num, [value.strip() for value in values]
        except UnicodeDecodeError as problem:
            raise ValueError(f"{path} is not text in UTF-8 ({problem.reason}): save it as CSV UTF-8") from problem
        except csv.Error as problem:
            raise ValueError(f"{path}, line {reader.line_num}: {problem}; expected values between commas") from problem
        except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
            raise ValueError(f"{path} can't be decompressed: {problem}; compress it again with gzip") from problem


def _opened(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def read_table(path: Path) -> Table:
    """All columns as numbers, but for the names of the rows and for columns that hold texts and no number at all."""
    lines = ((line, values) for line, values in cells(path) if values)
    head = next(lines, None)
    if head is None:
        raise ValueError(f"{path} is empty")
    width, names = len(head[1]), head[1] if _is_header(head[1]) else None
    first = head if names is None else next(lines, None)
    if first is None:
        raise ValueError(f"{path} has a header, and no rows")
    named = names is not None and names_rows(names)
    textual = [i for i in _no_numbers(first[1][:width]) if i > 0 or not named]
    beside: dict[int, list[str]] = {i: [] for i in ([0] if named else []) + textual}
    kept = [i for i in range(width) if i not in beside]
    numbers, seen = array("d"), dict[str, str]()  # a text that is repeated is held once
    for line, values in chain([first], lines):
        if len(values) != width:
            raise ValueError(f"{path}, line {line} has {len(values)} values, the first {width}: there must be as many in each")
        found = _finite([values[i] for i in kept])
        if found is None:
            wrong = next(i for i in kept if _finite([values[i]]) is None)
            raise ValueError(_not_a_number(path, line, wrong, values[wrong], names))
        numbers.extend(found)
        for i, column in beside.items():
            column.append(seen.setdefault(values[i], values[i]))
    for i in textual:
        if not _are_texts(beside[i]):
            raise ValueError(_not_a_number(path, first[0], i, first[1][i], names))
    if not kept:
        raise ValueError(f"{path} has no column of numbers: encode its texts as numbers")
    return Table(
        np.frombuffer(numbers).reshape(-1, len(kept)),
        columns=None if names is None else [names[i] for i in kept],
        names=texts(beside[0]) if named else None,
        texts=_by_name(path, names, {i: beside[i] for i in textual}),
    )


def _no_numbers(values: list[str]) -> list[int]:
    return [i for i, value in enumerate(values) if _finite([value]) is None]


def _are_texts(values: list[str]) -> bool:
    """Whether no value is a number, and not all are missing, or numbers in a way of writing that is not ours."""
    distinct = set(values)
    there = [value for value in distinct if value.lower() not in MISSING]
    return all(_finite([value]) is None for value in distinct) and not all(map(_is_mistaken, there))


def _is_mistaken(value: str) -> bool:
    return _is_like_a_number(value) or (_is_complex(value) and any(map(str.isdigit, value)))


def _by_name(path: Path, names: list[str] | None, columns: dict[int, list[str]]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for i, values in columns.items():
        name = (names[i] if names else "") or f"column {i + 1}"
        if name in found:
            raise ValueError(f"{path} has several columns {name!r}: rename all but one")
        found[name] = texts(values)
    return found


def _is_header(values: list[str]) -> bool:
    """Whether none of them is a number, and not all are values that are missing; or they count the columns, as pandas does."""
    names = values[1:] if names_rows(values) else values
    numbers = [name for name in names if _finite([name]) is not None]
    if len(numbers) >= COUNTED_FROM and numbers == [str(i) for i in range(len(numbers))]:  # others may stand between them
        return True
    return all(_finite([name]) is None for name in names) and any(name.lower() not in MISSING for name in names)


def names_rows(header: list[str]) -> bool:
    """Whether the first column has no name: pandas and R so write the names of the rows."""
    return len(header) > 1 and not header[0]


def _finite(values: list[str]) -> list[float] | None:
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _not_a_number(path: Path, line: int, place: int, value: str, names: list[str] | None) -> str:
    name = names[place] if names else ""
    where, column = f"{path}, line {line}, column {place + 1}", f" ({name!r})" if name else ""
    if value.lower() in MISSING:
        return f"{where}{column} is missing ({value!r}): drop that row, or fill it in with sklearn.impute.SimpleImputer"
    return f"{where}{column} is not a number: {value!r}; {_remedy(value)}"


def _remedy(value: str) -> str:
    if ";" in value or "\t" in value:
        return "separate the columns by the same character in all lines"
    if NUMBER.fullmatch(value.replace(",", ".", 1)):
        return "write decimals with a point"
    if _is_complex(value):
        return "give the real and imaginary part of complex numbers a column each"
    return "leave that column out, or encode it as numbers"


def _is_complex(value: str) -> bool:
    try:
        complex(value)
    except ValueError:
        return False
    return True


def typed(labels: list[str]) -> Array:
    """As numbers where all are written like numbers: so they are sorted, and fractions get a scale of colours."""
    if all(map(WHOLE.fullmatch, labels)):
        return np.array(labels, dtype=np.int64)
    return np.array(labels, dtype=np.float64 if all(map(NUMBER.fullmatch, labels)) else str)
