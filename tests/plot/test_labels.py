"""Class names: labels that cover no other and stay inside, or a legend with every class."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from dre import plot
from dre.plot.colors import MAX_COLORS, as_classes, hex_colors

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


def test_the_name_of_a_small_tight_class_stands_beside_it() -> None:
    spread = [RNG.normal(size=(400, 2)) * 2, RNG.normal(size=(20, 2)) * 0.15 + [12, 0], RNG.normal(size=(400, 2)) * 2 + [0, 12]]
    labels = np.repeat(["first", "type 14", "last"], [400, 20, 400])
    axis = plot.scatter(np.concatenate(spread), labels, label_placement="map", size=5)
    found = dict(zip([text.get_text() for text in axis.texts], boxes(axis), strict=True))
    dots = axis.transData.transform(spread[1])
    assert np.mean([found["type 14"].contains(*dot) for dot in dots]) <= 0.5
    assert np.abs(dots.mean(axis=0) - [found["type 14"].x0, found["type 14"].y0]).max() < 120  # near it
    assert found["first"].contains(*np.median(axis.transData.transform(spread[0]), axis=0))  # a large one may be covered


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
    embedding, labels = RNG.normal(size=(500, 2)), np.array([f"class number {i % 25}" for i in range(500)])
    own = plot.scatter(embedding, labels, size=3)
    assert not own.texts
    assert len(own.figure.legends[0].get_texts()) == 25
    theirs = plot.scatter(embedding, labels, ax=plt.figure(figsize=(3, 3)).add_subplot())
    assert theirs.get_legend() is None
    assert f"{len(theirs.texts)} of 25 classes are named" in theirs.get_xlabel()


@pytest.mark.parametrize("placement", ["auto", "map", "legend"])
@pytest.mark.parametrize("count", [50, 200, 1000])
@pytest.mark.parametrize("size", [4.0, 8.0])
def test_any_number_of_classes_is_named_as_far_as_there_is_room_and_the_rest_counted(
    placement: str, count: int, size: float
) -> None:
    labels = np.repeat(np.arange(count), 3 + np.arange(count) % 7)
    embedding = RNG.normal(size=(count, 2))[labels] * 10 + RNG.normal(size=(len(labels), 2)) * 0.1
    axis = plot.scatter(embedding, [f"{label:04}" for label in labels], label_placement=placement, size=size)
    axis.figure.canvas.draw()
    page = axis.figure.bbox
    if placement == "legend" or (placement == "auto" and count == 50):
        (legend,) = axis.figure.legends
        box, shown = legend.get_window_extent(), [text.get_text() for text in legend.get_texts()]
        assert box.x1 <= page.x1 + 1
        assert box.y0 >= page.y0 - 1
        assert not box.overlaps(axis.get_window_extent())
        if len(shown) < count:
            assert shown[-1] == f"and {count - len(shown) + 1:,} smaller classes"
    else:
        found = boxes(axis)
        assert not any(a.overlaps(b) for a, b in combinations(found, 2))
        assert len(found) >= 20
        assert len(found) == count or f"{len(found)} of {count:,} classes are named" in axis.get_xlabel()


def test_the_largest_of_many_classes_have_names_and_colors_of_their_own() -> None:
    sizes = np.where(np.arange(400) % 4 == 0, 9, 2)
    classes = as_classes([f"{code:03}" for code in np.repeat(np.arange(400), sizes)])
    assert len(set(classes.colors)) == MAX_COLORS
    large = [classes.colors[code] for code in range(0, 400, 4)]
    assert len(set(large)) == 100
    legend = plot.scatter(RNG.normal(size=(sizes.sum(), 2)), [f"{c:03}" for c in np.repeat(np.arange(400), sizes)],
                          label_placement="legend", size=3).figure.legends[0]  # fmt: skip
    named = [text.get_text() for text in legend.get_texts()][:-1]
    assert named
    assert all(int(name) % 4 == 0 for name in named)


def test_names_in_a_legend_are_in_the_order_that_people_expect_and_short() -> None:
    labels = [f"cluster {i % 12} {'x' * 40} {i % 12}" for i in range(120)]
    legend = plot.scatter(RNG.normal(size=(120, 2)), labels, label_name="Leiden", label_placement="legend").figure.legends[0]
    shown = [text.get_text() for text in legend.get_texts()]
    assert [int(text.split()[1]) for text in shown] == list(range(12))
    assert [int(text.split()[-1]) for text in shown] == list(range(12))
    assert max(map(len, shown)) <= 32
    assert legend.get_title().get_text() == "Leiden"


def test_dollars_in_a_name_are_dollars() -> None:
    axis = plot.scatter([[0, 0], [1, 1], [3, 1]], ["$5 to $10", "a_$b", "\\frac$ $"])
    axis.figure.canvas.draw()
    assert {text.get_text() for text in axis.texts} == {"$5 to $10", "a_$b", "\\frac$ $"}
    assert not any(text.get_parse_math() for text in axis.texts)


def test_gray_points_are_explained_beside_names_on_the_map() -> None:
    assert plot.scatter([[0, 0], [1, 1], [3, 1]], ["a", "b", None]).get_xlabel() == "gray: no label"


def test_an_unknown_place_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match="Did you mean 'legend'"):
        plot.scatter(RNG.normal(size=(3, 2)), label_placement="legends")
