"""The stage strip: the map after each stage, turned so that the eye can follow the points, with its scores beneath."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dre.data.subsample import FEWEST, evenly_spaced_ids, to_array
from dre.plot.colouring import Classes, colouring
from dre.plot.look import Style, panels, style_of
from dre.plot.sample import MOST, told
from dre.plot.scatter import flat, scatter

Array = np.ndarray[Any, Any]
IN_A_LINE = 5  # panels


def stages(
    maps: Sequence[Any],
    labels: Any = None,
    *,
    X: Any = None,
    titles: Sequence[str] = (),
    title: str = "",
    style: str | Style = "light",
    names: str = "auto",
    size: float = 4.0,
) -> Any:
    """Draw maps of the same rows side by side, from the first stage to the last. Gives the figure.

    Beneath each map its trustworthiness where the rows ``X`` are given, and its 1-NN accuracy and neighbourhood hit where
    labels are classes; beyond 10,000 rows those of 10,000, which is said. Each map is turned and mirrored, but neither scaled
    nor bent, so that it lies over the next; the last one stays as it is.

    >>> import numpy as np
    >>> Y = np.random.default_rng(0).normal(size=(30, 2))
    >>> figure = stages([Y, Y @ [[0, 1], [-1, 0]]], ["a", "b"] * 15, titles=["stage 0", "stage 1"])
    """
    if not len(maps):
        raise ValueError("there are no maps: pass one for each stage, such as model.transform(X, stage=0)")
    shown = turned([flat(each) for each in maps])
    look = style_of(style)
    called = list(titles) or [f"stage {i}" for i in range(len(shown))]
    if len(called) != len(shown):
        raise ValueError(f"{len(called)} titles for {len(shown)} maps: there must be one for each")
    scored = _Scored(X, labels, len(shown[0]))
    figure, axes = panels(len(shown), size, size + 0.6, in_a_line=IN_A_LINE, style=look)
    for axis, places, each in zip(axes, shown, called, strict=True):
        axis.set_xlabel(scored.caption(places), color=look.ink, fontsize=9.5)
        scatter(places, labels, title=each, ax=axis, style=look, names="none" if names == "legend" else names)
    if title:
        figure.suptitle(title, color=look.ink, fontsize=12)
    if scored.note:
        figure.supxlabel(scored.note, color=look.ink, fontsize=9)
    return figure


def turned(maps: list[Array]) -> list[Array]:
    """Each map laid over the one after it by a turn, a reflection and a shift; distances in it stay as they are."""
    done = [maps[-1]]
    for places in reversed(maps[:-1]):
        if places.shape != done[0].shape:
            raise ValueError(f"maps of {len(places):,} and of {len(done[0]):,} rows: all stages must be of the same rows")
        own, next_ = (each.mean(0, dtype=np.float64) for each in (places, done[0]))
        left, _, right = np.linalg.svd((places - own).T @ (done[0] - next_))
        done.insert(0, (places - own) @ (left @ right) + next_)
    return done


class _Scored:
    """What is said of each map: by the same rows, which are read once."""

    def __init__(self, X: Any, labels: Any, n: int) -> None:
        coloured = colouring(labels, n)
        self._ids = evenly_spaced_ids(n, MOST)
        codes = coloured.codes[self._ids] if isinstance(coloured, Classes) else None
        self._codes = codes if codes is not None and codes.min() >= 0 and len(np.unique(codes)) < len(codes) else None
        self._rows = None if X is None else to_array(X, self._ids)
        self._enough = len(self._ids) >= FEWEST
        anything = self._enough and (self._rows is not None or self._codes is not None)
        self.note = f"scores {of}" if (of := told(len(self._ids), n)) and anything else ""

    def caption(self, places: Array) -> str:
        from dre.metrics import nearest_neighbor, neighborhood_hit, trustworthiness

        own = places[self._ids]
        lines = []
        if self._enough and self._codes is not None:
            lines.append(f"1-NN {nearest_neighbor(own, self._codes):.3f}  hit {neighborhood_hit(own, self._codes):.3f}")
        if self._enough and self._rows is not None:
            lines.append(f"trustworthiness {trustworthiness(self._rows, own):.3f}")
        return "\n".join(lines)
