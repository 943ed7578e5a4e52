"""Color bars of numbers and dates: named, with readable ticks, and with an entry for rows without a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dre.plot.colors import ColorScale, Continuous
from dre.plot.fonts import set_figure_fonts
from dre.plot.style import LIGHT, Style

NO_VALUE = "no value"
DATE_FORMATS = {  # by the days between two ticks; each can be read without the others
    365.0: "%Y",
    30.0: "%Y-%m",
    1.0: "%Y-%m-%d",
    1 / 24: "%Y-%m-%d %H:%M",
    1 / 1440: "%Y-%m-%d %H:%M",
    1 / 86_400: "%Y-%m-%d %H:%M:%S",
}
PLAIN = (1e-4, 1e7)  # numbers outside are written with an exponent
LENGTH = 3.6  # inches of a color bar, at most
EXTEND = 0.04  # of its length for values beyond an end


def value_colormap(style: Style = LIGHT) -> Any:
    """Return the part of viridis that stands out from the background."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["viridis"](np.linspace(*style.viridis, 256)))


def norm_of(ends: ColorScale) -> Any:
    """Return the matplotlib norm of a scale."""
    from matplotlib.colors import LogNorm, Normalize

    return (LogNorm if ends.scale == "log" else Normalize)(ends.low, ends.high)


def add_scale(axes: Any, coloring: Continuous, name: str, style: Style) -> Any:
    """Add the color bar of numbers or dates to one or several axes, and return it."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.dates import AutoDateFormatter, AutoDateLocator

    mappable = ScalarMappable(norm_of(coloring.ends), value_colormap(style))
    bar = add_colorbar(mappable, axes, name, extend=coloring.extend, style=style)
    if coloring.is_date:
        locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
        formatter = AutoDateFormatter(locator)  # type: ignore[no-untyped-call]
        formatter.scaled = DATE_FORMATS
        bar.ax.yaxis.set_major_locator(locator)
        bar.ax.yaxis.set_major_formatter(formatter)
    elif coloring.ends.scale == "log":
        bar.ax.yaxis.set_major_locator(_log_ticks(coloring.ends))
        bar.ax.yaxis.set_minor_locator(_no_ticks())
    if not coloring.is_labeled.all():
        _add_no_value(bar, style)
    return bar


def add_colorbar(mappable: Any, axes: Any, name: str, *, extend: str, style: Style = LIGHT) -> Any:
    """Add a color bar; ``extend`` is "min", "max", "both" or "neither", as in matplotlib."""
    several = list(axes) if isinstance(axes, Sequence) else [axes]
    figure = several[0].figure
    bar = figure.colorbar(mappable, ax=axes, shrink=_shrink(several), aspect=24, pad=0.02, extend=extend, extendfrac=EXTEND)
    bar.set_label(name, color=style.text)
    bar.ax.yaxis.label.set_parse_math(False)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=style.text, length=0)
    bar.ax.yaxis.set_major_formatter(lambda value, _: number_text(value))
    set_figure_fonts(bar.ax)
    return bar


def number_text(value: float) -> str:
    """Write a number at a tick.

    >>> [number_text(value) for value in (0.25, 20_000, 1e9, -3e-7, 0)]
    ['0.25', '20,000', '1e9', '-3e-7', '0']
    """
    size = abs(value)
    if size and not PLAIN[0] <= size < PLAIN[1]:
        digits, _, exponent = f"{value:.3e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:,.0f}" if size >= 1000 and value == round(value) else f"{round(value, 10):g}"


def _shrink(axes: list[Any]) -> float:
    """Return the share of the figure's height that a color bar takes."""
    height = axes[0].figure.get_figheight()
    return float(np.clip(LENGTH / height, 0.3, 0.75))


def _log_ticks(ends: ColorScale) -> Any:
    """Tick powers of 10, and their doubles and halves if these are few."""
    from matplotlib.ticker import LogLocator

    decades = np.log10(ends.high / ends.low)
    return LogLocator(subs=(1.0,) if decades > 3 else (1.0, 3.0) if decades > 2 else (1.0, 2.0, 5.0), numticks=9)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _add_no_value(bar: Any, style: Style) -> None:
    from matplotlib.lines import Line2D

    dot = Line2D([], [], marker="o", linestyle="", markersize=6, color=style.unlabeled)
    below = {"loc": "upper left", "bbox_to_anchor": (-0.6, -EXTEND), "borderaxespad": 0.5, "borderpad": 0}
    look = {"frameon": False, "fontsize": 9, "handletextpad": 0.2, "handlelength": 1.2, "labelcolor": style.text}
    bar.ax.legend([dot], [NO_VALUE], **below, **look)
