"""From places and rows to all that a page shows: columns, scores of every stage, trust in every point, images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dre.explore.columns import COLOURED, Column, column, scale
from dre.explore.page import Explorer, Stage
from dre.explore.scores import SCORED, scores
from dre.explore.thumbnails import Shaped, images_of, thumbnails
from dre.explore.trust import trust_of_points
from dre.plot.look import TROUBLE
from dre.sample import spread, vectors

Array = np.ndarray[Any, Any]
FEWEST = 20  # rows of which scores say something
PICTURED = 100_000  # rows up to which their images are put into a page
HELD = 1_000_000  # points up to which a page can be opened with ease
TRUST = "trust"
GLOWING = ["#ff5a52", "#f9894b", "#c79a63", "#5c5f68", "#3a3e48"]  # on a dark ground: what lies is bright, the rest recedes


def explorer(
    stages: Sequence[tuple[str, Array]],
    *,
    title: str,
    rows: Any = None,
    metadata: Mapping[str, Any] | None = None,
    names: Any = None,
    colour: str | None = None,
    trust: bool = True,
    images: bool | tuple[int, ...] = True,
) -> Explorer:
    """What `write_page` writes, of maps of the same rows: each with its title, the last one is the map that is seen first.

    ``rows`` are what was mapped: without them there are no scores of trust and no images. ``metadata`` has a value for
    every row by the names of columns. ``images=(28, 28)`` says that rows are images of this size, where their shape does not.
    """
    n = len(stages[-1][1])
    if n > HELD:
        raise ValueError(f"{n:,} points are too many for a page, which holds {HELD:,}: pass --atlas, or map some of them")
    columns = [column(name, values) for name, values in (metadata or {}).items()]
    colour = _first(colour, columns, trust and rows is not None)
    enough, some = n >= FEWEST, spread(n, SCORED)
    scored = vectors(rows, some) if rows is not None and enough else None
    classes = next(((each.name, each.values[some]) for each in columns if each.names and len(each.names) > 1), None)
    made = [Stage(told, places[:, :2], scores(scored, places[some], classes) if enough else {}) for told, places in stages]
    notes = [f"Scores of {len(some):,} of the points."] if any(stage.scores for stage in made) else []
    if trust and rows is not None and enough:
        columns.append(_trust(rows, stages[-1][1]))
        notes.append(f"{TRUST}: how far a point's neighbours in the last stage are its neighbours in the data; 1 if all are.")
    pictured = _images(rows, images) if rows is not None and images is not False else None
    if pictured is not None and n > PICTURED:
        notes.append(f"The images of more than {PICTURED:,} points would make the page too large to open.")
        pictured = None
    said = None if names is None else np.asarray(names).astype(str).tolist()
    return Explorer(title, made, columns, said, thumbnails(pictured) if pictured is not None else None, colour, notes)


def _first(colour: str | None, columns: list[Column], trusted: bool) -> str | None:
    """The column that was asked for, or one with classes, or any."""
    names = [*(each.name for each in columns), *([TRUST] if trusted else [])]
    if colour is not None and colour not in names:
        raise ValueError(f"--colour {colour}: no such column; there are {', '.join(names) or 'none'}")
    usable = [each.name for each in columns if each.names and 1 < len(each.names) <= COLOURED]
    return colour or next(iter([*usable, *names]), None)


def _trust(rows: Any, places: Array) -> Column:
    values = trust_of_points(vectors(rows), places)
    low = min(float(np.quantile(values, 0.02)), 0.999)
    made = scale(TRUST, values, list(reversed(TROUBLE)), low=low, high=1.0)
    return replace(made, dark=GLOWING, low_on_top=True)


def _images(rows: Any, wanted: bool | tuple[int, ...]) -> Shaped | None:
    return images_of(rows, wanted if isinstance(wanted, tuple) else None)
