"""Fits under every metric: the graph has the metric's neighbors, the network embeds new rows, and a saved model too."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from dre import DRE, DeepTSNE, DeepUMAP
from dre.data.metric import METRICS
from dre.data.scaling import Scaling
from dre.metrics import nearest_neighbor, trustworthiness
from dre.model.checkpoint import CheckpointError
from dre.model.input_distances import InputDistances
from dre.training.events import StageBegan
from pretend_gpu import pretend_gpu

DIGITS = load_digits()
X, LABELS = DIGITS.data[:200], DIGITS.target[:200]
OTHERS = [name for name, kind in METRICS.items() if not kind.transforms and name != "precomputed"]
ONE_STAGE = "x: gaussian(5) -> kl * 4"
GRAPH = kneighbors_graph(X, 15, mode="distance")


def cheap(**options: Any) -> DRE:
    return DRE(**{"schedule": ONE_STAGE, "random_state": 0, "device": "cpu", **options})


def graphs_of(model: DRE, rows: Any, **options: Any) -> list[Any]:
    found: list[Any] = []
    model.fit(rows, observers=[lambda event: found.append(event.target) if isinstance(event, StageBegan) else None], **options)
    return found


@pytest.mark.parametrize("metric", OTHERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning", "ignore::SyntaxWarning")
def test_the_graph_has_the_neighbors_of_the_metric(metric: str) -> None:
    rows = X > 7 if metric in ("jaccard", "hamming") else X
    (graph,) = graphs_of(model := cheap(metric=metric), rows)
    assert graph.search.method == f"exact {metric}"
    wanted = NearestNeighbors(n_neighbors=15, metric=metric, algorithm="brute").fit(rows).kneighbors()[0]
    distances = pairwise_distances(rows, metric=metric)
    np.testing.assert_allclose(np.take_along_axis(distances, graph.indices.numpy(), 1), wanted, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(model.transform(rows), model.embedding_)


def test_a_metric_is_the_same_as_its_neighbors_given() -> None:
    rows = X + np.random.default_rng(0).random(X.shape)  # without ties
    distances, indices = NearestNeighbors(n_neighbors=15, metric="manhattan").fit(rows).kneighbors()
    given = cheap().fit(rows, precomputed_knn=(indices, distances)).embedding_
    np.testing.assert_allclose(cheap(metric="manhattan").fit(rows).embedding_, given, atol=1e-3)


@pytest.mark.parametrize("metric", ["canberra", "jaccard"])
def test_default_recipes_take_any_metric_also_of_sparse_rows(metric: str) -> None:
    rows = scipy.sparse.csr_array(X > 7) if metric == "jaccard" else scipy.sparse.csr_array(X)
    model = DRE(metric=metric, random_state=0, device="cpu").fit(rows)
    assert nearest_neighbor(model.embedding_, LABELS) > 0.7
    np.testing.assert_allclose(model.transform(rows[:7]), model.embedding_[:7], atol=1e-5)


@pytest.mark.parametrize("estimator", [DeepTSNE, DeepUMAP])
def test_the_other_estimators_take_a_metric_too(estimator: type[DRE]) -> None:
    graphs: list[Any] = []

    def look(event: Any) -> None:
        if isinstance(event, StageBegan):
            graphs.append(event.target)
            event.run.end_fit()

    estimator(metric="minkowski", metric_kwds={"p": 1}, random_state=0, device="cpu").fit(X, observers=[look])
    assert graphs[0].search.method == "exact minkowski(p=1)"


def test_standardized_columns_are_measured_as_such() -> None:
    mixed = X[:, :8] * np.array([1, 1, 1, 1, 1e4, 1, 1, 1])
    (graph,) = graphs_of(cheap(metric="manhattan", standardize=True), mixed)
    std = mixed.std(0)
    wanted = NearestNeighbors(n_neighbors=15, metric="manhattan").fit(mixed / np.where(std > 0, std, 1)).kneighbors()[1]
    assert np.mean([len(set(a) & set(b)) for a, b in zip(wanted, graph.indices.numpy(), strict=True)]) > 14


def test_distances_to_landmarks_are_those_of_the_metric() -> None:
    found = InputDistances.of(X, "chebyshev", None).follow(
        DRE(random_state=0).plan(X.shape), X, Scaling.fit(X), torch.device("cpu"), is_chosen=False, quiet=True
    )
    assert found.landmarks is not None
    ids, distances = found.landmarks
    wanted = pairwise_distances(X, X[ids.numpy()], metric="chebyshev")
    np.testing.assert_allclose(distances, (wanted - wanted.mean()) / wanted.std(), atol=1e-4)


def test_optional_stages_are_left_out_where_neighbors_are_not_euclidean() -> None:
    rows = np.concatenate([X, X + 0.5, X + 1])
    assert any(stage.optional for stage in DRE("fast", device="cpu").plan(rows.shape).schedule)
    assert not any(stage.optional for stage in DRE("fast", metric="manhattan", device="cpu").fit(rows).schedule_)


# Functions and keywords.


def squared(x: np.ndarray, y: np.ndarray, power: float = 2) -> float:
    return float((np.abs(x - y) ** power).sum())


def test_a_function_is_a_metric_and_its_model_embeds_after_loading(tmp_path: Path) -> None:
    model = cheap(metric=squared, metric_kwds={"power": 1}).fit(X[:80])
    model.save(tmp_path / "m.safetensors")
    loaded = DRE.load(tmp_path / "m.safetensors")
    np.testing.assert_allclose(loaded.transform(X[:80]), model.embedding_, atol=1e-6)
    assert loaded.metric is None
    assert loaded.metric_kwds == {"power": 1}
    with pytest.raises(ValueError, match=r"set_params\(metric=function\)"):
        loaded.fit(X[:80])
    np.testing.assert_allclose(loaded.set_params(metric=squared).fit(X[:80]).embedding_, model.embedding_, atol=1e-6)


def test_keywords_are_saved(tmp_path: Path) -> None:
    kwds = {"p": 3, "w": np.arange(64.0)}
    model = cheap(metric="minkowski", metric_kwds=kwds).fit(X)
    model.save(tmp_path / "m.safetensors")
    loaded = DRE.load(tmp_path / "m.safetensors")
    assert loaded.metric_kwds["p"] == 3
    np.testing.assert_array_equal(loaded.metric_kwds["w"], kwds["w"])
    np.testing.assert_array_equal(loaded.fit(X).embedding_, model.embedding_)
    assert clone(model).get_params()["metric_kwds"]["p"] == 3


def test_a_resumed_fit_has_the_same_metric(tmp_path: Path) -> None:
    cheap(metric="canberra").fit(X, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="metric: the checkpoint has canberra; this fit has chebyshev"):
        cheap(metric="chebyshev").fit(X, checkpoint=tmp_path, resume=True)


# Matrices of distances.


def test_dense_distances_give_the_map_of_their_rows_and_embed_new_ones() -> None:
    D = pairwise_distances(DIGITS.data[:300], metric="manhattan")
    fitted, new = D[:200, :200], D[200:, :200]
    model = DRE("fast", metric="precomputed", random_state=0, device="cpu").fit(fitted)
    assert trustworthiness(fitted, model.embedding_, metric="precomputed") > 0.9
    np.testing.assert_allclose(model.transform(fitted), model.embedding_, atol=1e-5)
    assert nearest_neighbor(model.transform(new), DIGITS.target[200:300], reference=(model.embedding_, LABELS)) > 0.7
    with pytest.raises(ValueError, match="200 features"):
        model.transform(D[:, :150])


def test_a_model_of_dense_distances_is_saved(tmp_path: Path) -> None:
    D = pairwise_distances(X)
    model = cheap(metric="precomputed").fit(D)
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_allclose(DRE.load(tmp_path / "m.safetensors").transform(D), model.embedding_, atol=1e-6)


def test_sparse_distances_have_a_map_but_no_transform(tmp_path: Path) -> None:
    model = DRE("fast", metric="precomputed", random_state=0, device="cpu").fit(GRAPH)
    assert model.embedding_.shape == (200, 2)
    assert nearest_neighbor(model.embedding_, LABELS) > 0.8
    for refused in (
        lambda: model.transform(GRAPH),
        model.module,
        lambda: model.save(tmp_path / "m"),
        lambda: pickle_of(model).transform(GRAPH),
    ):
        with pytest.raises(ValueError, match=r"fit\(X, precomputed_knn=D\)"):
            refused()


def pickle_of(model: DRE) -> DRE:
    copy: DRE = pickle.loads(pickle.dumps(model))
    return copy


def test_a_graph_beside_the_rows_keeps_transform_and_lowers_the_perplexity(capsys: pytest.CaptureFixture[str]) -> None:
    model = DRE("fast", random_state=0, device="cpu").fit(X, precomputed_knn=GRAPH)
    assert "15 neighbors of each row are given, and gaussian(30) needs 90: gaussian(5) is used" in capsys.readouterr().err
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    assert nearest_neighbor(model.embedding_, LABELS) > 0.8
    DRE("fast", random_state=0, device="cpu", verbose=False).fit(X, precomputed_knn=GRAPH)
    assert capsys.readouterr().err == ""


def test_a_chosen_perplexity_is_lowered_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"15 neighbors.*gaussian\(5\) is used instead"):
        DRE("fast", perplexity=20, random_state=0, device="cpu").fit(X, precomputed_knn=GRAPH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DRE("fast", perplexity=4, random_state=0, device="cpu").fit(X, precomputed_knn=GRAPH)


def test_a_sparse_graph_is_the_same_as_its_pair() -> None:
    distances, indices = NearestNeighbors(n_neighbors=15).fit(X).kneighbors()
    pair, graph = (cheap().fit(X, precomputed_knn=knn).embedding_ for knn in ((indices, distances), GRAPH))
    np.testing.assert_allclose(pair, graph, atol=1e-3)


def test_ragged_graphs_are_completed_and_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    ragged = scipy.sparse.lil_array(GRAPH)
    for row in range(0, 200, 10):
        ragged[row, ragged.rows[row][4:]] = 0
    model = DRE("fast", random_state=0, device="cpu").fit(X, precomputed_knn=ragged.tocsr())
    assert "20 rows list fewer neighbors than most" in capsys.readouterr().err
    assert nearest_neighbor(model.embedding_, LABELS) > 0.8


def test_neighbors_that_were_not_found_are_completed_and_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    distances, indices = NearestNeighbors(n_neighbors=15).fit(X).kneighbors()
    rows = np.arange(0, 200, 10)
    indices[rows, 4:], distances[rows, 4:] = -1, np.inf  # as UMAP and pynndescent mark them
    pair = cheap().fit(X, precomputed_knn=(indices, distances)).embedding_
    assert "20 rows list fewer neighbors than most" in capsys.readouterr().err
    ragged = scipy.sparse.lil_array(GRAPH)
    for row in rows:
        for column in set(ragged.rows[row]) - set(indices[row]):
            ragged[row, column] = 0
    np.testing.assert_allclose(pair, cheap().fit(X, precomputed_knn=ragged.tocsr()).embedding_, atol=1e-3)


# Errors.


@pytest.mark.parametrize(
    ("knn", "message"),
    [
        (pairwise_distances(X), r"dense matrix \(200, 200\).*metric='precomputed'.*csr_array"),
        (X, r"not ndarray of the shape \(200, 64\)"),
        (SimpleNamespace(neighbor_graph=()), "pass its neighbor_graph"),
        (7, "distances, not int"),
    ],
)
def test_other_neighbors_are_refused_with_the_remedy(knn: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        cheap().fit(X, precomputed_knn=knn)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (X, {"metric": "manhatten"}, "unknown metric 'manhatten'.*Did you mean 'manhattan'"),
        (X, {"metric": "cosine", "metric_kwds": {"p": 2}}, "'p', but the metric cosine takes none"),
        (X, {"metric": "precomputed"}, r"\(200, 64\), which is no matrix of distances"),
        (-pairwise_distances(X), {"metric": "precomputed"}, "negative distance.*from row 0 to row 1"),
        (-GRAPH, {"metric": "precomputed"}, "negative distance"),
        (np.triu(pairwise_distances(X)), {"metric": "precomputed"}, r"not symmetric.*\(X \+ X.T\) / 2"),
        (np.exp(-pairwise_distances(X)), {"metric": "precomputed"}, "row 0 has the distance 1.0 to itself"),
        (pairwise_distances(X), {"metric": "precomputed", "sample": 50}, "neighbors of all rows.*without sample"),
        (pairwise_distances(X), {"metric": "precomputed", "standardize": True}, "no columns with units"),
        (X > 7, {"metric": "jaccard", "standardize": True}, "asks whether values are zero"),
        (X, {"metric": "canberra", "schedule": None, "recipe": "paper"}, "(?s)canberra: no stage has a graph.*'auto'"),
        (X, {"metric": lambda x, y: float("nan")}, r"rows \d+ and \d+ is nan"),
    ],
)
def test_errors_name_the_thing_and_the_remedy(rows: Any, options: dict[str, Any], message: str) -> None:
    model = cheap(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(rows)
    assert not hasattr(model, "_map")


def test_distances_and_neighbors_are_not_both_given() -> None:
    with pytest.raises(ValueError, match="not both"):
        cheap(metric="precomputed").fit(pairwise_distances(X), precomputed_knn=GRAPH)


def test_a_gpu_is_told_that_the_cpu_measures(capsys: pytest.CaptureFixture[str]) -> None:
    recipe, gpu = cheap().plan(X.shape), torch.device("cuda")
    InputDistances.of(X, "canberra", None).follow(recipe, X, Scaling.fit(X), gpu, is_chosen=True, quiet=False)
    assert "canberra distances are computed on the CPU" in capsys.readouterr().err


@pytest.mark.parametrize("metric", ["manhattan", "precomputed"])
def test_tensors_are_measured_wherever_they_lie(metric: str) -> None:
    rows = torch.from_numpy(pairwise_distances(X[:60]) if metric == "precomputed" else X[:60]).float()
    expected = cheap(metric=metric).fit(rows.numpy()).embedding_
    np.testing.assert_array_equal(cheap(metric=metric).fit(rows.clone().requires_grad_()).embedding_, expected)
    with pretend_gpu():
        found = InputDistances.of(rows.to("mps:0"), metric, None)
        measured = found.X if metric == "precomputed" else found._measured_rows(found.X, Scaling.fit(rows.numpy()))
    np.testing.assert_array_equal(measured, rows.numpy())


@pytest.mark.parametrize("kind", [pd.DataFrame, "read-only"])
def test_neighbors_may_be_data_frames_or_read_only(kind: Any) -> None:
    distances, indices = NearestNeighbors(n_neighbors=20).fit(X).kneighbors(X)
    given = [indices.copy(), distances.copy()]
    for part in given:
        part.setflags(write=False)
    given = given if kind == "read-only" else [kind(part) for part in given]
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else torch warns once in a process
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = cheap().fit(X, precomputed_knn=tuple(given))
    finally:
        torch.set_warn_always(before)
    assert np.array_equal(model.embedding_, cheap().fit(X, precomputed_knn=(indices, distances)).embedding_)


@pytest.mark.parametrize(
    ("metric", "rows"), [("euclidean", np.ones((30, 3))), ("cosine", np.outer(np.arange(1, 31), np.ones(3)))]
)
def test_equal_rows_are_warned_of(metric: str, rows: Any) -> None:
    with pytest.warns(UserWarning, match="all rows are equal where the metric compares them") as told:
        cheap(metric=metric).fit(rows)
    assert [each.filename for each in told if "equal" in str(each.message)] == [__file__]
