"""Rows and labels from files: what is written is what is read, and what can't be read is named with its place."""

import json
import re

import numpy as np
import pandas
import pytest

from dre.bench.own_data import read_labels, read_rows

X = np.random.default_rng(0).normal(size=(12, 5))
KINDS = np.array(["B cell", "T cell, CD4", "B cell", "NK"] * 3)
NUMBERS = np.array([10, 2, 2, 0] * 3)


@pytest.fixture
def write(tmp_path):
    def write(name, content, encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content.encode(encoding))
        return path

    return write


def saved(path, values):
    """By numpy, or as a .csv without a header."""
    if path.suffix == ".npz":
        np.savez(path, values)
    elif path.suffix == ".npy":
        np.save(path, values)
    else:
        pandas.DataFrame(values).to_csv(path, header=False, index=False)
    return path


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv"])
def test_rows_are_read_as_they_were_written(tmp_path, name):
    np.testing.assert_array_equal(read_rows(saved(tmp_path / name, X)).values, X)


def test_images_are_read_as_images(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    found = read_rows(saved(tmp_path / "x.npy", images)).values
    np.testing.assert_array_equal(found, images)
    assert found.dtype == np.uint8


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [None, list("abcde")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_csv_of_pandas_is_read_with_its_header_and_without_its_index(tmp_path, index, columns, encoding):
    path = tmp_path / "X.CSV"
    pandas.DataFrame(X, columns=columns).to_csv(path, index=index, encoding=encoding)
    np.testing.assert_array_equal(read_rows(path).values, X)


def test_names_of_rows_as_r_writes_them_are_left_out(write):
    path = write("x.csv", '"","a","b"\r\n"cell 1",1,2.5\r\n"cell 2",3,-4e2\r\n')
    np.testing.assert_array_equal(read_rows(path).values, [[1, 2.5], [3, -400]])


def test_a_byte_order_mark_costs_no_row(write):
    np.testing.assert_array_equal(read_rows(write("x.csv", "1,2\n3,4\n", "utf-8-sig")).values, [[1, 2], [3, 4]])


def test_a_first_row_that_counts_is_data_where_it_may_be(write):
    np.testing.assert_array_equal(read_rows(write("x.csv", "0,1\n1,1\n")).values, [[0, 1], [1, 1]])


@pytest.mark.parametrize(("name", "mark"), [("x.csv", ","), ("x.csv", ";"), ("x.csv", "\t"), ("x.tsv", "\t")])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [list("abcde"), ["a, b", "c; d", "e\tf", "g", "h"]])
def test_columns_may_be_apart_by_commas_semicolons_or_tabs(tmp_path, name, mark, index, columns):
    pandas.DataFrame(X, columns=columns).to_csv(tmp_path / name, sep=mark, index=index)
    found = read_rows(tmp_path / name)
    np.testing.assert_array_equal(found.values, X)
    assert found.columns == columns
    assert found.named_rows == index


def test_a_semicolon_in_a_name_separates_nothing(write):
    found = read_rows(write("x.csv", "size; in mm,weight\n1,2\n3,4\n"))
    np.testing.assert_array_equal(found.values, [[1, 2], [3, 4]])
    assert found.columns == ["size; in mm", "weight"]


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("labels", [KINDS, NUMBERS])
@pytest.mark.parametrize("columns", [list("abcde"), range(5)], ids=["named", "counted"])
def test_a_column_of_labels_is_no_feature(tmp_path, index, place, labels, columns):
    table = pandas.DataFrame(X, columns=columns)
    table.insert(place, "kind", labels)
    table.to_csv(tmp_path / "x.csv", index=index)
    found = read_rows(tmp_path / "x.csv", "kind")
    np.testing.assert_array_equal(found.values, X)
    np.testing.assert_array_equal(found.labels, labels)
    assert found.labels.dtype.kind == labels.dtype.kind
    assert found.columns == [str(column) for column in columns]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,kind\n1,x\n", "has no column 'knid'; its columns: a, kind. Did you mean 'kind'?"),
        (",a,b\n1,2,3\n", "has no column 'knid'; its columns: a, b."),
        (",".join(f"c{i}" for i in range(30)), "c18, c19, … (30 in all)."),
        ("1,2\n3,4\n", "has no header, and no column 'knid'"),
        ("a,knid,knid\n1,2,3\n", "has 2 columns 'knid': rename all but one"),
        ("knid\nx\n", "has no column beside 'knid'"),
        ("a,knid\n1,x\n2,\n", "line 3: the label is empty"),
        ("a,knid\n", "has a header, and no rows"),
    ],
)
def test_a_column_of_labels_that_can_not_be_is_named(write, content, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_rows(write("x.csv", content), "knid")


def test_arrays_have_no_names_of_columns(tmp_path):
    with pytest.raises(ValueError, match="pass a file with --labels"):
        read_rows(saved(tmp_path / "x.npy", X), "kind")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,NA\n", "line 3, column 2 ('b') is missing ('NA')"),
        ("NA,2\n3,4\n", "line 1, column 1 is missing ('NA')"),
        ("1,\n3,4\n", "line 1, column 2 is missing ('')"),
        ("1,2\n\n3,nan\n", "line 3, column 2 is missing ('nan')"),
        ("1,red\n3,blue\n", "line 1, column 2 is not a number: 'red'"),
        (",a,b\nr1,1,2\nr2,x,2\n", "line 3, column 2 ('a') is not a number: 'x'"),
        ("a;b\n1;2\n3\n", "'1;2'; separate the columns by the same character in all lines"),
        ("a;b\n1;2,5\n", "line 2, column 2 ('b') is not a number: '2,5'; write decimals with a point"),
        ("a,b\n1,2+3j\n", "'2+3j'; give the real and imaginary part of complex numbers a column each"),
        ("a,kind\n1,red\n", "if these are labels, pass --label-column 'kind'"),
        ("1,2\n3\n", "line 2 has 1 values, the first 2"),
        ("", "is empty"),
        ("a,b\n", "has a header, and no rows"),
    ],
)
def test_a_cell_that_is_no_number_is_named_with_its_place(write, content, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_rows(write("x.csv", content))


def test_files_that_are_not_there_or_not_known_are_named(tmp_path, write):
    with pytest.raises(ValueError, match="is not there"):
        read_rows(tmp_path / "x.npy")
    with pytest.raises(ValueError, match="is not there"):
        read_labels(tmp_path / "y.txt", 3)
    with pytest.raises(ValueError, match="is no file"):
        read_rows(tmp_path)
    with pytest.raises(ValueError, match=r"expected \.npy, \.npz, \.csv or \.tsv"):
        read_rows(write("x.doc", "1"))


@pytest.mark.parametrize("content", ["", "not an array", "PK\x03\x04 not a zip"])
@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_damaged_files_are_named(write, name, content):
    with pytest.raises(ValueError, match=rf"{re.escape(name)} can't be read as an array"):
        read_rows(write(name, content))


def test_a_pickle_is_not_read(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="pickles are not read"):
        read_rows(tmp_path / "x.npy")
    np.savez(tmp_path / "y.npz", np.array(["a", None], dtype=object))
    with pytest.raises(ValueError, match=r"labels\.astype\(str\)"):
        read_labels(tmp_path / "y.npz", 2)


def test_what_has_no_columns_is_no_rows(tmp_path):
    with pytest.raises(ValueError, match=r"shape \(12,\)"):
        read_rows(saved(tmp_path / "x.npy", NUMBERS))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_text_that_is_not_utf8_is_named(write, encoding):
    for name, read in (
        ("x.csv", read_rows),
        ("y.csv", lambda path: read_labels(path, 1)),
        ("y.txt", lambda p: read_labels(p, 1)),
    ):
        with pytest.raises(ValueError, match=rf"{name} is not text in UTF-8"):
            read(write(name, "Größe\n1\n", encoding))


@pytest.mark.parametrize("name", ["y.npy", "y.npz", "y.csv"])
@pytest.mark.parametrize("labels", [KINDS, NUMBERS, NUMBERS[:, None]])
def test_labels_are_read_as_they_were_written(tmp_path, name, labels):
    found = read_labels(saved(tmp_path / name, labels), 12)
    np.testing.assert_array_equal(np.ravel(found), labels.ravel())
    assert found.dtype.kind == labels.dtype.kind


def test_rows_and_labels_from_one_file(tmp_path):
    np.savez(tmp_path / "both.npz", y=KINDS, X=X)
    np.testing.assert_array_equal(read_rows(tmp_path / "both.npz").values, X)
    np.testing.assert_array_equal(read_labels(tmp_path / "both.npz", 12), KINDS)


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("labels", [KINDS, NUMBERS])
def test_a_header_of_labels_is_no_label(tmp_path, index, labels):
    pandas.Series(labels, name="type").to_csv(tmp_path / "y.csv", index=index, encoding="utf-8-sig")
    np.testing.assert_array_equal(read_labels(tmp_path / "y.csv", 12), labels)


def test_a_header_without_a_name_is_known_by_the_index_beside_it(tmp_path):
    pandas.Series(NUMBERS).to_csv(tmp_path / "y.csv")
    np.testing.assert_array_equal(read_labels(tmp_path / "y.csv", 12), NUMBERS)


@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n"])
@pytest.mark.parametrize("header", ["", "type\r\n"])
def test_text_has_one_label_a_line(write, end, header):
    path = write("types.txt", header + "\r\n".join(KINDS) + end, "utf-8-sig")
    np.testing.assert_array_equal(read_labels(path, 12), KINDS)


def test_json_has_a_list(write):
    assert read_labels(write("y.json", json.dumps(KINDS.tolist())), 12).tolist() == KINDS.tolist()
    for wrong in ('{"a": 1}', '[["a"], ["b"]]'):
        with pytest.raises(ValueError, match="not a list of labels"):
            read_labels(write("y.json", wrong), 2)
    with pytest.raises(ValueError, match=r"y\.json is not JSON"):
        read_labels(write("y.json", "a\nb"), 2)


def test_a_label_that_only_looks_like_a_number_stays_a_text(write):
    assert read_labels(write("y.txt", "01\n02\n10\n"), 3).tolist() == ["01", "02", "10"]
    assert read_labels(write("y.txt", "1_2\n2_1\n"), 2).tolist() == ["1_2", "2_1"]
    assert read_labels(write("y.txt", "0.5\n-2e3\n1\n"), 3).tolist() == [0.5, -2000, 1]


@pytest.mark.parametrize("name", ["y.npy", "y.npz", "y.csv", "y.txt", "y.json"])
@pytest.mark.parametrize("count", [10, 11, 13])
def test_as_many_labels_as_rows(tmp_path, name, count):
    path = tmp_path / name
    if name == "y.json":
        path.write_text(json.dumps(NUMBERS.tolist()))
    elif name == "y.txt":
        path.write_text("\n".join(map(str, NUMBERS)))
    else:
        saved(path, NUMBERS)
    # with 11 rows the first of the 12 labels might be a header, were it not one of the labels
    with pytest.raises(ValueError, match=f"has 12 labels, but there are {count} rows"):
        read_labels(path, count)


@pytest.mark.parametrize("name", ["y.txt", "y.csv"])
def test_an_empty_label_is_named(write, name):
    with pytest.raises(ValueError, match="label 2 of 3 is empty"):
        read_labels(write(name, "a\n\nb\n"), 3)


@pytest.mark.parametrize(("name", "mark"), [("y.csv", ";"), ("y.tsv", "\t")])
def test_names_of_rows_beside_labels_are_left_out_whatever_stands_between(tmp_path, name, mark):
    pandas.Series(KINDS, name="type").to_csv(tmp_path / name, sep=mark)
    np.testing.assert_array_equal(read_labels(tmp_path / name, 12), KINDS)


def test_several_columns_are_not_guessed_at(write):
    with pytest.raises(ValueError, match=r"has 2 columns in line 1.*in quotes"):
        read_labels(write("y.csv", "CD4;naive\nCD8;naive\n"), 2)
    assert read_labels(write("y.csv", '"CD4;naive"\n"CD8;naive"\n'), 2).tolist() == ["CD4;naive", "CD8;naive"]
    with pytest.raises(ValueError, match="has 2 columns in line 1"):
        read_labels(write("y.csv", "name,type\n1,a\n"), 1)
