"""Arrow files: small ones are held, larger ones are read by record batch, with the same rows and columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.feather
import pytest
from row_checks import same_rows

from dre.data.rows import is_rows
from dre.io.readers import ReadOptions, SourceError, arrow, open_source

X = np.random.default_rng(0).normal(size=(14, 3)).astype(np.float32)
KINDS = ["B cell", "NK"] * 7


@pytest.fixture(params=["held", "by batch"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files are read whole, or as if they did not fit into memory."""
    if request.param != "held":
        monkeypatch.setattr(arrow, "held_bytes", lambda: 0)
    return request.param


def write(path: Path, table: pyarrow.Table, rows: int = 4, compression: str | None = None) -> Path:
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def of_numbers() -> pyarrow.Table:
    return pyarrow.table({**{name: X[:, i] for i, name in enumerate("abc")}, "kind": KINDS, "sample_id": np.arange(14) + 100})


def of_vectors(kind: str) -> pyarrow.Table:
    if kind == "fixed":
        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), 3)
    else:
        column = pyarrow.array(X.tolist(), pyarrow.list_(pyarrow.float32()))
    return pyarrow.table({"v": column, "kind": KINDS, "sample_id": [f"s{i}" for i in range(14)]})


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_numbers_are_rows_and_all_else_is_beside_them(tmp_path, memory: str, rows: int, compression) -> None:
    found = open_source(write(tmp_path / "x.arrow", of_numbers(), rows, compression))
    assert is_rows(found.rows) == (memory != "held")
    values = found.rows.read(0, 14).numpy() if is_rows(found.rows) else found.rows
    np.testing.assert_array_equal(values, X)
    assert found.columns == list("abc")
    assert found.names.tolist() == [str(i + 100) for i in range(14)]
    assert found.metadata["kind"].tolist() == KINDS
    if memory != "held":
        same_rows(found.rows, X)


@pytest.mark.parametrize("kind", ["fixed", "list"])
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_vectors_are_rows(tmp_path, memory: str, rows: int, kind: str) -> None:
    found = open_source(write(tmp_path / "x.feather", of_vectors(kind), rows))
    values = found.rows.read(0, 14).numpy() if is_rows(found.rows) else found.rows
    np.testing.assert_array_equal(values, X)
    assert found.names.tolist() == [f"s{i}" for i in range(14)]
    assert list(found.metadata) == ["kind"]
    assert found.metadata["kind"].tolist() == KINDS


@pytest.mark.parametrize("missing", ["drop", "mean", "median"])
def test_gaps_are_handled_alike(tmp_path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    table = of_numbers().set_column(1, "b", pyarrow.array([None, *X[1:, 1].tolist()], pyarrow.float32()))
    path, found = write(tmp_path / "x.arrow", table), []
    for held in (2**40, 0):
        monkeypatch.setattr(arrow, "held_bytes", lambda held=held: held)
        source = open_source(path, options=ReadOptions(missing=missing))
        found.append(source.rows.read(0, source.rows.shape[0]).numpy() if is_rows(source.rows) else source.rows)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_columns_that_nobody_asks_for_are_not_read(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "held_bytes", lambda: 0)
    asked: list[list[str]] = []
    blocks = arrow.ArrowTable.blocks
    monkeypatch.setattr(
        arrow.ArrowTable, "blocks", lambda self, names, *rest: asked.append(names) or blocks(self, names, *rest)
    )
    source = open_source(write(tmp_path / "x.arrow", of_vectors("fixed")))
    monkeypatch.setattr("dre.io.readers.large_tables.EXAMINED", 0)
    asked.clear()
    source.rows.read(0, 14)
    assert asked == []
    source.metadata["kind"]
    assert asked == [["kind"]]


def test_vectors_of_another_length_are_named(tmp_path, memory: str) -> None:
    table = pyarrow.table({"v": pyarrow.array([*X[:-1].tolist(), [1.0]], pyarrow.list_(pyarrow.float32()))})
    path = write(tmp_path / "x.arrow", table)
    with pytest.raises(SourceError, match=r"x\.arrow, column 'v', row 1[23]"):
        open_source(path).rows.read(0, 14)
