"""Where the map lies: points whose neighbours it invented, and points it tore from theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dre.metrics.evaluation import Evaluation
from dre.plot.look import Style, bare, panels, style_of
from dre.plot.scatter import flat
from dre.plot.shaded import bar, shaded

SAYS = {"trustworthiness": "neighbours that the map invented", "continuity": "torn from its true neighbours"}


def where_it_lies(Y: Any, result: Evaluation | Mapping[str, Any], *, note: str = "", style: str | Style = "light") -> Any:
    """Draw the map Y twice, coloured by the trustworthiness and by the continuity of every point. Gives the figure.

    ``result`` is what ``evaluate(X, Y)`` gave, or the values of every point by these names. The worst points are drawn last.
    ``note`` is written below: which rows these are, say.

    >>> import numpy as np
    >>> from dre.metrics import evaluate
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> figure = where_it_lies(X[:, :2], evaluate(X, X[:, :2]))
    """
    places, look = flat(Y), style_of(style)
    per_point = result.per_point if isinstance(result, Evaluation) else result
    if any(np.ndim(per_point[name]) == 0 for name in SAYS if name in per_point):
        raise TypeError("these are the scores of the whole map; pass the result of evaluate itself, not dict(result)")
    shown = [name for name in SAYS if name in per_point]
    if not shown:
        raise ValueError(f"the result has none of {', '.join(SAYS)}: pass what evaluate(X, Y) gave")
    figure, axes = panels(len(shown), 5.8, 5.4, style=look)
    for axis, name in zip(axes, shown, strict=True):
        values = np.asarray(per_point[name])
        if values.shape != (len(places),):
            raise ValueError(f"{name} has the shape {values.shape} and the map {len(places)} rows: these are different maps")
        dots = shaded(axis, places, values, best=1.0, worst=min(float(np.quantile(values, 0.02)), 0.999), style=look)
        bare(axis, f"{name} {values.mean():.3f}\n{look.wrong}: {SAYS[name]}", look)
        bar(dots, axis, "", beyond="min", style=look)
    if note:
        figure.supxlabel(note, color=look.ink, fontsize=9)
    return figure
