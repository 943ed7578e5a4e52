"""Tables to numbers: scikit-learn's transformers inside, the same bits from a file, and hostile files are refused."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dre.data.preparation import from_file, to_file
from dre.data.table_preparation import GapError, TablePreparation

PENGUINS = Path(__file__).parent / "penguins.csv"
KINDS = {"island": "category", "bill_length_mm": "number", "body_mass_g": "number", "sex": "category"}
PANDAS = pd.read_csv(PENGUINS)
POLARS = pl.read_csv(PENGUINS, null_values="NA")


@pytest.fixture
def preparation():
    return TablePreparation.fit(PANDAS, KINDS, missing="median")


def test_the_numbers_are_those_of_scikit_learn(preparation):
    numbers = ["bill_length_mm", "body_mass_g"]
    filled = SimpleImputer(strategy="median").fit_transform(PANDAS[numbers])
    expected = StandardScaler().fit_transform(filled)
    rows = preparation.transform(PANDAS)
    places = [preparation.names_out.index(name) for name in numbers]
    np.testing.assert_allclose(rows[:, places], expected, atol=1e-12)
    sex = SimpleImputer(strategy="most_frequent").fit_transform(PANDAS[["sex"]].astype(object))
    np.testing.assert_allclose(rows[:, -2:], OneHotEncoder().fit_transform(sex).toarray() / np.sqrt(2), atol=1e-12)
    assert preparation.names_out == [
        "island=Biscoe", "island=Dream", "island=Torgersen", "bill_length_mm", "body_mass_g", "sex=female", "sex=male"
    ]  # fmt: skip


def test_two_categories_are_one_apart_and_so_are_yes_and_no():
    frame = pl.DataFrame({"kind": ["a", "b", "c"], "old": [True, False, True]})
    rows = TablePreparation.fit(frame, {"kind": "category", "old": "boolean"}).transform(frame)
    assert np.linalg.norm(rows[0] - rows[2]) == pytest.approx(1)
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(np.sqrt(2))


def test_pandas_and_polars_give_the_same_bits(preparation):
    again = TablePreparation.fit(POLARS, KINDS, missing="median")
    assert again.state() == preparation.state()
    np.testing.assert_array_equal(again.transform(POLARS), preparation.transform(PANDAS))


def test_the_file_gives_the_same_bits(preparation):
    content, tensors = to_file(preparation)
    assert not tensors
    again = from_file(json.loads(json.dumps(content)), {})
    np.testing.assert_array_equal(again.transform(PANDAS), preparation.transform(PANDAS))
    assert again.state() == preparation.state()


def test_the_order_of_columns_and_others_do_not_matter(preparation):
    shuffled = PANDAS[list(reversed(PANDAS.columns))]
    np.testing.assert_array_equal(preparation.transform(shuffled), preparation.transform(PANDAS))


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.astype({"body_mass_g": "Int64", "sex": "category"}),
        lambda frame: frame.astype({"body_mass_g": object, "island": object}),
        lambda frame: frame.assign(sex=frame.sex.astype(object).where(frame.sex.notna(), None)),
        lambda frame: frame.assign(sex=frame.sex.fillna("")),
        lambda frame: frame.assign(body_mass_g=[None if np.isnan(x) else str(x) for x in frame.body_mass_g]),
        lambda frame: pl.from_pandas(frame).with_columns(pl.col("island").cast(pl.Categorical)),
        lambda frame: pl.from_pandas(frame).to_arrow(),
    ],
    ids=["nullable", "objects", "none", "empty text", "numbers in texts", "polars categories", "arrow"],
)
def test_other_types_of_the_same_values_are_the_same_rows(preparation, change):
    np.testing.assert_array_equal(preparation.transform(change(PANDAS)), preparation.transform(PANDAS))


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        ([True, False, None], [1, 0, 1]),
        ([1, 0, 1], [1, 0, 1]),
        ([1.0, 0.0, np.nan], [1, 0, 1]),
        (["yes", "No", None], [1, 0, 1]),
        (["ja", "nein", ""], [1, 0, 1]),
        (["True", "FALSE", "t"], [1, 0, 1]),
    ],
)
def test_booleans_are_read_as_people_write_them(values, flags):
    fitted = TablePreparation.fit({"old": [True, True, False]}, {"old": "boolean"}, missing="mean")
    np.testing.assert_array_equal(fitted.transform(pd.DataFrame({"old": values}))[:, 0], flags)
    with pytest.raises(ValueError, match=r"'old' should hold booleans.*row 1 has 'perhaps'"):
        fitted.transform({"old": ["yes", "perhaps"]})


def test_whole_numbers_are_categories_without_a_fraction():
    fitted = TablePreparation.fit(pd.DataFrame({"kind": pd.Categorical([1, 2, 2])}), {"kind": "category"})
    for values in ([2, 1], [2.0, 1.0], ["2", "1"]):
        assert fitted.transform({"kind": values}).argmax(1).tolist() == [1, 0]


def test_unknown_values_are_zeros_and_counted_once(preparation):
    query = PANDAS.head(6).assign(island=["Moon", "Moon", "Dream", "Mars", "Biscoe", None])
    with pytest.warns(
        UserWarning, match=r"3 rows have values of 'island' that the fit did not have \('Mars', 'Moon'\)"
    ) as told:
        rows = preparation.transform(query)
    assert len(told) == 1
    np.testing.assert_array_equal(rows[:, :3].any(1), [False, False, True, False, True, True])


def test_gaps_are_refused_by_name_or_filled_as_in_the_fit(preparation):
    with pytest.raises(GapError, match=r"in 11 of 344 rows: 2 in 'bill_length_mm', the first in row 3;.*missing='median'"):
        TablePreparation.fit(PANDAS, KINDS).transform(PANDAS)
    query = pd.DataFrame({"island": [None], "bill_length_mm": [None], "body_mass_g": [np.nan], "sex": [None]})
    found = preparation.encode(query)
    medians = PANDAS[["bill_length_mm", "body_mass_g"]].median()
    whole = PANDAS.head(1).assign(island="Biscoe", sex="male", **medians)
    np.testing.assert_array_equal(found.rows, preparation.transform(whole))
    assert set(found.filled) == set(KINDS)


def test_what_a_query_lacks_is_named(preparation):
    with pytest.raises(ValueError, match="X has no column 'sex'; its columns: 'species', 'island'"):
        preparation.transform(PANDAS.drop(columns="sex"))
    with pytest.raises(
        ValueError, match="X has no columns 'island', 'bill_length_mm', 'body_mass_g', 'sex'; its columns: 'height'"
    ):
        preparation.transform(pd.DataFrame({"height": [1.0]}))
    with pytest.raises(ValueError, match="'body_mass_g' should hold numbers, but row 1 has 'heavy'"):
        preparation.transform(PANDAS.assign(body_mass_g=["1", "heavy", *["2"] * 342]))
    with pytest.raises(ValueError, match="'body_mass_g' has infinity in row 2"):
        preparation.transform(PANDAS.assign(body_mass_g=[1, 2, np.inf, *[2] * 341]))
    with pytest.raises(ValueError, match="pass a DataFrame with these columns"):
        preparation.transform(PANDAS.to_numpy())


def test_a_column_without_values_is_refused_and_a_constant_is_not():
    with pytest.raises(ValueError, match="'sex' has no value at all"):
        TablePreparation.fit({"sex": [None, None], "size": [1, 2]}, {"sex": "category", "size": "number"}, missing="mean")
    fitted = TablePreparation.fit({"sex": ["f", "f"], "size": [3, 3]}, {"sex": "category", "size": "number"})
    np.testing.assert_allclose(fitted.transform({"sex": ["f"], "size": [4]}), [[np.sqrt(0.5), 1.0]])


def test_most_values_may_be_missing_and_a_category_may_occur_once():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=150), "kind": ["rare", *["usual", "other"] * 74, "usual"]})
    frame = frame.mask(rng.random(frame.shape) < 0.6)
    frame.loc[0, "kind"] = "rare"
    fitted = TablePreparation.fit(frame, {"size": "number", "kind": "category"}, missing="median")
    rows = fitted.transform(frame)
    assert np.isfinite(rows).all()
    assert rows[:, fitted.names_out.index("kind=rare")].astype(bool).sum() == 1


def test_numbers_alone_keep_their_units_and_are_a_module():
    import torch

    X = np.array([[1.0, np.nan], [3.0, 10.0], [np.nan, 30.0]])
    fitted = TablePreparation.fit(X, {"x0": "number", "x1": "number"}, missing="mean", named=False)
    np.testing.assert_array_equal(fitted.transform(X), [[1, 20], [3, 10], [2, 30]])
    np.testing.assert_array_equal(fitted.module()(torch.from_numpy(X)).numpy(), fitted.transform(X))
    assert fitted.columns is None
    with pytest.raises(ValueError, match="rows of 2 columns"):
        fitted.transform(X[:, :1])


CONFIG = {
    "named": True,
    "columns": [
        {"name": "size", "kind": "number", "center": 1.0, "scale": 2.0, "fill": None},
        {"name": "old", "kind": "boolean", "center": 0.0, "scale": 1.0, "fill": 1.0},
        {"name": "kind", "kind": "category", "categories": ["a", "b"], "scale": 1.5, "fill": "b"},
    ],
}


def test_the_config_says_how_to_compute_a_row():
    rows = TablePreparation.restore(CONFIG, {}).transform({"size": [5], "old": [None], "kind": ["a"]})
    np.testing.assert_array_equal(rows, [[2.0, 1.0, 1 / 1.5, 0.0]])


@pytest.mark.parametrize(
    "edit",
    [
        lambda config: config.clear(),
        lambda config: config.update(named=1),
        lambda config: config.update(other=1),
        lambda config: config.update(columns=[]),
        lambda config: config.update(columns={"a": 1}),
        lambda config: config["columns"].append("size"),
        lambda config: config["columns"].append(config["columns"][0]),
        lambda config: config["columns"][0].update(kind="number "),
        lambda config: config["columns"][0].update(kind=["number"]),
        lambda config: config["columns"][0].update(scale=0),
        lambda config: config["columns"][0].update(scale=float("nan")),
        lambda config: config["columns"][0].update(scale=10**400),
        lambda config: config["columns"][0].update(center="1"),
        lambda config: config["columns"][0].update(fill=True),
        lambda config: config["columns"][0].update(fill=float("inf")),
        lambda config: config["columns"][0].update(name=3),
        lambda config: config["columns"][0].pop("center"),
        lambda config: config["columns"][1].update(fill=0.5),
        lambda config: config["columns"][2].update(fill="c"),
        lambda config: config["columns"][2].update(fill=["a"]),
        lambda config: config["columns"][2].update(categories=[]),
        lambda config: config["columns"][2].update(categories=["a", "a", "b"]),
        lambda config: config["columns"][2].update(categories=["a", "", "b"]),
        lambda config: config["columns"][2].update(categories="ab"),
    ],
)
def test_an_edited_config_is_refused(edit):
    config = json.loads(json.dumps(CONFIG))
    edit(config)
    with pytest.raises(ValueError):  # noqa: PT011 - the archive names the file
        from_file({"kind": "table", "config": config}, {})


def test_tensors_are_refused():
    with pytest.raises(ValueError, match="no tensors"):
        TablePreparation.restore(CONFIG, {"a": None})


texts = st.one_of(st.none(), st.text(max_size=3))
numbers = st.one_of(st.none(), st.floats(-1e100, 1e100))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts, numbers, st.sampled_from([True, False, None])), min_size=1, max_size=12))
def test_any_table_is_refused_or_gives_finite_rows_that_its_file_repeats(cells):
    columns = dict(zip(["kind", "size", "old"], map(list, zip(*cells, strict=True)), strict=True))
    kinds = {"kind": "category", "size": "number", "old": "boolean"}
    if any(all(value in (None, "") or str(value).isspace() for value in column) for column in columns.values()):
        with pytest.raises(ValueError, match="has no value at all"):
            TablePreparation.fit(columns, kinds, missing="mean")
        return
    fitted = TablePreparation.fit(columns, kinds, missing="mean")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = fitted.transform(columns)
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(TablePreparation.restore(*fitted.state()).transform(columns), rows)


def test_a_gap_is_no_unknown_category():
    frame = pl.DataFrame({"kind": ["a", "b", "a"], "size": [1.0, 2.0, 3.0]})
    preparation = TablePreparation.fit(frame, {"kind": "category", "size": "number"})
    found = preparation.encode({"kind": ["a", None, "new"], "size": [1.0, 2.0, 3.0]}, allow_gaps=True)
    assert found.unknown == {"kind": ["new"]}
    assert len(found.unknown_notes) == 1
    assert np.isnan(found.rows).any(1).tolist() == [False, True, False]
