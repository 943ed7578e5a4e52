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
    np.testing.assert_array_equal(read_rows(saved(tmp_path / name, X)), X)


def test_images_are_read_as_images(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    found = read_rows(saved(tmp_path / "x.npy", images))
    np.testing.assert_array_equal(found, images)
    assert found.dtype == np.uint8


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [None, list("abcde")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_csv_of_pandas_is_read_with_its_header_and_without_its_index(tmp_path, index, columns, encoding):
    path = tmp_path / "X.CSV"
    pandas.DataFrame(X, columns=columns).to_csv(path, index=index, encoding=encoding)
    np.testing.assert_array_equal(read_rows(path), X)


def test_names_of_rows_as_r_writes_them_are_left_out(write):
    path = write("x.csv", '"","a","b"\r\n"cell 1",1,2.5\r\n"cell 2",3,-4e2\r\n')
    np.testing.assert_array_equal(read_rows(path), [[1, 2.5], [3, -400]])


def test_a_byte_order_mark_costs_no_row(write):
    np.testing.assert_array_equal(read_rows(write("x.csv", "1,2\n3,4\n", "utf-8-sig")), [[1, 2], [3, 4]])


def test_a_first_row_that_counts_is_data_where_it_may_be(write):
    np.testing.assert_array_equal(read_rows(write("x.csv", "0,1\n1,1\n")), [[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,NA\n", "line 3, column 2 ('b') is missing ('NA')"),
        ("NA,2\n3,4\n", "line 1, column 1 is missing ('NA')"),
        ("1,\n3,4\n", "line 1, column 2 is missing ('')"),
        ("1,2\n\n3,nan\n", "line 3, column 2 is missing ('nan')"),
        ("1,red\n3,blue\n", "line 1, column 2 is not a number: 'red'"),
        (",a,b\nr1,1,2\nr2,x,2\n", "line 3, column 2 ('a') is not a number: 'x'"),
        ("a;b\n1;2\n", "'1;2'; separate the columns by commas"),
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
    with pytest.raises(ValueError, match=r"expected \.npy, \.npz or \.csv"):
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
    np.testing.assert_array_equal(read_rows(tmp_path / "both.npz"), X)
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


def test_several_columns_are_not_guessed_at(write):
    with pytest.raises(ValueError, match="has 2 columns in line 1"):
        read_labels(write("y.csv", "name,type\n1,a\n"), 1)
