"""Spreadsheets, JSON lines and Arrow: columns have the types of the file."""

import datetime
import json

import numpy as np
import polars as pl
import pytest

from dre.io.readers import ReadOptions, SourceError, open_source

N = 24
SIZES = np.random.default_rng(0).normal(size=N).round(3)
FRAME = pl.DataFrame(
    {
        "id": np.arange(N) + 100,
        "size": SIZES,
        "count": np.arange(N) % 5,
        "kind": ["a", "b"] * (N // 2),
        "zip": [f"{i % 7:05d}" for i in range(N)],
        "day": [datetime.date(2024, 1, i + 1) for i in range(N)],
        "old": [True, False, False] * (N // 3),
    }
)


def write(frame, path):
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps({**row, "day": str(row["day"])}) for row in frame.to_dicts()))
    elif path.suffix == ".xlsx":
        pytest.importorskip("xlsxwriter")
        frame.write_excel(path)
    else:
        frame.write_ipc(path)


@pytest.mark.parametrize("name", ["x.jsonl", "x.arrow", "x.feather", "x.xlsx"])
def test_numbers_are_features_and_all_else_is_beside_them(tmp_path, name):
    path = tmp_path / name
    write(FRAME, path)
    found = open_source(path)
    assert found.columns == ["size", "count"]
    np.testing.assert_array_equal(found.rows, np.column_stack([SIZES, np.arange(N) % 5]))
    assert found.names.tolist() == [str(100 + i) for i in range(N)]
    assert found.metadata["zip"][8] == "00001"
    assert found.metadata["day"][4] == "2024-01-05"
    assert open_source(path, options=ReadOptions(categories=True)).columns == ["size", "count", "kind=a", "kind=b", "old"]


def test_a_gap_is_named_by_its_row(tmp_path):
    FRAME.with_columns(size=pl.when(pl.col("id") == 103).then(None).otherwise("size")).write_ipc(tmp_path / "x.arrow")
    with pytest.raises(SourceError, match="1 in 'size', the first in row 4 of column 'size'"):
        open_source(tmp_path / "x.arrow")


def test_a_damaged_file_is_named(tmp_path):
    for name in ("x.arrow", "x.xlsx", "x.jsonl"):
        (tmp_path / name).write_bytes(b"no such file")
        with pytest.raises(SourceError, match=rf"{name} cannot be read"):
            open_source(tmp_path / name)


@pytest.mark.parametrize("name", ["x.jsonl", "x.arrow"])
def test_the_only_column_of_vectors_is_the_rows(tmp_path, name):
    vectors = np.random.default_rng(0).normal(size=(N, 3)).round(4)
    frame = FRAME.select("id", "kind").with_columns(vector=pl.Series(vectors.tolist()))
    if name == "x.jsonl":
        frame.write_ndjson(tmp_path / name)
    else:
        frame.with_columns(pl.col("vector").cast(pl.Array(pl.Float64, 3))).write_ipc(tmp_path / name)
    found = open_source(tmp_path / name)
    np.testing.assert_array_equal(found.rows, vectors)
    assert found.names.tolist() == [str(100 + i) for i in range(N)]
    assert found.metadata["kind"].tolist() == FRAME["kind"].to_list()
    assert found.messages == ["the rows are the vectors 'vector' of 3 values; other columns are not features"]


def test_one_of_several_columns_of_vectors_is_named(tmp_path):
    pl.DataFrame({"a": [[1.0, 2.0], [3.0, 4.0]], "b": [[5.0], [6.0]]}).write_ipc(tmp_path / "x.arrow")
    with pytest.raises(SourceError, match="several columns of vectors, a, b: pass vector='a'"):
        open_source(tmp_path / "x.arrow")
    np.testing.assert_array_equal(open_source(tmp_path / "x.arrow", options=ReadOptions(vector="b")).rows, [[5], [6]])


@pytest.mark.parametrize(
    ("values", "message"),
    [([[1.0], [2.0, 3.0]], "row 1.*2 values, where others have 1"), ([[1.0], None], "row 1.*missing vector")],
)
def test_vectors_that_do_not_fit_are_named_with_their_row(tmp_path, values, message):
    pl.DataFrame({"a": values}).write_ipc(tmp_path / "x.arrow")
    with pytest.raises(SourceError, match=message):
        open_source(tmp_path / "x.arrow")


def test_a_sheet_is_chosen_by_name_and_titles_are_left_out(tmp_path):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(tmp_path / "x.xlsx") as book:
        book.add_worksheet("cover").write(0, 0, "Report")
        data = book.add_worksheet("data")
        data.write(0, 0, "Sizes of all")
        for row, line in enumerate([["name", "a", "b", "c"], *([f"n{i}", str(i / 4), i * i % 7, f"{i}.5"] for i in range(24))]):
            data.write_row(row + 1, 0, line)
    with pytest.raises(SourceError, match=r"no rows.*\n.*the first of 2 sheets.*x\.xlsx:data reads another"):
        open_source(tmp_path / "x.xlsx")
    found = open_source(f"{tmp_path}/x.xlsx:data")
    assert found.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(found.rows[:, 2], np.arange(24) + 0.5)  # a number that was stored as text
    assert "1 line above the table left out" in found.messages
    with pytest.raises(SourceError, match="unknown sheet 'dat'"):
        open_source(f"{tmp_path}/x.xlsx:dat")


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_an_array_of_json_is_a_table(tmp_path, name):
    (tmp_path / name).write_text(json.dumps([{"size": size, "kind": "ab"[i % 2]} for i, size in enumerate(SIZES.tolist())]))
    np.testing.assert_array_equal(open_source(tmp_path / name).rows[:, 0], SIZES)
