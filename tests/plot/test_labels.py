"""Class names: labels that cover no other and stay inside, or a legend with every class."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from dre import plot
from dre.plot.colors import hex_colors

RNG = np.random.default_rng(0)


def clusters(n: int, count: int) -> tuple[Any, Any]:
    labels = RNG.integers(count, size=n)
    return RNG.normal(size=(count, 2))[labels] * 10 + RNG.normal(size=(n, 2)), labels


def boxes(axis: Any) -> list[Any]:
    axis.figure.canvas.draw()
    return [text.get_window_extent() for text in axis.texts]


@pytest.mark.parametrize("count", [3, 12, 30, 150])
@pytest.mark.parametrize("size", [3.0, 8.0])
def test_names_cover_no_other_and_stay_inside(count: int, size: float) -> None:
    embedding, labels = clusters(3000, count)
    axis = plot.scatter(embedding, [f"a long class {label}" for label in labels], label_placement="map", size=size)
    found = boxes(axis)
    assert found
    assert not any(a.overlaps(b) for a, b in combinations(found, 2))
    frame = axis.get_window_extent()
    assert all(box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1 for box in found)


def test_the_name_of_a_large_class_goes_before_that_of_a_small_one() -> None:
    embedding = np.concatenate([RNG.normal(size=(500, 2)), RNG.normal(size=(20, 2)) * 0.001, [[90, 90], [-90, -90]]])
    labels = ["a" * 19] * 500 + [f"{i:019}" for i in range(20)] + ["b", "c"]
    named = {text.get_text() for text in plot.scatter(embedding, labels, label_placement="map", size=3).texts}
    assert "a" * 19 in named
    assert len(named) < 23


def test_the_name_of_a_class_of_one_row_does_not_hide_it() -> None:
    axis = plot.scatter([[0, 0], [1, 1], [0, 1]], ["x", "y", "z"])
    for text, box in zip(axis.texts, boxes(axis), strict=True):
        dots = axis.transData.transform(axis.collections[0].get_offsets())
        assert not any(box.contains(*dot) for dot in dots), text.get_text()


@pytest.mark.parametrize("count", [2, 40, 150])
def test_a_legend_has_every_class_in_its_color_and_keeps_the_map_as_large(count: int) -> None:
    embedding, labels = clusters(3000, count)
    labels = np.array([f"class {label:03}" for label in labels])
    alone = plot.scatter(embedding, labels, label_placement="none", size=5)
    axis = plot.scatter(embedding, labels, label_placement="legend", size=5)
    for each in (alone, axis):
        each.figure.canvas.draw()
    (legend,) = axis.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == sorted(set(labels))
    assert [to_hex(dot.get_color()) for dot in legend.legend_handles] == hex_colors(len(set(labels)))
    assert not legend.get_window_extent().overlaps(axis.get_window_extent())
    page = axis.figure.bbox
    assert legend.get_window_extent().y0 >= page.y0
    assert legend.get_window_extent().x1 <= page.x1 + 1
    assert np.allclose(alone.get_window_extent().size, axis.get_window_extent().size, rtol=0.06)


def test_names_without_room_become_a_legend_unless_the_axes_are_the_callers() -> None:
    embedding, labels = clusters(500, 60)
    own = plot.scatter(embedding, labels)
    assert not own.texts
    assert len(own.figure.legends[0].get_texts()) == len(set(labels))
    theirs = plot.scatter(embedding, labels, ax=own.figure.add_subplot())
    assert not theirs.texts
    assert theirs.get_legend() is None


def test_too_many_classes_for_a_list_are_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match="label_placement='none'"):
        plot.scatter(RNG.normal(size=(300, 2)), [f"n{i}" for i in range(300)], label_placement="legend")
    with pytest.raises(ValueError, match="Did you mean 'legend'"):
        plot.scatter(RNG.normal(size=(3, 2)), label_placement="legends")
