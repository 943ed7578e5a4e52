"""Canvases of the report's pictures: sheets, grids of panels, and colors."""

from __future__ import annotations

import textwrap
from typing import Any

from dre.plot.style import ACCENT, BACKGROUND, TEXT
from paper.panels import frame
from paper.report.rendering import needed

QUIET, EDGE, EMPTY = "#5c6370", "#3b4250", "#f3f4f6"  # secondary text, outlines, empty panels
GREEN, VIOLET, RUST = "#4a9d7c", "#8a6fb0", "#b0532f"
# Parts of a network: the input, the features, the blocks that recursions read, and the output.
PARTS = {"x": "#e3e6eb", "features": "#bcd3ee", "h": "#f6d39b", "out": "#e59384"}
AFTER = {"ReLU": ACCENT, "batch norm": GREEN, "layer norm": VIOLET}  # what follows a layer
LANES = (ACCENT, RUST, GREEN, VIOLET)  # stages of the schematic, in order
# A grid, in inches.
PANEL, GAP = 2.0, 0.1
LEFT, LEGEND, MARGIN = 0.42, 1.35, 0.08
TITLE, SCORE = 0.17, 0.19  # heights of a line of a title and of the scores
NAMED_UP_TO = 36  # classes; a longer legend does not fit


def canvas(width: float, height: float) -> Any:
    """Return an empty matplotlib figure, in inches, outside of pyplot."""
    return needed("matplotlib.figure").Figure(figsize=(width, height), facecolor=BACKGROUND)


def one_sheet(size: tuple[float, float], *, scale: float = 1.0, bottom: float = 0.0) -> tuple[Any, Any]:
    """Return a figure and the axis that fills it; ``size`` is in drawing units of ``scale`` inches."""
    width, height = size
    figure = canvas(width * scale, height * scale)
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_xlim(0, width)
    axis.set_ylim(bottom, bottom + height)
    axis.set_axis_off()
    return figure, axis


def tint(part: str) -> str:
    """Return the color of a part of a network; h1, h2, … share one.

    >>> tint("h1") == tint("h3") != tint("out")
    True
    """
    return PARTS["h" if part.startswith("h") else part]


class Grid:
    """Square panels in rows, in inches: a title at the left, titles above, a legend at the right. Rows are added downwards."""

    def __init__(self, lines: int, columns: int) -> None:
        self._columns = columns
        self._tallest = lines * (PANEL + 3 * TITLE + SCORE + GAP) + 2 * MARGIN
        self._width = LEFT + columns * (PANEL + GAP) + LEGEND
        self._figure = canvas(self._width, self._tallest)
        self._used = MARGIN  # inches from the top
        self._line_top = 0.0

    def add_line(self, title: str, titles: list[str], scores: list[str]) -> list[Any]:
        """Add a row of panels; return as many axes as there are titles or scores, or a full row."""
        count = len(titles) or len(scores) or self._columns
        wrapped = [textwrap.wrap(text, 25) or [""] for text in titles]
        deepest = max((len(lines) for lines in wrapped), default=0)
        self._used += deepest * TITLE + (SCORE if any(scores) else 0)
        self._line_top = self._used
        axes = [self._axes(LEFT + i * (PANEL + GAP), PANEL, PANEL) for i in range(count)]
        for axis, lines in zip(axes, wrapped, strict=False):
            above = (SCORE if any(scores) else 0) + 0.07
            self._over(axis, above, "\n".join(lines), fontsize=8.5, fontweight="bold", color=TEXT)
        for axis, text in zip(axes, scores, strict=False):
            self._over(axis, 0.07, text, fontsize=7.5, color=QUIET)
        middle = 1 - (self._line_top + PANEL / 2) / self._tallest
        self._figure.text(
            0.18 / self._width, middle, _balanced(title, 28), rotation=90, ha="center", va="center",
            fontsize=9, fontweight="bold", color=TEXT,
        )  # fmt: skip
        self._used += PANEL + GAP
        return axes

    def add_legend(self, names: list[str], colors: list[Any]) -> None:
        """Add a legend to the last row."""
        axis = self._axes(LEFT + self._columns * (PANEL + GAP), LEGEND - MARGIN, PANEL)
        axis.set_axis_off()
        if len(names) > NAMED_UP_TO:
            axis.text(0.02, 0.98, f"{len(names)} classes", va="top", fontsize=8, color=TEXT, transform=axis.transAxes)
            return
        from matplotlib.lines import Line2D

        size, columns = (7.5, 1) if len(names) <= 12 else (5.5, 1) if len(names) <= 20 else (4.5, 2)
        dots = [Line2D([], [], linestyle="", marker="o", markersize=size / 1.6, color=color) for color in colors]
        longest = {1: 24, 2: 14}[columns]
        texts = [textwrap.shorten(name, longest, placeholder="…") if len(name) > longest else name for name in names]
        axis.legend(
            dots, texts, loc="upper left", bbox_to_anchor=(0, 1.02), frameon=False, fontsize=size, ncols=columns,
            handletextpad=0.3, labelspacing=0.35, columnspacing=0.6, handlelength=1, borderaxespad=0, labelcolor=TEXT,
        )  # fmt: skip

    def finish(self) -> Any:
        """Return the figure, cropped at the bottom."""
        height = self._used - GAP + MARGIN
        share = self._tallest / height
        for axis in self._figure.axes:
            box = axis.get_position()
            axis.set_position((box.x0, 1 - (1 - box.y0) * share, box.width, box.height * share))
        for text in self._figure.texts:
            x, y = text.get_position()
            text.set_position((x, 1 - (1 - y) * share))
        self._figure.set_size_inches(self._width, height)
        return self._figure

    @staticmethod
    def add_text(axis: Any, text: str) -> None:
        """Show a text in place of an embedding."""
        frame(axis)
        axis.set_facecolor(EMPTY)
        axis.set_aspect("auto")
        wrapped = "\n".join(textwrap.wrap(text, 26)[:8])
        axis.text(0.5, 0.5, wrapped, ha="center", va="center", fontsize=7.5, color=QUIET, transform=axis.transAxes)

    def _axes(self, left: float, width: float, height: float) -> Any:
        bottom = 1 - (self._line_top + height) / self._tallest
        return self._figure.add_axes((left / self._width, bottom, width / self._width, height / self._tallest))

    @staticmethod
    def _over(axis: Any, inches: float, text: str, **look: Any) -> None:
        axis.text(0.5, 1 + inches / PANEL, text, ha="center", va="baseline", transform=axis.transAxes, linespacing=1.05, **look)


def _balanced(text: str, longest: int) -> str:
    """Wrap a text into lines of similar length.

    >>> _balanced("Fashion-MNIST, training rows of all", 28)
    'Fashion-MNIST,\\ntraining rows of all'
    """
    lines = -(-len(text) // longest)
    width = max(1, len(text) // lines + 3)
    while len(textwrap.wrap(text, width)) > lines:  # long words
        width += 1
    return "\n".join(textwrap.wrap(text, width))
