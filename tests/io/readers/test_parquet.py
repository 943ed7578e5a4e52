"""Parquet: features held or read by row groups, vectors, and all else beside them."""

import warnings
from dataclasses import replace

import numpy as np
import pandas
import pyarrow.parquet
import pytest
from row_checks import same_rows

from dre.data.rows import is_rows
from dre.io.readers import ReadOptions, SourceError, open_source, parquet
from dre.io.writers import OutputSpec, open_sink

X = np.random.default_rng(0).normal(size=(14, 3))
KINDS = ["B cell", "<b>NK</b>"] * 7


@pytest.fixture
def table():
    frame = pandas.DataFrame(X, columns=list("abc"))
    frame.insert(1, "kind", pandas.Categorical(KINDS))
    frame["known"] = [True, False] * 7
    frame["day"] = pandas.Timestamp("2020-02-03")
    return frame


@pytest.fixture(params=["held", "by row group"])
def memory(request, monkeypatch):
    """Files are read whole, or as if they did not fit into memory."""
    if request.param != "held":
        monkeypatch.setattr(parquet, "fits", lambda *_: False)


def values(rows):
    return rows.read(0, rows.shape[0]).numpy() if is_rows(rows) else rows


@pytest.mark.parametrize("group", [1, 4, 100])
def test_numbers_are_rows_and_all_else_is_beside_them(tmp_path, table, group, memory):
    table.to_parquet(tmp_path / "x.parquet", row_group_size=group)
    found = open_source(tmp_path / "x.parquet")
    np.testing.assert_array_equal(values(found.rows), X)
    assert found.columns == list("abc")
    assert found.names is None
    assert found.metadata["kind"].tolist() == KINDS
    assert found.metadata["known"].tolist() == ["yes", "no"] * 7
    assert found.metadata["day"][0] == "2020-02-03T00:00:00"
    assert found.messages == [
        "3 features: a, b, c",
        "not features: kind (text); known (yes or no); day (dates)",
    ]


@pytest.mark.parametrize("name", [None, "cell"])
def test_an_index_is_the_names_of_the_rows(tmp_path, table, name, memory):
    table.index = pandas.Index([f"cell {i}" for i in range(14)], name=name)
    table.to_parquet(tmp_path / "x.parquet")
    found = open_source(tmp_path / "x.parquet")
    assert found.names.tolist() == table.index.tolist()
    assert list(found.metadata) == ["kind", "known", "day"]


def test_ids_are_names_and_not_features(tmp_path, memory):
    n = 40
    frame = pandas.DataFrame({"customer_id": np.arange(n) + 1000, "size": np.linspace(0, 1, n) ** 2, "constant": 1.5})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=7)
    found = open_source(tmp_path / "x.parquet")
    assert found.columns == ["size"]
    assert found.names.tolist() == [str(i + 1000) for i in range(n)]
    assert found.names_title == "customer_id"
    chosen = open_source(tmp_path / "x.parquet", options=ReadOptions(columns=["customer_id-size"], drop=["constant"]))
    assert chosen.columns == ["customer_id", "size"]
    assert "constant" not in chosen.metadata


@pytest.mark.parametrize("other", [float, int])
@pytest.mark.parametrize("policy", ["drop", "mean", "median"])
def test_gaps_are_dropped_or_filled(tmp_path, policy, other, memory):
    gappy = pandas.array([1, 2, 6, 7, 8, 9, 4] * 2, dtype="Int64")
    frame = pandas.DataFrame({"a": (np.arange(14) ** 2 % 9).astype(other), "b": gappy})
    frame.loc[9, "b"] = None
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=4)
    found = open_source(tmp_path / "x.parquet", options=ReadOptions(missing=policy))
    expected = frame.astype(float)
    if policy == "drop":
        np.testing.assert_array_equal(values(found.rows), expected.drop(9))
        assert np.flatnonzero(~found.dropped.kept).tolist() == [9]
    else:
        middle = getattr(expected["b"], policy)()
        assert found.fill["b"] == pytest.approx(middle)
        assert found.fill["a"] == pytest.approx(getattr(expected["a"], policy)())
        np.testing.assert_allclose(values(found.rows), expected.fillna(middle))


@pytest.mark.parametrize("policy", ["error", "drop", "mean"])
def test_gaps_of_all_features_are_filled_as_in_an_earlier_table(tmp_path, policy, memory):
    frame = pandas.DataFrame({"a": [1.5, None, 2.5], "b": [None, 4.5, 5.5]})
    frame.to_parquet(tmp_path / "x.parquet")
    options = ReadOptions(missing=policy, features=["a", "b"], fill={"a": 7.0, "b": 8.0})
    np.testing.assert_array_equal(
        values(open_source(tmp_path / "x.parquet", options=options).rows), [[1.5, 8], [7, 4.5], [2.5, 5.5]]
    )


def test_numbers_of_several_kinds_share_one(tmp_path, memory):
    frame = pandas.DataFrame({"a": (np.arange(14) ** 2).astype(np.int32), "b": X[:, 0].astype(np.float32)})
    frame.to_parquet(tmp_path / "x.parquet")
    found = values(open_source(tmp_path / "x.parquet").rows)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.column_stack([np.arange(14) ** 2, X[:, 0].astype(np.float32)]))


def test_a_gap_is_named_with_its_column_and_row(tmp_path):
    frame = pandas.DataFrame({"a": np.arange(14.0) ** 2, "b": pandas.array([1, 2] * 7, dtype="Int64")})
    frame.loc[9, "b"] = None
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=4)
    with pytest.raises(SourceError, match="1 in 'b', the first in row 10 of column 'b'"):
        open_source(tmp_path / "x.parquet")


def test_a_gap_among_integers_of_a_large_file_is_read_as_a_gap(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "fits", lambda *_: False)
    frame = pandas.DataFrame({name: pandas.array([1, 2] * 7, dtype="Int64") for name in "ab"})
    frame.loc[9, "b"] = None
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=4)
    assert np.argwhere(np.isnan(values(open_source(tmp_path / "x.parquet").rows))).tolist() == [[9, 1]]


def test_texts_alone_are_no_rows(tmp_path):
    pandas.DataFrame({"a": ["x"], "b": [["y", "z"]]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(SourceError, match=r"no column of numbers.*'a' \(text\)"):
        open_source(tmp_path / "x.parquet")


def test_nested_columns_that_are_no_vectors_are_ignored_with_a_message(tmp_path):
    pandas.DataFrame({"a": [1.0], "b": [["y", "z"]]}).to_parquet(tmp_path / "x.parquet")
    assert open_source(tmp_path / "x.parquet").messages == ["nested columns are ignored: b"]


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
    assert list(found.metadata) == ["year", "title"]
    assert found.names.tolist() == [str(i) for i in range(14)]
    assert found.messages == ["the rows are the vectors 'embedding' of 3 values; other columns are not features"]


def test_one_of_several_columns_of_vectors_is_named(tmp_path):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"a": vectors("list"), "b": vectors("fixed")}), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="several columns of vectors, a, b: pass vector='a'"):
        open_source(tmp_path / "x.parquet")
    same_rows(open_source(f"{tmp_path}/x.parquet:b").rows, X)
    same_rows(open_source(tmp_path / "x.parquet", options=ReadOptions(vector="b")).rows, X)
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
    with pytest.raises(SourceError, match=r"x\.parquet cannot be read"):
        open_source(path).rows.read(0, 14)


def test_columns_of_the_same_name_are_named(tmp_path):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table([pyarrow.array([1.0]), pyarrow.array([2.0])], names=["a", "a"])
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="has 2 columns 'a': rename all but one"):
        open_source(tmp_path / "x.parquet")


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_damage_that_the_checksums_of_pages_tell_is_refused(tmp_path, compression):
    values = np.random.default_rng(0).normal(size=(5000, 2))
    table = pyarrow.table({"a": values[:, 0], "b": values[:, 1]})
    how = {"compression": compression, "use_dictionary": False, "write_page_checksum": True}
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", **how)
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    at = content.index(values[2500, 1].tobytes())  # snappy leaves random numbers as they are
    content[at + 3] ^= 1
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=r"x\.parquet cannot be read: .*CRC"):
        open_source(tmp_path / "x.parquet")


def test_written_embeddings_have_checksums(tmp_path):
    values = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    with open_sink(tmp_path / "map.parquet", OutputSpec(5000, 2)) as sink:
        sink.write(values)
    content = bytearray((tmp_path / "map.parquet").read_bytes())
    content[1000] ^= 1
    (tmp_path / "map.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=r"map\.parquet cannot be read"):
        open_source(tmp_path / "map.parquet")


def test_a_wide_table_is_described_once(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "fits", lambda *_: False)
    X = np.random.default_rng(0).normal(size=(12, 60))
    pandas.DataFrame(X, columns=[f"c{i}" for i in range(60)]).to_parquet(tmp_path / "x.parquet", row_group_size=4)
    schemas, groups = [], []
    ours = parquet.open_file

    class Counted:
        """The file, which counts how often it is asked for what is made anew each time."""

        def __init__(self, file):
            self._file = file

        def __getattr__(self, name):
            return getattr(self._file, name)

        @property
        def schema_arrow(self):
            schemas.append(1)
            return self._file.schema_arrow

    monkeypatch.setattr(parquet, "open_file", lambda path: Counted(ours(path)))
    rows = open_source(tmp_path / "x.parquet").rows
    assert len(schemas) < 10  # not one for each column
    monkeypatch.setattr("dre.io.readers.row_groups.column_places", lambda file, columns: groups.append(1))
    for _ in range(2):
        same_rows(rows, X)
    assert not groups


def test_sizes_of_columns_are_those_of_each_row_group_whatever_their_order(tmp_path):
    frame = pandas.DataFrame({"a": np.arange(10), "b": np.arange(10.0), "v": [[1.0, 2.0]] * 10})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=4)
    file = parquet.open_file(tmp_path / "x.parquet")
    one, other, vector = (parquet.ColumnSizes(file, columns) for columns in (["a"], ["b", "a"], ["v"]))
    for i, rows in enumerate([4, 4, 2]):
        assert one[i] >= parquet.CELL_BYTES * rows
        assert other[i] >= 2 * parquet.CELL_BYTES * rows
        assert vector[i] >= 2 * parquet.CELL_BYTES * rows


def test_a_large_table_is_prepared_in_blocks_as_a_small_one(tmp_path, table, monkeypatch):
    table.loc[3, "kind"] = None
    table.loc[12, "a"] = np.nan
    path = tmp_path / "x.parquet"
    table.to_parquet(path, row_group_size=4)
    small = open_source(path, options=ReadOptions(categories=True, missing="median"))
    monkeypatch.setattr(parquet, "fits", lambda *_: False)
    with pytest.raises(SourceError, match="too large to encode its categories"):
        open_source(path, options=ReadOptions(categories=True))
    model = ReadOptions(features=small.preparation.columns, preparation=small.preparation)
    large = open_source(path, options=model)
    assert is_rows(large.rows)
    np.testing.assert_array_equal(values(large.rows), small.rows)
    assert large.metadata["kind"].tolist() == small.metadata["kind"].tolist()
    lacking = replace(small.preparation, encodings=[replace(each, fill=None) for each in small.preparation.encodings])
    with pytest.raises(SourceError, match="1 in 'kind', the first in row 4 of column 'kind'"):
        values(open_source(path, options=replace(model, preparation=lacking)).rows)
    filled = open_source(path, options=replace(model, preparation=lacking, missing="median"))
    np.testing.assert_array_equal(values(filled.rows), small.rows)
    assert filled.cautions == ["missing values of a, kind are filled in by the median of these rows, not of the fit"]
    dropped = open_source(path, options=replace(model, preparation=lacking, missing="drop"))
    assert np.flatnonzero(~dropped.dropped.kept).tolist() == [3, 12]
    np.testing.assert_array_equal(values(dropped.rows), np.delete(small.rows, [3, 12], axis=0))
    table.drop(columns="kind").to_parquet(tmp_path / "y.parquet")
    with pytest.raises(SourceError, match="lacks the column 'kind' of the model"):
        open_source(tmp_path / "y.parquet", options=model)


def test_unknown_categories_of_a_large_table_are_told_once(tmp_path, table, monkeypatch):
    table.to_parquet(tmp_path / "fit.parquet")
    known = open_source(tmp_path / "fit.parquet", options=ReadOptions(categories=True)).preparation
    table["kind"] = [*KINDS[:4], "new", *KINDS[5:]]
    path = tmp_path / "x.parquet"
    table.to_parquet(path, row_group_size=2)
    monkeypatch.setattr(parquet, "fits", lambda *_: False)
    model = ReadOptions(features=known.columns, preparation=known)
    found = open_source(path, options=model)
    note = "1 row has a value of 'kind' that the fit did not have ('new'): it is placed without this column"
    assert found.cautions == [note]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values(found.rows)
    monkeypatch.setattr("dre.io.readers.large_tables.EXAMINED", 3)
    later = open_source(path, options=model)
    assert later.cautions == []
    with pytest.warns(UserWarning, match=r"rows \d+ to \d+: 1 row has a value of 'kind'"):
        rows = values(later.rows)
    np.testing.assert_array_equal(rows, values(found.rows))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was told
        values(later.rows)
