"""Blocks of row groups: decoded once in a pass, in any order as they were written; columns beside them only when asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow
import pyarrow.parquet
import pytest
from row_checks import same_rows

from dre.io.readers import ReadOptions, SourceError, open_source, parquet
from dre.io.readers.lazy_columns import LazyColumns, LazyNames, change_columns, join_columns, merge_columns
from dre.io.readers.row_groups import RowGroups, open_file

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
IDS = [f"document {i}" for i in range(40)]


@pytest.fixture(params=[7, 16, 100])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), 3)
    table = pyarrow.table({"v": column, "doc_id": IDS, "kind": np.arange(40) % 5, "text": ["long"] * 40})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=request.param)
    return tmp_path / "x.parquet"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of four rows, and columns that are not held."""
    monkeypatch.setattr(parquet, "SMALL_BYTES", 0)
    monkeypatch.setattr(parquet.ParquetTable.blocks, "__defaults__", (12,))


def test_blocks_lie_in_row_groups_and_are_read_in_any_order(path: Path) -> None:
    blocks = RowGroups(path, open_file(path), ["v"], 3, 12)
    assert set(blocks.groups) <= set(blocks.edges)
    assert np.diff(blocks.edges).max() <= 4
    pairs = list(zip(blocks.edges, blocks.edges[1:], strict=False))
    for i in [*range(len(pairs)), *np.random.default_rng(1).permutation(len(pairs))]:
        start, stop = map(int, pairs[i])
        found = blocks.read(start, stop)["v"].combine_chunks().flatten().to_numpy().reshape(-1, 3)
        np.testing.assert_array_equal(found, X[start:stop])


def test_rows_are_those_that_were_written(path: Path, large: None) -> None:
    same_rows(open_source(path).rows, X)


def test_columns_are_read_when_they_are_asked_for(path: Path, large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[str]] = []
    ours = parquet.ParquetTable.read
    monkeypatch.setattr(parquet.ParquetTable, "read", lambda self, names: read.append(names) or ours(self, names))
    source = open_source(path)
    source.rows.read(0, 40)
    assert list(source.metadata) == ["kind", "text"]
    assert read == []
    assert source.metadata["kind"].tolist() == (np.arange(40) % 5).tolist()
    assert source.metadata["kind"] is source.metadata["kind"]
    assert read == [["kind"]]
    assert source.names_title == "doc_id"
    assert source.names[5:8].tolist() == IDS[5:8]
    assert source.names[np.array([3, 1])].tolist() == ["document 3", "document 1"]
    assert source.names.tolist() == IDS
    assert read == [["kind"]]


def test_shards_join_columns_that_are_not_read_yet(path: Path, large: None) -> None:
    (path.parent / "y.parquet").write_bytes(path.read_bytes())
    source = open_source(path.parent)
    assert isinstance(source.metadata, LazyColumns)
    assert isinstance(source.names, LazyNames)
    assert source.names[38:42].tolist() == [*IDS[38:], *IDS[:2]]
    assert source.metadata["text"].tolist() == ["long"] * 80
    np.testing.assert_array_equal(source.rows.read(30, 50).numpy(), np.concatenate([X[30:], X[:10]]))


def test_changes_wait_until_a_column_is_read() -> None:
    read: list[str] = []
    lazy = LazyColumns(["a", "b"], lambda name: read.append(name) or np.arange(3))
    changed = change_columns(lazy, lambda values: values[1:])
    joined = join_columns([changed, {"b": np.array([7]), "c": np.array([8])}])
    assert list(joined) == ["b"]
    assert read == []
    assert joined["b"].tolist() == [1, 2, 7]
    assert "c" not in joined
    with pytest.raises(KeyError):
        changed["c"]
    merged = merge_columns(lazy, {"b": np.array([9]), "c": np.array([8])})
    read.clear()
    assert list(merged) == ["a", "b", "c"]
    assert merged["b"].tolist() == [9]
    assert read == []
    assert merged["a"].tolist() == [0, 1, 2]
    assert merge_columns({"a": np.array([1])}, {"b": np.array([2])}) == {"a": np.array([1]), "b": np.array([2])}


def test_the_first_rows_of_a_large_row_group_need_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"fixed": pyarrow.list_(pyarrow.float32(), 100), "free": pyarrow.list_(pyarrow.float32())}
    for name, kind in kinds.items():
        vectors = pyarrow.array([None, *np.ones((9_999, 100), np.float32).tolist()], kind)
        pyarrow.parquet.write_table(pyarrow.table({"v": vectors}), tmp_path / f"{name}.parquet")
    monkeypatch.setattr("dre.io.readers.memory.available_bytes", lambda: 2**20)
    table = parquet.ParquetTable.open(tmp_path / "fixed.parquet")
    assert table.head(["v"], 10).num_rows == 10
    assert table.blocks(["v"], 100, 1000).read(0, 10).num_rows == 10
    with pytest.raises(SourceError, match="smaller row groups"):  # one row may have most of the values
        parquet.ParquetTable.open(tmp_path / "free.parquet").head(["v"], 10)


VECTORS = [None, [1.0, 2.0], [float("nan"), 4.0], [5.0, 6.0], None, [7.0, None]]


@pytest.fixture(params=["list", "fixed list", "large list", "json"])
def gaps(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file in which two of six vectors are missing, and two lack a value."""
    if request.param == "json":
        lines = [{"id": f"r{i}", "v": None if v is None else [None if x != x else x for x in v]} for i, v in enumerate(VECTORS)]
        (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return tmp_path / "x.jsonl"
    number = pyarrow.float64()
    kinds = {"list": pyarrow.list_(number), "fixed list": pyarrow.list_(number, 2), "large list": pyarrow.large_list(number)}
    table = pyarrow.table({"id": [f"r{i}" for i in range(6)], "v": pyarrow.array(VECTORS, kinds[request.param])})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    return tmp_path / "x.parquet"


def read_rows(rows: Any) -> np.ndarray:
    return rows if isinstance(rows, np.ndarray) else rows.read(0, rows.shape[0]).numpy()


@pytest.mark.parametrize("is_large", [False, True])
def test_vectors_that_lack_values_are_left_out_or_filled_in(
    gaps: Path, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        monkeypatch.setattr(parquet, "SMALL_BYTES", 0)
    kept = open_source(gaps, options=ReadOptions(missing="drop"))
    np.testing.assert_array_equal(read_rows(kept.rows), [[1.0, 2.0], [5.0, 6.0]])
    assert kept.names.tolist() == ["r1", "r3"]
    assert kept.dropped.kept.tolist() == [False, True, False, True, False, False]
    filled = open_source(gaps, options=ReadOptions(missing="mean"))
    middle = [(1 + 5 + 7) / 3, (2 + 4 + 6) / 3]
    np.testing.assert_allclose(read_rows(filled.rows), [middle, [1, 2], [middle[0], 4], [5, 6], middle, [7, middle[1]]])


def test_the_values_of_a_model_fill_missing_vectors(gaps: Path) -> None:
    filled = open_source(gaps, options=ReadOptions(fill={"0": -1.0, "1": -2.0}))
    np.testing.assert_allclose(read_rows(filled.rows), [[-1, -2], [1, 2], [-1, 4], [5, 6], [-1, -2], [7, -2]])


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_row_keeps_its_number_beside_missing_ones(
    tmp_path: Path, suffix: str, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        monkeypatch.setattr(parquet, "SMALL_BYTES", 0)
    frame, path = pl.DataFrame({"v": [None, [1.0, 2.0], [3.0]]}), tmp_path / f"x.{suffix}"
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ndjson(path)
    with pytest.raises(SourceError, match=r"row 2 \(counted from 0\): 1 values, where others have 2"):
        open_source(path, options=ReadOptions(missing="drop")).rows.read(0, 3)


@pytest.mark.parametrize(("suffix", "where"), [("parquet", "none of the first 2 rows"), ("arrow", "no row")])
def test_a_column_without_any_vector_is_an_error_with_another_remedy(tmp_path: Path, suffix: str, where: str) -> None:
    frame, path = pl.DataFrame({"v": [None, None]}, schema={"v": pl.List(pl.Float64)}), tmp_path / f"x.{suffix}"
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ipc(path)
    with pytest.raises(SourceError, match=f"column 'v': {where} has a vector; leave out rows without one"):
        open_source(path, options=ReadOptions(missing="drop"))


def test_images_may_be_missing_too(tmp_path: Path) -> None:
    kind = pyarrow.fixed_shape_tensor(pyarrow.float32(), (2, 3))
    values = [[1.0] * 6, None, None, [2.0] * 6]
    images = pyarrow.ExtensionArray.from_storage(kind, pyarrow.array(values, pyarrow.list_(pyarrow.float32(), 6)))
    pyarrow.parquet.write_table(pyarrow.table({"v": images}), tmp_path / "x.parquet", row_group_size=1)
    rows = open_source(tmp_path / "x.parquet", options=ReadOptions(missing="drop")).rows
    np.testing.assert_array_equal(read_rows(rows)[:, 0, 0], [1, 2])
    assert rows.shape == (2, 2, 3)


def test_a_missing_vector_is_an_error_that_names_the_remedy(gaps: Path) -> None:
    with pytest.raises(SourceError, match=r"row 0 \(counted from 0\): missing vector; pass missing=.drop.,"):
        open_source(gaps).rows.read(0, 6)
