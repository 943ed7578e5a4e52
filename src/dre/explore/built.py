"""From places and rows to all that a page shows: columns, scores of every stage, trust in every point, images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dre.data.subsample import FEWEST, SCORED, evenly_spaced_ids, vectors
from dre.explore.columns import Column, column, scale
from dre.explore.page import Explorer, Stage
from dre.explore.thumbnails import Shaped, check_pillow, images_of, thumbnails
from dre.explore.trust import OTHERS, WHOLE, trust_of_points
from dre.metrics.evaluation import quick_scores
from dre.plot.style import DARK, LIGHT

Array = np.ndarray[Any, Any]
PICTURED = 100_000  # rows up to which their images are put into a page
HELD = 1_000_000  # points up to which a page can be opened with ease
TRUST = "trust"


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
    maps = [(told, places[:, :2]) for told, places in stages]
    n = len(maps[-1][1])
    pictured = check_rows(n, rows, images)
    columns = [column(name, values) for name, values in (metadata or {}).items()]
    trusted = trust and rows is not None and n >= FEWEST
    colour = _first(colour, columns, trusted)
    some = evenly_spaced_ids(n, SCORED)
    scored = vectors(rows, some) if rows is not None and n >= FEWEST else None
    classes = _classes(colour, columns, some)
    made = [Stage(told, places, quick_scores(scored, places[some], classes) if n >= FEWEST else {}) for told, places in maps]
    notes = [f"Scores of {len(some):,} of the points."] if any(stage.scores for stage in made) else []
    if trusted:
        columns.append(_trust(rows, maps[-1][1]))
        notes.append(f"{TRUST}: how far a point's neighbours in the last stage are its neighbours in the data; 1 if all are.")
        notes += [f"It is that among {OTHERS:,} of the points."] if n > WHOLE else []
    if pictured is None and rows is not None and images is not False and n > PICTURED:
        notes.append(f"The images of more than {PICTURED:,} points would make the page too large to open.")
    said = None if names is None else np.asarray(names).astype(str).tolist()
    return Explorer(title, made, columns, said, thumbnails(pictured) if pictured is not None else None, colour, notes)


def check_rows(n: int, rows: Any, images: bool | tuple[int, ...]) -> Shaped | None:
    """Whether a page can hold so many, and their images, if there are any to show."""
    if n > HELD:
        raise ValueError(f"{n:,} points are too many for a page, which holds {HELD:,}: map some of them, or use an atlas")
    if rows is None or images is False:
        return None
    found = images_of(rows, images if isinstance(images, tuple) else None)
    if found is None or n > PICTURED:
        return None
    check_pillow()
    return found


def _first(colour: str | None, columns: list[Column], trusted: bool) -> str | None:
    """The column that was asked for, or one with classes, or any."""
    names = [*(each.name for each in columns), *([TRUST] if trusted else [])]
    if colour is not None and colour not in names:
        raise ValueError(f"colour {colour}: no such column; there are {', '.join(names) or 'none'}")
    usable = [each.name for each in columns if each.tells_apart]
    return colour or next(iter([*usable, *names]), None)


def _classes(colour: str | None, columns: list[Column], some: Array) -> tuple[str, Array] | None:
    """By which maps are scored: those that colour the points, or the first."""
    usable = {each.name: each.values[some] for each in columns if each.tells_apart}
    name = colour if colour in usable else next(iter(usable), None)
    return None if name is None else (name, usable[name])


def _trust(rows: Any, places: Array) -> Column:
    values = trust_of_points(vectors(rows), places)
    low = min(float(np.quantile(values, 0.02)), 0.999)
    made = scale(TRUST, values, low=low, high=1.0, colours=list(reversed(LIGHT.distortion)))
    return replace(made, dark=list(reversed(DARK.distortion)), low_on_top=True)
