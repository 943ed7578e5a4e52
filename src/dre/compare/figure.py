"""The maps of a comparison side by side, with their scores, one legend, and the reasons of methods that failed."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dre.plot.colors import Coloring
from dre.plot.fonts import set_figure_fonts
from dre.plot.maps import draw_maps
from dre.plot.style import Style, frame_size, get_style, map_axes, panels, wrap_title

Array = np.ndarray[Any, Any]
MAX_COLUMNS = 4  # panels in a line
SIDE = 3.9  # inches of the longer side of a map
RATIOS = (0.8, 1.6)  # of its width to its height
REASON = (34, 10)  # characters of a line, and lines, of the reason why a method failed


def draw_comparison(
    maps: Mapping[str, Array],
    captions: Sequence[str],
    coloring: Coloring,
    failed: Mapping[str, str],
    *,
    label_name: str = "",
    style: str | Style = "light",
) -> Any:
    """Draw maps by the names of their methods, then a panel for each method that failed; return a matplotlib figure."""
    theme = get_style(style)
    count = len(maps) + len(failed)
    columns = math.ceil(count / math.ceil(count / MAX_COLUMNS))  # lines of nearly the same length
    frame = frame_size(list(maps.values()), SIDE, RATIOS)
    figure, axes = panels(count, *frame, max_columns=columns, style=theme)
    for axis, name, caption in zip(axes, maps, captions, strict=False):
        axis.set_title(wrap_title(name, frame[0]))
        axis.set_xlabel(caption, color=theme.text, fontsize=9.5)
    for axis, (name, reason) in zip(axes[len(maps) :], failed.items(), strict=True):
        map_axes(axis, wrap_title(name, frame[0]), theme)
        _write_reason(axis, reason, theme)
    set_figure_fonts(figure)
    draw_maps(axes[: len(maps)], list(maps.values()), coloring, theme, name=label_name, frame=frame)
    return figure


def _write_reason(axis: Any, reason: str, style: Style) -> None:
    width, most = REASON
    lines = textwrap.wrap(f"failed: {reason}", width, break_on_hyphens=False)
    shown = "\n".join(lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1]}…"])
    text = axis.text(0.5, 0.5, shown, ha="center", va="center", transform=axis.transAxes, color=style.text, fontsize=9)
    text.set(parse_math=False, in_layout=False)
