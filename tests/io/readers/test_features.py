"""Which columns of a table are features: by their kinds, values and names, or as it is said."""

import re

import numpy as np
import polars as pl
import pytest

from dre.io.readers import ReadOptions, SourceError, open_source
from dre.io.readers.features import choose, expand
from dre.io.readers.table import Table, TableColumn

RNG = np.random.default_rng(0)
N = 60
MEASURED = RNG.normal(size=N)


def table(**columns):
    made = []
    for name, values in columns.items():
        if isinstance(values, TableColumn):
            made.append(values)
        elif values.dtype.kind in "iu":
            made.append(TableColumn(name, "number", values.astype(float), integers=True))
        elif values.dtype.kind == "f":
            made.append(TableColumn(name, "number", values))
        else:
            made.append(TableColumn(name, "text", values.astype(str)))
    return Table("x.csv", made, lambda row, column: f"row {row}")


def reasons(**columns):
    return choose(table(size=MEASURED, **columns)).reasons


@pytest.mark.parametrize("name", ["id", "ID", "index", "key", "uuid", "customer_id", "customerId", "row", "Unnamed: 0"])
def test_a_column_that_is_called_an_id_is_no_feature(name):
    assert list(reasons(**{name: RNG.integers(0, 9, N)})) == [name]


@pytest.mark.parametrize("name", ["refractive_index", "acid", "humid", "keyboard", "solid", "width", "Index of refraction"])
def test_a_name_that_only_resembles_an_id_is_one_of_a_feature(name):
    assert not reasons(**{name: RNG.integers(0, 9, N)})


def test_a_measure_is_a_feature_whatever_its_name_is():
    assert not reasons(index=RNG.normal(size=N))


@pytest.mark.parametrize(
    "values",
    [np.arange(N), 1000 - np.arange(N), RNG.permutation(N) + 10_000, RNG.choice(10**8, N, replace=False), np.arange(N) ** 3],
    ids=["counted", "falling", "shuffled", "drawn", "in order"],
)
def test_integers_that_tell_the_rows_apart_are_no_feature(values):
    assert reasons(number=values) == {"number": "integers that number the rows"}


def test_integers_that_measure_something_are_features_even_if_all_differ():
    counts = np.unique(np.exp(RNG.normal(8, 2, 10 * N)).astype(int))
    assert not reasons(count=RNG.permutation(counts)[:N])
    assert not reasons(year=RNG.integers(1990, 2020, N))
    assert not reasons(few=np.array([3, 1, 2] * (N // 3)))


def test_few_rows_say_nothing_about_integers():
    assert not choose(table(size=np.array([0.5, 1.5, 0.7]), value=np.array([3, 1, 2]))).reasons


def test_codes_dates_constants_texts_and_names_are_no_features():
    found = choose(
        table(
            size=MEASURED,
            zip=TableColumn("zip", "text", np.array(["01187", "10115"] * 30), codes=True),
            day=TableColumn("day", "date", np.array(["2024-01-05"] * N)),
            same=np.ones(N),
            kind=np.array(["a", "b", "c"] * 20),
            title=np.array([f"row {i}" for i in range(N)]),
            old=TableColumn("old", "boolean", np.array([0.0, 1.0] * 30)),
            nothing=TableColumn("nothing", "empty", np.array([""] * N)),
        )
    )
    assert found.features == ["size"]
    assert found.reasons == {
        "zip": "codes with leading zeros",
        "day": "dates",
        "same": "constant",
        "kind": "text",
        "title": "a different text in each row",
        "old": "yes or no",
        "nothing": "empty",
    }
    assert found.names == "title"


def test_pixels_stay_together_even_where_all_are_black():
    pixels = {f"pixel{i}": np.zeros(N) if i < 3 else RNG.normal(size=N) for i in range(20)}
    assert choose(table(**pixels)).features == list(pixels)


def test_what_is_said_goes_before_what_is_found(write):
    lines = [f"{i},{i % 3},{i * i % 7},k{i % 2}" for i in range(30)]
    path = write("x.csv", "\n".join(["id,a,b,kind", *lines]))
    assert open_source(path).columns == ["a", "b"]
    assert open_source(path, options=ReadOptions(columns=["id-a"])).columns == ["id", "a"]
    assert open_source(path, options=ReadOptions(drop=["b"])).columns == ["a"]
    assert "b" not in open_source(path, options=ReadOptions(drop=["b"])).metadata
    labelled = open_source(path, options=ReadOptions(labels=["b"]))
    assert labelled.columns == ["a"]
    assert labelled.metadata["b"].tolist() == [i * i % 7 for i in range(30)]
    named = open_source(path, options=ReadOptions(id="b"))
    assert (named.names.tolist(), named.names_title) == ([str(i * i % 7) for i in range(30)], "b")
    encoded = open_source(path, options=ReadOptions(categories=True))
    assert encoded.columns == ["a", "b", "kind=k0", "kind=k1"]
    np.testing.assert_allclose(encoded.rows[:, 2], [(1 - i % 2) / np.sqrt(2) for i in range(30)])
    assert encoded.metadata["kind"].tolist() == [f"k{i % 2}" for i in range(30)]
    assert "encoded as categories: kind; the numbers are divided" in " ".join(encoded.messages)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ReadOptions(columns=["c"]), r"unknown column 'c'"),
        (ReadOptions(columns=["kind"]), r"'kind' cannot be a feature: text; pass categories=True"),
        (ReadOptions(drop=["c"]), r"unknown column 'c'"),
        (ReadOptions(id="c"), r"unknown column 'c'"),
        (ReadOptions(drop=["a", "b"]), "no column of numbers.*'kind'"),
    ],
)
def test_what_cannot_be_done_is_said_with_the_columns(write, options, message):
    path = write("x.csv", "a,b,kind\n1,2,x\n3,4,y\n")
    with pytest.raises(SourceError, match=message):
        open_source(path, options=options)


def test_features_of_a_model_are_read_whatever_the_table_has_else(write):
    path = write("x.csv", "kind,a,id\nk1,5,1\nk0,5,2\n")
    found = open_source(path, options=ReadOptions(features=["id", "a"]))
    np.testing.assert_array_equal(found.rows, [[1, 5], [2, 5]])
    assert not found.messages
    with pytest.raises(SourceError, match="'c'"):
        open_source(path, options=ReadOptions(features=["c"]))


def test_categories_may_have_an_equals_sign_in_names_and_values(write):
    path = write("x.csv", "a=b,size,kind\nu,1,x=1\nv,2,y\nu,4,y\n")
    found = open_source(path, options=ReadOptions(categories=True, standardize=False))
    assert found.columns == ["a=b=u", "a=b=v", "size", "kind=x=1", "kind=y"]
    half = np.sqrt(0.5)
    np.testing.assert_allclose(found.rows, [[half, 0, 1, half, 0], [0, half, 2, 0, half], [half, 0, 4, 0, half]])
    again = open_source(path, options=as_before(found))
    np.testing.assert_array_equal(again.rows, found.rows)
    assert list(again.metadata) == ["a=b", "size", "kind"]
    with pytest.raises(SourceError, match="two columns give the feature 'a=b=u': rename one"):
        open_source(write("y.csv", "a=b,a\nu,b=u\nv,c\nu,c\n"), options=ReadOptions(categories=True))


def as_before(source, **options):
    return ReadOptions(features=source.preparation.columns, preparation=source.preparation, **options)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_long_ids_are_not_rounded(tmp_path, name):
    ids = [1234567890123456789 + i for i in range(30)]
    frame = pl.DataFrame({"id": ids, "size": MEASURED[:30], "account": ids[::-1]})
    path = tmp_path / name
    frame.write_csv(path) if name == "x.csv" else frame.write_parquet(path)
    found = open_source(path, options=ReadOptions(labels=["account"]))
    assert found.names.tolist() == list(map(str, ids))
    assert found.metadata["account"].tolist() == list(map(str, ids[::-1]))


def test_ranges_follow_the_order_of_the_table():
    assert expand(["d", "a-c"], list("abcd")) == ["d", "a", "b", "c"]
    assert expand(["a-b"], ["a-b", "a", "b"]) == ["a-b"]
    with pytest.raises(SourceError, match="c-a"):
        expand(["c-a"], list("abc"))


def test_features_and_the_others_are_told_in_two_lines(write):
    found = open_source(write("x.csv", "id,a,kind\n7,1.5,x\n9,2.5,x\n"))
    assert found.messages == ["1 feature: a", "not features: id (named like an id); kind (constant)"]


def test_ids_as_excel_writes_them_are_no_features(write):
    lines = ["Kundennummer,no_of_rooms,size", *(f"{1000 + 17 * i}.0,{i % 5},{i * i % 13}.5" for i in range(40))]
    found = open_source(write("x.csv", "\n".join(lines)))
    assert found.columns == ["no_of_rooms", "size"]
    assert found.names[2] == "1034"


def test_a_value_far_from_all_others_is_named(write):
    lines = ["a,b", *(f"{i % 7}.5,{i * i % 11}" for i in range(40))]
    lines[20] = "9e9,4"
    messages = open_source(write("x.csv", "\n".join(lines))).messages
    assert any(line.startswith("line 21, column 1 ('a') is 9e+09") for line in messages)
    assert not any("middle" in line for line in open_source(write("y.csv", "\n".join(lines).replace("9e9", "40"))).messages)


def test_a_total_below_the_table_is_left_out(write):
    lines = ["name,a,b", *(f"n{i},{i % 7}.5,{i * i % 11}" for i in range(40)), "Summe:,140,200"]
    found = open_source(write("x.csv", "\n".join(lines)))
    assert len(found.rows) == 40
    assert found.messages[0] == "the last line, 'Summe:', is left out"


def test_categories_that_a_model_does_not_know_are_counted(write):
    first = open_source(write("x.csv", "a,kind\n1,k1\n2,k1\n3,k2\n"), options=ReadOptions(categories=True))
    found = open_source(write("y.csv", "a,kind\n1,k1\n2,k9\n3,k2\n"), options=as_before(first))
    assert found.cautions == ["1 row has a value of 'kind' that the fit did not have ('k9'): it is placed without this column"]
    np.testing.assert_array_equal(found.rows[1, 1:], [0, 0])


def test_names_that_repeat_are_counted_if_they_were_asked_for(write):
    path = write("x.csv", "a,kind\n1,k1\n2,k1\n3,k2\n")
    assert "1 value of 'kind' occurs more than once" in " ".join(open_source(path, options=ReadOptions(id="kind")).messages)


@pytest.mark.parametrize(("text", "number"), [("(3.40)", -3.4), ("1'234.50", 1234.5), ("70.3 kg", 70.3), ("CHF 13.5", 13.5)])
def test_numbers_as_people_write_them(write, text, number):
    texts = [text, text.replace("3", "5")]
    found = open_source(write("x.csv", "a,b\n" + "\n".join(f'{i},"{each}"' for i, each in enumerate(texts))))
    assert found.rows[0, found.columns.index("b")] == number


def test_a_word_among_numbers_is_an_error_only_in_a_feature(write):
    path = write("x.csv", "a,b,c\n1,2,5\n3,big,7\n4,5,2\n6,7,2\n")
    for options in (ReadOptions(), ReadOptions(columns=["a", "b"]), ReadOptions(columns=["a-c"])):
        with pytest.raises(SourceError, match=r"line 3, column 2 \('b'\): 'big' is not a number; correct it, or leave .* drop"):
            open_source(path, options=options)
    for options in (ReadOptions(drop=["b"]), ReadOptions(labels=["b"]), ReadOptions(columns=["a", "c"])):
        assert open_source(path, options=options).columns == ["a", "c"]
    assert open_source(path, options=ReadOptions(features=["c", "a"])).columns == ["c", "a"]
    with pytest.raises(SourceError, match=r"'big' is not a number; correct it$"):
        open_source(path, options=ReadOptions(features=["a", "b"]))


def test_columns_that_a_table_lacks_are_named_together_before_those_of_another_kind(write):
    path = write("x.csv", "a,b\n1,x\n3,y\n")
    with pytest.raises(SourceError, match=r"x\.csv lacks the column 'c' of the model; its columns are a, b"):
        open_source(path, options=ReadOptions(features=["a", "b", "c"]))
    with pytest.raises(SourceError, match=r"lacks 7 columns of the model: 'c', 'd', 'e', 'f', 'g' and 2 more; its columns"):
        open_source(path, options=ReadOptions(features=list("abcdefghi")))


def test_the_file_that_decides_the_features_is_named(write):
    first, other = write("part-0.csv", "a,b\n1,2\n3,5\n"), write("part-1.csv", "a,c\n1,2\n3,5\n")
    with pytest.raises(SourceError, match=rf"part-1\.csv lacks the column 'b' of the first file, {re.escape(str(first))}; its"):
        open_source([first, other])
    with pytest.raises(SourceError, match=r"part-1\.csv lacks the column 'b' of the model; its"):
        open_source([first, other], options=ReadOptions(features=["a", "b"]))


def test_numbers_with_decimal_commas_are_named_where_points_are_expected(write):
    path = write("x.csv", "\n".join(["a,b", *(f'{i % 7},"{i + 1}.732,6{i % 10}"' for i in range(60))]))
    found = open_source(path)
    assert found.messages[-1] == "not features: b (numbers with decimal commas: pass decimal=',')"
    for options in (ReadOptions(columns=["b"]), ReadOptions(features=["a", "b"])):
        with pytest.raises(SourceError, match=r"'b'.* numbers with decimal commas: pass decimal=','"):
            open_source(path, options=options)
    assert open_source(path, options=ReadOptions(decimal=",", columns=["b"])).rows[:2, 0].tolist() == [1732.60, 2732.61]


def test_a_text_of_many_values_is_a_category_if_it_is_named(write):
    lines = [f"{i % 7},{i % 5},t{i % 30},k{i % 2},n{i % 1100}" for i in range(1200)]
    path = write("x.csv", "\n".join(["a,b,town,kind,note", *lines]))
    usual = open_source(path, options=ReadOptions(categories=True))
    assert usual.preparation.columns == ["a", "b", "kind"]
    assert "town (text of more than 20 values: name it in columns=[…]); note (text of more than 20 values)" in usual.messages[1]
    named = open_source(path, options=ReadOptions(categories=True, columns=["a", "town", "kind"]))
    assert named.preparation.columns == ["a", "town", "kind"]
    assert len(named.columns) == 1 + 30 + 2
    in_range = open_source(path, options=ReadOptions(categories=True, columns=["a-kind"]))
    assert in_range.preparation.columns == ["a", "b", "kind"]
    with pytest.raises(SourceError, match=r"'note' cannot be a feature: text of more than 1,000 values$"):
        open_source(path, options=ReadOptions(categories=True, columns=["a", "note"]))
    with pytest.raises(SourceError, match=r"'town' cannot be a feature: text; pass categories=True$"):
        open_source(path, options=ReadOptions(columns=["a", "town"]))
