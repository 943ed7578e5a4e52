"""Neighbors under every metric are those of scikit-learn's brute force, on dense, sparse, boolean and tied rows."""

from __future__ import annotations

import sys
import warnings
from importlib.machinery import ModuleSpec
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.exceptions import DataConversionWarning
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

import dre.neighbors.other_metrics
from dre.data.metric import METRICS, SYNONYMS, row_metric
from dre.neighbors.exact import nearest_rows
from dre.neighbors.metric_distances import MetricDistances
from dre.neighbors.other_metrics import nearest_by_metric
from dre.neighbors.search import nearest
from dre.progress.activity import listening

NAMED = [name for name in METRICS if name != "precomputed"]
OTHERS = [name for name in NAMED if not METRICS[name].transforms]
KWDS: dict[str, dict[str, Any]] = {"minkowski": {"p": 3}}


def made(kind: str, n: int = 60, d: int = 7, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if kind == "boolean":
        return rng.random((n, d)) < 0.4
    if kind == "sparse":
        return scipy.sparse.random_array((n, d), density=0.4, format="csr", random_state=rng, data_sampler=rng.random)
    if kind == "tied":
        return rng.integers(0, 3, (n, d)).astype(np.float64)
    return rng.random((n, d)) + 0.01


def brute(X: Any, k: int, metric: Any, **kwds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scikit-learn's neighbors, each row without itself."""
    X = X.toarray() if scipy.sparse.issparse(X) else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        warnings.simplefilter("ignore", SyntaxWarning)
        model = NearestNeighbors(n_neighbors=k, metric=metric, algorithm="brute", metric_params=kwds or None).fit(X)
        return model.kneighbors()[::-1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("kind", ["normal", "boolean", "sparse", "tied"])
@pytest.mark.parametrize("metric", NAMED)
def test_neighbors_are_those_of_scikit_learn(metric: str, kind: str) -> None:
    X, kwds = made(kind), KWDS.get(metric, {})
    if METRICS[metric].transforms:
        rows = torch.from_numpy(np.asarray(X.toarray() if kind == "sparse" else X, np.float64))
        empty = (rows.std(1) if metric == "correlation" else rows.norm(dim=1)) < 1e-9  # rows without a direction
        rows = rows[~empty]
        found, X = nearest(rows, 10, metric=metric), rows.numpy()
    else:
        X = X[np.asarray(X.sum(1)).ravel() > 0]  # scikit-learn has no distance between two rows of zeros under Bray-Curtis
        found = nearest(X, 10, metric=metric, metric_kwds=kwds)
    indices, distances = brute(X, 10, metric, **kwds)
    assert found.method == "exact"
    np.testing.assert_allclose(found.distances, distances, rtol=1e-5, atol=1e-7)
    if kind == "normal" and metric not in ("hamming", "jaccard"):  # where all rows tie
        np.testing.assert_array_equal(found.indices, indices)


@pytest.mark.parametrize("metric", OTHERS)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 40), d=st.integers(1, 9), block=st.sampled_from([8, 16, 1024]))
@settings(max_examples=15, deadline=None)
def test_any_rows_in_any_blocks(metric: str, seed: int, n: int, d: int, block: int) -> None:
    X, kwds = made("boolean" if metric == "jaccard" else "normal", n, d, seed), KWDS.get(metric, {})
    k, measured = min(5, n - 1), row_metric(metric, kwds)
    distances = MetricDistances((n, d), lambda a, b: measured.between(X[a], X[b]), metric, block)
    found = nearest_rows(distances, k)
    _, wanted = brute(X, k, metric, **kwds)
    np.testing.assert_allclose(found.squared.sqrt(), wanted, rtol=1e-9, atol=1e-12)
    assert not (found.indices == torch.arange(n)[:, None]).any()


@pytest.mark.parametrize("metric", OTHERS)
def test_two_rows_of_zeros_are_equal(metric: str) -> None:
    X = np.zeros((3, 4))
    X[1] = 1
    assert nearest(X, 1, metric=metric, metric_kwds=KWDS.get(metric)).distances[[0, 2], 0].tolist() == [0, 0]


def test_ties_go_to_the_lower_row() -> None:
    X = np.array([[0.0], [1.0], [2.0], [1.0], [9.0]])
    assert nearest(X, 2, metric="hamming").indices.tolist() == [[1, 2], [3, 0], [0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize("metric", ["manhattan", "minkowski", "canberra", "braycurtis", "hamming", "jaccard"])
def test_weights_of_columns_are_those_of_scipy(metric: str) -> None:
    X, w = made("boolean" if metric == "jaccard" else "normal"), np.arange(7.0)
    kwds = {**KWDS.get(metric, {}), "w": w}
    measured = row_metric(metric, kwds)
    name = METRICS[metric].scipy or metric
    np.testing.assert_allclose(measured.between(X[:20], X[20:]), cdist(X[:20], X[20:], name, **kwds), rtol=1e-12)


def test_a_function_is_a_metric_with_its_keywords() -> None:
    X = made("normal")

    def function(x: np.ndarray, y: np.ndarray, power: int) -> float:
        return float((np.abs(x - y) ** power).sum() ** (1 / power))

    found = nearest(X, 5, metric=function, metric_kwds={"power": 3})
    wanted = nearest(X, 5, metric="minkowski", metric_kwds={"p": 3})
    assert torch.equal(found.indices, wanted.indices)


def test_images_are_compared_as_vectors() -> None:
    X = made("normal", 40, 12)
    as_images = nearest(X.reshape(40, 3, 4), 5, metric="canberra")
    assert torch.equal(as_images.indices, nearest(X, 5, metric="canberra").indices)


def test_a_matrix_of_distances_is_searched_as_it_is() -> None:
    X = made("normal")
    found = nearest(cdist(X, X, "chebyshev"), 6, metric="precomputed")
    assert torch.equal(found.indices, nearest(X, 6, metric="chebyshev").indices)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_sparse_and_dense_jaccard_are_equal_bits() -> None:
    X = made("sparse", 80, 30)
    sparse, dense = nearest(X, 9, metric="jaccard"), nearest(X.toarray() != 0, 9, metric="jaccard")
    assert torch.equal(sparse.indices, dense.indices)
    assert torch.equal(sparse.distances, dense.distances)


def test_values_that_are_no_booleans_are_converted_with_a_warning() -> None:
    X = made("normal")
    X[X < 0.5] = 0
    with pytest.warns(DataConversionWarning, match="boolean"):
        found = nearest(X, 5, metric="jaccard")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(found.indices, nearest((X != 0).astype(int), 5, metric="jaccard").indices)


@pytest.mark.parametrize(
    ("function", "value"), [(lambda x, y: float("nan"), "nan"), (lambda x, y: -1.0, "-1"), (lambda x, y: np.inf, "inf")]
)
def test_a_function_must_return_distances(function: Any, value: str) -> None:
    with pytest.raises(ValueError, match=rf"rows \d+ and \d+ is {value}.*finite and not negative"):
        nearest(made("normal"), 5, metric=function)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x, y: float(np.maximum(x - y, 0).sum()),
            r"from row \d+ to row \d+ and .* back.*\(f\(x, y\) \+ f\(y, x\)\) / 2",
        ),
        (lambda x, y: float(np.exp(-((x - y) ** 2).sum())), r"row \d+ to itself is 1.*not a similarity"),
    ],
)
def test_a_function_must_be_a_distance(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nearest(made("normal"), 5, metric=function)


def test_a_function_may_round() -> None:
    X = made("normal").astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    found = nearest(X, 5, metric=lambda x, y: np.arccos(np.minimum(x @ y, np.float32(1))))
    cosine = nearest(torch.from_numpy(X), 5, metric="cosine").distances
    np.testing.assert_allclose(found.distances, np.arccos(1 - cosine.numpy()), atol=1e-3)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x, y: np.abs(x - y), r"an array of the shape \(7,\)"),
        (lambda x, y: None, "returned None"),
        (lambda x, y: "far", "returned 'far'"),
        (lambda x, y: 1j, "returned 1j"),
    ],
)
def test_a_function_returns_one_number(returned: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"{message}.*return their distance, one number"):
        nearest(made("normal"), 5, metric=returned)


@pytest.mark.parametrize("wrap", [float, np.float32, np.array, lambda d: np.array([d]), torch.tensor])
def test_a_function_may_wrap_its_number(wrap: Any) -> None:
    found = nearest(made("normal"), 5, metric=lambda x, y: wrap(float(np.abs(x - y).sum())))
    assert torch.equal(found.indices, nearest(made("normal"), 5, metric="manhattan").indices)


def takes_power(x: Any, y: Any, power: int) -> float:
    return float((np.abs(x - y) ** power).sum())


@pytest.mark.parametrize(
    ("function", "kwds", "message"),
    [
        (takes_power, None, r"takes_power.*power.*without metric_kwds: missing a required argument: 'power'"),
        (takes_power, {"power": 1, "radius": 2}, r"metric_kwds with 'power', 'radius': .*unexpected keyword argument 'radius'"),
        (lambda x: 0.0, None, "two rows.*too many positional arguments"),
        (takes_power, {"x": 1}, "multiple values for argument 'x'"),
    ],
)
def test_keywords_are_those_of_the_function(function: Any, kwds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nearest(made("normal"), 5, metric=function, metric_kwds=kwds)


@pytest.mark.parametrize(
    ("metric", "kwds", "message"),
    [
        ("canbera", None, r"unknown metric 'canbera'; known: .*jaccard.*Did you mean 'canberra'"),
        (None, None, r"expected euclidean, .*, or a function.*function of your own.*set_params\(metric=function\)"),
        ("cityblock", None, r"known: .*hamming.*Use 'manhattan'"),
        ("l1", None, "Use 'manhattan'"),
        ("l2", None, "Use 'euclidean'"),
        ("sqeuclidean", None, "Use 'euclidean'"),
        ("linf", None, "Use 'chebyshev'"),
        ("cosine", {"p": 2}, "'p', but the metric cosine takes none"),
        ("minkowski", {"q": 2}, "'q', but the metric minkowski takes p and w"),
        ("minkowski", {"p": 0.5}, "p.*from 1 up"),
        ("manhattan", {"w": [-1.0]}, "not negative"),
        ("manhattan", {"w": [1.0, 2.0]}, "2 weights for rows of 7 values"),
    ],
)
def test_errors_name_the_metric_and_the_remedy(metric: Any, kwds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nearest(made("normal"), 5, metric=metric, metric_kwds=kwds)


def test_minkowski_is_euclidean_by_default() -> None:
    X = made("normal")
    np.testing.assert_allclose(row_metric("minkowski").between(X, X), cdist(X, X), rtol=1e-12)


@pytest.mark.parametrize("name", SYNONYMS)
def test_names_of_other_libraries_have_the_same_neighbors(name: str) -> None:
    X = made("normal")
    others = brute(X, 5, "chebyshev" if name.startswith(("inf", "linf")) else {"taxicab": "l1"}.get(name, name))[0]
    found = nearest(torch.from_numpy(X) if SYNONYMS[name] == "euclidean" else X, 5, metric=SYNONYMS[name])
    np.testing.assert_array_equal(found.indices, others)


def test_keywords_are_a_dict() -> None:
    with pytest.raises(TypeError, match=r"metric_kwds.*dict"):
        row_metric("minkowski", 3)  # type: ignore[arg-type]


# Many rows.


@pytest.mark.slow  # pynndescent compiles for each metric and kind of rows
@pytest.mark.filterwarnings("ignore:Failed to correctly find")
@pytest.mark.parametrize("kind", ["normal", "sparse"])
@pytest.mark.parametrize("metric", ["manhattan", "jaccard"])
def test_pynndescent_reports_its_recall(metric: str, kind: str) -> None:
    pytest.importorskip("pynndescent", reason="approximate search needs pynndescent")
    X = made("boolean" if metric == "jaccard" and kind == "normal" else kind, 800, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        found = nearest(X, 10, metric=metric, method="approximate")
        exact = nearest(X, 10, metric=metric, method="exact")
    assert found.method == "approximate"
    assert found.recall >= 0.9
    true = float((found.distances <= exact.distances[:, -1:] * (1 + 1e-4)).double().mean())
    assert true == pytest.approx(found.recall, abs=0.05)
    assert (found.distances.diff(dim=1) >= 0).all()
    assert not (found.indices == torch.arange(800)[:, None]).any()


class GappyIndex:
    """Stands in for pynndescent's index, which lists the row itself, leaves gaps, and compiles for many seconds."""

    calls: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, X: np.ndarray, **options: Any) -> None:
        self.calls.append(options)
        found = NearestNeighbors(n_neighbors=options["n_neighbors"], metric=options["metric"]).fit(X).kneighbors(X)
        self.neighbor_graph = found[1].astype(np.int32), found[0]
        self.neighbor_graph[0][3, -2:] = -1


def test_many_rows_are_searched_by_pynndescent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "pynndescent", SimpleNamespace(NNDescent=GappyIndex, __spec__=ModuleSpec("pynndescent", None))
    )
    monkeypatch.setattr(dre.neighbors.other_metrics, "EXACT_UP_TO", 1e6)
    found, exact = (nearest(made("normal", 400), 5, metric="manhattan", method=method) for method in ("auto", "exact"))
    assert (found.method, GappyIndex.calls[-1]["metric"]) == ("approximate", "manhattan")
    assert 0.99 < found.recall <= 1
    whole = torch.arange(400) != 3  # a row whose list had gaps
    assert torch.equal(found.indices[whole], exact.indices[whole])
    assert len(set(found.indices[3].tolist()) - {3}) == 5
    with pytest.warns(UserWarning, match=r"exactly.*no weights of columns"):
        assert nearest(made("normal", 400), 5, metric="manhattan", metric_kwds={"w": np.ones(7)}).method == "exact"


@pytest.mark.parametrize(
    ("metric", "title"),
    [("manhattan", "finding manhattan neighbors"), (lambda x, y: float(abs(x - y).max()), "finding <lambda>")],
)
def test_the_activity_names_the_metric(metric: Any, title: str) -> None:
    titles: list[str] = []
    with listening(lambda ended: titles.append(ended.title)):
        nearest(made("normal"), 5, metric=metric)
    assert any(each.startswith(title) for each in titles)


@pytest.mark.parametrize(
    ("metric", "kwds", "d", "n"),
    [
        ("manhattan", {}, 16, 21_000),  # the examples of docs/distances.md
        ("manhattan", {}, 384, 13_000),
        ("minkowski", {"p": 3}, 384, 2_700),
        ("minkowski", {"p": 1}, 384, 13_000),
        ("jaccard", {}, 384, 18_000),
    ],
)
def test_the_search_is_chosen_by_its_work(
    metric: str, kwds: dict[str, Any], d: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dre.neighbors.other_metrics.importlib.util, "find_spec", lambda name: ModuleSpec(name, None))
    measured = row_metric(metric, kwds)
    few, many = (
        dre.neighbors.other_metrics._select_method(MetricDistances((rows, d), measured.between, metric), measured, None)
        for rows in (n, n + 1_000)
    )
    assert (few, many) == ("exact", "approximate")


def test_without_pynndescent_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.neighbors.other_metrics, "EXACT_UP_TO", 1e6)
    monkeypatch.setattr(dre.neighbors.other_metrics.importlib.util, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"canberra neighbors of 400 rows exactly.*pip install"):
        assert nearest(made("normal", 400), 5, metric="canberra").method == "exact"


def test_a_function_is_never_searched_approximately() -> None:
    with pytest.raises(ValueError, match=r"compile your function.*method='exact'"):
        nearest_by_metric(made("normal"), 5, row_metric(lambda x, y: 0.0), "approximate")


def test_many_calls_are_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(dre.neighbors.other_metrics, "MANY_CALLS", 100)
    nearest(made("normal", 30), 3, metric=lambda x, y: float(abs(x - y).sum()))
    assert "435 pairs of rows" in capsys.readouterr().err


def test_a_graph_of_scikit_learn_has_the_same_neighbors() -> None:
    X = made("normal")
    graph = kneighbors_graph(X, 5, mode="distance", metric="manhattan")
    found = nearest(X, 5, metric="manhattan")
    np.testing.assert_array_equal(np.sort(graph.indices.reshape(-1, 5)), np.sort(found.indices.numpy()))
