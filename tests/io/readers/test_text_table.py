"""Tables in text files: what is written is what is read, and a cell that can't be a number is named with its place."""

import re

import numpy as np
import pandas
import pytest

from dre.io.readers.text_table import read_table

X = np.random.default_rng(0).normal(size=(12, 5))


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [None, list("abcde")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_csv_of_pandas_is_read_with_its_header_and_without_its_index(tmp_path, index, columns, encoding):
    path = tmp_path / "X.CSV"
    pandas.DataFrame(X, columns=columns).to_csv(path, index=index, encoding=encoding)
    np.testing.assert_array_equal(read_table(path).values, X)


def test_names_of_rows_as_r_writes_them_are_left_out(write):
    path = write("x.csv", '"","a","b"\r\n"cell 1",1,2.5\r\n"cell 2",3,-4e2\r\n')
    np.testing.assert_array_equal(read_table(path).values, [[1, 2.5], [3, -400]])


def test_a_byte_order_mark_costs_no_row(write):
    np.testing.assert_array_equal(read_table(write("x.csv", "1,2\n3,4\n", "utf-8-sig")).values, [[1, 2], [3, 4]])


def test_a_first_row_that_counts_is_data_where_it_may_be(write):
    np.testing.assert_array_equal(read_table(write("x.csv", "0,1\n1,1\n")).values, [[0, 1], [1, 1]])


@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("columns", [list("abcde"), range(5)], ids=["named", "counted"])
def test_a_column_of_texts_may_stand_anywhere_in_a_table_of_pandas(tmp_path, place, columns):
    table = pandas.DataFrame(X, columns=columns)
    table.insert(place, "kind", ["B cell", "T cell, CD4"] * 6)
    table.to_csv(tmp_path / "x.csv", index=False)
    found = read_table(tmp_path / "x.csv")
    np.testing.assert_array_equal(found.values, X)
    assert found.columns == [str(column) for column in columns]
    assert found.texts["kind"].tolist() == ["B cell", "T cell, CD4"] * 6


@pytest.mark.parametrize(("name", "mark"), [("x.csv", ","), ("x.csv", ";"), ("x.csv", "\t"), ("x.tsv", "\t")])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [list("abcde"), ["a, b", "c; d", "e\tf", "g", "h"]])
def test_columns_may_be_apart_by_commas_semicolons_or_tabs(tmp_path, name, mark, index, columns):
    pandas.DataFrame(X, columns=columns).to_csv(tmp_path / name, sep=mark, index=index)
    found = read_table(tmp_path / name)
    np.testing.assert_array_equal(found.values, X)
    assert found.columns == columns
    assert found.named_rows == index


def test_a_semicolon_in_a_name_separates_nothing(write):
    found = read_table(write("x.csv", "size; in mm,weight\n1,2\n3,4\n"))
    np.testing.assert_array_equal(found.values, [[1, 2], [3, 4]])
    assert found.columns == ["size; in mm", "weight"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,NA\n", "line 3, column 2 ('b') is missing ('NA')"),
        ("NA,2\n3,4\n", "line 1, column 1 is missing ('NA')"),
        ("1,\n3,4\n", "line 1, column 2 is missing ('')"),
        ("1,2\n\n3,nan\n", "line 3, column 2 is missing ('nan')"),
        (",a,b\nr1,1,2\nr2,x,2\n", "line 3, column 2 ('a') is not a number: 'x'"),
        ("a;b\n1;2\n3\n", "'1;2'; separate the columns by the same character in all lines"),
        ("a;b\n1;2,5\n", "line 2, column 2 ('b') is not a number: '2,5'; write decimals with a point"),
        ("a,b\n1,2+3j\n", "'2+3j'; give the real and imaginary part of complex numbers a column each"),
        ("1,2\n3\n", "line 2 has 1 values, the first 2"),
        ("", "is empty"),
        ("a,b\n", "has a header, and no rows"),
    ],
)
def test_a_cell_that_is_no_number_is_named_with_its_place(write, content, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_table(write("x.csv", content))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_text_that_is_not_utf8_is_named(write, encoding):
    with pytest.raises(ValueError, match=r"x\.csv is not text in UTF-8"):
        read_table(write("x.csv", "Größe\n1\n", encoding))
