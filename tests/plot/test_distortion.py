"""Distortion shows every point once, the worst on top, and refuses results of other embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from dre import metrics, plot

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)) + 4 * RNG.integers(3, size=120)[:, None]
Y = X[:, :2]
LABELS = np.array(["mouse", "fly", "yeast"])[(X.sum(1) > 24).astype(int) + (X.sum(1) > 48)]


def test_distortion_shows_every_point_once_in_each_panel_and_the_worst_last() -> None:
    result = metrics.evaluate(X, Y)
    figure = plot.distortion(Y, result)
    for axis, name in zip(figure.axes, ("trustworthiness", "continuity"), strict=False):
        (dots,) = axis.collections
        values = dots.get_array()
        assert (np.diff(values) <= 0).all()
        assert np.allclose(np.sort(values), np.sort(result.per_point[name]))
        shown = {tuple(point): value for point, value in zip(np.round(dots.get_offsets(), 12), values, strict=True)}
        assert all(shown[tuple(np.round(Y[i], 12))] == result.per_point[name][i] for i in range(len(Y)))
        assert f"{name} {result[name]:.3f}" in axis.get_title()


def test_the_colors_of_trust_mean_the_same_in_every_map() -> None:
    good, bad = np.linspace(0.97, 1, len(Y)), np.linspace(0.4, 1, len(Y))
    shown = [plot.distortion(Y, {"trustworthiness": values}).axes[0].collections[0] for values in (good, bad)]
    assert [dots.get_clim() for dots in shown] == [(0.5, 1.0)] * 2
    for dots in shown:
        pale, orange, dark = dots.to_rgba(np.array([0.98, 0.8, 0.5]))[:, :3]
        assert pale.min() > 0.8  # nearly a light gray
        assert dark.max() < 0.5
        assert orange[0] - orange[2] > 0.3
    explained = plot.distortion(Y, {"trustworthiness": good}).axes[0].get_xlabel()
    assert "0.5: as in a random map" in explained


def test_the_points_that_moved_are_dark() -> None:
    moved = plot.stability(Y, Y + RNG.normal(size=Y.shape)).axes[0].collections[0]
    shades = moved.to_rgba(moved.get_array())[:, :3].mean(1)
    assert shades[-1] < 0.5 < shades[0]


def test_a_result_without_values_of_points_or_of_another_map_is_refused() -> None:
    with pytest.raises(ValueError, match="evaluate"):
        plot.distortion(Y, {"silhouette": np.ones(len(Y))})
    with pytest.raises(ValueError, match=r"\(120,\).*50 rows.*evaluate"):
        plot.distortion(Y[:50], metrics.evaluate(X, Y))


def test_the_second_map_is_laid_over_the_first() -> None:
    turned = 3 * Y @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 7
    figure = plot.stability(Y, turned)
    first, second = (np.asarray(axis.collections[0].get_offsets()) for axis in figure.axes[:2])
    assert np.allclose(np.sort(first, axis=0), np.sort(second, axis=0))
    assert "Procrustes distance 0.000, shared neighbors 1.000" in figure.axes[1].get_title()
