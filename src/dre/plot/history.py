"""The loss of a run, stage by stage: each on its own scale, as losses of different targets can't be compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import fill
from typing import Any

import numpy as np

from dre.plot.look import Style, panels, plain, style_of

Array = np.ndarray[Any, Any]
NARROWEST = 0.4  # of the widest panel: a stage of few epochs is to be seen too
LETTERS = 12  # of a title, in an inch
LOGARITHMIC = 30  # times as large as its smallest: the rest would lie on the axis


def history(
    records: Sequence[dict[str, Any]],
    schedule: Any = None,
    *,
    against: str = "epoch",
    title: str = "",
    style: str | Style = "light",
    size: float | None = None,
) -> Any:
    """Draw ``model.history_``: a panel per stage, as wide as it is long; below, the epochs of the run. Gives the figure.

    With ``schedule``, ``model.schedule_``, it says what each stage was to match. ``against="seconds"`` shows time instead, that
    of the epochs alone. ``size`` is the width in inches; by default it grows with the stages.

    >>> figure = history([{"stage": 0, "source": "x", "epoch": i, "loss": 1 / (i + 1), "seconds": 1.0} for i in range(5)])
    """
    if not records:
        raise ValueError("there are no epochs to draw: pass the history_ of a model that was fitted")
    if against not in ("epoch", "seconds"):
        raise ValueError(f"against={against!r}: expected 'epoch' or 'seconds'")
    look = style_of(style)
    ends = np.cumsum([record["seconds"] if against == "seconds" else 1 for record in records])
    parts = [(stage, list(each)) for stage, each in groupby(range(len(records)), lambda i: int(records[i]["stage"]))]
    size = size or max(8.0, 2.2 * len(parts))
    shares = _shares(ends, [rows for _, rows in parts])
    figure, axes = panels(len(parts), size / len(parts), min(4.5, 0.5 * size), style=look)
    axes[0].get_gridspec().set_width_ratios(shares)
    for axis, (stage, rows), share in zip(axes, parts, shares, strict=True):
        losses = np.array([records[i]["loss"] for i in rows], dtype=float)
        axis.plot(ends[rows], losses, color=look.accent, linewidth=1.8, marker="o" if len(rows) < 3 else None, markersize=4)
        plan = "" if schedule is None else f"{schedule[stage].affinity} → {schedule[stage].loss}"
        told = f"stage {stage} · {records[rows[0]]['source']}", plan, f"loss {losses[-1]:.3g}"
        room = max(12, int(LETTERS * share * size))
        plain(axis, "\n".join(fill(line, room) for line in told if line), "", "", look)
        axis.title.set_fontsize(9.5)
        if losses.min() > 0 and losses.max() > LOGARITHMIC * losses.min():
            axis.set_yscale("log")
        if len(rows) > 2:
            axis.xaxis.set_major_locator(_ticks(max(2, int(0.9 * share * size))))
        else:
            axis.set_xticks(ends[rows])
    axes[0].set_ylabel("loss", color=look.ink)
    figure.supxlabel("seconds in epochs" if against == "seconds" else "epoch of the run", color=look.ink, fontsize=10)
    if title:
        figure.suptitle(title, color=look.ink, fontsize=12)
    return figure


def _shares(ends: Array, stages: list[list[int]]) -> Array:
    """Of the width, for each stage: as it is long, but no less than can be read."""
    lengths = np.array([ends[rows[-1]] - (ends[rows[0] - 1] if rows[0] else 0) for rows in stages], dtype=float)
    wide = np.maximum(lengths / lengths.max(), NARROWEST)
    shares: Array = wide / wide.sum()
    return shares


def _ticks(count: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count, integer=True, steps=[1, 2, 5, 10])
