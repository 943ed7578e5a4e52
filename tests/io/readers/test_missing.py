"""Missing values: refused with their places, left out by rows, or filled."""

import json

import numpy as np
import polars as pl
import pytest

from dre.io.readers import ReadOptions, SourceError, open_source
from dre.io.readers.labels import read_labels

GAPS = "a,b,kind\n1,NA,x\n2,5,\n,6,y\n4,8,z\n"


def test_gaps_are_counted_and_the_first_cells_are_named(write):
    with pytest.raises(SourceError) as refused:
        open_source(write("x.csv", GAPS))
    message = str(refused.value)
    assert "missing values in 2 of 4 rows" in message
    assert "1 in 'a', the first in line 4, column 1 ('a')" in message
    assert "1 in 'b', the first in line 2, column 2 ('b')" in message
    assert "missing='drop', missing='mean' or missing='median'" in message


@pytest.mark.parametrize(("policy", "a", "b"), [("mean", 7 / 3, 19 / 3), ("median", 2, 6)])
def test_gaps_are_filled_by_the_middle_of_their_column(write, policy, a, b):
    found = open_source(write("x.csv", GAPS), options=ReadOptions(missing=policy))
    np.testing.assert_allclose(found.rows, [[1, b], [2, 5], [a, 6], [4, 8]])
    assert found.fill == pytest.approx({"a": a, "b": b})
    assert found.metadata["kind"].tolist() == ["x", "", "y", "z"]


def test_rows_with_gaps_are_left_out_and_keep_their_places(write):
    found = open_source(write("x.csv", GAPS), options=ReadOptions(missing="drop"))
    np.testing.assert_array_equal(found.rows, [[2, 5], [4, 8]])
    assert found.metadata["kind"].tolist() == ["", "z"]
    assert found.dropped.kept.tolist() == [False, True, False, True]


def test_what_was_filled_once_is_filled_alike_in_another_table(write):
    options = ReadOptions(features=["a", "b"], fill={"b": 100.0})
    found = open_source(write("x.csv", "a,b\n1,NA\n2,5\n"), options=options)
    np.testing.assert_array_equal(found.rows, [[1, 100], [2, 5]])
    with pytest.raises(SourceError, match="1 in 'a'"):
        open_source(write("x.csv", "a,b\nNA,1\n2,5\n"), options=options)


def test_a_gap_of_an_array_that_is_not_filled_is_named_by_its_column(tmp_path):
    np.save(tmp_path / "x.npy", [[np.nan, 1.0], [2.0, np.nan]])
    with pytest.raises(SourceError, match="1 in '1', the first in row 1 of column 1"):
        open_source(tmp_path / "x.npy", options=ReadOptions(fill={"0": 5.0}))


def test_gaps_in_what_is_no_feature_are_no_gaps(write):
    found = open_source(write("x.csv", "a,note,day\n1,,2024-01-05\n2,x,\n3,,2024-01-07\n"))
    assert found.columns == ["a"]
    assert found.metadata["day"].tolist() == ["2024-01-05", "", "2024-01-07"]


def test_a_table_without_a_complete_row_is_refused(write):
    with pytest.raises(SourceError, match="every row lacks a value"):
        open_source(write("x.csv", "a,b\n1,NA\nNA,2\n3,NA\n"), options=ReadOptions(missing="drop"))


def test_an_unknown_policy_is_named():
    with pytest.raises(SourceError, match="'zero'"):
        ReadOptions(missing="zero")


def test_a_feature_of_a_model_may_be_empty_but_not_a_text(write):
    options = ReadOptions(features=["a", "b"], fill={"b": 7.0})
    np.testing.assert_array_equal(open_source(write("x.csv", "a,b\n1,\n2,\n"), options=options).rows, [[1, 7], [2, 7]])
    with pytest.raises(SourceError, match="'b' should hold numbers, but it is one of kind 'text'"):
        open_source(write("x.csv", "a,b\n1,x\n2,y\n"), options=options)


def test_gaps_that_are_filled_without_the_values_of_the_fit_are_a_caution(write):
    path = write("x.csv", "a,b\n1.5,2\n,3\n4.5,7\n")
    found = open_source(path, options=ReadOptions(features=["a", "b"], missing="mean"))
    assert found.cautions == ["missing values of a are filled in by the mean of these rows, not of the fit"]
    assert found.filled["a"].tolist() == [False, True, False]
    assert open_source(path, options=ReadOptions(features=["a", "b"], missing="mean", fill={"a": 9.0})).cautions == []
    with pytest.raises(SourceError, match="'a' has no value at all, and so no mean"):
        open_source(write("y.csv", "a,b\n,2\n,3\n"), options=ReadOptions(features=["a", "b"], missing="mean"))


WORDS = ["u", "v", "", "NA", "n/a", "-", "?"] * 6


def test_words_for_a_missing_value_are_the_same_in_features_and_labels(write, tmp_path):
    lines = [f"{word};{i / 7}" for i, word in enumerate(WORDS)]
    kinds = open_source(write("table.csv", "\n".join(["kind;size", *lines]))).metadata["kind"]
    pl.DataFrame({"kind": WORDS, "size": np.arange(42) / 7}).write_parquet(tmp_path / "table.parquet")
    in_parquet = open_source(tmp_path / "table.parquet").metadata["kind"]
    in_text = read_labels(write("kinds.txt", "\n".join(["kind", *WORDS, "u"])), 43)[:-1]
    in_list = read_labels(write("kinds.json", json.dumps(WORDS)), 42)
    np.save(tmp_path / "kinds.npy", WORDS)
    for found in (kinds, in_parquet, in_text, in_list, read_labels(tmp_path / "kinds.npy", 42)):
        assert found.tolist() == [word if word in ("u", "v") else "" for word in WORDS]
    encoded = open_source(tmp_path / "table.csv", options=ReadOptions(categories=True, missing="drop"))
    assert encoded.columns == ["kind=u", "kind=v", "size"]


def test_a_file_of_numbers_with_gaps_has_numbers_for_labels(write):
    found = read_labels(write("ages.txt", "31\nNA\n?\n40\n"), 4)
    np.testing.assert_array_equal(found, [31.0, np.nan, np.nan, 40.0])


def test_a_name_of_a_row_may_be_a_word_for_a_missing_value(write):
    codes = [*(f"C{i:02d}" for i in range(29)), "NA"]  # the code of Namibia
    source = open_source(write("countries.csv", "\n".join(["code;size", *(f"{code};{i % 7}" for i, code in enumerate(codes))])))
    assert source.names.tolist() == codes
    assert source.names_title == "code"
