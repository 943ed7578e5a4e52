"""Several maps explain their colors once: by names on each, one legend below, or one color bar."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dre import plot

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(300, 2)) * [3, 1]
CUBE = RNG.normal(size=(300, 3))


def names_on(axis: Any) -> set[str]:
    return {text.get_text() for text in axis.texts}


def test_a_few_short_names_go_onto_each_map() -> None:
    figure = plot.stages([Y, Y], ["ab"[i % 2] for i in range(300)])
    assert [names_on(axis) for axis in figure.axes] == [{"a", "b"}] * 2
    assert not figure.legends


@pytest.mark.parametrize(
    "labels",
    [
        [f"class {i % 40}" for i in range(300)],
        [f"a class with a long name, {i % 5}" for i in range(300)],
        ["" if i % 3 else "a" for i in range(300)],
    ],
)
def test_other_names_go_into_one_legend_below_all(labels: list[str]) -> None:
    figure = plot.stages([Y, Y, Y], labels, label_name="kind")
    figure.canvas.draw()
    assert not any(names_on(axis) for axis in figure.axes)
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert legend.get_title().get_text() == "kind"
    assert {name for name in labels if name} <= set(shown) or shown[-1].startswith("and ")
    assert ("no label" in shown) == ("" in labels)
    box = legend.get_window_extent()
    assert all(box.y1 <= axis.get_tightbbox().y0 for axis in figure.axes)
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_numbers_have_one_color_bar_and_none_no_names() -> None:
    figure = plot.stages([Y, Y, Y], Y[:, 0], label_name="depth")
    assert [axis.get_ylabel() for axis in figure.axes] == ["", "", "", "depth"]
    figure = plot.stages([Y, Y], ["ab"[i % 2] for i in range(300)], label_placement="none")
    assert not figure.legends
    assert not any(names_on(axis) for axis in figure.axes)


def test_names_that_were_asked_for_on_the_maps_are_counted() -> None:
    axis = plot.stages([Y], [f"class {i % 150}" for i in range(300)], label_placement="map").axes[0]
    assert f"{len(axis.texts)} of 150 classes are named" in axis.get_xlabel()


def test_each_pair_of_components_is_a_map_that_says_so() -> None:
    figure = plot.pairs(CUBE, ["ab"[i % 2] for i in range(300)], title="a cube")
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in figure.axes] == [
        ("dre1", "dre2"),
        ("dre1", "dre3"),
        ("dre2", "dre3"),
    ]
    for axis, pair in zip(figure.axes, ((0, 1), (0, 2), (1, 2)), strict=True):
        shown = np.asarray(axis.collections[0].get_offsets())
        assert np.allclose(np.sort(shown, axis=0), np.sort(CUBE[:, list(pair)], axis=0))
    assert len(plot.pairs(Y).axes) == 1


def test_an_embedding_of_other_sizes_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"\(300, 5\).*two or three components"):
        plot.pairs(np.zeros((300, 5)))
    with pytest.raises(ValueError, match=r"dre\.plot\.pairs"):
        plot.scatter(CUBE)
    with pytest.raises(ValueError, match="Did you mean 'legend'"):
        plot.pairs(CUBE, label_placement="legends")
