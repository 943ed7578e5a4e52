"""--beside OTHER: another map of the same rows, from a model or a file of coordinates, in the order of the first one."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dre.cli.map import is_model, load_map, match_points, open_rows, read_coordinates
from dre.cli.options import UsageError
from dre.io.readers.source import Source

if TYPE_CHECKING:
    from dre.cli.map import LoadedMap
    from dre.io.readers import ReadOptions

Array = np.ndarray[Any, Any]
Stages = list[tuple[str, Array]]


def load_beside(
    others: Sequence[str],
    first: str,
    loaded: LoadedMap,
    source: Source | None,
    data: str | None,
    options: ReadOptions,
    device: str,
) -> dict[str, Stages]:
    """Load the other maps, by title. Rows are matched by name where both maps have names, else by position.

    Parameters
    ----------
    others : sequence of str
        Models, which embed DATA, or files of coordinates.
    first : str
        Title of the first map, which no other gets.
    loaded : LoadedMap
        The first map.
    source : Source or None
        The rows of DATA, of which a file of coordinates may hold more.
    data : str or None
        DATA, which a model reads.
    options : ReadOptions
        How DATA is read.
    device : str

    Returns
    -------
    dict of str to list of (title, array of shape (n, components))
        The stages of each map.

    Raises
    ------
    UsageError
        If the rows of a map are not those of the first one.
    """
    rows = source if source is not None else Source(loaded.embedding, names=loaded.names, dropped=loaded.dropped)
    whose = "MAP" if source is None else "DATA"
    found: dict[str, Stages] = {}
    for other in others:
        if is_model(other):
            stages = _of_model(other, data, options, device)
        else:
            stages = [(other, *read_coordinates(other, allow_external=options.allow_external))]
        matched = [(title, match_points(other, points, table, rows, whose=whose).embedding) for title, points, table in stages]
        found[_new_title(Path(other).stem, [first, *found])] = matched
    return found


def _of_model(name: str, data: str | None, options: ReadOptions, device: str) -> list[tuple[str, Array, Source]]:
    """The stages of a model: their titles, their points, and the names of these."""
    if data is None:
        raise UsageError(f"--beside {name} is a model and needs rows to embed: add DATA after MAP")
    opened = open_rows(name, data, replace(options, categories=False), device, tell="none")
    other = load_map(name, *opened, every_stage=True)
    named = Source(other.embedding, names=other.names, dropped=other.dropped)
    return [(title, stage, named) for title, stage in zip(other.short_titles, other.stages, strict=True)]


def _new_title(title: str, taken: Container[str]) -> str:
    return next(each for each in chain([title], (f"{title} {i}" for i in count(2))) if each not in taken)
