"""A scatter plot shows every point once, with names, values and errors that name a remedy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
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


def test_a_color_bar_has_the_name_of_the_values_and_names_the_rows_without_one() -> None:
    values = X[:, 5].copy()
    values[::9] = np.nan
    bar = plot.scatter(Y, pd.Series(values, name="height")).figure.axes[1]
    assert bar.get_ylabel() == "height"
    assert [text.get_text() for text in bar.get_legend().get_texts()] == ["no value"]
    assert plot.scatter(Y, X[:, 5], label_name="age").figure.axes[1].get_legend() is None


@pytest.mark.parametrize(
    ("days", "shown"), [(4000, r"20\d\d"), (200, r"20\d\d-\d\d"), (9, r"20\d\d-\d\d-\d\d"), (0.2, r"20.* \d\d:\d\d")]
)
def test_dates_have_ticks_that_can_be_read(days: float, shown: str) -> None:
    seconds = np.linspace(0, days * 86_400, len(Y)).astype("timedelta64[s]")
    for dates in ((start := np.datetime64("2020-03-01T00:00:00") + seconds), start.astype(str), pd.Series(start)):
        axis = plot.scatter(Y, dates, label_name="visit")
        axis.figure.canvas.draw()
        ticks = [text.get_text() for text in axis.figure.axes[1].get_yticklabels()]
        assert 2 <= len(ticks) <= 9
        assert all(re.fullmatch(shown, text) for text in ticks)
        assert axis.figure.axes[1].get_ylabel() == "visit"


def test_skewed_positive_numbers_have_a_logarithmic_bar_and_others_a_linear_one() -> None:
    rng = np.random.default_rng(1)
    skewed = np.exp(2 * rng.normal(size=len(Y))) * 1000
    axis = plot.scatter(Y, skewed)
    assert axis.collections[0].norm.vmax > 1000 * axis.collections[0].norm.vmin > 0
    axis.figure.canvas.draw()
    ticks = [text.get_text() for text in axis.figure.axes[1].get_yticklabels()]
    assert "1,000" in ticks
    for values in (skewed - skewed.min(), X[:, 5], 1000 + skewed / skewed.max()):
        assert type(plot.scatter(Y, values).collections[0].norm).__name__ == "Normalize"


@pytest.mark.parametrize("stretch", [(4, 1), (1, 1), (1, 3)])
@pytest.mark.parametrize("labels", [None, X[:, 5], LABELS])
def test_a_figure_has_the_shape_of_its_map(stretch: tuple[int, int], labels: Any) -> None:
    points = RNG.random((300, 2))[:120] * stretch
    axis = plot.scatter(points, labels, title="a map", size=6)
    axis.figure.canvas.draw()
    width, height = axis.get_window_extent().size / axis.figure.dpi
    assert max(width, height) == pytest.approx(6, rel=0.03)
    assert width / height == pytest.approx(np.clip(stretch[0] / stretch[1], 0.5, 3), rel=0.1)


def test_a_long_title_stays_in_a_narrow_figure() -> None:
    axis = plot.scatter(
        RNG.random((50, 2)) * [1, 9], title="A map of all cells of the second experiment, without doublets", size=4
    )
    axis.figure.canvas.draw()
    box = axis.title.get_window_extent()
    assert axis.title.get_text().count("\n") >= 1
    assert box.x0 >= -1
    assert box.x1 <= axis.figure.bbox.x1 + 1


@pytest.mark.parametrize("draw", [lambda ax: plot.scatter(Y, ax=ax), lambda ax: plot.recall([0.5, 0.4], ax=ax)])
def test_a_picture_can_be_drawn_into_axes_that_are_there(draw: Any) -> None:
    _, axis = plt.subplots()
    assert draw(axis) is axis
    assert len(plt.get_fignums()) == 1
