"""Spreadsheets: what their cells take is known before a library reads them, however their XML is written."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from dre.io.readers import ReadOptions, SourceError, open_source
from hostile_tables import FAR, HOSTILE_BOOKS, book, shared, sharing, sheet, spreadsheet

pytest.importorskip("fastexcel")
FIVE = "".join(f'<row r="{i}"><c r="A{i}"><v>{i % 3}</v></c><c r="B{i}"><v>{i}</v></c></row>' for i in range(2, 7))


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.io.readers.memory.available_bytes", lambda: 2**30)


@pytest.mark.parametrize("name", list(HOSTILE_BOOKS))
def test_a_hostile_workbook_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match=r"x\.xlsx"):
        open_source(HOSTILE_BOOKS[name](tmp_path))


def test_no_part_that_is_not_checked_reaches_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fastexcel

    path, read, given = book(sheet(FIVE), extra="<x/>")(tmp_path), fastexcel.read_excel, []
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/media/image1.png", b"image")
        archive.writestr("xl/workbook.bin", b"binary")
    monkeypatch.setattr(fastexcel, "read_excel", lambda content: given.append(content) or read(content))
    open_source(path)
    for content in given:
        assert isinstance(content, bytes)
        (tmp_path / "copy.zip").write_bytes(content)
        with zipfile.ZipFile(tmp_path / "copy.zip") as copy:
            assert all(each.endswith((".xml", ".rels")) for each in copy.namelist())


@pytest.mark.parametrize(
    "content",
    [
        sheet(FIVE),
        sheet(FIVE.replace('"', "'")),
        sheet(FIVE).replace("xmlns=", "xmlns:x=").replace("</", "</x:").replace("<", "<x:").replace("<x:/x:", "</x:"),
        sheet(FIVE).replace(' r="', "\t\n r = \t'").replace('">', "'>").replace("main'>", 'main">'),
        "\ufeff" + sheet(FIVE),
        sheet(FIVE + FAR.replace("<v>1</v>", "")),  # cells that have only a format
        sheet(FIVE + FAR.replace("<v>1</v>", "<f>A1</f>")),
        sheet(FIVE, '<dimension ref="A1:XFD1048576"/>'),
    ],
    ids=["plain", "single quotes", "prefix", "white space", "mark", "format", "formula", "dimension"],
)
def test_a_sound_sheet_is_read_in_any_spelling(tmp_path: Path, content: str) -> None:
    found = open_source(book(content)(tmp_path), options=ReadOptions(features=["1", "2"]))
    assert found.rows.tolist() == [[i % 3, i] for i in range(2, 7)]


def test_shared_texts_count_in_every_cell(tmp_path: Path) -> None:
    found = open_source(
        book(sheet(sharing(5)), sharedStrings=shared("long" * 1000))(tmp_path), options=ReadOptions(columns=["2"])
    )
    assert found.rows.shape == (5, 1)
    with pytest.raises(SourceError, match=r"the text of all cells takes about 5\.6 GiB of memory"):
        open_source(book(sheet(sharing(200)), sharedStrings=shared("x" * 10**7), name="y.xlsx")(tmp_path))


@pytest.mark.parametrize("value", ["1<x/>0", "1<!-- -->0", "<![CDATA[1]]>0"])
def test_the_number_of_a_shared_text_can_not_be_hidden(tmp_path: Path, value: str) -> None:
    texts = "".join(f"<si><t>{'x' * 10**7 if i == 10 else 'a'}</t></si>" for i in range(12))
    cells = sharing(200).replace("<v>0</v>", f"<v>{value}</v>")
    made = book(sheet(cells), sharedStrings=shared("").replace("<si><t></t></si>", texts))
    with pytest.raises(SourceError, match=r"the text of all cells|an element within a value"):
        open_source(made(tmp_path))


@pytest.mark.parametrize("suffix", ["ods", "xls"])
def test_other_spreadsheets_are_refused(tmp_path: Path, suffix: str) -> None:
    path = spreadsheet("99999999")(tmp_path).rename(tmp_path / f"x.{suffix}")
    with pytest.raises(SourceError, match=rf"x\.{suffix}: expected .*\.xlsx.*; save the sheet as \.xlsx or \.csv"):
        open_source(path)
