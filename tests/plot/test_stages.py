"""Stages rotate embeddings and keep their distances; scores are those of the metrics."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dre import metrics, plot
from dre.data.subsample import evenly_spaced_ids
from dre.metrics.procrustes import align_stages

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(60, 2)) * [3, 1]
LABELS = np.where(Y[:, 0] > 0, "right", "left")
TURN = np.array([[0.6, 0.8], [-0.8, 0.6]])
FLIP = np.array([[1.0, 0.0], [0.0, -1.0]])


def dots(axis: Any) -> Any:
    return np.asarray(axis.collections[0].get_offsets())


@pytest.mark.parametrize("change", [TURN, FLIP, TURN @ FLIP, 7 * TURN])
def test_maps_are_turned_onto_the_last_and_keep_their_distances(change: Any) -> None:
    other = Y @ change + 5
    first, last = align_stages([other, Y])
    assert np.array_equal(last, Y)
    assert np.allclose(pdist(first), pdist(other))
    scale = np.sqrt(abs(np.linalg.det(change)))
    assert np.allclose(first - first.mean(0), scale * (Y - Y.mean(0)))


def test_a_panel_for_each_stage_with_its_title_and_its_scores() -> None:
    X = np.column_stack([Y, RNG.normal(size=60)])
    worse = Y + RNG.normal(size=Y.shape)
    figure = plot.stages([worse, Y], LABELS, X=X, titles=["stage 0 · x", "stage 1 · h1"])
    assert [axis.get_title() for axis in figure.axes] == ["stage 0 · x", "stage 1 · h1"]
    for axis, embedding in zip(figure.axes, (worse, Y), strict=True):
        told = axis.get_xlabel()
        assert f"1-NN {metrics.nearest_neighbor(embedding, LABELS):.3f}" in told
        assert f"hit {metrics.neighborhood_hit(embedding, LABELS):.3f}" in told
        assert f"trustworthiness {metrics.trustworthiness(X, embedding):.3f}" in told
    assert np.allclose(np.sort(dots(figure.axes[1]), axis=0), np.sort(Y, axis=0))
    assert not figure.get_supxlabel()


def test_what_is_scored_by_some_of_the_rows_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dre.plot.stages"], "MAX_SCORED", 40)
    figure = plot.stages([Y], LABELS)
    assert figure.get_supxlabel() == "scores of 40 of 60 rows"
    some = evenly_spaced_ids(60, 40)
    assert f"1-NN {metrics.nearest_neighbor(Y[some], LABELS[some]):.3f}" in figure.axes[0].get_xlabel()


def test_the_metric_is_that_of_the_rows() -> None:
    X = np.column_stack([Y, RNG.normal(size=60)])
    figure = plot.stages([Y], X=X, metric="cosine")
    wanted = metrics.trustworthiness(X, Y, metric="cosine")
    assert f"trustworthiness {wanted:.3f}" in figure.axes[0].get_xlabel()
    assert f"{wanted:.3f}" != f"{metrics.trustworthiness(X, Y):.3f}"


def test_without_labels_and_rows_nothing_is_scored() -> None:
    assert not plot.stages([Y, Y]).axes[0].get_xlabel()


def test_many_stages_take_several_lines() -> None:
    figure = plot.stages([Y] * 7)
    tops = {round(axis.get_subplotspec().get_position(figure).y0, 3) for axis in figure.axes}
    assert len(tops) == 2


def test_maps_of_different_rows_and_none_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="same rows"):
        plot.stages([Y[:50], Y])
    with pytest.raises(ValueError, match="one for each stage"):
        plot.stages([])
    with pytest.raises(ValueError, match="2 titles for 1 "):
        plot.stages([Y], titles=["a", "b"])
