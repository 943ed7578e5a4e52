"""Files that claim or unfold to more than the memory are refused before it is taken; what is read in pieces still is."""

from __future__ import annotations

import gzip
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre.data.rows import read_all
from dre.io.readers import SourceError, open_source
from dre.io.readers.labels import read_labels

MIB = 2**20
X = np.random.default_rng(0).normal(size=(3000, 100)).astype(np.float32)  # 1.1 MiB


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the memory that readers find."""

    def available(size: int) -> None:
        readers = ("memory", "parquet", "large_tables", "frames")
        for module in ("data.block_array", *(f"io.readers.{reader}" for reader in readers)):
            monkeypatch.setattr(f"dre.{module}.available_bytes", lambda: size)

    return available


def csv(path: Path) -> None:
    separator = "\t" if ".tsv" in path.name else ","
    lines = [[f"c{i}" for i in range(X.shape[1])], *(map(str, row) for row in X.tolist())]
    text = "\n".join(separator.join(line) for line in lines).encode()
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)


def npz(path: Path) -> None:
    np.savez_compressed(path, np.zeros_like(X))


def excel(path: Path) -> None:
    import polars as pl

    pytest.importorskip("xlsxwriter")
    pl.DataFrame(X[:300], schema=[f"c{i}" for i in range(100)]).write_excel(path)


def json_lines(path: Path) -> None:
    import polars as pl

    pl.DataFrame(X, schema=[f"c{i}" for i in range(100)]).write_ndjson(path)


def feather(path: Path) -> None:
    import polars as pl

    pl.DataFrame(np.zeros_like(X), schema=[f"c{i}" for i in range(100)]).write_ipc(path, compression="zstd")


def table(path: Path) -> None:
    import pyarrow.parquet

    columns = {f"c{i}": X[:, i] for i in range(100)}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=100 if path.name == "pieces.parquet" else None)


def hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(100, 100), compression="gzip")


def zarr_folder(path: Path) -> None:
    import zarr

    zarr.create_array(path, data=X, chunks=(100, 100))


HELD: dict[str, Callable[[Path], None]] = {
    "x.npz": npz, "x.csv": csv, "x.csv.gz": csv, "x.tsv.gz": csv, "x.xlsx": excel, "x.jsonl": json_lines, "x.arrow": feather,
}  # fmt: skip


@pytest.mark.parametrize("name", list(HELD))
def test_what_is_held_in_memory_is_refused_if_it_does_not_fit(tmp_path: Path, memory: Callable[[int], None], name: str) -> None:
    HELD[name](tmp_path / name)
    memory(MIB // 2)
    with pytest.raises(SourceError) as caught:
        open_source(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "of memory, of which 512.0 KiB are available; " in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    memory(100 * MIB)
    assert open_source(tmp_path / name).rows.shape[1] == 100


def test_a_row_group_that_does_not_fit_is_refused_when_it_is_read(tmp_path: Path, memory: Callable[[int], None]) -> None:
    table(tmp_path / "x.parquet")
    memory(MIB // 2)
    rows = open_source(tmp_path / "x.parquet").rows
    with pytest.raises(SourceError, match=r"3,000 rows of .* of memory, of which 512\.0 KiB are available; .*row groups"):
        rows.read(0, 10)


def npy(path: Path) -> None:
    np.save(path, X)


@pytest.mark.parametrize(
    ("name", "write"), [("x.npy", npy), ("x.h5", hdf5), ("x.zarr", zarr_folder), ("pieces.parquet", table)]
)
def test_what_is_read_in_pieces_needs_less_memory_than_it_holds(
    tmp_path: Path, memory: Callable[[int], None], name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    memory(MIB)
    rows = open_source(tmp_path / name).rows
    np.testing.assert_array_equal(read_all(rows), X)


@pytest.mark.parametrize(
    ("shape", "chunks", "message"),
    [
        ((10**12, 4), (1000, 4), r"a map of all rows of an array 'X' of shape \(1000000000000, 4\) takes about 14\.6 TiB"),
        ((4, 10**12), (4, 1000), r"a row of an array 'X' of shape \(4, 1000000000000\) takes about 7\.3 TiB.*fewer columns"),
        ((2**20, 2**9), (2**20, 2**9), r"a chunk \(1048576, 512\) of an array 'X' takes about 4\.0 GiB.*smaller chunks"),
    ],
)
def test_what_an_array_declares_must_fit(
    tmp_path: Path, memory: Callable[[int], None], shape: tuple[int, ...], chunks: tuple[int, ...], message: str
) -> None:
    h5py = pytest.importorskip("h5py")
    zarr = pytest.importorskip("zarr")
    memory(1024 * MIB)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", shape, np.float32, chunks=chunks)
    zarr.open_group(tmp_path / "x.zarr", mode="w").create_array("X", shape=shape, chunks=chunks, dtype="f4")
    for name in ("x.h5", "x.zarr"):
        with pytest.raises(SourceError, match=message):
            open_source(tmp_path / name)


def test_an_array_of_metadata_must_fit(tmp_path: Path, memory: Callable[[int], None]) -> None:
    h5py = pytest.importorskip("h5py")
    memory(8 * MIB)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"] = np.ones((10**5, 2), np.int8)
        file.create_dataset("names", (10**5,), h5py.string_dtype())
    with pytest.raises(SourceError, match=r"the array 'names' of shape \(100000,\) takes about 12\.2 MiB"):
        open_source(tmp_path / "x.h5")


def test_a_compressed_array_is_judged_by_its_header_and_others_are_not_read(
    tmp_path: Path, memory: Callable[[int], None]
) -> None:
    np.savez_compressed(
        tmp_path / "x.npz", X=np.ones((10, 3)), y=np.arange(10), large=np.zeros((1000, 1000)), z=np.zeros(10**6)
    )
    memory(MIB)
    found = open_source(tmp_path / "x.npz")
    assert found.rows.shape == (10, 3)
    assert list(found.metadata) == ["y"]
    with pytest.raises(SourceError, match=r"the array 'large' of shape \(1000, 1000\) takes about 15\.3 MiB.*\.npy"):
        open_source(tmp_path / "x.npz", part="large")
    with pytest.raises(ValueError, match=r"the array 'z' of shape \(1000000,\)"):
        read_labels(tmp_path / "x.npz", 10**6)


def test_a_short_table_below_a_long_first_line_is_as_large_as_both(tmp_path: Path, memory: Callable[[int], None]) -> None:
    (tmp_path / "x.csv").write_text(",".join("1" * 10_000) + "\n" + "1\n" * 10_000)
    memory(1024 * MIB)
    with pytest.raises(SourceError, match=r"a table of 10,00\d lines by 10,000 columns takes about 3\.7 GiB"):
        open_source(tmp_path / "x.csv")


def test_line_breaks_within_quotes_are_not_rows(tmp_path: Path, memory: Callable[[int], None]) -> None:
    note = '"' + "\n" * 10_000 + '"'
    (tmp_path / "x.csv").write_text("a,b,note\n" + "".join(f"{i % 7},{i % 5},{note}\n" for i in range(30)))
    memory(4 * MIB)
    assert open_source(tmp_path / "x.csv").rows.shape == (30, 2)


def test_a_text_that_is_stored_once_counts_in_every_row(tmp_path: Path, memory: Callable[[int], None]) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int32)), pa.array(["x" * 100_000]))
    made = pa.table({"text": texts, "a": np.arange(10_000) % 7, "b": np.arange(10_000) % 5})
    parquet.write_table(made, tmp_path / "x.parquet", store_schema=False)
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file, pa.ipc.new_file(file, made.schema) as writer:
        writer.write_table(made)
    memory(512 * MIB)
    for name in ("x.parquet", "x.arrow"):
        with pytest.raises(SourceError, match=r"the column 'text' of 10,000 rows takes about 9\d\d\.\d MiB"):
            open_source(tmp_path / name)


def test_one_long_name_does_not_widen_all_others(tmp_path: Path) -> None:
    lines = [f"{'x' * 200_000},1,2", *(f"r{i},{i % 7},{i % 5}" for i in range(20_000))]
    (tmp_path / "x.csv").write_text("\n".join(["id,a,b", *lines]))
    found = open_source(tmp_path / "x.csv")
    assert found.names is not None
    assert found.names.dtype == object  # 15 GiB as fixed widths
    assert len(found.names[0]) == 200_000
    (tmp_path / "y.txt").write_text("\n".join(line.split(",")[0] for line in lines))
    assert read_labels(tmp_path / "y.txt", 20_001).dtype == object


def test_keys_that_all_differ_make_a_square(tmp_path: Path, memory: Callable[[int], None]) -> None:
    lines = [f'{{"k{i}":{i}}}' for i in range(5000)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    (tmp_path / "x.json").write_text(f"[{','.join(lines)}]")
    memory(256 * MIB)
    for name in ("x.jsonl", "x.json"):
        with pytest.raises(SourceError, match="a table of 5,000 objects with 5,000 different keys"):
            open_source(tmp_path / name)


def test_the_far_cell_of_a_sheet_counts(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write(0, 0, "a")
        sheet.write(1_048_575, 16_383, 1)
    with pytest.raises(SourceError, match=r"whose last cell is in line 1,048,576 and column 16,384, takes about 1\.0 TiB"):
        open_source(tmp_path / "x.xlsx")


def test_an_image_that_unfolds_too_far_is_named(tmp_path: Path, memory: Callable[[int], None]) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("1", (4000, 3000)).save(tmp_path / "a.png")
    memory(64 * MIB)
    with pytest.raises(SourceError, match=r"a\.png: an image of 4,000 × 3,000 pixels takes about 137\.3 MiB"):
        open_source(tmp_path)
    image.new("1", (20_000, 10_000)).save(tmp_path / "a.png")
    memory(2**40)
    with pytest.raises(SourceError, match=r"a\.png has more than 178,956,970 pixels.*fewer pixels"):
        open_source(tmp_path)


def test_no_other_format_is_read_under_the_name_of_an_image(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    (tmp_path / "a.png").write_bytes(b"P5 2 2 255 abcd")  # a portable graymap
    with pytest.raises(SourceError, match=r"a\.png cannot be read"):
        open_source(tmp_path)


@pytest.mark.parametrize("values", [X[:0], X[:, :0]])
def test_no_rows_or_no_columns_are_named(tmp_path: Path, values: np.ndarray[Any, Any]) -> None:
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", values)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(SourceError, match=rf"{name} holds .*array.* of shape \({values.shape[0]}, {values.shape[1]}\)"):
            open_source(tmp_path / name)


def test_sizes_beyond_all_integers_are_told() -> None:
    from dre.io.readers.memory import describe

    assert describe(math.prod([2**62, 2**62])) == "2e+25 TiB"


def test_a_large_text_that_is_compressed_too_well_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.io.readers.memory.LARGE_TEXT", 8 * MIB)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 4 * MIB))
    with pytest.raises(SourceError, match=r"x\.csv\.gz unfolds to more than .*; if it is sound, decompress it first"):
        open_source(tmp_path / "x.csv.gz")


def test_a_spreadsheet_that_unfolds_to_more_than_it_declares_is_refused(tmp_path: Path, memory: Callable[[int], None]) -> None:
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(64 * MIB))
        archive.infolist()[0].file_size = 1000
    memory(32 * MIB)
    with pytest.raises(SourceError, match=r"sheet1\.xml unfolds to more than it declares"):
        open_source(tmp_path / "x.xlsx")
