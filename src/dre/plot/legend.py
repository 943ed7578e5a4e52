"""Legends of classes, beside a map or below several: as many classes as fit, the largest, and how many are left out."""

from __future__ import annotations

import math
import re
from typing import Any

from dre.plot.colors import MAX_COLORS, Categorical
from dre.plot.fonts import set_fonts
from dre.plot.style import Style

NAME_WIDTH = 32  # characters of a name
NO_LABEL = "no label"
LINE = 1.5  # height of an entry, in font sizes
BESIDE = 1.5  # widest legend beside a map, relative to the map
BELOW = 0.4  # highest legend below several maps, relative to the figure
MIN_WIDTH = 2.2  # inches that a legend may have in any case


def legend_beside(axis: Any, classes: Categorical, style: Style, name: str = "", *, widen: bool) -> Any:
    """Add a legend to the right of a map; ``widen`` grows the figure by its width."""
    figure = axis.figure
    frame = axis.get_window_extent()
    size = font_size(len(classes.names))
    lines = max(1, int(frame.height * 72 / figure.dpi / (LINE * size)) - (1 if name else 0))
    widest = max(BESIDE * frame.width, MIN_WIDTH * figure.dpi)
    place = {"loc": "outside right upper"} if widen else {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
    columns = -(-count_entries(classes) // lines)
    while True:
        look: dict[str, Any] = {"columns": columns, "size": size, **place}
        legend = _draw(figure if widen else axis, _entries(classes, style, lines * columns), style, name, **look)
        width = legend.get_window_extent().width
        if width <= widest or columns == 1:
            break
        legend.remove()
        columns = _fewer(columns, widest / width)
    if widen:
        figure.set_figwidth(figure.get_figwidth() + width / figure.dpi + 0.1)
    return legend


def legend_below(figure: Any, classes: Categorical, style: Style, name: str = "") -> Any:
    """Add a legend below all maps of a figure, which grows by its height."""
    widest, highest = 0.98 * figure.bbox.width, BELOW * figure.bbox.height
    columns = most = count_entries(classes)
    look: dict[str, Any] = {"size": font_size(len(classes.names)), "loc": "outside lower center"}
    while True:
        legend = _draw(figure, _entries(classes, style, most), style, name, columns=columns, **look)
        box = legend.get_window_extent()
        too_wide, too_high = box.width > widest and columns > 1, box.height > highest and most > 2 * columns
        if not too_wide and not too_high:
            break
        legend.remove()
        columns = _fewer(columns, widest / box.width) if too_wide else columns
        most = most if too_wide else columns * _fewer(-(-most // columns), highest / box.height)
    figure.set_figheight(figure.get_figheight() + box.height / figure.dpi)
    return legend


def _fewer(count: int, share: float) -> int:
    """Return about this share of a count, at least 1 and less than the count."""
    return max(1, min(count - 1, int(count * share)))


def count_entries(classes: Categorical) -> int:
    """Return the number of entries of a legend that has room for all colors."""
    return min(len(classes.names), MAX_COLORS + 1) + (0 if classes.is_labeled.all() else 1)


def font_size(count: int) -> float:
    """Return the font size of a legend with so many classes."""
    return 10.0 if count <= 20 else 8.0


def _draw(
    owner: Any, entries: list[tuple[str, Any]], style: Style, name: str, *, columns: int, size: float, **place: Any
) -> Any:
    """Draw a legend of texts and colors into a figure or axes."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], marker="o" if color else "", linestyle="", markersize=0.6 * size, color=color or "none")
        for _, color in entries
    ]
    look = {"ncols": columns, "fontsize": size, "frameon": False, "labelcolor": style.text, "title": name or None}
    look |= {"handletextpad": 0.2, "columnspacing": 1.0, "labelspacing": LINE - 1.2, "borderaxespad": 0.2, "alignment": "left"}
    legend = owner.legend(marks, [text for text, _ in entries], **look, **place)
    legend.get_title().set(color=style.text, fontsize=size, parse_math=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    set_fonts([legend.get_title(), *legend.get_texts()])
    return legend


def _entries(classes: Categorical, style: Style, most: int) -> list[tuple[str, Any]]:
    """Return texts and colors of at most so many entries; a text without a color counts the classes that are left out."""
    missing = [] if classes.is_labeled.all() else [(NO_LABEL, style.unlabeled)]
    room = min(most - len(missing), MAX_COLORS + 1)  # all colors, and a line for the rest
    fits = len(classes.names) <= min(room, MAX_COLORS)
    shown = classes.largest.tolist()[: len(classes.names) if fits else max(1, room - 1)]
    shown.sort(key=lambda code: _natural(classes.names[code]))
    named = [(shorten(classes.names[code]), classes.colors[code]) for code in shown]
    rest = len(classes.names) - len(shown)
    return [*named, *missing, *([(f"and {rest:,} smaller class{'es' if rest > 1 else ''}", None)] if rest else [])]


def _natural(name: str) -> list[tuple[float, str]]:
    """Order "cluster 2" before "cluster 10"."""
    return [(float(part), "") if part.isdecimal() else (math.inf, part) for part in re.split(r"(\d+)", name) if part]


def shorten(name: str, width: int = NAME_WIDTH) -> str:
    """Shorten a name in its middle, since names often differ at their ends.

    >>> shorten("a long name of a class, number 1", 20)
    'a long name o…mber 1'
    """
    line = " ".join(name.split())
    if len(line) <= width:
        return line
    end = (width - 1) // 3
    return f"{line[: width - 1 - end].rstrip()}…{line[len(line) - end :].lstrip()}"
