"""Diagrams draw the results of their metrics, and refuse anything else with a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dre import metrics, plot

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)) + 4 * RNG.integers(3, size=120)[:, None]
Y = X[:, :2]
LABELS = np.array(["mouse", "fly", "yeast"])[(X.sum(1) > 24).astype(int) + (X.sum(1) > 48)]


def test_what_belongs_to_the_metric_and_not_to_its_picture_is_refused_with_a_remedy() -> None:
    with pytest.raises(TypeError, match=r"not dict\(result\)"):
        plot.distortion(Y, dict(metrics.evaluate(X, Y)))
    with pytest.raises(ValueError, match="per_point=True"):
        plot.silhouette(Y, LABELS)
    with pytest.raises(TypeError, match="shepard_diagram"):
        plot.shepard(X)
    with pytest.raises(TypeError, match="centroid_distances"):
        plot.centroids(X)


@pytest.mark.parametrize("curve", [X, 0.3, {"a": Y}])
def test_what_is_no_curve_is_refused(curve: Any) -> None:
    with pytest.raises(ValueError, match="neighbor_recall"):
        plot.recall(curve)


def test_the_shepard_diagram_counts_every_pair_and_its_median_rises_for_the_map_itself() -> None:
    diagram = metrics.shepard_diagram(X, X, bins=20)
    assert diagram.counts.sum() == 120 * 119 // 2
    assert np.array_equal(diagram.counts, np.diag(np.diag(diagram.counts)))
    line = plot.shepard(diagram).lines[1]
    assert (np.diff(line.get_ydata()) > 0).all()


def test_the_recall_draws_a_line_per_map_and_one_at_random() -> None:
    curve = metrics.neighbor_recall(X, Y, k=20)
    assert len(plot.recall(curve).lines) == 1
    axis = plot.recall({"a": curve, "b": curve / 2}, n=len(X))
    assert len(axis.lines) == 3
    assert {"a", "b", "at random"} <= {text.get_text() for text in axis.texts}
    assert np.array_equal(axis.lines[0].get_ydata(), curve)


def test_misplaced_pairs_of_classes_are_named() -> None:
    classes = np.array(list("abcde"))
    high = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    low = high.copy()
    low[0, 4] = low[4, 0] = 0.1
    axis = plot.centroids(metrics.CentroidDistances(classes, high, low))
    assert "a – e" in {text.get_text() for text in axis.texts}
    assert not plot.centroids(metrics.CentroidDistances(classes, high, high)).texts


def test_silhouettes_are_bands_of_their_classes() -> None:
    values = metrics.silhouette(Y, LABELS, per_point=True)
    axis = plot.silhouette(values, LABELS)
    assert [label.get_text() for label in axis.get_yticklabels()] == sorted(set(LABELS))
    assert f"{np.mean(values):.3f}" in axis.get_title()
