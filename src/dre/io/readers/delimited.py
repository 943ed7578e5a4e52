"""Text tables (.csv, .tsv, plain or gzipped): numeric columns are the rows, text columns are metadata.

Python's csv module splits the records: it needs no extra, streams files of any size and knows the line of every record.
"""

from __future__ import annotations

import csv
import gzip
import math
import sys
import zlib
from array import array
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import numpy as np

from dre.io.readers.source import Array, Source, SourceError, SourceFormat, summarize_names, to_strings

SNIFFED_RECORDS = 20
MISSING = {"", "na", "n/a", "nan", "none", "null", "inf", "-inf", "?", "-", "."}  # never the name of a column
MIN_COUNTED_COLUMNS = 4  # names 0, 1, 2, … are a header that pandas wrote; with fewer columns they may be data


def read_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the stripped values of each record; a blank line has no values."""
    return _split(path, _detect_delimiter(path))


def has_row_names(header: list[str]) -> bool:
    """Return whether the first column has no name: pandas and R write row names like that."""
    return len(header) > 1 and not header[0]


def _open_delimited(path: Path, part: str | None) -> Source:
    records = ((line, values) for line, values in read_records(path) if values)
    first = next(records, None)
    if first is None:
        raise SourceError(f"{path} is empty")
    width, header = len(first[1]), first[1] if _is_header(first[1]) else None
    if header is not None:
        first = next(records, None)
        if first is None:
            raise SourceError(f"{path} has a header but no rows")
    has_names = header is not None and has_row_names(header)
    is_text = [not _is_number(value) or (has_names and i == 0) for i, value in enumerate(first[1][:width])]
    strings: dict[int, list[str]] = {i: [] for i in range(len(is_text)) if is_text[i]}
    numeric = [i for i in range(width) if i not in strings]
    numbers = array("d")
    for line, values in chain([first], records):
        if len(values) != width:
            raise SourceError(f"{path}, line {line} has {len(values)} values, the first line {width}: make all lines alike")
        floats = _finite_floats([values[i] for i in numeric])
        if floats is None:
            wrong = next(i for i in numeric if not _is_number(values[i]))
            raise _cell_error(path, line, wrong, values[wrong], header)
        numbers.extend(floats)
        for i, column in strings.items():
            column.append(sys.intern(values[i]))  # text columns repeat few values
    names = to_strings(strings.pop(0)) if has_names else None
    for i, column in strings.items():
        if not _is_text_column(column):
            raise _cell_error(path, first[0], i, column[0], header)
    if not numeric:
        raise SourceError(f"{path} has no numeric column: encode its text columns as numbers")
    metadata = _name_columns(path, strings, header)
    messages = ["the first column has no name: it holds the row names"] if has_names else []
    if metadata:
        messages.append(f"text columns are not features: {summarize_names(list(map(repr, metadata)))}")
    columns = None if header is None else [header[i] for i in numeric]
    return Source(np.frombuffer(numbers).reshape(-1, len(numeric)), columns, names, metadata, messages)


def _detect_delimiter(path: Path) -> str:
    """Of tab, semicolon and comma, choose the one that leaves most numbers: text values may contain any of them."""
    if path.name.lower().removesuffix(".gz").endswith(".tsv"):
        return "\t"
    best, most = ",", -1
    for delimiter in "\t;,":
        records = [values for _, values in islice(_split(path, delimiter), SNIFFED_RECORDS) if values]
        count = sum(_resembles_number(value) for values in records for value in values)
        if count > most and min(map(len, records), default=0) > 1:
            best, most = delimiter, count
    return best


def _split(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        try:
            for values in reader:
                yield reader.line_num, [value.strip() for value in values]
        except UnicodeDecodeError as problem:
            raise SourceError(f"{path} is not UTF-8 text ({problem.reason}): save it as CSV UTF-8") from problem
        except csv.Error as problem:
            raise SourceError(f"{path}, line {reader.line_num}: {problem}; expected values separated by commas") from problem
        except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
            raise SourceError(f"{path} cannot be decompressed: {problem}; compress it again with gzip") from problem


def _open_text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _is_header(values: list[str]) -> bool:
    """Whether the first record names the columns: no value is a number, or pandas numbered the columns."""
    names = values[1:] if has_row_names(values) else values
    numbers = [name for name in names if _is_number(name)]
    if len(numbers) >= MIN_COUNTED_COLUMNS and numbers == [str(i) for i in range(len(numbers))]:
        return True  # text columns may stand between the numbered ones
    return not numbers and any(name.lower() not in MISSING for name in names)


def _finite_floats(values: list[str]) -> list[float] | None:
    try:
        floats = [float(value) for value in values]
    except ValueError:
        return None
    return floats if all(map(math.isfinite, floats)) else None


def _is_number(value: str) -> bool:
    return _finite_floats([value]) is not None


def _resembles_number(value: str) -> bool:
    """Whether a value is a number, if need be with a decimal comma."""
    return _is_number(value.replace(",", ".", 1))


def _is_complex(value: str) -> bool:
    try:
        complex(value)
    except ValueError:
        return False
    return any(map(str.isdigit, value))


def _is_text_column(values: list[str]) -> bool:
    """Whether a column holds no numbers, and is more than missing values and malformed numbers."""
    distinct = set(values)
    present = [value for value in distinct if value.lower() not in MISSING]
    malformed = all(_resembles_number(value) or _is_complex(value) for value in present)
    return not any(map(_is_number, distinct)) and not malformed


def _name_columns(path: Path, columns: dict[int, list[str]], header: list[str] | None) -> dict[str, Array]:
    named: dict[str, Array] = {}
    for i, values in columns.items():
        name = (header[i] if header else "") or f"column {i + 1}"
        if name in named:
            raise SourceError(f"{path} has several columns {name!r}: rename all but one")
        named[name] = to_strings(values)
    return named


def _cell_error(path: Path, line: int, column: int, value: str, header: list[str] | None) -> SourceError:
    name = f" ({header[column]!r})" if header and header[column] else ""
    where = f"{path}, line {line}, column {column + 1}{name}"
    if value.lower() in MISSING:
        return SourceError(f"{where}: missing value {value!r}; drop the row or fill it with sklearn.impute.SimpleImputer")
    if ";" in value or "\t" in value:
        remedy = "separate the columns by the same character in all lines"
    elif _resembles_number(value):
        remedy = "write decimals with a point"
    elif _is_complex(value):
        remedy = "put the real and imaginary parts of complex numbers into separate columns"
    else:
        remedy = "remove the column or encode it as numbers"
    return SourceError(f"{where}: {value!r} is not a number; {remedy}")


FORMATS = (SourceFormat((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _open_delimited),)
