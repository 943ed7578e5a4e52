"""The XML of a workbook (.xlsx), checked before a library reads it: what its cells take, and what it declares.

The library ends the process if it can't get the memory, so nothing may reach it unchecked. It gets a copy of all XML, in a new
archive.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from dre.io.readers.memory import TEXT_COPIES, check_memory, check_zip
from dre.io.readers.source import SourceError

XML = (".xml", ".rels")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
PLACE = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})")  # of a cell
SHEET_CELL_BYTES, XML_COPIES = 64, 4  # of a cell and of the file's content, while a sheet is read
COUNTS = {
    "sst": "uniqueCount",
    "cellXfs": "count",
    "numFmts": "count",
    "mergeCells": "count",
}  # of elements, for which room is made
SMALLER = "save the sheet as .csv"


def checked_workbook(path: Path) -> bytes:
    """A copy of a workbook that has only its XML; raises a `SourceError` if reading it takes too much memory."""
    check_zip(path, XML_COPIES, SMALLER)
    copy, strings, used = io.BytesIO(), list[list[int]](), Counter[int]()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as checked:
        members = {each.filename: each for each in archive.infolist() if each.filename.lower().endswith(XML)}
        for name, member in members.items():
            if member.compress_type not in METHODS:
                raise SourceError(f"{path} is compressed by another method than deflate: save it again")
            content = archive.read(member)
            part = WorkbookPart(path, name, content)
            strings.append(part.strings)
            used += part.used
            checked.writestr(name, content)
    sizes = (sum(part[i] * count for i, count in used.items() if i < len(part)) for part in strings)
    check_memory(path, TEXT_COPIES * max(sizes, default=0), "the text of all cells", f"shorten long texts, or {SMALLER}")
    return copy.getvalue()


class WorkbookPart:
    """A member of a workbook, parsed in full: cells of a sheet, or texts that cells refer to by their numbers.

    Elements are known by their local names, whatever the member is called, since any of them may be a sheet.

    Attributes
    ----------
    strings : list of int
        Bytes of each shared text that the part has.
    used : Counter
        How many cells of the part hold a shared text, by its number.
    """

    def __init__(self, path: Path, name: str, content: bytes) -> None:
        self.strings: list[int] = []
        self.used: Counter[int] = Counter()
        self._path, self._name, self._size = path, name, len(content)
        self._row, self._column, self._cell, self._is_shared = 0, 0, (0, 0), False
        self._value: list[str] | None = None  # text of a cell, the number of a shared text
        self._last_row, self._last_column = 0, 0
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text, parser.buffer_size = True, 2**16
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartElementHandler = self._start
        if b"\0" in content:
            raise SourceError(f"{path} is damaged: {name} is not in UTF-8; save it again")
        try:
            parser.Parse(content, True)
        except expat.ExpatError as problem:
            raise SourceError(f"{path} is damaged: {name} is not XML ({problem}); save it again") from problem
        what = f"{name}, whose last cell is in line {self._last_row:,} and column {self._last_column:,},"
        size = SHEET_CELL_BYTES * self._last_row * self._last_column
        check_memory(path, size, what, f"delete cells far from the others, or {SMALLER}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        kind = tag.rpartition(":")[2]
        if self._value is not None:
            raise SourceError(f"{self._path} is damaged: {self._name} has an element within a value; save it again")
        if kind == "c":
            self._start_cell(attributes)
        elif kind in ("v", "is"):  # a cell without is empty
            self._last_row, self._last_column = max(self._last_row, self._cell[0]), max(self._last_column, self._cell[1])
            if self._is_shared and kind == "v":
                self._start_value()
        elif kind == "row":
            place = attributes.get("r")
            self._row, self._column = self._row + 1 if place is None else self._number(place), 0
        elif kind == "si":
            self.strings.append(0)
            self._parser.CharacterDataHandler = self._add_text
        elif kind in COUNTS and self._number(attributes.get(COUNTS[kind], "0")) > self._size:
            raise SourceError(f"{self._path} is damaged: {self._name} declares more elements than it has bytes; save it again")

    def _start_cell(self, attributes: dict[str, str]) -> None:
        """Keep the place of a cell; one without it is beside the cell before it."""
        place = attributes.get("r")
        if place is None:
            self._column += 1
            self._cell = (self._row, self._column)
        else:
            found = PLACE.fullmatch(place)
            if found is None:
                raise SourceError(f"{self._path} is damaged: {self._name} has a cell at {place[:20]!r}; save it again")
            self._column = _column_number(found[1])
            self._cell = (int(found[2]), self._column)
        self._is_shared = attributes.get("t") == "s"

    def _start_value(self) -> None:
        self._value = []
        self._parser.CharacterDataHandler, self._parser.EndElementHandler = self._value.append, self._end_value

    def _end_value(self, tag: str) -> None:
        text, self._value = "".join(self._value or []).strip(), None
        self._parser.CharacterDataHandler = self._parser.EndElementHandler = None
        if text:
            self.used[self._number(text)] += 1

    def _add_text(self, text: str) -> None:
        self.strings[-1] += len(text.encode())

    def _number(self, text: str) -> int:
        if not text.isdecimal() or len(text) > 18:
            raise SourceError(f"{self._path} is damaged: {self._name} has the number {text[:20]!r}; save it again")
        return int(text)

    def _refuse_doctype(self, *declared: object) -> NoReturn:
        raise SourceError(f"{self._path} is damaged: {self._name} declares a type of document; save it again")


def _column_number(letters: str) -> int:
    """The number of a column by its letters.

    >>> _column_number("A"), _column_number("ab")
    (1, 28)
    """
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
