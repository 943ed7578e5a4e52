"""Tables of text: columns of texts stand beside the numbers, and what can't be a number is named with its place."""

import gzip
import re

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dre.io.readers import SourceError, open_source

X = np.random.default_rng(0).normal(size=(12, 3))
KINDS = ["B cell", "T cell, CD4", "<b>NK</b>", "$(true)"] * 3


@pytest.fixture
def write(tmp_path):
    def write(content, name="x.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "X.TSV.GZ"])
@pytest.mark.parametrize("index", [False, True])
def test_a_table_is_read_with_all_that_is_in_it(tmp_path, name, index):
    table = pandas.DataFrame(X, columns=list("abc"), index=[f"cell {i}" for i in range(12)])
    table.insert(1, "kind", KINDS)
    path = tmp_path / name
    table.to_csv(path, sep="\t" if "tsv" in name.lower() else ",", index=index, compression="infer" if "gz" in name else None)
    if name.endswith(".GZ"):  # pandas knows it by its small letters only
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = open_source(path)
    np.testing.assert_array_equal(found.rows, X)
    assert found.columns == list("abc")
    assert {key: values.tolist() for key, values in found.metadata.items()} == {"kind": KINDS}
    assert (None if found.names is None else found.names.tolist()) == (table.index.tolist() if index else None)
    assert found.told[-1] == "columns of texts are no features: 'kind'"


def test_a_text_may_be_missing_even_the_first(write):
    found = open_source(write("a,kind\n1,\n2,x\n3,NA\n"))
    assert found.metadata["kind"].tolist() == ["", "x", "NA"]


def test_a_column_without_a_name_is_called_by_its_place(write):
    found = open_source(write("1,red\n3,blue\n"))
    assert found.metadata["column 2"].tolist() == ["red", "blue"]
    np.testing.assert_array_equal(found.rows, [[1], [3]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,x\n", "line 3, column 2 ('b') is not a number: 'x'"),
        ("a,b\n1,x\n3,4\n", "line 2, column 2 ('b') is not a number: 'x'"),
        ("a,b\n1,2\n3,NA\n", "line 3, column 2 ('b') is missing ('NA')"),
        ("a,b\n1,NA\n3,4\n", "line 2, column 2 ('b') is missing ('NA')"),
        ("a,b\n1,NA\n3,NA\n", "line 2, column 2 ('b') is missing ('NA')"),
        ("a,b\nx,y\nz,w\n", "has no column of numbers"),
        ("a,b,b\n1,x,y\n", "has several columns 'b': rename all but one"),
        ("a,b\n1,2,3\n", "line 2 has 3 values, the first 2"),
        ("a,b\n", "has a header, and no rows"),
        ("", "is empty"),
    ],
)
def test_what_can_not_be_read_is_named_with_its_place(write, content, message):
    with pytest.raises(SourceError, match=re.escape(message)):
        open_source(write(content))


def test_what_can_not_be_decompressed_is_named(write):
    path = write("a,b\n" + "1,2\n" * 1000, "x.csv.gz")
    for content in (b"no gzip", path.read_bytes()[:-12]):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"x\.csv\.gz can't be decompressed"):
            open_source(path)


text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=8).filter(
    lambda value: not re.search(r"\d|nan|inf|na|none|null|^[?.-]$", value.lower())
)


@example(values=[(0.0, ";")], names=(";", ":;"))
@example(values=[(0.0, ";"), (1.5, "a;b")], names=("x;", ";"))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), text), min_size=1, max_size=6),
    names=st.tuples(text, text).filter(lambda pair: pair[0] != pair[1]),
)
def test_what_pandas_writes_is_what_is_read(tmp_path, values, names):
    numbers, kinds = zip(*values, strict=True)
    pandas.DataFrame(dict(zip(names, (numbers, kinds), strict=True))).to_csv(tmp_path / "x.csv", index=False)
    found = open_source(tmp_path / "x.csv")
    np.testing.assert_array_equal(found.rows[:, 0], numbers)
    assert found.columns == [names[0]]
    assert found.metadata[names[1]].tolist() == list(kinds)
