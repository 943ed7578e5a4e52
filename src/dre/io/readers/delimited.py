"""Text tables (.csv, .tsv, .txt, plain or gzipped), with the separator, the encoding and the decimals that they have.

Polars splits the records and reads the numbers. Only a message about a wrong line reads the file by Python's csv module.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dre.io.formulas import DEFUSED, may_have_defused, restore
from dre.io.readers.memory import CELL_BYTES, SMALLER_TEXT, check_memory, read_text_bytes
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import EmptySourceError, Source, SourceError, SourceFormat, to_strings
from dre.io.readers.table import MISSING, Table, resembles_number
from dre.io.readers.table_source import source_of

SEPARATORS = "\t;,| "  # in the order in which they are preferred
SNIFFED = 2**16  # bytes of the beginning that tell the separator
SNIFFED_RECORDS = 20
FEWEST_BELOW_TITLE = 3  # columns of a table below a title: R writes tables of one column as records of one and two values
MIN_COUNTED_COLUMNS = 4  # names 0, 1, 2, … are a header that pandas wrote; with fewer columns they may be data
BYTE_ORDER_MARKS = {  # the longest first
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
OLD_ENCODING = "cp1252"  # of Excel and of many older programs; it has all letters of Latin-1
TOTALS = {"total", "totals", "grand total", "sum", "summe", "gesamt", "gesamtsumme", "somme", "suma", "totale"}  # in lower case
TEXT_CELL_BYTES = CELL_BYTES + 16  # of a cell that polars also holds as a text
LONGEST_FIELD = 2**31 - 1  # characters that Python's csv module may read as one field
FIELD_LIMIT_LOCK = threading.Lock()  # the csv module has one limit for all threads
SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat")


@dataclass(frozen=True)
class TextTable:
    """The text of a file, and how it is written.

    Parameters
    ----------
    path : Path
    text : bytes
        In UTF-8, with ends of lines that are line feeds.
    separator : str
    first_line : int
        Number of lines before the first record: comments and titles.
    titles : int, default=0
        How many of them are titles, shorter than the records of the table.
    """

    path: Path
    text: bytes
    separator: str
    first_line: int
    titles: int = 0

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line number and the stripped values of each record; a blank line has no values."""
        return _split(self.text, self.separator, self.first_line)


def read_text(path: Path) -> TextTable:
    """Read a text table and find its separator."""
    text, comments = _without_comments(_decode(path, _read_bytes(path)))
    name = path.name.lower().removesuffix(".gz")
    separators = "\t" if name.endswith((".tsv", ".tab")) else SEPARATORS
    separator, titles = _detect_separator(text, separators)
    for _ in range(titles):
        text = text[text.index(b"\n") + 1 :]
    return TextTable(path, text, separator, comments + titles, titles)


def decoded_text(path: Path) -> str:
    """The text of a file in the encoding that it has, with ends of lines that are line feeds."""
    return _decode(path, _read_bytes(path)).decode()


def has_row_names(header: list[str]) -> bool:
    """Return whether the first column has no name: pandas and R write row names like that."""
    return len(header) > 1 and not header[0]


def read_table(path: Path, decimal: str | None = None) -> Table:
    """Read a text table with typed columns.

    Parameters
    ----------
    path : Path
    decimal : {".", ","}, default=None
        Mark of decimals; None finds it.
    """
    from dre.io.readers.typed import decimal_mark, typed_columns  # polars, which other formats do without

    found = read_text(path)
    records = list(islice((each for each in found.records() if each[1]), 2))
    if not records:
        raise SourceError(f"{path} is empty")
    (line, first), second = records[0], records[-1][1]
    header = first if _is_header(first) else None
    if header is not None and len(records) == 1:
        raise EmptySourceError(f"{path} has a header but no rows")
    texts = _frame(found, 0 if header is None else line - found.first_line)
    unnamed = int(header is not None and len(second) == len(header) + 1)  # R writes no name above its row names
    if texts.width != len(first) + unnamed or (texts.to_series(-1) == "").any():
        _check_lengths(found, unnamed)
    if header is not None and unnamed:
        header = ["", *header]
    names = [name or f"column {i + 1}" for i, name in enumerate(header or [""] * texts.width)]
    total = _total(texts)
    texts = texts[:-1] if total else texts
    decimal = decimal or ("." if found.separator == "," else decimal_mark(texts))
    row_names = None
    if header is not None and has_row_names(header):
        row_names, texts, names = to_strings(texts.to_series(0).str.strip_chars().to_list()), texts[:, 1:], names[1:]
    columns, malformed, markers = typed_columns(names, texts, decimal)

    def place(row: int, column: str) -> str:
        position = names.index(column) + (row_names is not None)
        label = f" ({column!r})" if header else ""
        return f"line {_line_of(found, row, has_header=header is not None)}, column {position + 1}{label}"

    above = f"{found.titles} line{'s' * (found.titles > 1)} above the table {'are' if found.titles > 1 else 'is'} left out"
    notes = [*([above] if found.titles else []), *([f"the last line, {total!r}, is left out"] if total else []), *markers]
    words = {each.column: each for each in malformed}
    return Table(path, columns, place, row_names, has_header=header is not None, notes=notes, malformed=words, decimal=decimal)


def _total(texts: Any) -> str | None:
    """The word for a total in the last of several lines, which is then no row of the table."""
    last = [] if len(texts) < 3 else [str(value).strip() for value in texts.row(-1)]
    return next((value for value in last if value.rstrip(":").lower() in TOTALS), None)


def _read_bytes(path: Path) -> bytes:
    try:
        return read_text_bytes(path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise SourceError(
            f"{path} cannot be decompressed: {problem}. If it is damaged, download or write it again."
        ) from problem


def _decode(path: Path, content: bytes) -> bytes:
    """Return the text in UTF-8. The file has the encoding of its mark, or UTF-8, or that of older programs."""
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding).encode()
    except UnicodeDecodeError:
        text = content.decode(OLD_ENCODING, "replace").encode()
    if b"\0" in text[:SNIFFED]:
        raise SourceError(f"{path} is not text: save the table as CSV UTF-8")
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _without_comments(text: bytes) -> tuple[bytes, int]:
    """Leave out the lines with # at the beginning, except for the names of the columns, which may stand in the last of them."""
    lines, start = 0, 0
    last = b""
    while text[start : start + 1] == b"#":
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end + 1
        last, lines, start = text[start:end], lines + 1, end
    if lines and _names_columns(last, text[start:].split(b"\n", 1)[0]):
        names = last if last[1:2] in (b",", b";", b"\t", b"|") else last.lstrip(b"# ")  # the first name may be a hash
        return names + text[start:], lines - 1
    return text[start:], lines


def _names_columns(comment: bytes, record: bytes) -> bool:
    """Whether a comment has as many values as the record below it."""
    lines = [line.strip(b"\n") for line in (comment.lstrip(b"# "), record)]
    counts = ([len(next(_split(line, separator), (0, []))[1]) for line in lines] for separator in SEPARATORS)
    names, values = next((each for each in counts if each[1] > 1), (0, 1))
    return names == values or (names + 1 == values and comment.startswith((b"#,", b"#;", b"#\t", b"#|")))


def _detect_separator(text: bytes, separators: str = SEPARATORS) -> tuple[str, int]:
    """Choose the one that leaves most numbers, since texts may contain any of them; also count the lines of titles."""
    beginning = text[:SNIFFED].rpartition(b"\n")[0] or text[: 16 * SNIFFED]
    best, most, titles = separators[0] if len(separators) == 1 else ",", -1, 0
    for separator in separators:
        records = list(islice(_split(beginning, separator), SNIFFED_RECORDS))
        lines = _title_lines(records)
        below = [values for line, values in records if line > lines and values]
        count = sum(resembles_number(value) for values in below for value in values)
        if count > most and min(map(len, below), default=0) > 1:
            best, most, titles = separator, count, lines
    return best, titles


def _title_lines(records: list[tuple[int, list[str]]]) -> int:
    """Number of lines above the table: their records have at most half as many values as most records have."""
    filled = [(line, sum(map(bool, values))) for line, values in records]
    usual = Counter(len(values) for _, values in records if values).most_common(1)
    width = usual[0][0] if usual else 0
    first = next((i for i, (_, count) in enumerate(filled) if 2 * count > width), 0)
    return filled[first - 1][0] if first and width >= FEWEST_BELOW_TITLE else 0


def _split(text: bytes, separator: str, first_line: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the values of each record."""
    lines = (line.decode("utf-8", "ignore") for line in io.BytesIO(text))
    reader = csv.reader(lines, delimiter=separator)
    while True:
        with FIELD_LIMIT_LOCK:
            limit = csv.field_size_limit(LONGEST_FIELD)  # a line of a wide table is one field of a wrong separator
            try:
                values = next(reader, None)
            finally:
                csv.field_size_limit(limit)
        if values is None:
            return
        yield first_line + reader.line_num, [restore(value).strip() for value in values]


def _frame(found: TextTable, header_lines: int) -> Any:
    """All values as texts, a DataFrame of polars without the header and without blank lines."""
    import polars as pl

    text = found.text
    for _ in range(header_lines):
        text = text[text.index(b"\n") + 1 :]
    text = re.sub(rb"(?m)^\n", b"", text) if b"\n\n" in text or text.startswith(b"\n") else text
    how: dict[str, Any] = {"has_header": False, "separator": found.separator, "infer_schema": False}
    try:
        _check_cells(found, text, how)
        texts = pl.read_csv(text, empty_string_is_null=False, **how)
    except pl.exceptions.PolarsError as problem:
        _check_lengths(found)
        raise SourceError(f"{found.path} cannot be read: {str(problem).splitlines()[0]}") from problem
    return texts.with_columns(pl.all().str.replace(DEFUSED, "$1")) if may_have_defused(text) else texts


def _check_cells(found: TextTable, text: bytes, how: dict[str, Any]) -> None:
    """Check the memory of all cells: a first line of many values makes every line as wide."""
    import polars as pl

    columns = len(next(_split(text, found.separator), (0, []))[1])
    rows = text.count(b"\n") + 1
    if b'"' in text:  # line breaks within quotes begin no row
        rows = int(pl.scan_csv(text, **how).select(pl.len()).collect().item())
    what = f"a table of {rows:,} lines by {columns:,} columns"
    check_memory(found.path, TEXT_CELL_BYTES * rows * columns, what, SMALLER_TEXT)


def _check_lengths(found: TextTable, unnamed: int = 0) -> None:
    """Raise a `SourceError` if a record has more or fewer values than the first one, with its ``unnamed`` columns."""
    records = ((line, values) for line, values in found.records() if values)
    width = len(next(records)[1]) + unnamed
    for line, values in records:
        if len(values) != width:
            first = f"the others {width}" if unnamed else f"the first line {width}"
            raise SourceError(f"{found.path}, line {line} has {len(values)} values, {first}: make all lines alike")


def _line_of(found: TextTable, row: int, *, has_header: bool) -> int:
    records = (line for line, values in found.records() if values)
    return next(islice(records, row + has_header, None))


def _is_header(values: list[str]) -> bool:
    """Whether the first record names the columns: no value is a number, or pandas numbered the columns."""
    names = values[1:] if has_row_names(values) else values
    numbers = [name for name in names if resembles_number(name)]
    if len(numbers) >= MIN_COUNTED_COLUMNS and numbers == [str(i) for i in range(len(numbers))]:
        return True  # text columns may stand between the numbered ones
    return not numbers and any(name.lower() not in MISSING for name in names)


def _open_delimited(path: Path, part: str | None, options: ReadOptions) -> Source:
    return source_of(read_table(path, options.decimal), options)


FORMATS = (SourceFormat((*SUFFIXES, *(f"{suffix}.gz" for suffix in SUFFIXES)), open_with=_open_delimited),)
