"""Blocks of row groups: decoded once in a pass, in any order as they were written; columns beside them only when asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from row_checks import same_rows

from dre.io.readers import open_source, parquet
from dre.io.readers.lazy_columns import LazyColumns, LazyNames, change_columns, join_columns
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
