"""sample_weight: a row of weight 3 acts as three rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dre import DRE
from dre.data.rows import HostRows
from dre.data.validation import check_seed
from dre.data.weights import repeated_ids

SHORT = "x: gaussian(5) -> kl * 2"


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return load_iris().data


@pytest.fixture(scope="module")
def weights(rows: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 4, len(rows))


def fast(**parameters: object) -> DRE:
    return DRE("fast", random_state=0, device="cpu", **parameters)


def test_a_row_of_weight_three_acts_as_three_rows(rows: np.ndarray, weights: np.ndarray) -> None:
    weighted = fast().fit(rows, sample_weight=weights)
    repeated = fast().fit(np.repeat(rows, weights, axis=0))
    assert np.array_equal(weighted.embedding_, repeated.transform(rows))
    assert np.array_equal(weighted.sample_indices_, np.flatnonzero(weights))


def test_weights_of_one_change_nothing(rows: np.ndarray) -> None:
    weighted = fast().fit(rows, sample_weight=np.ones(len(rows)))
    assert np.array_equal(weighted.embedding_, fast().fit(rows).embedding_)
    assert weighted.sample_indices_ is None


def test_rows_of_a_stream_are_weighted_too(rows: np.ndarray, weights: np.ndarray) -> None:
    class Stream(HostRows):
        pass

    streamed = fast().fit(Stream(rows), sample_weight=weights)
    assert np.allclose(streamed.embedding_, fast().fit(rows, sample_weight=weights).embedding_, atol=1e-3)


def test_the_same_seed_rounds_fractions_the_same_way(rows: np.ndarray) -> None:
    fractions = np.random.default_rng(1).random(len(rows)) + 0.5
    first, second = (fast().fit(rows, sample_weight=fractions) for _ in range(2))
    assert np.array_equal(first.embedding_, second.embedding_)
    assert len(first.embedding_) == len(rows)


def test_a_pipeline_routes_the_weights(rows: np.ndarray, weights: np.ndarray) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, fast().set_fit_request(sample_weight=True))
        found = pipeline.fit(rows, sample_weight=weights)[-1]
    expected = fast().fit(StandardScaler().fit_transform(rows), sample_weight=weights)
    assert np.array_equal(found.embedding_, expected.embedding_)


def test_weights_and_given_neighbors_exclude_each_other(rows: np.ndarray, weights: np.ndarray) -> None:
    knn = (np.zeros((len(rows), 5), int), np.zeros((len(rows), 5)))
    with pytest.raises(ValueError, match="without precomputed_knn"):
        fast().fit(rows, sample_weight=weights, precomputed_knn=knn)


def test_weights_and_given_distances_exclude_each_other(rows: np.ndarray, weights: np.ndarray) -> None:
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    with pytest.raises(ValueError, match=r"sample_weight repeats rows: .*metric='precomputed'"):
        fast(metric="precomputed").fit(distances, sample_weight=weights)


@pytest.mark.parametrize("change", [-1, 1])
def test_labels_that_a_loss_reads_are_as_many_as_rows(rows, weights, change: int, monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.zeros(len(rows) + change, int)
    fit = fast(schedule=SHORT).fit
    assert len(fit(rows, y, sample_weight=weights).embedding_) == len(rows)  # they are not read
    monkeypatch.setattr(DRE, "_reads_labels", True)
    with pytest.raises(ValueError, match=rf"y has the shape \({len(y)},\): expected one label for each of the"):
        fit(rows, y, sample_weight=weights)


def test_a_fit_with_fractions_and_no_seed_is_resumed(rows: np.ndarray, tmp_path: Path) -> None:
    fractions = np.random.default_rng(1).random(len(rows)) + 0.5
    model = DRE(schedule=SHORT, encoder="mlp(8)", device="cpu")
    first = model.fit(rows, sample_weight=fractions, checkpoint=tmp_path).embedding_
    resumed = model.fit(rows, sample_weight=fractions, checkpoint=tmp_path, resume=True).embedding_
    assert np.array_equal(first, resumed)


# Fills, units and categories. Weights of 5 and 0 lie in one half each, so that a statistic of the rows as given is another one.

HEAVY = np.where(np.arange(120) < 60, 5.0, 1.0)
HEAVY[100:] = 0
FRACTIONS = HEAVY * 0.7


def mixed_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    far = np.arange(120) < 60
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=120) + 5 * far,
            "age": rng.integers(20, 40, 120) + 30 * far,
            "old": rng.random(120) < np.where(far, 0.9, 0.1),
            "town": np.where(far, "Rome", np.where(rng.random(120) < 0.5, "Paris", "Bern")),
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[3::11, "town"] = None
    return frame


def gaps(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["size", "age"]]


@pytest.mark.filterwarnings("ignore:column .* makes up")
@pytest.mark.parametrize("weights", [HEAVY, FRACTIONS], ids=["whole", "fractions"])
@pytest.mark.parametrize(
    "table",
    [
        mixed_table(),
        pl.from_pandas(mixed_table()),
        gaps(mixed_table()),
        pl.from_pandas(gaps(mixed_table())),
        gaps(mixed_table()).to_numpy(),
        pd.DataFrame(gaps(mixed_table()).to_numpy()),
    ],
    ids=["mixed pandas", "mixed polars", "numbers in pandas", "numbers in polars", "array", "columns without names"],
)
def test_a_table_is_prepared_by_its_repeated_rows(table, weights) -> None:
    model = DRE(schedule=SHORT, encoder="mlp(8)", missing="median", random_state=0, device="cpu")
    ids = repeated_ids(weights, check_seed(0))
    weighted = clone(model).fit(table, sample_weight=weights)
    repeated = clone(model).fit(table.iloc[ids] if isinstance(table, pd.DataFrame) else table[ids])
    assert weighted.preparation_.state() == repeated.preparation_.state()
    assert np.array_equal(weighted.embedding_, repeated.transform(table))


def test_a_category_of_rows_without_weight_is_unknown() -> None:
    frame = mixed_table().dropna(ignore_index=True)
    frame.loc[0, "town"] = "Oslo"
    weights = np.ones(len(frame))
    weights[0] = 0
    model = DRE(schedule=SHORT, encoder="mlp(8)", random_state=0, device="cpu")
    with pytest.warns(UserWarning, match=r"1 row has a value of 'town' that the fit did not have \('Oslo'\)"):
        model.fit(frame, sample_weight=weights)
    assert "town=Oslo" not in model.preparation_.names_out


def test_repeating_a_row_does_not_make_a_text_a_category() -> None:
    frame = pd.DataFrame({"size": np.arange(10) ** 2.0, "note": [f"note {i}" for i in range(10)]})
    with pytest.raises(ValueError, match="a different text in each row"):
        DRE(schedule=SHORT, device="cpu").fit(frame, sample_weight=np.full(10, 3))


def test_errors_of_weighted_tables_name_the_row_of_the_table() -> None:
    frame = mixed_table().assign(size=1.0)
    frame.loc[50, "size"] = np.inf
    with pytest.raises(ValueError, match="'size' has infinity in row 50"):
        DRE(schedule=SHORT, missing="mean", device="cpu").fit(frame, sample_weight=HEAVY)
