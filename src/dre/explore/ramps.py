"""Color ramps of a page: evenly spaced colors from low to high, on a light and on a dark background."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dre.plot.colors import VIRIDIS, resample
from dre.plot.style import DARK, LIGHT, trust_colors

COLORS = 11  # of a ramp


class Ramp(NamedTuple):
    """The colors of a scale from low to high."""

    colors: list[str]
    dark: list[str]  # on a dark background


def value_ramp() -> Ramp:
    """The parts of viridis that stand out from the backgrounds, as in figures."""
    at = np.linspace(0, 1, len(VIRIDIS)).tolist()
    return Ramp(*(resample(VIRIDIS, at, np.linspace(*style.viridis, COLORS)) for style in (LIGHT, DARK)))


def trust_ramp() -> Ramp:
    """From distorted to undistorted, as in figures."""
    return Ramp(*(trust_colors(style, COLORS) for style in (LIGHT, DARK)))
