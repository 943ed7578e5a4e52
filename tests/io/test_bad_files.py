"""Files that change, break off or do not fit while they are read: an error names the file and the row, and nothing is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import polars as pl
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import dre.io.writers.formats
import dre.io.writers.pieces
from dre import DRE
from dre.cli import app
from dre.io.readers import SourceError, arrow, open_source, parquet

X = np.random.default_rng(0).normal(size=(5000, 4)).astype(np.float32)
COLUMNS = list("abcd")


def write_parquet(path: Path, rows: np.ndarray = X) -> None:
    pl.DataFrame(rows, schema=COLUMNS).write_parquet(path, row_group_size=500, compression="uncompressed")


def write_vectors(path: Path, rows: np.ndarray = X) -> None:
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), rows.shape[1])
    pyarrow.parquet.write_table(pyarrow.table({"v": column}), path, row_group_size=500)


def write_arrow(path: Path, rows: np.ndarray = X) -> None:
    pl.DataFrame(rows, schema=COLUMNS).write_ipc(path, record_batch_size=500)


def write_h5(path: Path, rows: np.ndarray = X) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=rows, chunks=(100, 4), compression="gzip")


WRITERS: dict[str, Callable[..., None]] = {
    "x.parquet": write_parquet,
    "vectors.parquet": write_vectors,
    "x.arrow": write_arrow,
    "x.npy": np.save,
    "x.h5": write_h5,
}


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read as if they did not fit into memory."""
    monkeypatch.setattr(parquet, "fits", lambda *_: False)
    monkeypatch.setattr(parquet, "SMALL_BYTES", 0)
    monkeypatch.setattr(arrow, "held_bytes", lambda: 0)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def rewrite(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[::-1])
    os.utime(path, (1, 1))


def replace(path: Path) -> None:
    other = path.with_name(f"new-{path.name}")
    WRITERS[path.name](other, -X)
    os.replace(other, path)


@pytest.mark.parametrize("change", [truncate, rewrite, replace])
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_changes_while_it_is_read_is_named(name: str, change: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path, X)
    rows = open_source(path).rows
    np.testing.assert_array_equal(rows.read(0, 100).numpy(), X[:100])
    change(path)
    with pytest.raises(SourceError, match=rf"{name} has changed since it was opened"):
        rows.read(4000, 5000)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_removed_while_it_is_read_is_named(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name, X)
    rows = open_source(tmp_path / name).rows
    (tmp_path / name).unlink()
    with pytest.raises(SourceError, match=rf"{name} was open and is gone"):
        rows.read(0, 10)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_breaks_off_is_named(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name, X)
    truncate(tmp_path / name)
    with pytest.raises(SourceError, match=name):
        open_source(tmp_path / name)


def test_a_fit_whose_file_changes_ends_and_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    write_parquet(tmp_path / "x.parquet")
    rows = open_source(tmp_path / "x.parquet").rows
    model = DRE(schedule="x: gaussian(5, scope=batch) -> kl * 2", encoder="mlp(8)", device="cpu", random_state=0)
    truncate(tmp_path / "x.parquet")
    with pytest.raises(SourceError, match=r"x\.parquet has changed"):
        model.fit(rows)
    assert not hasattr(model, "embedding_")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", WRITERS)
def test_a_gap_in_the_last_part_is_named_by_file_and_row(name: str, value: float, tmp_path: Path) -> None:
    bad = X.copy()
    bad[4990, 2] = value
    WRITERS[name](tmp_path / name, bad)
    rows = open_source(tmp_path / name).rows
    kind = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=rf"contains {kind}, first in row 4990 of .*{name}"):
        DRE("fast", device="cpu").fit(rows)


def test_a_gap_in_a_shard_is_named_by_its_own_row(tmp_path: Path) -> None:
    bad = X.copy()
    bad[123, 0] = np.nan
    for i, part in enumerate((X, bad)):
        write_parquet(tmp_path / f"{i}.parquet", part)
    with pytest.raises(ValueError, match=r"row 123 of .*1\.parquet"):
        DRE("fast", device="cpu").fit(open_source(tmp_path).rows)


def test_shards_that_do_not_fit_are_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "0.parquet")
    write_parquet(tmp_path / "1.parquet")
    frame = pl.read_parquet(tmp_path / "1.parquet")
    for other, why in [
        (frame.drop("b"), "lacks the column 'b'"),
        (frame.with_columns(pl.lit("text").alias("b")), "'b' should hold numbers"),
    ]:
        other.write_parquet(tmp_path / "1.parquet")
        with pytest.raises(SourceError, match=rf"1\.parquet.*{why}"):
            open_source(tmp_path)


def test_shards_of_vectors_of_another_length_are_named(tmp_path: Path) -> None:
    write_vectors(tmp_path / "0.parquet")
    write_vectors(tmp_path / "1.parquet", X[:, :3])
    with pytest.raises(SourceError, match=r"1\.parquet has rows of 3 values, .*0\.parquet has rows of 4"):
        open_source(tmp_path)


def test_an_empty_shard_is_left_out(tmp_path: Path) -> None:
    for i, rows in enumerate((X, X[:0], X)):
        write_vectors(tmp_path / f"{i}.parquet", rows)
    source = open_source(tmp_path)
    assert source.rows.shape == (10_000, 4)
    assert source.messages[0] == "2 files, 10,000 rows; 1 without rows"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DRE:
    monkeypatch.chdir(tmp_path)
    fitted = DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(8)", random_state=0, device="cpu").fit(X[:100])
    fitted.feature_names_in_ = np.array(COLUMNS, dtype=object)
    fitted.save("m.safetensors")
    return fitted


def transform(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app(), ["transform", "m.safetensors", *arguments])
    return result.exit_code, result.output + str(result.exception or "")


def test_transform_names_the_row_of_the_file_and_writes_nothing(model: DRE, tmp_path: Path) -> None:
    bad = np.concatenate([X] * 5)
    bad[20_001, 1] = np.nan
    write_parquet(tmp_path / "x.parquet", bad)
    code, output = transform("x.parquet", "-o", "y.npy")
    assert code != 0
    assert "row 20001 of x.parquet" in output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.safetensors", "x.parquet"]


@pytest.mark.parametrize(
    ("rows", "why"), [(X[:, :3], "3 values; the model was fitted to rows of 4"), (np.tile(X, 2), "8 values")]
)
def test_a_model_that_does_not_fit_the_vectors_says_so(rows: np.ndarray, why: str, model: DRE, tmp_path: Path) -> None:
    write_vectors(tmp_path / "x.parquet", np.ascontiguousarray(rows))
    code, output = transform("x.parquet", "-o", "y.npy")
    assert code != 0
    assert why in " ".join(output.split())
    assert not (tmp_path / "y.npy").exists()


def test_a_model_that_does_not_fit_the_columns_names_them(model: DRE, tmp_path: Path) -> None:
    pl.DataFrame(X[:, :3], schema=list("abx")).write_parquet(tmp_path / "x.parquet")
    code, output = transform("x.parquet", "-o", "y.npy")
    assert code != 0
    assert "x.parquet lacks 2 columns of the model: 'c', 'd'" in " ".join(output.split())


def test_a_full_disk_loses_one_piece_and_the_next_run_goes_on(
    model: DRE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dre.io.writers.pieces, "piece_rows", lambda n: 1000)
    write_parquet(tmp_path / "x.parquet")
    calls, write = [], dre.io.writers.formats._ParquetSink.write

    def until_full(sink, embedding) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(sink, embedding)

    monkeypatch.setattr(dre.io.writers.formats._ParquetSink, "write", until_full)
    code, output = transform("x.parquet", "-o", "out", "--shard", "0/1")
    assert code != 0
    assert "part-000002.parquet cannot be written: no space left on device" in " ".join(output.split())
    assert sorted(path.name for path in (tmp_path / "out").glob("part*")) == ["part-000000.parquet", "part-000001.parquet"]
    code, output = transform("x.parquet", "-o", "out", "--shard", "0/1")
    assert code == 0
    found = pl.concat([pl.read_parquet(path) for path in sorted((tmp_path / "out").glob("part*"))])
    assert found["row"].to_list() == list(range(5000))
