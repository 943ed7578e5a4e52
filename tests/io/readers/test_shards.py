"""Several files are read as one, in their natural order; those that do not fit together are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import dre.io.readers.shards
from dre.io.readers import ReadOptions, SourceError, open_source
from dre.io.readers.shards import JoinedRows

RNG = np.random.default_rng(0)
SIZES = (5, 1, 30, 12)
X = RNG.normal(size=(sum(SIZES), 3)).astype(np.float32)
EDGES = np.cumsum([0, *SIZES])


def frame(i: int) -> pl.DataFrame:
    rows = X[EDGES[i] : EDGES[i + 1]]
    columns = {name: rows[:, j] for j, name in enumerate("abc")}
    return pl.DataFrame({**columns, "kind": [f"kind {i}"] * len(rows)})


def write(folder: Path, suffix: str) -> Path:
    folder.mkdir(exist_ok=True)
    for i in range(len(SIZES)):
        path = folder / f"part-{i + 8}{suffix}"  # 8, 9, 10, 11: in another order as texts
        if suffix == ".npy":
            np.save(path, X[EDGES[i] : EDGES[i + 1]])
        else:
            {".csv": frame(i).write_csv, ".parquet": frame(i).write_parquet, ".arrow": frame(i).write_ipc}[suffix](path)
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.csv").write_text("nothing")
    return folder


def values(source) -> np.ndarray:
    return source.rows.read(0, source.rows.shape[0]).numpy()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".npy"])
@pytest.mark.parametrize("way", ["folder", "pattern", "list"])
def test_files_are_read_as_one(suffix: str, way: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "shards", suffix)
    data = {
        "folder": str(folder),
        "pattern": f"{folder}/part-*{suffix}",
        "list": [folder / f"part-{i + 8}{suffix}" for i in range(len(SIZES))],
    }[way]
    source = open_source(data)
    np.testing.assert_allclose(values(source), X, rtol=1e-6)
    if suffix != ".npy":
        assert source.columns == list("abc")
        assert source.metadata["kind"].tolist() == [f"kind {i}" for i, size in enumerate(SIZES) for _ in range(size)]
    assert source.messages[0] == "4 files, 48 rows"
    ids = torch.from_numpy(RNG.permutation(len(X))[:20])
    np.testing.assert_allclose(source.rows.take(ids).numpy(), X[ids], rtol=1e-6)


def test_folders_in_folders_are_read_too(tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"year={2000 + i}").mkdir()
        frame(i).write_parquet(tmp_path / f"year={2000 + i}" / "part.parquet")
    np.testing.assert_array_equal(values(open_source(tmp_path)), X[: EDGES[2]])


def test_more_files_than_may_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.io.readers.shards, "OPEN_FILES", 2)
    monkeypatch.setattr("dre.io.readers.parquet.fits", lambda *_: False)
    source = open_source(write(tmp_path / "shards", ".parquet"))
    np.testing.assert_array_equal(values(source), X)
    ids = torch.arange(len(X)).flip(0)
    np.testing.assert_array_equal(source.rows.take(ids).numpy(), X[::-1])
    frame(0).write_parquet(tmp_path / "shards" / "part-10.parquet")
    open_again = open_source(tmp_path / "shards")
    assert open_again.rows.shape[0] == len(X) - SIZES[2] + SIZES[0]


def test_a_shard_without_rows_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "shards", ".csv")
    (folder / "part-7.csv").write_text("a,b,c,kind\n")
    source = open_source(folder)
    assert source.rows.shape == X.shape
    assert source.messages[0] == "4 files, 48 rows; 1 without rows"


def test_a_shard_that_lacks_a_column_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "shards", ".parquet")
    frame(2).drop("b").write_parquet(folder / "part-10.parquet")
    with pytest.raises(SourceError, match=r"part-10\.parquet.*b"):
        open_source(folder)


def test_a_shard_with_text_in_a_feature_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "shards", ".parquet")
    frame(2).with_columns(pl.lit("text").alias("b")).write_parquet(folder / "part-10.parquet")
    with pytest.raises(SourceError, match=r"part-10\.parquet"):
        open_source(folder)


def test_arrays_of_other_widths_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "shards", ".npy")
    np.save(folder / "part-10.npy", np.zeros((3, 4)))
    with pytest.raises(SourceError, match=r"part-10\.npy has rows of 4 values, .*part-8\.npy has rows of 3"):
        open_source(folder)


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file matches"):
        open_source(f"{tmp_path}/*.parquet")
    with pytest.raises(SourceError, match="empty"):
        open_source([])
    (tmp_path / "a.csv").write_text("a,b\n")
    with pytest.raises(SourceError, match="none of the 1 files has rows"):
        open_source(tmp_path)
    with pytest.raises(SourceError, match="does not exist"):
        open_source([tmp_path / "b.csv"])


def test_gaps_of_all_shards_are_dropped(tmp_path: Path) -> None:
    folder = write(tmp_path / "shards", ".csv")
    (folder / "part-9.csv").write_text("a,b,c,kind\n1,,3,x\n4,5,6,y\n")
    source = open_source(folder, options=ReadOptions(missing="drop"))
    assert source.file_length == 49
    assert np.flatnonzero(~source.dropped.kept).tolist() == [5]
    assert source.rows.shape[0] == 48


def test_parts_of_other_types_become_one_type() -> None:
    from dre.data.rows import HostRows

    rows = JoinedRows([HostRows(np.zeros((2, 1), np.int64)), HostRows(np.ones((2, 1)) / 3)])
    assert rows.read(0, 4).dtype == torch.double
    assert rows.take(torch.tensor([3, 0])).ravel().tolist() == [1 / 3, 0.0]
