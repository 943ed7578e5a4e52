"""Color ramps of a page: evenly spaced colors from low to high, on a light and on a dark background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dre.plot.colors import TRUST_ENDS, TRUST_STOPS, to_rgb
from dre.plot.style import DARK, LIGHT, Style

VIRIDIS = ("#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725")
COLORS = 11  # of a ramp


class Ramp(NamedTuple):
    """The colors of a scale from low to high."""

    colors: list[str]
    dark: list[str]  # on a dark background


def value_ramp() -> Ramp:
    """The parts of viridis that stand out from the backgrounds, as in figures."""
    return Ramp(*(_resample(VIRIDIS, np.linspace(0, 1, len(VIRIDIS)).tolist(), style.viridis) for style in (LIGHT, DARK)))


def trust_ramp() -> Ramp:
    """From distorted to undistorted, as in figures."""
    return Ramp(*(_distortion(style) for style in (LIGHT, DARK)))


def _distortion(style: Style) -> list[str]:
    return _resample(style.distortion[::-1], TRUST_STOPS[::-1], TRUST_ENDS)


def _resample(colors: Sequence[str], at: Sequence[float], ends: tuple[float, float]) -> list[str]:
    """Evenly spaced colors between two ends of a scale on which the given colors lie at these positions."""
    parts = np.array([to_rgb(color) for color in colors])
    values = np.linspace(*ends, COLORS)
    mixed = np.stack([np.interp(values, at, part) for part in parts.T], axis=1)
    return ["#" + "".join(f"{round(255 * part):02x}" for part in color) for color in mixed.tolist()]
