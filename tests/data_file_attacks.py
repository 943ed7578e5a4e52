"""Data files that an attacker would write, or that no program should: each is a function that writes one and returns its path.

Most are small and claim to be large. Names of kinds are those of the formats; `HOSTILE` lists them all.
"""

from __future__ import annotations

import gzip
import io
import json
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


def hdf5(name: str, fill: Callable[[Any, Path], None]) -> Write:
    def write(folder: Path) -> Path:
        import h5py

        (folder / "secret.bin").write_bytes(bytes(4096))
        with h5py.File(folder / name, "w") as file:
            fill(file, folder)
        return folder / name

    return write


def _dataset(shape: tuple[int, ...], name: str = "X", **options: Any) -> Callable[[Any, Path], None]:
    return lambda file, folder: file.create_dataset(name, shape, "f4", **options) and None


def _external(file: Any, folder: Path) -> None:
    file.create_dataset("X", (4, 4), "f4", external=[(str(folder / "secret.bin"), 0, 64)])


def _linked(file: Any, folder: Path) -> None:
    import h5py

    with h5py.File(folder / "other.h5", "w") as other:
        other["X"] = np.ones((4, 4))
    file["X"] = h5py.ExternalLink(str(folder / "other.h5"), "X")


def _virtual(file: Any, folder: Path) -> None:
    import h5py

    _linked(file, folder)
    layout = h5py.VirtualLayout((4, 4), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "X", (4, 4))
    del file["X"]
    file.create_virtual_dataset("X", layout)


def _repeated_text(file: Any, folder: Path) -> None:
    """One text of 2 MB in 10,000 places."""
    import h5py

    file["X"] = np.arange(2 * 10**4).reshape(-1, 2) % 7
    texts = file.create_dataset("text", (10**4,), h5py.string_dtype())
    texts[0] = "x" * (2 * 10**6)
    file.flush()
    offset, size = texts.id.get_offset(), 16
    file.close()
    with (folder / "texts.h5").open("r+b") as raw:
        raw.seek(offset)
        reference = raw.read(size)
        raw.seek(offset)
        raw.write(reference * 10**4)


def _tree(file: Any, folder: Path) -> None:
    group = file
    for _ in range(3000):
        group = group.create_group("g")
    group["loop"] = file["/"]
    group["X"] = np.ones((3, 3))


def cells(change: Callable[[Any], None]) -> Callable[[Any, Path], None]:
    """A small file of cells with a sparse matrix, changed."""

    def fill(file: Any, folder: Path) -> None:
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "shape": [4, 3]})
        x["data"], x["indices"], x["indptr"] = np.ones(4, "f4"), [0, 1, 2, 0], [0, 1, 2, 3, 4]
        for table, count in (("obs", 4), ("var", 3)):
            file.create_group(table).attrs["_index"] = "_index"
            file[table]["_index"] = [f"{table}{i}".encode() for i in range(count)]
        change(file)

    return fill


def _replaced(group: str, name: str, shape: tuple[int, ...], dtype: str = "i8") -> Callable[[Any], None]:
    def change(file: Any) -> None:
        if name in file[group]:
            del file[group][name]
        file[group].create_dataset(name, shape, dtype, chunks=True)

    return change


def _attribute(name: str, value: Any) -> Callable[[Any], None]:
    return lambda file: file["X"].attrs.__setitem__(name, value)


def _wide_cells(file: Any) -> None:
    _replaced("X", "indptr", (MANY + 1,))(file)
    file["X"].attrs["shape"] = [MANY, 3]


def _by_columns(file: Any) -> None:
    for name in ("data", "indices"):
        _replaced("X", name, (MANY,))(file)
    file["X"].attrs.update({"encoding-type": "csc_matrix", "shape": [4, 4]})


def _bad_codes(file: Any) -> None:
    group = file["obs"].create_group("kind")
    group["codes"], group["categories"] = [0, 1, 99, -1], [b"a", b"b"]


def zarr_array(**changes: Any) -> Write:
    """An array of zarr whose metadata are changed."""

    def write(folder: Path) -> Path:
        import zarr

        zarr.save_array(folder / "x.zarr", np.ones((8, 3), "f4"))
        path = folder / "x.zarr" / "zarr.json"
        about = json.loads(path.read_text())
        for key, value in changes.items():
            if key == "chunk":
                about["chunk_grid"]["configuration"]["chunk_shape"] = value
            else:
                about[key] = value
        path.write_text(json.dumps(about))
        return folder / "x.zarr"

    return write


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


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "x.csv")
    return folder / "x.csv"


def _socket(folder: Path) -> Path:
    here = os.getcwd()
    os.chdir(folder)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("x.csv")
    finally:
        os.chdir(here)
    return folder / "x.csv"


def _link(target: str, name: str = "x.csv") -> Write:
    def write(folder: Path) -> Path:
        (folder / name).symlink_to(target)
        return folder / name

    return write


def _folder(folder: Path) -> Path:
    (folder / "x.csv").mkdir()
    return folder / "x.csv"


def _npz_of(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", content)
    return file.getvalue()


GENES = ",".join(f"gene-{i:09d}" for i in range(16_000))
WIDE = "\n".join([GENES, *(",".join(str((i * j) % 7 + 0.5) for i in range(16_000)) for j in range(3))])
LONG = "x" * 200_000
LAUGHS = "<!DOCTYPE x [" + "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(20)) + "]><x>&a20;</x>"
DEEP = {
    "list": "[" * 10**5,
    "object": '{"a":' * 10**5 + "1" + "}" * 10**5,
    "value": '[{"a":' + "[" * 10**5 + "]" * 10**5 + "}]",
}
KEYS = [f'{{"k{i}":{i}}}' for i in range(20_000)]

HOSTILE: list[tuple[str, Write]] = [
    *(("npy", save("x.npy", shaped(shape))) for shape in ("(0, 4)", "(4, 0)", "()", "(3,)", "(-1, 4)", "(True, 4)", "'ab'")),
    *(("npy", save("x.npy", shaped(shape))) for shape in (f"({MANY}, 4)", f"({2**62}, {2**62})", f"(4, {10**40})", "(2, 8)")),
    *(
        ("npy", save("x.npy", shaped("(2, 2)", dtype)))
        for dtype in ("'|O'", "'<c8'", "'<U4'", "'V9'", "[('a', '<f4')]", "'<f99'")
    ),
    ("npy", save("x.npy", npy("(" * 5000))),
    ("npy", save("x.npy", npy("{'shape': " + "9" * 9000))),
    ("npy", save("x.npy", npy("[" * 60000, version=2))),
    ("npy", save("x.npy", npy("{}", version=9))),
    ("npy", sparse_npy),
    ("npz", save("x.npz", _npz_of(shaped(f"({2**28}, 8)", "'<f8'")))),
    ("npz", save("x.npz", _npz_of(shaped("(0, 4)")))),
    ("npz", save("x.npz", _npz_of(b"no array"))),
    ("npz", zipped("x.npz", {"bomb.npy": shaped(f"({BOMB * 2**22 // 32}, 8)", data=b"")})),
    ("npz", zipped("x.npz", {"bomb.npy": shaped("(4, 4)")}, lie=200)),
    ("csv", save("wide.csv", WIDE.encode())),
    ("csv", save("cell.csv", f"a,b,c\n{LONG},1,2\nx,3,4\ny,5,6\n".encode())),
    ("csv", save("name.csv", f"{LONG},b,c\n1,1,2\n3,3,4\n2,5,6\n".encode())),
    ("csv", save("names.csv", ("id,a,b\n" + f"{LONG},1,2\n" + "".join(f"r{i},{i % 7},2.5\n" for i in range(10**5))).encode())),
    ("csv", save("ragged.csv", (",".join("a" * 10**5) + "\n" + "1\n" * 10**5).encode())),
    ("csv", save("lines.csv", (",".join("1" * 10**5) + "\n" + "1\n" * 10**5).encode())),
    ("csv", save("quote.csv", b'a,b\n1,"' + b"x,\n" * 10**6)),
    ("csv", save("quotes.csv", b'"' * 10**6)),
    ("csv", save("line.csv", b"1" * 10**7)),
    ("csv", save("digits.csv", b"a,b\n" + (b"9" * 10**5 + b",1e999999999\n") * 3)),
    ("csv", save("comments.csv", b"# a\n" * 10**5)),
    ("csv", save("titles.csv", b"a\n" * 10**5 + b"1,2,3\n")),
    ("csv", save("breaks.csv", b"\r\r\n\n" * 10**5)),
    ("csv", save("zeros.csv", bytes(10**6))),
    ("csv", save("random.csv", np.random.default_rng(0).bytes(10**5))),
    ("csv", save("utf16.csv", "a,b\n1,2\n".encode("utf-16")[:-1])),
    ("csv.gz", gzipped("bomb.csv.gz", b"a,b\n1,2\n")),
    ("csv.gz", gzipped("bomb.tsv.gz", b"a\tb\n1\t2\n")),
    ("csv.gz", save("twice.csv.gz", gzip.compress(gzip.compress(b"a,b\n1,2\n3,4\n")))),
    ("csv.gz", save("tail.csv.gz", gzip.compress(b"a,b\n1,2\n3,4\n") + b"garbage")),
    ("csv.gz", save("short.csv.gz", gzip.compress(b"a,b\n1,2\n3,4\n")[:-9])),
    *(("json", save(f"{name}.json", text.encode())) for name, text in DEEP.items()),
    *(("json", save(f"{name}.jsonl", text.encode())) for name, text in DEEP.items()),
    ("json", save("keys.json", f"[{','.join(KEYS)}]".encode())),
    ("json", save("keys.jsonl", "\n".join(KEYS).encode())),
    *(("json", save("x.jsonl", text)) for text in (b"", b"1", b"null", b"{}", b'{"a":1e999}', b'{"a":' + b"9" * 10**5 + b"}")),
    *(
        ("json", save("x.json", text))
        for text in (b"[]", b"[1]", b"[[1,2],[3]]", b'[{"a":NaN}]', b'["\\ud800"]', b'[{"a":[]}]')
    ),
    ("arrow", arrow(nulls)),
    ("arrow", arrow(folded)),
    ("arrow", arrow(constant, compression="zstd")),
    ("arrow", arrow(constant, compression="lz4")),
    ("parquet", parquet(constant)),
    ("parquet", parquet(constant, row_group_size=10**5)),
    ("parquet", parquet(folded, store_schema=False)),
    ("parquet", parquet(lists)),
    ("xlsx", far_sheet),
    ("xlsx", zipped("x.xlsx", {"xl/workbook.xml": b"<x/>", "xl/worksheets/bomb.xml": b"<x>"})),
    ("xlsx", zipped("x.xlsx", {"xl/workbook.xml": b"<x/>", "xl/worksheets/bomb.xml": b"<x>"}, lie=100)),
    ("xlsx", zipped("x.xlsx", {"xl/workbook.xml": LAUGHS.encode(), "[Content_Types].xml": LAUGHS.encode()})),
    ("xlsx", save("x.xlsx", b"no zip")),
    ("h5", hdf5("x.h5", _dataset((MANY, 4), chunks=True))),
    ("h5", hdf5("x.h5", _dataset((10**9, 1000), chunks=True, compression="gzip"))),
    ("h5", hdf5("x.h5", _dataset((4, MANY), chunks=True))),
    ("h5", hdf5("x.h5", _dataset((2**14, 2**15), chunks=(2**14, 2**14)))),
    ("h5", hdf5("x.h5", _dataset((4, 0)))),
    ("h5", hdf5("x.h5", _dataset(()))),
    ("h5", hdf5("x.h5", _external)),
    ("h5", hdf5("x.h5", _linked)),
    ("h5", hdf5("x.h5", _virtual)),
    ("h5", hdf5("texts.h5", _repeated_text)),
    ("h5", hdf5("x.h5", _tree)),
    *(("h5ad", hdf5("x.h5ad", fill)) for fill in (_external, _linked, _virtual)),
    ("h5ad", hdf5("x.h5ad", cells(_replaced("obs", "age", (MANY,))))),
    ("h5ad", hdf5("x.h5ad", cells(_replaced("obs", "_index", (MANY,))))),
    ("h5ad", hdf5("x.h5ad", cells(_replaced("X", "indptr", (MANY,))))),
    ("h5ad", hdf5("x.h5ad", cells(_replaced("X", "indices", (2,))))),
    ("h5ad", hdf5("x.h5ad", cells(_wide_cells))),
    ("h5ad", hdf5("x.h5ad", cells(_by_columns))),
    ("h5ad", hdf5("x.h5ad", cells(_bad_codes))),
    *(("h5ad", hdf5("x.h5ad", cells(_attribute("shape", value)))) for value in ([4, MANY], [-1, 3], [4], "ab", [4, 2], [0, 0])),
    ("zarr", zarr_array(shape=[MANY, 3])),
    ("zarr", zarr_array(shape=[8, MANY])),
    ("zarr", zarr_array(shape=[8, MANY], chunk=[8, MANY])),
    ("zarr", zarr_array(chunk=[10**9, 10**3])),
    ("zarr", zarr_array(shape=[0, 3])),
    ("zarr", zarr_array(shape=[-1, 3])),
    ("zarr", zarr_array(codecs=[])),
    ("zarr", zarr_array(data_type="r8")),
    ("images", png(60_000, 60_000)),
    ("images", png(12_000, 12_000)),
    ("images", png(2**31 - 1, 2**31 - 1)),
    ("images", png(0, 0)),
    ("images", image("a.png", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(x) run\n")),
    ("images", image("a.gif", b"")),
    ("special", _fifo),
    ("special", _socket),
    ("special", _link("/dev/zero")),
    ("special", _link("/dev/zero", "x.npy")),
    ("special", _link("/dev/stdin", "x.h5")),
    ("special", _link("x.csv")),
    ("special", _link("nowhere.csv")),
    ("special", _folder),
    *(("labels", save("y.json", text.encode())) for text in DEEP.values()),
    ("labels", save("y.json", b"[" + b"9" * 10**4 + b"]")),
    ("labels", save("y.csv", f"{LONG}\nb\nc\nd\n".encode())),
    ("labels", save("y.txt", (f"{LONG}\n" + "a\n" * 10**5).encode())),
    ("labels", save("y.npy", shaped(f"({MANY},)"))),
    ("labels", save("y.npy", shaped("(4,)", "'|O'"))),
    ("labels", save("y.npz", _npz_of(shaped(f"({2**40},)")))),
    ("labels", gzipped("y.csv.gz", b"a\nb\n")),
    ("labels", _fifo),
    ("labels", _link("/dev/zero", "y.txt")),
]
