"""Parquet: numbers by row groups, all else beside them."""

import numpy as np
import pandas
import pytest
import torch
from row_checks import same_rows

from dre.io.readers import SourceError, open_source

X = np.random.default_rng(0).normal(size=(14, 3))
KINDS = ["B cell", "<b>NK</b>"] * 7


@pytest.fixture
def table():
    frame = pandas.DataFrame(X, columns=list("abc"))
    frame.insert(1, "kind", pandas.Categorical(KINDS))
    frame["known"] = [True, False] * 7
    frame["day"] = pandas.Timestamp("2020-02-03")
    return frame


@pytest.mark.parametrize("group", [1, 4, 100])
def test_numbers_are_rows_and_all_else_is_beside_them(tmp_path, table, group):
    table.to_parquet(tmp_path / "x.parquet", row_group_size=group)
    found = open_source(tmp_path / "x.parquet")
    same_rows(found.rows, X)
    assert found.columns == list("abc")
    assert found.names is None
    assert found.metadata["kind"].tolist() == KINDS
    assert found.metadata["known"].tolist() == [True, False] * 7
    assert found.metadata["day"][0].startswith("2020-02-03")
    assert found.messages == ["text columns are not features: 'kind', 'known', 'day'"]


@pytest.mark.parametrize("name", [None, "cell"])
def test_an_index_is_the_names_of_the_rows(tmp_path, table, name):
    table.index = pandas.Index([f"cell {i}" for i in range(14)], name=name)
    table.to_parquet(tmp_path / "x.parquet")
    found = open_source(tmp_path / "x.parquet")
    assert found.names.tolist() == table.index.tolist()
    assert list(found.metadata) == ["kind", "known", "day"]


def test_numbers_of_several_kinds_share_one(tmp_path):
    pandas.DataFrame({"a": np.arange(14, dtype=np.int32), "b": X[:, 0].astype(np.float32)}).to_parquet(tmp_path / "x.parquet")
    rows = open_source(tmp_path / "x.parquet").rows
    assert rows.read(0, 1).dtype == torch.float64
    same_rows(rows, np.column_stack([np.arange(14), X[:, 0].astype(np.float32)]))


def test_a_gap_is_named_with_its_column_and_row(tmp_path):
    frame = pandas.DataFrame({"a": np.arange(14.0), "b": pandas.array([1, 2] * 7, dtype="Int64")})
    frame.loc[9, "b"] = None
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=4)
    rows = open_source(tmp_path / "x.parquet").rows
    rows.read(0, 8)
    with pytest.raises(SourceError, match=r"column 'b', row 9 \(counted from 0\): missing value; drop the row"):
        rows.read(0, 14)


def test_texts_alone_are_no_rows(tmp_path):
    pandas.DataFrame({"a": ["x"], "b": [["y", "z"]]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="no numeric column; its columns: a, b"):
        open_source(tmp_path / "x.parquet")


def test_nested_columns_that_are_no_vectors_are_ignored_with_a_message(tmp_path):
    pandas.DataFrame({"a": [1.0], "b": [["y", "z"]]}).to_parquet(tmp_path / "x.parquet")
    assert open_source(tmp_path / "x.parquet").messages == ["nested columns are ignored: 'b'"]


def vectors(kind):
    import pyarrow

    if kind == "list":
        return pyarrow.array(X.tolist())
    flat = pyarrow.array(X.ravel())
    if kind == "fixed":
        return pyarrow.FixedSizeListArray.from_arrays(flat, 3)
    return pyarrow.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(X))


@pytest.mark.parametrize("kind", ["list", "fixed", "tensor"])
@pytest.mark.parametrize("group", [1, 4, 100])
def test_the_only_column_of_vectors_is_the_rows(tmp_path, kind, group):
    import pyarrow.parquet

    table = pyarrow.table({"id": np.arange(14), "year": np.arange(14) + 2000.5, "title": KINDS, "embedding": vectors(kind)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=group)
    found = open_source(tmp_path / "x.parquet")
    same_rows(found.rows, X)
    assert found.columns is None
    assert list(found.metadata) == ["id", "year", "title"]
    assert found.messages == ["the rows are the vectors 'embedding' of 3 values; other columns are not features"]


def test_one_of_several_columns_of_vectors_is_named(tmp_path):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"a": vectors("list"), "b": vectors("fixed")}), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match=r"several columns of vectors: a, b; name one, as in x\.parquet:a"):
        open_source(tmp_path / "x.parquet")
    same_rows(open_source(f"{tmp_path}/x.parquet:b").rows, X)
    with pytest.raises(SourceError, match="'c'"):
        open_source(f"{tmp_path}/x.parquet:c")


@pytest.mark.parametrize(
    ("values", "message"),
    [([[1.0, 2.0], [3.0]], "row 1.*1 values, where others have 2"), ([[1.0, 2.0], None], "row 1.*missing vector")],
)
def test_vectors_that_do_not_fit_are_named_with_their_row(tmp_path, values, message):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"a": pyarrow.array(values)}), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match=message):
        open_source(tmp_path / "x.parquet").rows.read(0, 2)


def test_a_damaged_file_is_an_error_of_two_lines(tmp_path, table):
    path = tmp_path / "x.parquet"
    table.to_parquet(path, row_group_size=4)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"x\.parquet cannot be read") as caught:
            open_source(path)
        assert len(str(caught.value).splitlines()) == 2


def test_damage_inside_is_named_when_it_is_read(tmp_path):
    path = tmp_path / "x.parquet"
    pandas.DataFrame(X, columns=list("abc")).to_parquet(path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(bytes(content))
    rows = open_source(path).rows
    with pytest.raises(SourceError, match=r"x\.parquet cannot be read"):
        rows.read(0, 14)


def test_columns_of_the_same_name_are_named(tmp_path):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table([pyarrow.array([1.0]), pyarrow.array([2.0])], names=["a", "a"])
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="has 2 columns 'a': rename all but one"):
        open_source(tmp_path / "x.parquet")
