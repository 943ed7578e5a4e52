"""Hits at several levels of labels: of our maps, and of published maps of cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from dre.compare.plan import Table
from paper.report.reading import Place, Reader
from paper.report.wording import number

PUBLISHED_MAPS = "tasic-maps.json"  # what benchmarks/tasic_maps.py writes
ABOUT = "Neighbourhood hit on the test rows, k = 7, the point counted among its own neighbours; mean over the seeds."
BY_LEVEL = "neighborhood_hit_by_level"


@dataclass(frozen=True)
class Levels:
    """A small table: a row per method or map, a column per level."""

    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def levels_of_tables(reader: Reader) -> list[Levels]:
    """One for each data set whose records have hits at several levels."""
    found: dict[str, Levels] = {}
    for table in reader.plans.tables:
        for data in table.data if "neighborhood_hit" in table.scores else ():
            lines = dict(_lines(table, data, reader))
            if lines and data not in found:
                names = list(next(iter(lines.values())))
                rows = tuple((title, *(number(hits[name]) for name in names)) for title, hits in lines.items())
                found[data] = Levels(reader.plans.data[data].title, ABOUT, ("method", *names), rows)
    return list(found.values())


def _lines(table: Table, data: str, reader: Reader) -> Iterator[tuple[str, dict[str, float]]]:
    for method in table.methods:
        told = reader.plans.methods[method]
        reading = reader.read(table, Place(data, method, "neighborhood_hit"))
        stages = [record["stages"][-1 if told.stage is None else told.stage] for record in reading.records]
        hits = [stage["scores"][BY_LEVEL] for stage in stages if BY_LEVEL in stage.get("scores", {})]
        if hits:
            title = f"{told.title} (in-sample)" if reading.in_sample else told.title
            yield title, {name: fmean(each[name] for each in hits) for name in hits[0]}


def published_maps(folder: Path) -> Levels | None:
    """Of the maps that others computed of the RNA-Seq cells, if their scores are there."""
    path = folder / PUBLISHED_MAPS
    if not path.is_file():
        return None
    content = json.loads(path.read_text())
    results: dict[str, dict[str, float]] = content["results"]
    names = list(next(iter(results.values())))
    rows = tuple((name, *(number(hits[level]) for level in names)) for name, hits in results.items())
    about = f"Neighbourhood hit as above, of maps that others computed of these cells and published; {content['command']}."
    return Levels("Published maps of the RNA-Seq cells", about, ("map", *names), rows)
