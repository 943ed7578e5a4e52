"""Loss of a training run, a panel per stage: losses of different targets are not comparable, so each has its own scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import fill
from typing import Any

import numpy as np

from dre.plot.fonts import set_figure_fonts
from dre.plot.style import Style, get_style, panels, plot_axes

Array = np.ndarray[Any, Any]
MIN_WIDTH = 0.4  # of a panel, relative to the widest: short stages stay readable
LETTERS_PER_INCH = 12  # of a title in small letters
LOG_FROM = 30  # ratio of the largest to the smallest loss from which the axis is logarithmic


def history(
    records: Sequence[dict[str, Any]],
    schedule: Any = None,
    *,
    against: str = "epoch",
    title: str = "",
    style: str | Style = "light",
    size: float | None = None,
) -> Any:
    """Draw the loss of a training run, with a panel per stage whose width shows its length.

    Parameters
    ----------
    records : sequence of dict
        ``model.history_``.
    schedule : Schedule, default=None
        ``model.schedule_``; adds the affinity and the loss of each stage to its title.
    against : {"epoch", "seconds"}, default="epoch"
        Horizontal axis: epochs of the run, or seconds spent in epochs.
    title : str, default=""
    style : {"light", "dark"} or Style, default="light"
    size : float, default=None
        Width in inches. None lets it grow with the number of stages.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> figure = history([{"stage": 0, "source": "x", "epoch": i, "loss": 1 / (i + 1), "seconds": 1.0} for i in range(5)])
    """
    if not records:
        raise ValueError("there are no epochs to draw; pass the history_ of a fitted model")
    if against not in ("epoch", "seconds"):
        raise ValueError(f"against={against!r}; expected 'epoch' or 'seconds'")
    theme = get_style(style)
    ends = np.cumsum([record["seconds"] if against == "seconds" else 1 for record in records])
    parts = [(stage, list(each)) for stage, each in groupby(range(len(records)), lambda i: int(records[i]["stage"]))]
    size = size or max(8.0, 2.2 * len(parts))
    shares = _width_shares(ends, [rows for _, rows in parts])
    figure, axes = panels(len(parts), size / len(parts), min(4.5, 0.5 * size), style=theme)
    axes[0].get_gridspec().set_width_ratios(shares)
    for axis, (stage, rows), share in zip(axes, parts, shares, strict=True):
        losses = np.array([records[i]["loss"] for i in rows], dtype=float)
        plan = "" if schedule is None else f"{schedule[stage].affinity} → {schedule[stage].loss}"
        lines = (f"stage {stage} · {records[rows[0]]['source']}", plan, f"loss {losses[-1]:.3g}")
        _draw_stage(axis, ends[rows], losses, lines, inches=share * size, style=theme)
    axes[0].set_ylabel("loss", color=theme.text)
    figure.supxlabel("seconds in epochs" if against == "seconds" else "epoch of the run", color=theme.text, fontsize=10)
    if title:
        figure.suptitle(title, color=theme.text, fontsize=12)
        set_figure_fonts(figure)
    return figure


def _draw_stage(axis: Any, times: Array, losses: Array, lines: Sequence[str], *, inches: float, style: Style) -> None:
    axis.plot(times, losses, color=style.accent, linewidth=1.8, marker="o" if len(times) < 3 else None, markersize=4)
    width = max(12, int(LETTERS_PER_INCH * inches))
    plot_axes(axis, "\n".join(fill(line, width) for line in lines if line), "", "", style)
    axis.title.set_fontsize(9.5)
    if losses.min() > 0 and losses.max() > LOG_FROM * losses.min():
        axis.set_yscale("log")
    if len(times) > 2:
        axis.xaxis.set_major_locator(_integer_ticks(max(2, int(0.9 * inches))))
    else:
        axis.set_xticks(times)


def _width_shares(ends: Array, stages: list[list[int]]) -> Array:
    """Divide the width by the length of the stages, with a minimum."""
    lengths = np.array([ends[rows[-1]] - (ends[rows[0] - 1] if rows[0] else 0) for rows in stages], dtype=float)
    wide = np.maximum(lengths / lengths.max(), MIN_WIDTH)
    shares: Array = wide / wide.sum()
    return shares


def _integer_ticks(count: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count, integer=True, steps=[1, 2, 5, 10])
