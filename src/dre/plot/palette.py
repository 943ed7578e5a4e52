"""Colours for classes, 2 to 150 of them: told apart by eye, on white and on a dark ground, the same however many there are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Color = tuple[float, float, float]
MOST = 150  # beyond, colours come again: more can't be told apart
# Chosen by hand, each far from all before it; no grey, which is for what has no label.
FIRST = (
    "#3a79cc",  # blue
    "#f08b24",  # orange
    "#3aa655",  # green
    "#d43d42",  # red
    "#9657c2",  # violet
    "#8f5b33",  # brown
    "#ea7ab8",  # pink
    "#b3ab1f",  # olive
    "#25b5c4",  # cyan
    "#9c2f6c",  # plum
    "#f0a58c",  # salmon
    "#137a6d",  # pine
)
LIGHTNESS = (0.5, 0.79)  # in OKLab: no lighter for the sake of white paper, no darker for that of black
COLOURFUL = (0.05, 0.21)  # how far from grey: less is taken for it, more glares
# From OKLab to cone responses, and from their cubes to linear sRGB: Ottosson, "A perceptual color space for image processing".
TO_CONES = np.array(
    [[1.0, 0.3963377774, 0.2158037573], [1.0, -0.1055613458, -0.0638541728], [1.0, -0.0894841775, -1.2914855480]]
)
TO_LINEAR = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def hexes(count: int) -> list[str]:
    """One colour per class, as texts.

    >>> hexes(2)
    ['#3a79cc', '#f08b24']
    >>> hexes(150)[:12] == hexes(12)
    True
    """
    found = all_hexes()
    return [found[i % MOST] for i in range(count)]


def class_colours(count: int) -> list[Color]:
    """One colour per class, as red, green and blue from 0 to 1."""
    return [rgb(text) for text in hexes(count)]


@cache
def all_hexes() -> tuple[str, ...]:
    """The first dozen, and then always the colour that is farthest from all that are taken."""
    candidates = _candidates()
    apart = np.full(len(candidates), np.inf)
    for text in FIRST:
        apart = np.minimum(apart, _distances(candidates, oklab(np.array(rgb(text)))))
    found = list(FIRST)
    while len(found) < MOST:
        farthest = candidates[apart.argmax()]
        apart = np.minimum(apart, _distances(candidates, farthest))
        found.append("#" + "".join(f"{round(255 * part):02x}" for part in srgb(farthest)))
    return tuple(found)


def rgb(text: str) -> Color:
    """Of "#3a79cc", say."""
    red, green, blue = (int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def oklab(colours: Array) -> Array:
    """(…, 3) of sRGB, 0 to 1, where equal distances look equally far: lightness, green to red, blue to yellow."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(linear @ np.linalg.inv(TO_LINEAR).T)
    found: Array = cones @ np.linalg.inv(TO_CONES).T
    return found


def srgb(lab: Array) -> Array:
    """Back again, cut to what a screen can show."""
    linear = _linear(lab).clip(0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _linear(lab: Array) -> Array:
    found: Array = (lab @ TO_CONES.T) ** 3 @ TO_LINEAR.T
    return found


def _candidates(step: float = 0.012) -> Array:
    """(m, 3) in OKLab: all colours that a screen shows, neither too light nor too dark nor too grey."""
    sides = np.arange(-0.32, 0.32, step)
    grid = np.stack(np.meshgrid(np.arange(*LIGHTNESS, step), sides, sides, indexing="ij"), axis=-1).reshape(-1, 3)
    linear = _linear(grid)
    chroma = np.hypot(grid[:, 1], grid[:, 2])
    shown = ((linear >= 0) & (linear <= 1)).all(1) & (chroma >= COLOURFUL[0]) & (chroma <= COLOURFUL[1])
    found: Array = grid[shown]
    return found


def _distances(colours: Array, one: Array) -> Array:
    found: Array = np.sqrt(((colours - one) ** 2).sum(1))
    return found
