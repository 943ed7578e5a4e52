"""A scatter plot shows every point once, with names, values and errors that name a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

from dre import plot

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)) + 4 * RNG.integers(3, size=120)[:, None]
Y = X[:, :2]
LABELS = np.array(["mouse", "fly", "yeast"])[(X.sum(1) > 24).astype(int) + (X.sum(1) > 48)]


def test_a_map_that_is_not_flat_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"\(120, 6\).*two of its columns"):
        plot.scatter(X)


def test_a_scatter_names_its_classes_where_they_lie() -> None:
    axis = plot.scatter(Y, LABELS)
    assert len(axis.collections[0].get_offsets()) == len(Y)
    assert {text.get_text() for text in axis.texts} == set(LABELS)
    for text in axis.texts:
        assert tuple(np.round(text.get_position(), 9)) in {tuple(np.round(y, 9)) for y in Y[text.get_text() == LABELS]}


def test_too_many_classes_are_not_named() -> None:
    assert not plot.scatter(Y, np.arange(len(Y))).texts


def test_numbers_with_many_values_get_a_scale_of_colors() -> None:
    axis = plot.scatter(Y, X[:, 5])
    assert len(axis.figure.axes) == 2
    (dots,) = axis.collections
    shown = {tuple(point): value for point, value in zip(np.round(dots.get_offsets(), 9), dots.get_array(), strict=True)}
    assert shown == {tuple(np.round(point, 9)): value for point, value in zip(Y, X[:, 5], strict=True)}


def test_a_map_with_a_hole_is_refused() -> None:
    with pytest.raises(ValueError, match="Input Y contains NaN"):
        plot.scatter(np.where(Y.max() == Y, np.nan, Y))


@pytest.mark.parametrize("draw", [lambda ax: plot.scatter(Y, ax=ax), lambda ax: plot.recall([0.5, 0.4], ax=ax)])
def test_a_picture_can_be_drawn_into_axes_that_are_there(draw: Any) -> None:
    _, axis = plt.subplots()
    assert draw(axis) is axis
    assert len(plt.get_fignums()) == 1
