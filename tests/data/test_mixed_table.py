"""Which tables need a preparation: those with categories, with booleans beside numbers, or with gaps to fill."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch

from dre.data.foreign_rows import foreign_rows
from dre.data.mixed_table import MANY, MOST, fit_table
from dre.data.rows import HostRows
from pretend_gpu import pretend_gpu

N = 60
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("abc"))
FLAGS = pd.DataFrame({"x": [True, False] * (N // 2), "y": [True] * N})


@pytest.mark.parametrize("frame", [NUMBERS, pl.from_pandas(NUMBERS), NUMBERS.to_numpy(), FLAGS, [[1.0, 2.0]]])
def test_numbers_or_booleans_alone_need_none(frame):
    assert fit_table(frame) is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b", "b"] * (N // 3), "category"),
        (pd.Categorical([f"k{i}" for i in range(N)]), "category"),
        ([True, False] * (N // 2), "boolean"),
        ([True, None] * (N // 2), "boolean"),
        (["yes", "no"] * (N // 2), "boolean"),
        (["only"] * N, "category"),
        (pd.array([1, 2, 3] * (N // 3), dtype="Int64"), "number"),
        ([f"{i % MANY}t" for i in range(N)], "category"),
    ],
)
def test_kinds_are_found_by_types_and_values(values, kind):
    frame = NUMBERS.assign(new=values, other=["u", "v"] * (N // 2))
    found = {each.name: each.kind for each in fit_table(frame).encodings}
    assert found == {"a": "number", "b": "number", "c": "number", "new": kind, "other": "category"}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (pd.date_range("2024-01-01", periods=N), "dates"),
        ([f"row {i}" for i in range(N)], "text with 60 different values"),
        ([f"{i % (MANY + 1)}t" for i in range(N)], "text with 21 different values"),
        (range(N), "it numbers the rows"),
        ([np.ones(2)] * N, "vectors"),
        ([{1}] * N, "values of other kinds"),
        ([None] * N, "empty"),
    ],
)
def test_columns_that_cannot_be_mapped_are_named_with_the_others(values, reason):
    frame = NUMBERS.assign(kind=["u", "v"] * (N // 2), new=pd.Series(list(values)))
    with pytest.raises(ValueError, match=rf"'new' \({reason}\); pass columns=\['a', 'b', 'c', 'kind'\] to map the others"):
        fit_table(frame)
    assert fit_table(frame, ["a", "kind"]).columns == ["a", "kind"]
    assert fit_table(frame, "numbers") is None


def test_ids_are_found_by_their_name_and_years_are_not():
    frame = NUMBERS.assign(kind=["u", "v"] * (N // 2), year=range(1960, 1960 + N), customer_id=RNG.permutation(1000)[:N])
    with pytest.raises(ValueError, match=r"mapped: 'customer_id' \(it numbers the rows\);"):
        fit_table(frame)
    assert "customer_id" in fit_table(frame, ["a", "kind", "customer_id"]).columns


def test_a_text_that_is_asked_for_may_have_many_values():
    frame = NUMBERS.assign(name=[f"row {i}" for i in range(N)])
    assert len(fit_table(frame, ["a", "name"]).names_out) == 1 + N
    long = pd.DataFrame({"size": range(MOST + 1), "name": [f"row {i}" for i in range(MOST + 1)]})
    with pytest.raises(ValueError, match="text with 1,001 different values"):
        fit_table(long, ["size", "name"])


def test_gaps_of_numbers_alone_are_filled_if_that_is_asked_for():
    frame = NUMBERS.mask(RNG.random(NUMBERS.shape) < 0.2)
    fitted = fit_table(frame, missing="median")
    np.testing.assert_allclose(fitted.transform(frame), frame.fillna(frame.median()).to_numpy())
    again = fit_table(frame.to_numpy(), missing="median")
    np.testing.assert_array_equal(again.transform(frame.to_numpy()), fitted.transform(frame))
    assert fit_table(frame) is None  # the check of values names the gap
    assert fit_table(frame, "numbers", "mean").columns == list("abc")


def test_what_has_no_columns_to_fill_is_refused():
    for X in (scipy.sparse.eye(5).tocsr(), np.zeros((4, 3, 3))):
        with pytest.raises(ValueError, match="missing='mean' fills gaps of tables"):
            fit_table(X, missing="mean")
    with pytest.raises(ValueError, match="missing='mode': expected 'error', 'mean', 'median'"):
        fit_table(NUMBERS, missing="mode")


def test_names_that_are_no_texts_are_refused_beside_categories():
    numbers = pd.DataFrame(RNG.normal(size=(5, 2)))
    assert fit_table(numbers) is None
    with pytest.raises(ValueError, match=r"X\.columns\.astype\(str\)"):
        fit_table(numbers.assign(**{"kind": ["a", "a", "b", "b", "b"]}))


def test_what_a_mask_hides_is_a_gap_that_is_filled():
    for hidden in (
        np.ma.masked_greater([[1, 2], [3, 4], [900, 6]], 100),
        np.ma.masked_greater([[1.0, 2], [3, 4], [900, 6]], 100),
    ):
        fitted = fit_table(hidden, missing="mean")
        assert fitted.transform(hidden).tolist() == [[1, 2], [3, 4], [2, 6]]


def test_a_path_is_named_also_where_gaps_are_filled():
    with pytest.raises(TypeError, match=r"X is a path or string, 'x\.csv'.*open_source"):
        fit_table("x.csv", missing="mean")
    with pytest.raises(TypeError, match=r"X is a path or string, 'x\.csv'"):
        fit_table(NUMBERS.assign(kind=["u", "v"] * (N // 2))).transform("x.csv")


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, HostRows, lambda x: torch.tensor(x).requires_grad_(), pl.DataFrame])
def test_fills_of_an_array_take_rows_of_any_kind(kind):
    rows = NUMBERS.to_numpy()
    fitted = fit_table(np.where(rows > 2, np.nan, rows), missing="mean")
    X = kind(rows) if kind is not pl.DataFrame else pl.DataFrame(rows, schema=fitted.columns)
    np.testing.assert_array_equal(fitted.transform(X), rows)


def test_tensors_with_gaps_are_filled_on_any_device():
    rows = torch.tensor([[1.0, 2.0], [3.0, np.nan]])
    with pretend_gpu():
        there = rows.to("mps:0")
        found = fit_table(there, missing="mean").transform(there)
    assert found.tolist() == [[1, 2], [3, 2]]


@pytest.mark.parametrize("options", [{}, {"missing": "mean"}])
def test_a_misspelled_column_is_named(options):
    frame = NUMBERS.assign(kind=["u", "v"] * (N // 2))
    with pytest.raises(ValueError, match=r"X has no column 'knid'; its columns: 'a', 'b', 'c', 'kind'"):
        fit_table(frame, ["a", "knid", "kind"], **options)


def test_numbers_alone_that_fit_without_fills_also_fit_with_them():
    timed = NUMBERS.assign(time=range(N))
    assert fit_table(timed, missing="mean").columns == ["a", "b", "c", "time"]
    unnamed = pd.DataFrame(np.where(NUMBERS > 1, np.nan, NUMBERS))
    fitted = fit_table(unnamed, missing="mean")
    assert fitted.columns is None  # found by position
    np.testing.assert_allclose(fitted.transform(unnamed), unnamed.fillna(unnamed.mean()))


# Texts that are numbers: a file was read with another decimal mark

LIKE = "numbers written as text"


@pytest.mark.parametrize("form", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        ([f"{i},50" for i in range(N)], "decimal=','"),
        ([f"1.{i:03}" for i in range(N)], "pandas.to_numeric"),
    ],
    ids=["comma", "point"],
)
def test_texts_that_are_numbers_are_refused_with_how_to_read_them(values, remedy, form):
    with pytest.raises(
        ValueError, match=rf"'price' \(text with 60 different values that are {LIKE}\).* To read 'price'.*{remedy}"
    ):
        fit_table(form(NUMBERS.assign(price=values)))


@pytest.mark.parametrize("form", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize("values", [["2,5", "3,5"], ["0", "1"]])
def test_categories_that_are_numbers_are_warned_of_unless_they_are_meant(values, form):
    frame = NUMBERS.assign(rating=values * (N // 2))
    with pytest.warns(UserWarning, match=f"'rating' has {LIKE}, such as '{values[0]}'.*To read 'rating' as numbers"):
        fitted = fit_table(form(frame))
    assert f"rating={values[0]}" in fitted.names_out
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_table(form(frame.astype({"rating": "category"})))
        fit_table(form(frame), ["a", "rating"])
        fit_table(form(frame.assign(rating=["2,5", "two"] * (N // 2))))


# Columns and frames that can't be mapped


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.to_timedelta(np.arange(N), "h"), "durations"),
        ([{"a": 1}] * N, "records"),
        ([[1.0, 2.0]] * N, "vectors"),
    ],
)
@pytest.mark.parametrize("form", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_kinds_that_cannot_be_mapped_have_their_names(values, kind, form):
    with pytest.raises(ValueError, match=rf"'new' \({kind}\)") as problem:
        fit_table(form(NUMBERS.assign(new=pd.Series(values))))
    assert ("numpy.stack(X['new'])" in str(problem.value)) == (kind == "vectors")


def test_the_remedy_names_all_columns_of_the_shorter_list():
    many = NUMBERS.assign(**{f"c{i}": RNG.normal(size=N) for i in range(9)}, note=[f"note {i}" for i in range(N)])
    with pytest.raises(ValueError, match=r"X\.drop\(columns=\['note'\]\)"):
        fit_table(many)
    few = NUMBERS[["a"]].assign(**{f"note {j}": [f"{j} note {i}" for i in range(N)] for j in range(7)})
    with pytest.raises(ValueError, match=r"and 2 more; pass columns=\['a'\] to map the others"):
        fit_table(few)


@pytest.mark.parametrize("frame", [pd.DataFrame(), pl.DataFrame(), NUMBERS.assign(kind="a").iloc[:0], NUMBERS.iloc[:0]])
def test_an_empty_frame_is_called_empty(frame):
    with pytest.raises(ValueError, match=f"X is empty: a DataFrame of 0 rows and {frame.shape[1]} columns"):
        fit_table(frame)
    if frame.shape[1] == 4:
        fitted = fit_table(NUMBERS.assign(kind="a"))
        with pytest.raises(ValueError, match="X has no rows: pass at least one"):
            fitted.transform(frame)


def test_a_query_with_a_column_twice_is_named():
    frame = NUMBERS.assign(kind=["u", "v"] * (N // 2))
    with pytest.raises(ValueError, match="X has several columns called 'a'"):
        fit_table(frame).transform(frame[["a", "a", "b", "c", "kind"]])


def test_a_lazy_frame_with_categories_is_to_be_collected():
    frame = pl.from_pandas(NUMBERS.assign(kind=["u", "v"] * (N // 2)))
    for use in (foreign_rows, fit_table(frame).transform):
        with pytest.raises(ValueError, match=r"X\.collect\(\)"):
            use(frame.lazy())
