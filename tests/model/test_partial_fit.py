"""partial_fit: new rows find their place, and the map of those before stays where it is."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.datasets import load_digits

import dre.model.partial_fit
from dre import DRE
from dre.data.rows import HostRows
from dre.metrics import neighborhood_hit
from dre.model.partial_fit import Memory, concatenate_rows, to_memory
from dre.observe.sample import RunSample
from dre.runtime.ranks import Ranks

Array = np.ndarray[Any, Any]


def fast(**parameters: Any) -> DRE:
    return DRE("fast", **{"random_state": 0, "device": "cpu", **parameters})


@pytest.fixture(scope="module")
def rows() -> tuple[Array, Array, Array, Array]:
    """Digits 0 to 4; then some more of these, and digits that are new."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    first = np.flatnonzero(y < 5)[:600]
    second = np.setdiff1d(np.flatnonzero(y < 7), first)
    return X[first], y[first], X[second], y[second]


def extent(Y: Array) -> float:
    return float(np.sqrt(Y.var(0).sum()))


@pytest.mark.parametrize(
    ("components", "metric"),
    [(2, "euclidean"), pytest.param(5, "cosine", marks=pytest.mark.slow), pytest.param(2, "manhattan", marks=pytest.mark.slow)],
)
def test_old_rows_stay_and_new_classes_have_places_of_their_own(rows: Any, components: int, metric: str) -> None:
    X, y, more, labels = rows
    model = fast(n_components=components, metric=metric).partial_fit(X)
    before, naive = model.transform(X), model.transform(more)
    assert model.partial_fit(more) is model
    after = model.transform(X)
    assert np.median(np.linalg.norm(after - before, axis=1)) < 0.05 * extent(before)
    assert np.array_equal(model.embedding_, model.transform(more))
    every = np.concatenate([y, labels])
    hit = neighborhood_hit(np.concatenate([after, model.embedding_]), every, per_point=True)
    without = neighborhood_hit(np.concatenate([before, naive]), every, per_point=True)
    new = every >= 5
    assert hit[new].mean() > 0.9
    assert hit[new].mean() > without[new].mean() + 0.02
    assert hit[~new].mean() > 0.9


@pytest.mark.slow  # fits of the whole recipe
def test_neighborhoods_are_nearly_those_of_one_fit(rows: Any) -> None:
    X, y, more, labels = rows
    model = fast().partial_fit(X).partial_fit(more)
    both, every = np.concatenate([X, more]), np.concatenate([y, labels])
    at_once = neighborhood_hit(fast().fit(both).embedding_, every)
    assert neighborhood_hit(model.transform(both), every) > at_once - 0.02


def test_the_memory_is_bounded_and_each_row_is_as_likely_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.model.partial_fit, "REMEMBERED", 100)
    counts = np.zeros(4)
    for seed in range(40):
        memory = Memory.of(np.arange(100.0)[:, None], seed)
        for call in range(1, 4):
            memory = memory.add(np.arange(100.0 * call, 100.0 * call + 100)[:, None])
        assert len(memory.rows) == len(memory.keys) == 100
        assert memory.seen == 400
        assert len(np.unique(memory.rows)) == 100
        counts += np.histogram(memory.rows, 4, (0, 400))[0]
    assert np.abs(counts / 40 - 25).max() < 3  # of 100, from each of the four calls


def test_sparse_rows_are_remembered_as_such() -> None:
    sparse = scipy.sparse.random_array((50, 8), density=0.3, rng=np.random.default_rng(0)).tocoo()
    memory = Memory.of(sparse, 0)
    assert scipy.sparse.issparse(memory.rows)
    both = concatenate_rows(memory.rows, to_memory(sparse))
    assert both.shape == (100, 8)
    assert np.array_equal(memory.rows.toarray(), sparse.toarray())


def test_the_same_calls_give_the_same_bits(rows: Any) -> None:
    X, _, more, _ = rows
    one, two = (fast().partial_fit(X[:150]).partial_fit(more[:40]).embedding_ for _ in range(2))
    assert np.array_equal(one, two)


def test_a_pickle_goes_on_and_a_file_needs_rows_that_the_model_has_seen(rows: Any, tmp_path: Path) -> None:
    X, _, more, _ = rows
    model = fast().partial_fit(X[:150])
    copied = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "model.safetensors")
    loaded = DRE.load(tmp_path / "model.safetensors")
    before = loaded.transform(more[:40])
    with pytest.warns(UserWarning, match=r"remembers no rows.*memory=X_before"):
        loaded.partial_fit(more[:40])
    assert np.array_equal(loaded.embedding_, before)
    assert np.array_equal(loaded.transform(more[:40]), before)
    expected = model.partial_fit(more[:40]).embedding_
    assert np.array_equal(copied.partial_fit(more[:40]).embedding_, expected)
    assert np.array_equal(loaded.partial_fit(more[:40], memory=X[:150]).embedding_, expected)
    again = tmp_path / "again.safetensors"
    loaded.save(again)
    assert np.array_equal(DRE.load(again).transform(more), loaded.transform(more))


def test_fit_forgets(rows: Any) -> None:
    model = fast().partial_fit(rows[0][:60]).fit(rows[0][:60])
    before = model.transform(rows[2][:60])
    with pytest.warns(UserWarning, match="comes from fit or load"):
        model.partial_fit(rows[2][:60])
    assert np.array_equal(model.embedding_, before)


def test_a_call_that_fails_changes_nothing(rows: Any) -> None:
    X, _, more, _ = rows
    model = fast().partial_fit(X[:60])
    before = model.transform(X[:60])
    with pytest.raises(ValueError, match="63 features"):
        model.partial_fit(more[:60, 1:])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((3, 64), np.nan))

    def fail(event: object) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        model.partial_fit(more[:60], observers=[fail])
    assert np.array_equal(model.transform(X[:60]), before)
    assert model._memory.seen == 60


class Labeled:
    """Which labels an observer gets for which rows, and where they are on the map."""

    def __init__(self, labels: Array) -> None:
        self.labels, self.seen = labels, []

    def __call__(self, event: Any) -> None:
        sample = RunSample(event.run, 10_000)
        self.seen.append((sample.ids_in_data, sample.labels(self.labels), sample.coordinates(exact=True)))
        assert len(sample.measured_rows(np.arange(len(sample.ids)))[0]) == len(self.labels)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_observers_of_a_further_call_see_the_new_rows(rows: Any, metric: str) -> None:
    X, _, more, _ = rows
    model, observer = fast(metric=metric).partial_fit(X[:100]), Labeled(np.arange(100, 140))
    model.partial_fit(more[:40], observers=[observer])
    for ids, labels, _ in observer.seen:
        assert np.array_equal(ids, np.arange(40))
        assert np.array_equal(labels, np.arange(100, 140))
    np.testing.assert_allclose(observer.seen[-1][2], model.embedding_, atol=1e-4)


def test_a_stream_is_remembered_as_the_array_is_by_few_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(HostRows):
        def read(self, start: int, stop: int) -> torch.Tensor:
            raise AssertionError("all rows are read")

    monkeypatch.setattr(dre.model.partial_fit, "REMEMBERED", 10)
    X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    array, stream = Memory.of(X, 0), Memory.of(Stream(X), 0)
    added = Memory(X[:0], np.empty(0), 0, 0).add(X)
    for memory in (stream, added):
        assert np.array_equal(memory.rows, array.rows)
        assert np.array_equal(memory.keys, array.keys)
        assert memory.seen == 100


def test_several_ranks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ranks, "current", classmethod(lambda cls: cls(0, 2, is_connected=True)))
    with pytest.raises(ValueError, match="partial_fit works in one process"):
        fast().partial_fit(np.zeros((20, 3)))


def test_one_row_can_be_added(rows: Any) -> None:
    model = fast().partial_fit(rows[0][:100])
    assert model.partial_fit(rows[2][:1]).embedding_.shape == (1, 2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (fast(metric="precomputed"), "no distances from new rows"),
        (DRE(schedule="x: fuzzy(5) -> ce * 1", device="cpu"), "can't go on from a map that was made by 'ce"),
        (DRE(schedule="x: gaussian(5, scope=batch) -> kl * 1", device="cpu"), "neighbors in the batch"),
    ],
)
def test_what_has_no_graph_of_all_rows_says_so(model: DRE, message: str, rows: Any) -> None:
    with pytest.raises(ValueError, match=message):
        model.partial_fit(rows[0][:60]).partial_fit(rows[2][:60])


def test_zero_rows_have_a_place_under_cosine(rows: Any) -> None:
    X = rows[0][:100].copy()
    X[::10] = 0.0
    model = fast(metric="cosine", n_components=5).partial_fit(X)
    assert np.isfinite(model.partial_fit(X[:20]).embedding_).all()
