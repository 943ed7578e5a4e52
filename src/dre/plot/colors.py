"""Colors of rows: a palette for up to 150 classes, and a scale for numbers and dates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from dre.metrics.inputs import has_label, label_array
from dre.plot.kinds import DATE, NUMBER, as_dates, kind_of, known_values

Array = np.ndarray[Any, Any]
Color = tuple[float, float, float]
MAX_COLORS = 150  # beyond, colors repeat: more are hard to distinguish
ENDS = (0.01, 0.99)  # quantiles at the ends of a scale, so that outliers do not take all of its range
LOG_FROM = 30  # ratio of the ends of a scale of positive numbers from which it may be logarithmic,
LOG_BELOW = 0.15  # if the median would lie below this share of a linear one
# Trustworthiness and continuity of single points have the same scale in every map, so that maps can be compared.
TRUST_ENDS = (0.5, 1.0)
TRUST_STOPS = (1.0, 0.95, 0.85, 0.7, 0.5)  # values of the colors of `Style.distortion`: most points of a map are near 1
TRUST_EXPLAINED = {
    "trustworthiness": "1: all neighbors in the map are neighbors in the data; 0.5: as in a random map",
    "continuity": "1: all neighbors in the data are neighbors in the map; 0.5: as in a random map",
}
# Chosen by hand, each far from all before it; gray is kept for rows without a label.
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
VIRIDIS = ("#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725")
# Glasbey palettes maximize distances alone: of colorcet's first 150 colors, 34 (glasbey_light) nearly vanish on white and
# 26 (glasbey_bw) on the dark style. These limits keep every color visible on both.
LIGHTNESS = (0.5, 0.79)  # in OKLab
CHROMA = (0.05, 0.21)  # below it looks gray, above it glares
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


@dataclass(frozen=True, eq=False)
class Categorical:
    """Rows colored by class; ``names`` are sorted, ``codes`` (n,) are -1 for rows without a label."""

    names: list[str]
    codes: Array

    @property
    def is_labeled(self) -> Array:
        """(n,) bool."""
        return np.asarray(self.codes >= 0)

    @cached_property
    def counts(self) -> Array:
        """Number of rows of each class."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    @cached_property
    def largest(self) -> Array:
        """Codes of the classes, the largest first."""
        return np.argsort(-self.counts, kind="stable")

    @cached_property
    def colors(self) -> list[Color]:
        """One color per class. Beyond 150 classes colors repeat: the largest classes then have colors of their own."""
        count = len(self.names)
        order = np.arange(count) if count <= MAX_COLORS else self.largest
        found: list[Color] = [(0.0, 0.0, 0.0)] * count
        for code, color in zip(order.tolist(), class_colors(count), strict=True):
            found[code] = color
        return found

    def rows(self) -> list[Array]:
        """Return the row indices of each class."""
        order = self.codes.argsort(kind="stable")
        ends = np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))
        return [order[start:stop] for start, stop in pairwise(ends)]


@dataclass(frozen=True)
class ColorScale:
    """Values at the ends of a color scale, and what is between them: "linear" or "log"."""

    low: float
    high: float
    scale: str = "linear"

    def relative(self, values: Array) -> Array:
        """Scale values to [0, 1] between ``low`` and ``high``."""
        if self.scale == "log":
            return np.asarray(np.log(values / self.low) / np.log(self.high / self.low))
        return np.asarray((values - self.low) / (self.high - self.low))


@dataclass(frozen=True, eq=False)
class Continuous:
    """Rows colored by value; ``values`` (n,) are NaN for rows without one. Dates are in days since 1970."""

    values: Array
    ends: ColorScale
    is_date: bool = False

    @property
    def is_labeled(self) -> Array:
        """(n,) bool."""
        return np.isfinite(self.values)

    @property
    def extend(self) -> str:
        """The side on which values exceed the scale, as a colorbar takes it."""
        below, above = np.nanmin(self.values) < self.ends.low, np.nanmax(self.values) > self.ends.high
        return {(True, True): "both", (True, False): "min", (False, True): "max"}.get((bool(below), bool(above)), "neither")

    def relative(self, values: Array) -> Array:
        """Scale values to [0, 1] between the ends."""
        return self.ends.relative(values)


Coloring = Categorical | Continuous | None  # None: all rows alike


def color_by(labels: Any, n: int, name: str | None = None) -> Coloring:
    """Color rows by class, or by a scale if `kind_of` takes the labels for numbers or dates.

    Examples
    --------
    >>> color_by(["b", None, "a"], 3).codes.tolist()
    [1, -1, 0]
    >>> color_by(["2026-01-02", "2026-01-12"], 2).is_date
    True
    """
    if labels is None:
        return None
    values = label_array(labels, n)
    missing = ~has_label(values)
    if missing.all():
        return None
    kind = kind_of(values, name)
    if kind == DATE:
        return _dated(values)
    if kind == NUMBER:
        return _continuous(known_values(values), missing)
    return as_classes(values)


def is_continuous(labels: Array, name: str | None = None) -> bool:
    """Whether labels are not scored as classes: dates, and numbers that are fractional or more than there are colors.

    >>> is_continuous(np.linspace(0, 1, 50)), is_continuous(np.arange(90), "age"), is_continuous(np.array(["a", "b"]))
    (True, False, False)
    """
    kind = kind_of(labels, name)
    if kind != NUMBER:
        return kind == DATE
    known = known_values(labels)
    return len(np.unique(known)) > MAX_COLORS or bool((known != np.floor(known)).any())


def as_classes(labels: Any) -> Categorical:
    """Color rows by class, whatever the labels are.

    >>> as_classes(np.array([0.5, 1.5, np.nan, 0.5])).names
    ['0.5', '1.5']
    """
    values = label_array(labels, len(labels))
    missing = ~has_label(values)
    distinct, codes_of_known = np.unique(known_values(values), return_inverse=True)
    codes = np.full(len(values), -1, dtype=np.int16 if len(distinct) < 2**15 else np.int64)
    codes[~missing] = codes_of_known
    return Categorical([f"{name:g}" if distinct.dtype.kind == "f" else str(name) for name in distinct], codes)


def _continuous(known: Array, missing: Array) -> Continuous:
    values = np.full(len(missing), np.nan)
    values[~missing] = known
    return Continuous(values, scale_of(known))


def _dated(values: Array) -> Continuous:
    dates = as_dates(values)
    assert dates is not None
    days = np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 86_400_000)
    ends = scale_of(days[np.isfinite(days)], may_be_log=False)
    return Continuous(days, ends, is_date=True)


def scale_of(known: Array, *, may_be_log: bool = True) -> ColorScale:
    """Choose a color scale for numbers: outliers are beyond its ends, and it is logarithmic for skewed positive numbers.

    >>> scale_of(np.arange(1.0, 102.0))
    ColorScale(low=2.0, high=100.0, scale='linear')
    >>> scale_of(10.0 ** np.linspace(0, 6, 1001)).scale
    'log'
    """
    smallest, low, middle, high, largest = np.quantile(known, [0, ENDS[0], 0.5, ENDS[1], 1]).tolist()
    if high <= low:
        low, high = smallest, largest
    if high <= low:
        high = low + 1.0
    is_skewed = smallest > 0 and high > LOG_FROM * low and middle - low < LOG_BELOW * (high - low)
    return ColorScale(low, high, "log" if may_be_log and is_skewed else "linear")


def hex_colors(count: int) -> list[str]:
    """Return one color per class; the first ones do not depend on ``count``.

    Examples
    --------
    >>> hex_colors(2)
    ['#3a79cc', '#f08b24']
    >>> hex_colors(150)[:12] == hex_colors(12)
    True
    """
    palette = FIRST if count <= len(FIRST) else _palette()
    return [palette[i % MAX_COLORS] for i in range(count)]


def class_colors(count: int) -> list[Color]:
    """Return one color per class, as red, green and blue from 0 to 1."""
    return [to_rgb(text) for text in hex_colors(count)]


@cache
def _palette() -> tuple[str, ...]:
    """Extend the first dozen by the candidate that is farthest from all colors chosen so far."""
    candidates = _candidates()
    distances = np.full(len(candidates), np.inf)
    for text in FIRST:
        distances = np.minimum(distances, _distances(candidates, oklab(np.array(to_rgb(text)))))
    palette = list(FIRST)
    while len(palette) < MAX_COLORS:
        farthest = candidates[distances.argmax()]
        distances = np.minimum(distances, _distances(candidates, farthest))
        palette.append(to_hex(srgb(farthest)))
    return tuple(palette)


def _candidates(step: float = 0.012) -> Array:
    """Return (m, 3) OKLab colors that a screen can show, within the limits of lightness and chroma."""
    sides = np.arange(-0.32, 0.32, step)
    grid = np.stack(np.meshgrid(np.arange(*LIGHTNESS, step), sides, sides, indexing="ij"), axis=-1).reshape(-1, 3)
    linear = _linear(grid)
    chroma = np.hypot(grid[:, 1], grid[:, 2])
    shown = ((linear >= 0) & (linear <= 1)).all(1) & (chroma >= CHROMA[0]) & (chroma <= CHROMA[1])
    candidates: Array = grid[shown]
    return candidates


def _distances(colors: Array, color: Array) -> Array:
    distances: Array = np.sqrt(((colors - color) ** 2).sum(1))
    return distances


def to_rgb(text: str) -> Color:
    """Convert a hex color such as "#3a79cc"; matplotlib is not needed."""
    red, green, blue = (int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def resample(colors: Sequence[str], at: Sequence[float], values: Array) -> list[str]:
    """Interpolate a color for each value on a scale on which the given colors lie at these rising positions.

    >>> resample(["#000000", "#ff0000"], [0, 1], np.array([0.0, 0.2, 1.0]))
    ['#000000', '#330000', '#ff0000']
    """
    parts = np.array([to_rgb(color) for color in colors])
    return [to_hex(color) for color in np.stack([np.interp(values, at, part) for part in parts.T], axis=1)]


def to_hex(color: Any) -> str:
    """Write red, green and blue from 0 to 1 as a hex color."""
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in color)


def oklab(colors: Array) -> Array:
    """Convert sRGB (..., 3) from 0 to 1 to OKLab: lightness, green to red, blue to yellow."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(linear @ np.linalg.inv(TO_LINEAR).T)
    lab: Array = cones @ np.linalg.inv(TO_CONES).T
    return lab


def srgb(lab: Array) -> Array:
    """Convert OKLab (..., 3) to sRGB, clipped to what a screen can show."""
    linear = _linear(lab).clip(0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _linear(lab: Array) -> Array:
    linear: Array = (lab @ TO_CONES.T) ** 3 @ TO_LINEAR.T
    return linear
