"""Pictures show what they say: every point once, the worst on top, the figures in the titles, errors with a remedy."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

from dre import metrics, plot

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)) + 4 * RNG.integers(3, size=120)[:, None]
Y = X[:, :2]
LABELS = np.array(["mouse", "fly", "yeast"])[(X.sum(1) > 24).astype(int) + (X.sum(1) > 48)]


def test_where_it_lies_shows_every_point_once_in_each_panel_and_the_worst_last() -> None:
    result = metrics.evaluate(X, Y)
    figure = plot.where_it_lies(Y, result)
    for axis, name in zip(figure.axes, ("trustworthiness", "continuity"), strict=False):
        (dots,) = axis.collections
        values = dots.get_array()
        assert (np.diff(values) <= 0).all()
        assert np.allclose(np.sort(values), np.sort(result.per_point[name]))
        places = {tuple(place): value for place, value in zip(np.round(dots.get_offsets(), 12), values, strict=True)}
        assert all(places[tuple(np.round(Y[i], 12))] == result.per_point[name][i] for i in range(len(Y)))
        assert f"{name} {result[name]:.3f}" in axis.get_title()


def test_dark_is_wrong_in_every_shaded_map() -> None:
    lies = plot.where_it_lies(Y, metrics.evaluate(X, Y)).axes[0].collections[0]
    moved = plot.stability(Y, Y + RNG.normal(size=Y.shape)).axes[0].collections[0]
    for dots in (lies, moved):
        shades = dots.to_rgba(dots.get_array())[:, :3].mean(1)
        assert shades[-1] < 0.5 < shades[0]


def test_a_result_without_values_of_points_or_of_another_map_is_refused() -> None:
    with pytest.raises(ValueError, match="evaluate"):
        plot.where_it_lies(Y, {"silhouette": np.ones(len(Y))})
    with pytest.raises(ValueError, match="different maps"):
        plot.where_it_lies(Y[:50], metrics.evaluate(X, Y))


def test_what_belongs_to_the_metric_and_not_to_its_picture_is_refused_with_a_remedy() -> None:
    with pytest.raises(TypeError, match=r"not dict\(result\)"):
        plot.where_it_lies(Y, dict(metrics.evaluate(X, Y)))
    with pytest.raises(ValueError, match="per_point=True"):
        plot.silhouette(Y, LABELS)
    with pytest.raises(TypeError, match="shepard_diagram"):
        plot.shepard(X)
    with pytest.raises(TypeError, match="centroid_distances"):
        plot.centroids(X)


def test_a_map_that_is_not_flat_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"only maps \(n, 2\) can be drawn"):
        plot.scatter(X)


def test_a_scatter_names_its_classes_where_they_lie() -> None:
    axis = plot.scatter(Y, LABELS)
    assert len(axis.collections[0].get_offsets()) == len(Y)
    assert {text.get_text() for text in axis.texts} == set(LABELS)
    for text in axis.texts:
        assert tuple(np.round(text.get_position(), 9)) in {tuple(np.round(y, 9)) for y in Y[text.get_text() == LABELS]}


def test_too_many_classes_are_not_named() -> None:
    assert not plot.scatter(Y, np.arange(len(Y))).texts


def test_numbers_with_many_values_get_a_scale_of_colours() -> None:
    axis = plot.scatter(Y, X[:, 5])
    assert len(axis.figure.axes) == 2
    (dots,) = axis.collections
    uniform_like = {tuple(place): value for place, value in zip(np.round(dots.get_offsets(), 9), dots.get_array(), strict=True)}
    assert uniform_like == {tuple(np.round(place, 9)): value for place, value in zip(Y, X[:, 5], strict=True)}


def test_a_map_with_a_hole_is_refused() -> None:
    with pytest.raises(ValueError, match="Input Y contains NaN"):
        plot.scatter(np.where(Y.max() == Y, np.nan, Y))


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


def test_the_shepard_diagram_equals_a_histogram_of_all_distances() -> None:
    from scipy.spatial.distance import pdist

    diagram = metrics.shepard_diagram(X, Y, bins=15)
    wanted, high, low = np.histogram2d(pdist(X), pdist(Y), bins=15)
    assert np.allclose(diagram.high_edges, high)
    assert np.allclose(diagram.low_edges, low)
    assert np.abs(diagram.counts - wanted).sum() <= 2, "a distance on an edge may fall to either side"


@pytest.mark.parametrize("bins", [1, 0, True, 2.5])
def test_bins_that_make_no_diagram_are_refused(bins: Any) -> None:
    with pytest.raises(ValueError, match="from 2 on"):
        metrics.shepard_diagram(X, Y, bins=bins)


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


def test_the_second_map_is_laid_over_the_first() -> None:
    turned = 3 * Y @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 7
    figure = plot.stability(Y, turned)
    first, second = (np.asarray(axis.collections[0].get_offsets()) for axis in figure.axes[:2])
    assert np.allclose(np.sort(first, axis=0), np.sort(second, axis=0))
    assert "Procrustes distance 0.000, neighbours in common 1.000" in figure.axes[1].get_title()


@pytest.mark.parametrize("draw", [lambda ax: plot.scatter(Y, ax=ax), lambda ax: plot.recall([0.5, 0.4], ax=ax)])
def test_a_picture_can_be_drawn_into_axes_that_are_there(draw: Any) -> None:
    _, axis = plt.subplots()
    assert draw(axis) is axis
    assert len(plt.get_fignums()) == 1


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_matplotlib(name: str, *rest: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(ImportError, match=r"pip install 'deep-recursive-embedding\[plot\]'"):
        plot.scatter(Y)
