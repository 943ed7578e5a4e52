"""Points: dots of a suitable size, or a density image that counts every row once."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from dre import plot
from dre.plot.colors import Continuous, class_colors, color_by
from dre.plot.style import LIGHT

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [100, 100_000])
def test_dots_are_neither_dust_nor_soup(n: int) -> None:
    axis = plot.scatter(RNG.random((n, 2)))
    share = n * axis.collections[0].get_sizes()[0] / (5.2 * 72) ** 2
    assert 0.01 < share < 0.6


def test_more_rows_than_can_be_drawn_are_counted_and_have_the_colors_of_their_classes() -> None:
    pytest.importorskip("datashader")
    n = 100_002
    embedding = np.concatenate([RNG.normal(size=(n // 3, 2)) + middle for middle in ([0, 0], [40, 0], [0, 40])])
    labels = np.repeat(["a", "b", ""], n // 3)
    axis = plot.scatter(embedding, labels, label_placement="none")
    assert not axis.collections
    (image,) = axis.images
    left, right, bottom, top = image.get_extent()
    pixels = image.get_array()

    def at(x: float, y: float) -> Any:
        height, width = pixels.shape[:2]
        return pixels[int((y - bottom) / (top - bottom) * height), int((x - left) / (right - left) * width)]

    for point, color in (((0, 0), class_colors(2)[0]), ((40, 0), class_colors(2)[1]), ((0, 40), to_rgb(LIGHT.unlabeled))):
        assert np.allclose(at(*point)[:3], color, atol=0.02)
        assert at(*point)[3] > 0.8
    assert at(20, 20)[3] == 0
    low, high = axis.get_xlim()
    assert low <= embedding[:, 0].min()
    assert high >= embedding[:, 0].max()


def test_values_of_many_rows_are_averaged_in_each_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datashader")
    monkeypatch.setattr("dre.plot.dots.MAX_DOTS", 999)
    embedding = np.repeat([[0.0, 0.0], [1.0, 0.0]], 500, axis=0)
    values = np.concatenate([np.linspace(0, 1, 500), np.linspace(9, 10, 500)])
    image = plot.scatter(embedding, values).images[0].get_array()
    there = image[image[..., 3] > 0]
    assert len(there) == 2
    from matplotlib import colormaps

    scale = color_by(values, 1000)
    assert isinstance(scale, Continuous)
    for pixel, mean in zip(there, (0.5, 9.5), strict=True):
        share = (mean - scale.ends.low) / (scale.ends.high - scale.ends.low)
        low, high = LIGHT.viridis
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
    monkeypatch.setattr("dre.plot.dots.MAX_DOTS", 100)
    plot.scatter(RNG.normal(size=(1234, 2)), ["a", "b"] * 617)
    assert counted[0] == {"labeled": 1234, "all": 1234}


def test_without_datashader_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def none(name: str, *rest: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "datashader":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("dre.plot.dots.MAX_DOTS", 2)
    for name in [name for name in sys.modules if name.split(".")[0] == "datashader"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(ImportError, match=r"pip install 'deep-recursive-embedding\[plot\]'"):
        plot.scatter(RNG.normal(size=(3, 2)))


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
def test_rows_without_a_label_are_gray_beneath_the_others(missing: Any) -> None:
    axis = plot.scatter(
        [[0, 0], [1, 1], [2, 2], [3, 3]], np.array(["a", missing, "b", missing], dtype=object), label_placement="legend"
    )
    beneath, above = axis.collections
    assert sorted(beneath.get_offsets()[:, 0]) == [1, 3]
    assert to_hex(beneath.get_facecolor()[0]) == LIGHT.unlabeled
    assert sorted(above.get_offsets()[:, 0]) == [0, 2]
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == ["a", "b", "no label"]
