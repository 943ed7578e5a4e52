"""What the pictures of the report are drawn on and with: the paper, and the colours of their lines, texts and parts."""

from __future__ import annotations

from typing import Any

from dre.plot.style import ACCENT, PAPER
from paper.report.installed import needed

QUIET, EDGE, EMPTY = "#5c6370", "#3b4250", "#f3f4f6"  # of lesser texts, of outlines, of a panel without a map
GREEN, VIOLET, RUST = "#4a9d7c", "#8a6fb0", "#b0532f"
# Of the parts of a network: the input, the features, the blocks that recursions read, and the map.
PARTS = {"x": "#e3e6eb", "features": "#bcd3ee", "h": "#f6d39b", "out": "#e59384"}
AFTER = {"ReLU": ACCENT, "batch norm": GREEN, "layer norm": VIOLET}  # of what follows a layer
LANES = (ACCENT, RUST, GREEN, VIOLET)  # of the stages of a schematic, one after the other


def canvas(width: float, height: float) -> Any:
    """An empty matplotlib figure, in inches; it belongs to nobody's window."""
    return needed("matplotlib.figure").Figure(figsize=(width, height), facecolor=PAPER)


def one_sheet(size: tuple[float, float], *, scale: float = 1.0, bottom: float = 0.0) -> tuple[Any, Any]:
    """A figure and its one axis, which fills it: ``size`` in the units of the drawing, each ``scale`` inches."""
    width, height = size
    figure = canvas(width * scale, height * scale)
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_xlim(0, width)
    axis.set_ylim(bottom, bottom + height)
    axis.set_axis_off()
    return figure, axis


def tint(part: str) -> str:
    """Of a part of a network; h1, h2 and so on have the same.

    >>> tint("h1") == tint("h3") != tint("out")
    True
    """
    return PARTS["h" if part.startswith("h") else part]
