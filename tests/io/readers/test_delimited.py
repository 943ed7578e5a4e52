"""Text tables: numeric columns are rows, text columns are metadata, and errors name the line and the column."""

import csv
import gzip
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dre.io.readers import ReadOptions, SourceError, open_source
from dre.io.readers.delimited import read_text
from dre.io.readers.table import MISSING

RNG = np.random.default_rng(1)
X = np.random.default_rng(0).normal(size=(12, 3))
WIDE = np.random.default_rng(0).normal(size=(12, 5))
KINDS = ["B cell", "T cell, CD4", "<b>NK</b>", "$(true)"] * 3


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "X.TSV.GZ"])
@pytest.mark.parametrize("index", [False, True])
def test_a_table_is_read_with_all_that_is_in_it(tmp_path, name, index):
    table = pandas.DataFrame(X, columns=list("abc"), index=[f"cell {i}" for i in range(12)])
    table.insert(1, "kind", KINDS)
    path = tmp_path / name
    table.to_csv(path, sep="\t" if "tsv" in name.lower() else ",", index=index, compression="infer" if "gz" in name else None)
    if name.endswith(".GZ"):  # pandas compresses only for the suffix in lower case
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = open_source(path)
    np.testing.assert_array_equal(found.rows, X)
    assert found.columns == list("abc")
    assert {key: values.tolist() for key, values in found.metadata.items()} == {"kind": KINDS}
    assert (None if found.names is None else found.names.tolist()) == (table.index.tolist() if index else None)
    assert found.messages[-2:] == ["3 features: a, b, c", "not features: kind (text)"]


def test_a_text_column_may_have_missing_values_even_the_first(write):
    found = open_source(write("x.csv", "a,kind\n1,\n2,x\n3,NA\n"))
    assert found.metadata["kind"].tolist() == ["", "x", ""]


def test_a_text_column_without_a_name_is_named_by_its_position(write):
    found = open_source(write("x.csv", "1,red\n3,blue\n"))
    assert found.metadata["column 2"].tolist() == ["red", "blue"]
    np.testing.assert_array_equal(found.rows, [[1], [3]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,x\n", r"line 3, column 2 \('b'\): 'x' is not a number; correct it, or leave the column out"),
        ("a,b\n1,x\n3,4\n", r"line 2, column 2 \('b'\): 'x' is not a number"),
        ("# from a machine\n# of ours\na,b\n1,2\n\n3,x\n", r"line 6, column 2 \('b'\): 'x' is not a number"),
        (",a,b\nr1,1,2\nr2,x,2\n", r"line 3, column 2 \('a'\): 'x' is not a number"),
        ("a,b\n1,2\n3,NA\n", r"1 in 'b', the first in line 3, column 2 \('b'\)"),
        ("a,b\n1,NA\n3,4\n", r"1 in 'b', the first in line 2, column 2 \('b'\)"),
        ("NA,2\n3,4\n", "the first in line 1, column 1"),
        ("1,\n3,4\n", "the first in line 1, column 2"),
        ("1,2\n\n3,nan\n", "the first in line 3, column 2"),
        ("a;b\n1;2\n3\n", "'1;2'.*the same character in all lines"),
        ('a,b\n1,"2,5"\n2,3\n', r"line 2, column 2 \('b'\): '2,5'.*decimals with a point, or pass decimal=','"),
        ("a,b\nx,y\nz,w\n", r"no column of numbers.*'a' \(text\)"),
        ("a,b,b\n1,x,y\n", "several columns 'b': rename"),
        ("a,b\n1,2,3,4\n", "line 2 has 4 values, the first line 2"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 values, the first line 2"),
        ("1,2\n3\n", "line 2 has 1 values, the first line 2"),
        ("a,b\n", "header but no rows"),
        ("", "is empty"),
        ("\0\1\2", "is not text"),
    ],
)
def test_an_error_names_the_line_the_column_and_the_remedy(write, content, message):
    with pytest.raises(SourceError, match=message):
        open_source(write("x.csv", content))


def test_a_damaged_gzip_file_is_named(tmp_path):
    path = tmp_path / "x.csv.gz"
    for content in (b"no gzip", gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-12]):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"x\.csv\.gz cannot be decompressed"):
            open_source(path)


text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=8).filter(
    lambda value: value.lower() not in MISSING and not re.search(r"\d|nan|inf|na|none|null", value.lower())
)


@example(values=[(0.0, ";")], names=(";", ":;"))
@example(values=[(0.0, ";"), (1.5, "a;b")], names=("x;", ";"))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), text),
        min_size=1,
        max_size=6,
        unique_by=lambda pair: pair[0],
    ),
    names=st.tuples(text, text).filter(lambda pair: pair[0] != pair[1] and not pair[0].startswith("#")),
)
def test_what_pandas_writes_is_what_is_read(tmp_path, values, names):
    numbers, kinds = zip(*values, strict=True)
    pandas.DataFrame(dict(zip(names, (numbers, kinds), strict=True))).to_csv(tmp_path / "x.csv", index=False)
    found = open_source(tmp_path / "x.csv")
    np.testing.assert_array_equal(found.rows[:, 0], numbers)
    assert found.columns == [names[0]]
    assert found.metadata[names[1]].tolist() == list(kinds)


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [None, list("abcde")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_csv_of_pandas_is_read_with_its_header_and_without_its_index(tmp_path, index, columns, encoding):
    path = tmp_path / "X.CSV"
    pandas.DataFrame(WIDE, columns=columns).to_csv(path, index=index, encoding=encoding)
    np.testing.assert_array_equal(open_source(path).rows, WIDE)


def test_a_short_line_below_a_header_of_r_is_named(write):
    with pytest.raises(SourceError, match="line 3 has 3 values, the others 4"):
        open_source(write("x.txt", "a b c\nx 1 2 3\ny 4 5\nz 6 7 9\n"), options=ReadOptions(missing="mean"))


def test_row_names_as_r_writes_them_are_not_features(write):
    path = write("x.csv", '"","a","b"\r\n"cell 1",1,2.5\r\n"cell 2",3,-4e2\r\n')
    np.testing.assert_array_equal(open_source(path).rows, [[1, 2.5], [3, -400]])


def test_a_byte_order_mark_costs_no_row(write):
    np.testing.assert_array_equal(open_source(write("x.csv", "1,2\n3,4\n", "utf-8-sig")).rows, [[1, 2], [3, 4]])


def test_two_counted_columns_are_data_not_a_header(write):
    np.testing.assert_array_equal(open_source(write("x.csv", "0,1\n1,3\n")).rows, [[0, 1], [1, 3]])


@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("columns", [list("abcde"), range(5)], ids=["named", "counted"])
def test_a_text_column_may_stand_anywhere(tmp_path, place, columns):
    table = pandas.DataFrame(WIDE, columns=columns)
    table.insert(place, "kind", ["B cell", "T cell, CD4"] * 6)
    table.to_csv(tmp_path / "x.csv", index=False)
    found = open_source(tmp_path / "x.csv")
    np.testing.assert_array_equal(found.rows, WIDE)
    assert found.columns == [str(column) for column in columns]
    assert found.metadata["kind"].tolist() == ["B cell", "T cell, CD4"] * 6


@pytest.mark.parametrize(("name", "mark"), [("x.csv", ","), ("x.csv", ";"), ("x.csv", "\t"), ("x.tsv", "\t")])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [list("abcde"), ["a, b", "c; d", "e\tf", "g", "h"]])
def test_commas_semicolons_and_tabs_separate_columns(tmp_path, name, mark, index, columns):
    pandas.DataFrame(WIDE, columns=columns).to_csv(tmp_path / name, sep=mark, index=index)
    found = open_source(tmp_path / name)
    np.testing.assert_array_equal(found.rows, WIDE)
    assert found.columns == columns
    assert (found.names is not None) == index


def test_a_semicolon_in_a_name_separates_nothing(write):
    found = open_source(write("x.csv", "size; in mm,weight\n1,2\n3,4\n"))
    np.testing.assert_array_equal(found.rows, [[1, 2], [3, 4]])
    assert found.columns == ["size; in mm", "weight"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig", "utf-32"])
def test_text_is_read_in_the_encoding_that_it_has(write, encoding):
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    found = open_source(write("x.csv", f"{mark}Größe,Straße\n1,Allee\n2,Weg\n", encoding))
    assert found.columns == ["Größe"]
    assert found.metadata["Straße"].tolist() == ["Allee", "Weg"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas_and_thousands_are_read_where_commas_separate_nothing(write, separator):
    lines = [["size", "price", "count"], ["1,5", "1.234,50", "3"], ["0,25", "12,00", "4"], ["2", "1.000.000", "5"]]
    path = write("x.csv", "\n".join(separator.join(line) for line in lines))
    np.testing.assert_array_equal(open_source(path).rows, [[1.5, 1234.5, 3], [0.25, 12, 4], [2, 1e6, 5]])


def test_points_are_decimals_beside_semicolons_too(write):
    np.testing.assert_array_equal(open_source(write("x.csv", "a;b\n1.5;1.250\n2.5;3.5\n")).rows, [[1.5, 1.25], [2.5, 3.5]])


def test_a_decimal_comma_can_be_said(write):
    path = write("x.csv", 'a,b\n1,"2,5"\n2,"3,5"\n')
    np.testing.assert_array_equal(open_source(path, options=ReadOptions(decimal=",")).rows, [[1, 2.5], [2, 3.5]])


def test_thousands_are_separated_by_commas_in_quotes(write):
    np.testing.assert_array_equal(open_source(write("x.csv", 'a,b\n1,"1,234"\n2,"12,345.5"\n')).rows, [[1, 1234], [2, 12345.5]])


@pytest.mark.parametrize("comment", ["# a comment\n", "# a comment, and more\n#\n", ""])
@pytest.mark.parametrize("header", ["a,b\n", "#a,b\n", "# a,b\n"])
def test_lines_with_a_hash_before_the_table_are_comments(write, comment, header):
    found = open_source(write("x.csv", f"{comment}{header}1,2\n3,5\n"))
    np.testing.assert_array_equal(found.rows, [[1, 2], [3, 5]])
    assert found.columns == ["a", "b"]


def test_a_hash_may_be_the_name_of_a_column(write):
    found = open_source(write("x.csv", "#,size,weight\n1,2.5,3\n2,3.5,5\n"))
    assert found.columns == ["#", "size", "weight"]


def test_a_table_of_r_has_names_without_a_title(write):
    found = open_source(write("x.txt", '"a" "kind"\n"1" 5.1 "x y"\n"2" 4.9 "z"\n'))
    np.testing.assert_array_equal(found.rows, [[5.1], [4.9]])
    assert found.names.tolist() == ["1", "2"]
    assert found.metadata["kind"].tolist() == ["x y", "z"]


def test_a_line_may_be_as_long_as_it_is(write):
    wide = RNG.normal(size=(3, 20_000)).round(3)
    names = ",".join(f"gene {i}" for i in range(20_000))
    found = open_source(write("x.csv", "\n".join([names, *(",".join(map(str, row)) for row in wide)])))
    np.testing.assert_array_equal(found.rows, wide)


def test_dates_and_codes_are_metadata(write):
    found = open_source(write("x.csv", "a,day,zip\n1,05.01.2024,01187\n2,31.12.2023,10115\n"))
    assert found.metadata["day"].tolist() == ["2024-01-05", "2023-12-31"]
    assert found.metadata["zip"].tolist() == ["01187", "10115"]


def test_lines_above_the_table_are_left_out_and_counted(write):
    path = write("x.csv", "Report of March\n\nmade by hand,\na,b,c,d\n1,2,3,4\n5,6,7,9\n8,1,2,3\n")
    found = open_source(path)
    np.testing.assert_array_equal(found.rows, [[1, 2, 3, 4], [5, 6, 7, 9], [8, 1, 2, 3]])
    assert found.columns == list("abcd")
    assert found.messages[0] == "3 lines above the table are left out"
    with pytest.raises(SourceError, match="line 6, column 2"):
        open_source(write("y.csv", path.read_text().replace("5,6", "5,six")))


@pytest.mark.parametrize("group", [".", " ", "'", "\u202f"])
@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_thousands_before_a_decimal_comma_tell_the_mark_alone(write, group, separator):
    lines = [f"name{separator}price", *(f"n{i}{separator}{6 + i}{group}732,{i:02d}" for i in range(10, 40))]
    found = open_source(write("x.csv", "\n".join(lines))).rows[:, 0]
    np.testing.assert_allclose(found, [1000 * (6 + i) + 732 + i / 100 for i in range(10, 40)])


def test_a_word_that_stands_among_numbers_several_times_is_a_missing_value(write):
    lines = ["a,b", *(f"{i},{'k.A.' if i % 4 == 0 else i * i}" for i in range(1, 21))]
    with pytest.raises(SourceError, match="5 in 'b', the first in line 5"):
        open_source(write("x.csv", "\n".join(lines)))
    found = open_source(write("x.csv", "\n".join(lines)), options=ReadOptions(missing="drop", columns=["a", "b"]))
    assert found.messages[0] == "'k.A.' in 'b' is a missing value (5 times)"
    assert len(found.rows) == 15
    other = "\n".join(lines).replace("8,k.A.", "8,about 60")
    with pytest.raises(SourceError, match="is not a number"):
        open_source(write("y.csv", other))


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["$1,200.50", "$7", ""], [1200.5, 7, np.nan]),
        (["12 %", "7.5 %", "0%"], [12, 7.5, 0]),
        (["€ 3", "4 €", "5€"], [3, 4, 5]),
    ],
)
def test_currencies_and_percents_are_numbers(write, texts, numbers):
    lines = ["a,b", *(f'{i},"{text}"' for i, text in enumerate(texts))]
    found = open_source(write("x.csv", "\n".join(lines)), options=ReadOptions(missing="mean"))
    expected = np.where(np.isnan(numbers), np.nanmean(numbers), numbers)
    np.testing.assert_allclose(found.rows[:, 1], expected)


def test_times_with_an_offset_are_dates(write):
    lines = ["a,when", *(f"{i % 7},2024-03-01T10:{i:02d}:30.500000+0100" for i in range(30))]
    found = open_source(write("x.csv", "\n".join(lines)))
    assert found.columns == ["a"]
    assert found.metadata["when"][3] == "2024-03-01T09:03:30"


@pytest.mark.parametrize("suffix", [".csv", *(pytest.param(each, marks=pytest.mark.slow) for each in (".tsv", ".csv.gz"))])
@pytest.mark.parametrize("index", [False, True])
def test_a_first_line_of_16_000_genes_is_read_in_seconds(tmp_path, suffix, index):
    values = np.random.default_rng(0).normal(size=(60, 16_000)).round(3)
    frame = pandas.DataFrame(values, columns=[f"ENSG{i:011d}" for i in range(16_000)], index=[f"cell {i}" for i in range(60)])
    frame.to_csv(tmp_path / f"x{suffix}", sep="\t" if suffix == ".tsv" else ",", index=index)
    start = time.process_time()
    found = open_source(tmp_path / f"x{suffix}")
    assert time.process_time() - start < 20
    assert found.columns == list(frame.columns)
    np.testing.assert_array_equal(found.rows, values)
    assert index is False or found.names.tolist() == list(frame.index)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_cell_of_any_length_is_one_value(write, quote):
    long = quote + "x" * 200_000 + quote
    limit = csv.field_size_limit()
    for content in (f"a,b,note\n1,2,{long}\n3,4,y\n5,7,z\n", f"a,b,{long}\n1,2,x\n3,4,y\n5,7,z\n"):
        found = open_source(write("x.csv", content))
        assert found.columns == ["a", "b"]
        assert max(map(len, [*found.metadata, *found.metadata[next(iter(found.metadata))]])) == 200_000
    with pytest.raises(SourceError, match="line 3 has 3 values, the first line 2"):
        open_source(write("x.csv", f"a,b\n1,{long}\n2,{long},3\n"))
    assert csv.field_size_limit() == limit


def test_a_broken_line_among_long_ones_is_found_in_seconds(write):
    line = ",".join(["0.5"] * 40_000)
    start = time.process_time()
    with pytest.raises(SourceError, match="line 21 has 39999 values, the first line 40000"):
        open_source(write("x.csv", "\n".join([*[line] * 20, line[:-4], line])))
    assert time.process_time() - start < 20


def test_threads_leave_the_limit_of_the_csv_module_as_it_was(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(500)))
    table, interval, limit = read_text(tmp_path / "x.csv"), sys.getswitchinterval(), csv.field_size_limit()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            counts = list(threads.map(lambda _: len(list(table.records())), range(32)))
    finally:
        sys.setswitchinterval(interval)
        after = csv.field_size_limit(limit)
    assert set(counts) == {501}
    assert after == limit
