"""A map can be read: names and images that cover no others, a list with every class, light or dark, dots or density."""

from __future__ import annotations

import builtins
import sys
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from dre import plot
from dre.plot.colouring import Classes, Scale, colouring
from dre.plot.look import DARK, LIGHT
from dre.plot.palette import class_colours
from dre.plot.thumbnails import apart

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
    places, labels = clusters(3000, count)
    axis = plot.scatter(places, [f"a long class {label}" for label in labels], names="labels", size=size)
    found = boxes(axis)
    assert found
    assert not any(a.overlaps(b) for a, b in combinations(found, 2))
    frame = axis.get_window_extent()
    assert all(box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1 for box in found)


def test_the_name_of_a_large_class_goes_before_that_of_a_small_one() -> None:
    places = np.concatenate([RNG.normal(size=(500, 2)), RNG.normal(size=(20, 2)) * 0.001, [[90, 90], [-90, -90]]])
    labels = ["a" * 19] * 500 + [f"{i:019}" for i in range(20)] + ["b", "c"]
    named = {text.get_text() for text in plot.scatter(places, labels, names="labels", size=3).texts}
    assert "a" * 19 in named
    assert len(named) < 23


def test_the_name_of_a_class_of_one_row_does_not_hide_it() -> None:
    axis = plot.scatter([[0, 0], [1, 1], [0, 1]], ["x", "y", "z"])
    for text, box in zip(axis.texts, boxes(axis), strict=True):
        dots = axis.transData.transform(axis.collections[0].get_offsets())
        assert not any(box.contains(*dot) for dot in dots), text.get_text()


@pytest.mark.parametrize("count", [2, 40, 150])
def test_a_legend_has_every_class_in_its_colour_and_keeps_the_map_as_large(count: int) -> None:
    places, labels = clusters(3000, count)
    labels = np.array([f"class {label:03}" for label in labels])
    alone = plot.scatter(places, labels, names="none", size=5)
    axis = plot.scatter(places, labels, names="legend", size=5)
    for each in (alone, axis):
        each.figure.canvas.draw()
    (legend,) = axis.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == sorted(set(labels))
    assert [to_hex(dot.get_color()) for dot in legend.legend_handles] == plot.hexes(len(set(labels)))
    assert not legend.get_window_extent().overlaps(axis.get_window_extent())
    page = axis.figure.bbox
    assert legend.get_window_extent().y0 >= page.y0
    assert legend.get_window_extent().x1 <= page.x1 + 1
    assert np.allclose(alone.get_window_extent().size, axis.get_window_extent().size, rtol=0.06)


def test_names_without_room_become_a_legend_unless_the_axes_are_the_callers() -> None:
    places, labels = clusters(500, 60)
    own = plot.scatter(places, labels)
    assert not own.texts
    assert len(own.figure.legends[0].get_texts()) == len(set(labels))
    theirs = plot.scatter(places, labels, ax=own.figure.add_subplot())
    assert not theirs.texts
    assert theirs.get_legend() is None


def test_too_many_classes_for_a_list_are_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match="names='none'"):
        plot.scatter(RNG.normal(size=(300, 2)), [f"n{i}" for i in range(300)], names="legend")
    with pytest.raises(ValueError, match="Did you mean 'labels'"):
        plot.scatter(RNG.normal(size=(3, 2)), names="label")


@pytest.mark.parametrize(("style", "paper"), [("light", LIGHT.paper), ("dark", DARK.paper)])
def test_the_ground_is_that_of_the_style_all_over(style: str, paper: str) -> None:
    axis = plot.scatter([[0, 0], [1, 1]], ["a", "b"], style=style, title="x")
    axis.figure.canvas.draw()
    pixels = np.asarray(axis.figure.canvas.buffer_rgba())[..., :3] / 255
    assert (np.abs(pixels - to_rgb(paper)).max(2) < 0.01).mean() > 0.9
    contrast = abs(np.mean(to_rgb(axis.title.get_color())) - np.mean(to_rgb(paper)))
    assert contrast > 0.7


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="known: light, dark"):
        plot.scatter([[0, 0], [1, 1]], style="drak")


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
def test_rows_without_a_label_are_grey_beneath_the_others(missing: Any) -> None:
    axis = plot.scatter([[0, 0], [1, 1], [2, 2], [3, 3]], np.array(["a", missing, "b", missing], dtype=object), names="legend")
    beneath, above = axis.collections
    assert sorted(beneath.get_offsets()[:, 0]) == [1, 3]
    assert to_hex(beneath.get_facecolor()[0]) == LIGHT.faint
    assert sorted(above.get_offsets()[:, 0]) == [0, 2]
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == ["a", "b", "no label"]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.arange(200) % 7, Classes),
        (np.arange(200), Scale),
        (np.linspace(0, 1, 200), Scale),
        (np.arange(200) % 3 * 1.0, Classes),
        ([True, False] * 100, Classes),
        ([f"row {i}" for i in range(200)], Classes),
    ],
)
def test_numbers_with_many_values_are_a_scale_and_all_else_is_classes(labels: Any, kind: type) -> None:
    assert isinstance(colouring(labels, 200), kind)


def test_a_value_far_out_does_not_take_the_colours_of_the_others() -> None:
    values = RNG.normal(size=1000)
    values[3], values[5] = 1e6, np.nan
    found = colouring(values, 1000)
    assert isinstance(found, Scale)
    assert found.most < 10
    assert found.beyond == "both"


@pytest.mark.parametrize("n", [100, 100_000])
def test_dots_are_neither_dust_nor_soup(n: int) -> None:
    axis = plot.scatter(RNG.random((n, 2)))
    share = n * axis.collections[0].get_sizes()[0] / (5.2 * 72) ** 2
    assert 0.01 < share < 0.6


def test_more_rows_than_can_be_drawn_are_counted_and_have_the_colours_of_their_classes() -> None:
    pytest.importorskip("datashader")
    n = 100_002
    places = np.concatenate([RNG.normal(size=(n // 3, 2)) + middle for middle in ([0, 0], [40, 0], [0, 40])])
    labels = np.repeat(["a", "b", ""], n // 3)
    axis = plot.scatter(places, labels, names="none")
    assert not axis.collections
    (image,) = axis.images
    left, right, bottom, top = image.get_extent()
    pixels = image.get_array()

    def at(x: float, y: float) -> Any:
        height, width = pixels.shape[:2]
        return pixels[int((y - bottom) / (top - bottom) * height), int((x - left) / (right - left) * width)]

    for place, colour in (((0, 0), class_colours(2)[0]), ((40, 0), class_colours(2)[1]), ((0, 40), to_rgb(LIGHT.faint))):
        assert np.allclose(at(*place)[:3], colour, atol=0.02)
        assert at(*place)[3] > 0.8
    assert at(20, 20)[3] == 0
    low, high = axis.get_xlim()
    assert low <= places[:, 0].min()
    assert high >= places[:, 0].max()


def test_values_of_many_rows_are_averaged_in_each_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datashader")
    monkeypatch.setattr("dre.plot.dots.DRAWN_UP_TO", 999)
    places = np.repeat([[0.0, 0.0], [1.0, 0.0]], 500, axis=0)
    values = np.concatenate([np.linspace(0, 1, 500), np.linspace(9, 10, 500)])
    image = plot.scatter(places, values).images[0].get_array()
    there = image[image[..., 3] > 0]
    assert len(there) == 2
    from matplotlib import colormaps

    scale = colouring(values, 1000)
    assert isinstance(scale, Scale)
    for pixel, mean in zip(there, (0.5, 9.5), strict=True):
        share = (mean - scale.least) / (scale.most - scale.least)
        low, high = LIGHT.scale
        assert np.allclose(pixel[:3], colormaps["viridis"](low + share * (high - low))[:3], atol=0.02)


def test_every_row_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    datashader = pytest.importorskip("datashader")
    counted = []
    real = datashader.Canvas.points

    def spied(self: Any, *given: Any, **named: Any) -> Any:
        found = real(self, *given, **named)
        counted.append({name: float(np.nansum(found[name])) for name in found})
        return found

    monkeypatch.setattr(datashader.Canvas, "points", spied)
    monkeypatch.setattr("dre.plot.dots.DRAWN_UP_TO", 100)
    plot.scatter(RNG.normal(size=(1234, 2)), ["a", "b"] * 617)
    assert counted[0] == {"labelled": 1234, "all": 1234}


def test_without_datashader_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def none(name: str, *rest: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "datashader":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("dre.plot.dots.DRAWN_UP_TO", 2)
    for name in [name for name in sys.modules if name.split(".")[0] == "datashader"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(ImportError, match=r"pip install 'deep-recursive-embedding\[plot\]'"):
        plot.scatter(RNG.normal(size=(3, 2)))


@pytest.mark.parametrize("shape", [(8, 8), (6, 9), (8, 8, 3), (3, 8, 8)])
def test_images_lie_at_their_places_without_covering_each_other(shape: tuple[int, ...]) -> None:
    places, labels = clusters(800, 5)
    images = RNG.integers(256, size=(800, *shape), dtype=np.uint8)
    axis = plot.scatter(places, labels, images=images)
    extents = np.array([image.get_extent() for image in axis.images])
    assert 10 < len(extents) < 800
    centres = np.stack([extents[:, :2].mean(1), extents[:, 2:].mean(1)], axis=1)
    rows = [int(np.abs(places - centre).sum(1).argmin()) for centre in centres]
    assert np.allclose(places[rows], centres)
    for (a, b, c, d), (e, f, g, h) in combinations(extents, 2):
        assert b <= e or f <= a or d <= g or h <= c
    frames = axis.collections[-1].get_edgecolor()
    assert np.allclose(frames[:, :3], [class_colours(5)[labels[row]] for row in rows], atol=1e-6)


def test_where_there_is_room_for_one_more_image_there_is_one() -> None:
    places = RNG.random((3000, 2))
    chosen = places[apart(places, 0.1)]
    gaps = np.abs(places[:, None] - chosen[None]).max(2).min(1)
    assert gaps.max() < 0.1 + 0.1 / 6
    between = np.abs(chosen[:, None] - chosen[None]).max(2)
    assert between[~np.eye(len(chosen), dtype=bool)].min() >= 0.1


@pytest.mark.parametrize(("ground", "alpha"), [(0, 0.0), (255, 0.0)])
def test_strokes_on_an_empty_ground_let_the_map_through(ground: int, alpha: float) -> None:
    images = np.full((2, 5, 5), ground, np.uint8)
    images[:, 2, 2] = 255 - ground
    axis = plot.scatter([[0, 0], [1, 1]], images=images, style="dark")
    uniform_like = axis.images[0].get_array()
    assert uniform_like[0, 0, 3] == alpha
    assert uniform_like[2, 2, 3] == 1
    assert np.allclose(uniform_like[2, 2, :3], to_rgb(DARK.ink), atol=1e-6)


@pytest.mark.parametrize(("shape", "remedy"), [((4, 64), "expected"), ((3, 8, 8), "one for each")])
def test_what_are_no_images_of_the_rows_is_refused(shape: tuple[int, ...], remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        plot.scatter(RNG.normal(size=(4, 2)), images=np.zeros(shape))
