"""Hostile tables, small arrays, images and special files: functions that write one into a folder and return its path."""

from __future__ import annotations

import io
import os
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MANY = 10**12
ZEROS = bytes(2**22)
BOMB = 160  # pieces of ZEROS, 640 MiB
Write = Callable[[Path], Path]


def save(name: str, content: bytes) -> Write:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def shaped(shape: str, dtype: str = "'<f4'", data: bytes = bytes(64)) -> bytes:
    return npy(f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}\n", data)


def sparse_npy(folder: Path) -> Path:
    """A row of 32 GiB, in a file that takes no space on disk."""
    path = save("wide.npy", shaped("(2, 8589934592)"))(folder)
    os.truncate(path, path.stat().st_size + 2**36)
    return path


def zipped(name: str, members: dict[str, bytes], lie: int | None = None) -> Write:
    """A zip file; ``lie`` is the size that it declares for its last member."""

    def write(folder: Path) -> Path:
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                with archive.open(member, "w", force_zip64=True) as file:
                    file.write(content)
                    for _ in range(BOMB if member.endswith(("bomb.xml", "bomb.npy")) else 0):
                        file.write(ZEROS)
            if lie is not None:
                archive.infolist()[-1].file_size = lie
        return folder / name

    return write


def gzipped(name: str, start: bytes, times: int = BOMB) -> Write:
    def write(folder: Path) -> Path:
        packer = zlib.compressobj(1, wbits=31)
        with (folder / name).open("wb") as file:
            file.write(packer.compress(start))
            for _ in range(times):
                file.write(packer.compress(ZEROS.replace(b"\0", b"1")))
            file.write(packer.flush())
        return folder / name

    return write


def arrow(table: Callable[[], Any], **options: Any) -> Write:
    def write(folder: Path) -> Path:
        import pyarrow as pa

        made = table()
        path = folder / "x.arrow"
        how = pa.ipc.IpcWriteOptions(**options)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, made.schema, options=how) as writer:
            writer.write_table(made)
        return path

    return write


def parquet(table: Callable[[], Any], **options: Any) -> Write:
    def write(folder: Path) -> Path:
        import pyarrow.parquet

        pyarrow.parquet.write_table(table(), folder / "x.parquet", **options)
        return folder / "x.parquet"

    return write


def nulls() -> Any:
    import pyarrow as pa

    return pa.table({"empty": pa.nulls(2 * 10**9)})


def folded() -> Any:
    """A text of 100 kB in each of 100,000 rows, stored once."""
    import pyarrow as pa

    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**5, np.int8)), pa.array(["x" * 10**5]))
    return pa.table({"text": texts, "value": np.arange(10**5) % 7})


def constant() -> Any:
    import pyarrow as pa

    return pa.table({"a": np.zeros(4 * 10**7), "b": np.zeros(4 * 10**7)})


def lists() -> Any:
    import pyarrow as pa

    return pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(4 * 10**7)), 4 * 10**6)})


def png(width: int, height: int) -> Write:
    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    content = b"\x89PNG\r\n\x1a\n" + header + part(b"IDAT", zlib.compress(bytes(2**20))) + part(b"IEND", b"")

    return image("a.png", content)


def image(name: str, content: bytes) -> Write:
    def write(folder: Path) -> Path:
        (folder / "photos").mkdir()
        (folder / "photos" / name).write_bytes(content)
        return folder / "photos"

    return write


def far_sheet(folder: Path) -> Path:
    import xlsxwriter

    with xlsxwriter.Workbook(folder / "far.xlsx") as book:
        sheet = book.add_worksheet()
        for row, column in ((0, 0), (1, 0), (1048575, 16383)):
            sheet.write(row, column, 1.5)
    return folder / "far.xlsx"


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
FAR = "<row r='2'><c r='BZZ100000'><v>1</v></c></row>"


def sheet(rows: str, before: str = "") -> str:
    """The XML of a sheet with a cell above these rows."""
    first = '<row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row>'
    return f'<worksheet xmlns="{MAIN}">{before}<sheetData>{first}{rows}</sheetData></worksheet>'


def book(content: str, target: str = "worksheets/sheet1.xml", name: str = "x.xlsx", **parts: str) -> Write:
    """A workbook of one sheet, which lies at ``target``, and other parts."""
    types = f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>'
    kinds = {"rId1": ("worksheet", target), "rId2": ("sharedStrings", "sharedStrings.xml"), "rId3": ("styles", "styles.xml")}
    links = "".join(f'<Relationship Id="{i}" Type="{OFFICE}/{kind}" Target="{place}"/>' for i, (kind, place) in kinds.items())
    root = f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    named = '<sheet name="a" sheetId="1" r:id="rId1"/>'
    members = {
        "[Content_Types].xml": types,
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{root}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{named}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>',
        f"xl/{target}": content,
        **{f"xl/{part}.xml": text for part, text in parts.items()},
    }
    return zipped(name, {member: text.encode() for member, text in members.items()})


def shared(text: str, about: str = "") -> str:
    return f'<sst xmlns="{MAIN}" {about}><si><t>{text}</t></si></sst>'


def sharing(rows: int) -> str:
    """Rows of cells that hold the first shared text."""
    return "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c><c r="B{i}"><v>{i}</v></c></row>' for i in range(2, rows + 2))


HOSTILE_BOOKS: dict[str, Write] = {
    "single quotes": book(sheet(FAR)),
    "small letters": book(sheet(FAR.replace("BZZ", "bzz"))),
    "tab": book(sheet(FAR.replace("<c ", "<c\t"))),
    "space around =": book(sheet(FAR.replace("r='B", "r \n = 'B"))),
    "long tag": book(sheet(FAR.replace("<c ", f"<c s='{'0' * 10_000}' "))),
    "another path": book(sheet(FAR), "other/table.xml"),
    "another suffix": book(sheet(FAR), "other/table.data"),
    "prefix": book(
        sheet(FAR).replace("xmlns=", "xmlns:x=").replace("</", "</x:").replace("<", "<x:").replace("<x:/x:", "</x:")
    ),
    "no places": book(sheet(f"<row>{'<c><v>1</v></c>' * 16_000}</row><row r='1000000'><c><v>1</v></c></row>")),
    "column beyond all": book(sheet(FAR.replace("BZZ", "ZZZZZZ"))),
    "shared text": book(sheet(sharing(2000)), sharedStrings=shared("x" * 10**7)),
    "shared text behind another": book(sheet(sharing(2000)), a=shared("x"), sharedStrings=shared("x" * 10**7), z=shared("x")),
    "count of texts": book(sheet(sharing(3)), sharedStrings=shared("x", 'count="1" uniqueCount="99999999999"')),
    "count of styles": book(
        sheet(sharing(3)), styles=f'<styleSheet xmlns="{MAIN}"><cellXfs count="99999999999"/></styleSheet>'
    ),
    "type of document": book(
        "<!DOCTYPE worksheet [<!ENTITY a \"<c r='BZZ100000'><v>1</v></c>\">]>" + sheet("<row r='2'>&a;</row>")
    ),
}


def spreadsheet(repeats: str) -> Write:
    """A sheet of OpenDocument whose cells are repeated."""
    names = "office=urn:oasis:names:tc:opendocument:xmlns:office:1.0 table=urn:oasis:names:tc:opendocument:xmlns:table:1.0"
    spaces = " ".join(f'xmlns:{name.partition("=")[0]}="{name.partition("=")[2]}"' for name in names.split())
    cell = f'<table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="{repeats}"/>'
    row = f'<table:table-row table:number-rows-repeated="{repeats}">{cell}</table:table-row>'
    body = (
        f'<office:body><office:spreadsheet><table:table table:name="a">{row}</table:table></office:spreadsheet></office:body>'
    )
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    content = f"<office:document-content {spaces}>{body}</office:document-content>".encode()
    manifest = b'<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    return zipped("x.ods", {"mimetype": kind, "META-INF/manifest.xml": manifest, "content.xml": content})


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "x.csv")
    return folder / "x.csv"


def unix_socket(folder: Path) -> Path:
    here = os.getcwd()
    os.chdir(folder)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("x.csv")
    finally:
        os.chdir(here)
    return folder / "x.csv"


def link_to(target: str, name: str = "x.csv") -> Write:
    def write(folder: Path) -> Path:
        (folder / name).symlink_to(target)
        return folder / name

    return write


def folder_called_csv(folder: Path) -> Path:
    (folder / "x.csv").mkdir()
    return folder / "x.csv"


def npz_of(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", content)
    return file.getvalue()
