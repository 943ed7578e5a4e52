"""`dre transform --shard`: pieces that several processes write, in any order and as often as needed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import dre.io.writers.pieces
from dre import DRE
from dre.cli import app
from dre.cli.options import UsageError
from dre.io.readers import open_source
from dre.io.writers.pieces import Shard, piece_edges

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 4)).astype(np.float32)
COLUMNS = list("abcd")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, and three files with rows for it."""
    monkeypatch.setattr(dre.io.writers.pieces, "piece_rows", lambda n: 100)
    monkeypatch.setattr("dre.io.readers.parquet.fits", lambda *_: False)  # files are read by row group
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(X, schema=COLUMNS)
    model = DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(8)", random_state=0, device="cpu").fit(X[:100])
    model.feature_names_in_ = np.array(COLUMNS, dtype=object)
    model.save("m.safetensors")
    (tmp_path / "in").mkdir()
    for i, part in enumerate((frame[:150], frame[150:155], frame[155:])):
        part.write_parquet(f"in/{i}.parquet", row_group_size=60)
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app(), ["transform", "m.safetensors", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def written(folder: Path) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted(folder.glob("part-*.parquet"))])


def wanted() -> np.ndarray:
    return DRE.load("m.safetensors").transform(X)


@pytest.mark.parametrize("count", [1, 3, 20])
def test_shards_together_are_the_whole_in_the_order_of_the_rows(count: int, folder: Path) -> None:
    for i in np.random.default_rng(count).permutation(count):
        run("in", "-o", "out", "--shard", f"{i}/{count}")
    found = written(folder / "out")
    assert found["row"].to_list() == list(range(1000))
    np.testing.assert_allclose(found.select("dre1", "dre2").to_numpy(), wanted(), atol=1e-5)
    again = open_source(folder / "out")  # a folder of pieces can be read as any other
    assert again.rows.shape[0] == 1000


def test_pieces_follow_the_row_groups(folder: Path) -> None:
    run("in/2.parquet", "-o", "out", "--shard", "0/1")
    sizes = [pl.read_parquet(path).height for path in sorted((folder / "out").glob("part-*"))]
    assert set(sizes[:-1]) <= {120, 100}
    assert sum(sizes) == 845


def test_finished_pieces_are_skipped_and_missing_ones_written(folder: Path) -> None:
    run("in", "-o", "out", "--shard", "0/1")
    pieces = sorted((folder / "out").glob("part-*.parquet"))
    before = {path: path.stat().st_mtime_ns for path in pieces}
    pieces[2].unlink()
    told = run("in", "-o", "out", "--shard", "0/1")
    assert "Wrote 1 piece of " in told
    assert f"{len(pieces) - 1} were there" in told
    assert all(path.stat().st_mtime_ns == before[path] for path in pieces if path != pieces[2])
    np.testing.assert_allclose(written(folder / "out").select("dre1", "dre2").to_numpy(), wanted(), atol=1e-5)


def test_a_run_that_fails_at_the_end_loses_one_piece(folder: Path) -> None:
    broken = pl.DataFrame(X[:155], schema=COLUMNS).with_columns(
        pl.when(pl.int_range(155) == 154).then(float("nan")).otherwise(pl.col("a")).alias("a")
    )
    broken.write_parquet("in/3.parquet", row_group_size=60)
    with pytest.raises(ValueError, match="NaN"):
        run("in", "-o", "out", "--shard", "0/1")
    left = written(folder / "out")
    assert left.height >= 1000
    assert not list((folder / "out").glob(".*"))


@pytest.mark.parametrize("change", ["model", "data", "stage"])
def test_pieces_of_another_model_or_other_data_are_refused(change: str, folder: Path) -> None:
    run("in", "-o", "out", "--shard", "0/2")
    options = []
    if change == "model":
        DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(8)", random_state=1, device="cpu").fit(X[:100]).save(
            "m.safetensors", force=True
        )
    elif change == "data":
        pl.DataFrame(X[:9], schema=COLUMNS).write_parquet("in/4.parquet")
    else:
        options = ["--stage", "0"]
    with pytest.raises(UsageError, match=rf"(?s)out has pieces of another embedding.*- {change}"):
        run("in", "-o", "out", "--shard", "1/2", *options)
    assert json.loads((folder / "out" / "_pieces.json").read_text())["rows"] == "1000"


@pytest.mark.parametrize("shard", ["3/3", "-1/3", "1", "a/b", "0/0", "1/2/3"])
def test_a_shard_that_is_none_is_a_usage_error(shard: str, folder: Path) -> None:
    with pytest.raises(UsageError, match="expected i/n"):
        run("in", "-o", "out", "--shard", shard)
    assert not (folder / "out").exists()


def test_names_of_rows_are_kept(folder: Path) -> None:
    names = [f"cell {i}" for i in range(30)]
    pl.DataFrame(X[:30], schema=COLUMNS).insert_column(0, pl.Series("name", names)).write_csv("named.csv")
    run("named.csv", "-o", "out", "--shard", "0/1", "--id", "name")
    assert written(folder / "out")["name"].to_list() == names


def test_a_file_name_is_refused_where_pieces_are_written(folder: Path) -> None:
    with pytest.raises(UsageError, match="--shard writes a folder of pieces"):
        run("in", "-o", "embedding.csv", "--shard", "0/2")
    assert not (folder / "embedding.csv").exists()


@pytest.mark.parametrize(("n", "most"), [(100_000, 1.1), (3_000_000, 1.05), (200_000_000, 1.02)])
def test_six_processes_have_about_the_same_number_of_rows(n: int, most: float) -> None:
    sizes = np.diff(piece_edges(n))
    shares = [sum(int(sizes[i]) for i in Shard(number, 6).pieces(len(sizes))) for number in range(6)]
    assert sum(shares) == n
    assert max(shares) <= most * n / 6 + 1
    assert len(sizes) < 1000


def test_a_large_row_group_is_one_piece_and_a_huge_one_is_cut() -> None:
    assert piece_edges(1_000_000, np.array([0, 1_000_000])).tolist() == [0, 1_000_000]
    assert len(piece_edges(10_000_000, np.array([0, 10_000_000]))) > 100
