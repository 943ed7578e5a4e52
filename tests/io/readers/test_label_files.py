"""Labels from files: what is written is what is read, and what can't be read is named."""

import json
import re

import numpy as np
import pandas
import pytest

from dre.io.readers import open_source
from dre.io.readers.labels import read_labels

X = np.random.default_rng(0).normal(size=(12, 5))
KINDS = np.array(["B cell", "T cell, CD4", "B cell", "NK"] * 3)
NUMBERS = np.array([10, 2, 2, 0] * 3)


def saved(path, values):
    """By numpy, or as a .csv without a header."""
    if path.suffix == ".npz":
        np.savez(path, values)
    elif path.suffix == ".npy":
        np.save(path, values)
    else:
        pandas.DataFrame(values).to_csv(path, header=False, index=False)
    return path


def test_files_that_are_not_there_or_no_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"y\.txt does not exist"):
        read_labels(tmp_path / "y.txt", 3)
    with pytest.raises(ValueError, match="is not a file"):
        read_labels(tmp_path, 3)


@pytest.mark.parametrize("name", ["y.h5ad", "y.parquet", "y.XLSX", "y.jsonl"])
def test_a_file_of_rows_is_no_file_of_labels(write, name):
    with pytest.raises(ValueError, match=rf"{re.escape(name)} is no file of labels: pass the name of a column"):
        read_labels(write(name, "\0\1\2"), 3)


@pytest.mark.parametrize("content", ["", "not an array", "PK\x03\x04 not a zip"])
@pytest.mark.parametrize("name", ["y.npy", "y.npz"])
def test_damaged_files_are_named(write, name, content):
    with pytest.raises(ValueError, match=rf"{re.escape(name)} cannot be read as an array"):
        read_labels(write(name, content), 3)


def test_a_pickle_is_not_read(tmp_path):
    np.savez(tmp_path / "y.npz", np.array(["a", None], dtype=object))
    with pytest.raises(ValueError, match=r"labels\.astype\(str\)"):
        read_labels(tmp_path / "y.npz", 2)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_labels_are_read_in_the_encoding_that_they_have(write, encoding):
    for name in ("y.csv", "y.txt"):
        assert read_labels(write(name, "Größe\nMaß\n", encoding), 2).tolist() == ["Größe", "Maß"]


@pytest.mark.parametrize("name", ["y.npy", "y.npz", "y.csv"])
@pytest.mark.parametrize("labels", [KINDS, NUMBERS, NUMBERS[:, None]])
def test_labels_are_read_as_they_were_written(tmp_path, name, labels):
    found = read_labels(saved(tmp_path / name, labels), 12)
    np.testing.assert_array_equal(np.ravel(found), labels.ravel())
    assert found.dtype.kind == labels.dtype.kind


def test_rows_and_labels_from_one_file(tmp_path):
    np.savez(tmp_path / "both.npz", y=KINDS, X=X)
    np.testing.assert_array_equal(open_source(tmp_path / "both.npz").rows, X)
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
    with pytest.raises(ValueError, match=f"has 12 labels for {count} rows"):
        read_labels(path, count)


@pytest.mark.parametrize("name", ["y.txt", "y.csv"])
def test_an_empty_label_is_no_label(write, name):
    assert read_labels(write(name, "a\n\nb\n"), 3).tolist() == ["a", "", "b"]
    np.testing.assert_array_equal(read_labels(write(name, "1\n\n2.5\n"), 3), [1, np.nan, 2.5])


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


def test_labels_with_names_are_matched_by_them(write):
    names = np.array(["b", "c", "a"])
    for header in (",kind\n", "cell,kind\n", ""):
        path = write("y.csv", f"{header}a,1\nb,2\nc,3\nd,4\n")
        assert read_labels(path, 3, names).tolist() == [2, 3, 1]
    with pytest.raises(ValueError, match=r"no label for 1 of 3 rows: c"):
        read_labels(write("y.csv", "cell,kind\na,1\nb,2\n"), 3, names)
    assert read_labels(write("y.csv", ",kind\n0,x\n1,y\n2,z\n"), 3, names).tolist() == ["x", "y", "z"]  # numbers of the rows
    assert read_labels(write("y.csv", "kind\nx\ny\nz\n"), 3, names).tolist() == ["x", "y", "z"]


@pytest.mark.parametrize("header", ["cell,kind\n", ""])
def test_a_name_that_occurs_twice_has_the_label_of_its_own_line_or_is_refused(write, header):
    path = write("y.csv", f"{header}a,1\nb,2\na,3\n")
    assert read_labels(path, 3, np.array(["a", "b", "a"])).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="several labels for the row 'a'"):
        read_labels(path, 3, np.array(["b", "a", "a"]))


def test_names_that_all_differ_are_shown_from_both_sides(write):
    path = write("y.csv", "name,kind\nAAAC-1-x,B\nAAAG-1-x,NK\n")
    with pytest.raises(ValueError, match=r"for 2 of 2 rows, since all names differ \(DATA: 'AAAC-1', .*y\.csv: 'AAAG-1-x'\)"):
        read_labels(path, 2, np.array(["AAAC-1", "AAAG-1"]))
    with pytest.raises(ValueError, match=r"for 4 of 5 rows: b, c, d, … \(4 in total\)$"):
        read_labels(write("z.csv", "name,kind\na,B\nz,NK\n"), 5, np.array(list("abcde")))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" + "9" * 10_000 + "]", "[[1, 2], [3]]", "", "\x00"])
def test_json_that_is_no_list_of_labels_is_our_error(write, text):
    with pytest.raises(ValueError, match=r"y\.json (is not|has lists within)"):
        read_labels(write("y.json", text), 2)


def test_labels_of_any_length_are_read(write):
    long = "x" * 200_000
    for name, content in (("y.csv", f"kind\n{long}\nb\n"), ("y.tsv", f"{long}\nb\n"), ("y.txt", f"{long}\nb\n")):
        assert read_labels(write(name, content), 2).tolist() == [long, "b"]
    by_name = read_labels(write("y.csv", f"r2,{long}\nr1,b\n"), 2, np.array(["r1", "r2"]))
    assert by_name.tolist() == ["b", long]
