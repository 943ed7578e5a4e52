"""DataFrames: columns that hold no numbers are named with a remedy, and numbers are found by name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from dre import DRE
from dre.data.dataframes import select_features
from dre.data.validation import check_array

N = 40
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "name": [f"row {i}" for i in range(N)],
        "day": pd.date_range("2024-01-01", periods=N),
        "count": pd.array(RNG.integers(9, size=N), dtype="Int64"),
        "kind": pd.Categorical(["a", "b"] * (N // 2)),
        "old": [True, False] * (N // 2),
    }
)
FRAMES = [FRAME, pl.from_pandas(FRAME)]


pytestmark = pytest.mark.filterwarnings("ignore:column .* makes up", "ignore:this model remembers no rows")


def cheap(**options):
    return DRE(schedule="x: gaussian(5) -> kl * 2", random_state=0, device="cpu", **options)


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars"])
def test_columns_without_numbers_are_named_with_the_remedy(frame):
    named = (
        r"'name' \(text with 40 different values\), 'day' \(dates\); "
        r"pass columns=\['size', 'count', 'kind', 'old'\] to map the others"
    )
    with pytest.raises(ValueError, match=named):
        cheap().fit(frame)


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars"])
def test_the_numbers_alone_are_mapped_and_found_again_in_any_order(frame, tmp_path):
    model = cheap(columns="numbers").fit(frame)
    assert model.feature_names_in_.tolist() == ["size", "count"]
    shuffled = frame[list(reversed(frame.columns))]
    np.testing.assert_array_equal(model.transform(shuffled), model.transform(frame))
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(DRE.load(tmp_path / "m.safetensors").transform(shuffled), model.transform(frame))
    with pytest.raises(ValueError, match="X has no column 'count'"):
        model.transform(frame[["size", "name"]])


def test_columns_are_chosen_by_name():
    model = cheap(columns=["count", "size"]).fit(FRAME)
    assert model.feature_names_in_.tolist() == ["count", "size"]
    assert model.preparation_ is None
    mixed = cheap(columns=["count", "kind", "name"]).fit(FRAME)  # a text is a category if it is asked for
    assert mixed.feature_names_in_.tolist() == ["count", "kind", "name"]
    with pytest.raises(ValueError, match="X has no column 'height'"):
        cheap(columns=["count", "height"]).fit(FRAME)
    with pytest.raises(ValueError, match="columns='size': expected 'numbers', or a list"):
        cheap(columns="size").fit(FRAME)


def test_vectors_and_objects_are_told_apart():
    frame = pd.DataFrame({"embedding": [np.ones(3)] * 4, "size": np.array([1, 2, 3, 4], dtype=object)})
    with pytest.raises(ValueError, match=r"'embedding' \(vectors\).*numpy\.stack"):
        select_features(frame, None)
    assert select_features(frame, "numbers").columns.tolist() == ["size"]
    with pytest.raises(ValueError, match="no column of numbers"):
        select_features(frame[["embedding"]], "numbers")


def test_arrays_are_left_alone():
    X = RNG.normal(size=(5, 2))
    assert select_features(X, "numbers") is X


NUMBERS = FRAME[["size"]].assign(count=FRAME["count"].astype(int))


@pytest.fixture(scope="module")
def of_numbers():
    return cheap().fit(NUMBERS)


@pytest.mark.parametrize("form", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize("method", ["transform", "metric_rows", "prepare", "partial_fit"])
@pytest.mark.parametrize(
    "change",
    [lambda frame: frame[["count", "size"]], lambda frame: frame.assign(new=1.0), lambda frame: frame.assign(kind="a")],
    ids=["order", "a number more", "a text more"],
)
def test_a_query_of_numbers_with_other_columns_names_the_remedy(of_numbers, change, form, method):
    query = form(change(NUMBERS))
    with pytest.raises(ValueError, match="names should match those that were passed during fit") as problem:
        getattr(of_numbers, method)(query)
    assert "columns=" not in str(problem.value)
    remedy = str(problem.value).partition("Select the columns of the fit: ")[2]
    again = eval(remedy, {"X": query, "model": of_numbers})
    np.testing.assert_array_equal(of_numbers.transform(again), of_numbers.transform(NUMBERS))


def test_no_remedy_is_offered_where_columns_are_missing(of_numbers):
    with pytest.raises(ValueError, match="now missing:\n- count") as problem:
        of_numbers.transform(FRAME[["size", "name"]])
    assert "Select" not in str(problem.value)


def test_a_query_is_not_told_to_pass_columns_to_an_array_model():
    model = cheap().fit(NUMBERS.to_numpy())
    with pytest.raises(ValueError, match="Leave them out") as problem:
        model.transform(FRAME[["size", "name"]])
    assert "columns='numbers'" not in str(problem.value)


def test_all_missing_columns_are_named_up_to_five():
    with pytest.raises(ValueError, match="X has no columns 'a', 'b'; its columns: 'size', 'name', 'day', 'count', 'kind' and"):
        cheap(columns=["size", "a", "b"]).fit(FRAME)
    with pytest.raises(ValueError, match="X has no columns 'a', 'b', 'c', 'd', 'e' and 2 more;"):
        cheap(columns=list("abcdefg")).fit(FRAME)


def test_columns_of_rows_without_names_are_refused_with_the_remedy():
    for X in (NUMBERS.to_numpy(), torch.from_numpy(NUMBERS.to_numpy()), NUMBERS.to_numpy().tolist()):
        for missing in ("error", "mean"):
            with pytest.raises(ValueError, match=r"columns=\['size'\] chooses columns of a table.*pandas.DataFrame\(X,"):
                cheap(columns=["size"], missing=missing).fit(X)
    model = cheap(columns="numbers").fit(NUMBERS)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.transform(NUMBERS.to_numpy()), model.transform(NUMBERS))


def test_columns_may_be_an_index_and_name_each_column_once(tmp_path):
    model = cheap(columns=FRAME.columns[[0, 3]]).fit(FRAME)
    assert model.feature_names_in_.tolist() == ["size", "count"]
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(DRE.load(tmp_path / "model").transform(FRAME), model.transform(FRAME))
    with pytest.raises(ValueError, match="columns names 'size' more than once"):
        cheap(columns=["size", "size", "count"]).fit(FRAME)


def test_records_are_to_be_a_data_frame():
    records = NUMBERS.to_dict("records")
    for X in (records, NUMBERS.to_dict("list"), NUMBERS.to_records(index=False)):
        for missing in ("error", "mean"):
            with pytest.raises(ValueError, match=r"X is an? .*: pass pandas.DataFrame\(X\)"):
                cheap(missing=missing).fit(X)
    with pytest.raises(ValueError, match="fit also encodes the categories of a DataFrame"):
        cheap().fit(np.array([["a", 1.0], ["b", 2.0]] * 10, dtype=object))


def test_scores_of_a_table_need_the_rows_of_numbers():
    with pytest.raises(ValueError, match=r"model\.metric_rows\(X\)"):
        check_array(FRAME[["size", "name"]], "X")


def test_warnings_of_unknown_categories_name_the_line_of_the_user():
    model = cheap(columns=["size", "count", "kind"]).fit(FRAME)
    with pytest.warns(UserWarning, match="'kind' that the fit did not have") as told:
        model.transform(FRAME.assign(kind="new"))
    assert [each.filename for each in told] == [__file__]
