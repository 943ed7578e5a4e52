"""Scores of maps as a table: what each of them says in a few words, and what would be best."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from typing import Any

WORDS = {  # by the name of the measure: the best value, and when it is reached
    "nearest_neighbor": (1, "the nearest point has the label"),
    "neighborhood_hit": (1, "neighbours share their label"),
    "trustworthiness": (1, "no neighbour was invented"),
    "continuity": (1, "no neighbour was torn away"),
    "shepard_goodness": (1, "distances keep their order"),
    "normalized_stress": (0, "distances keep their size"),
    "silhouette": (1, "labels are dense and far apart"),
    "centroid_correlation": (1, "labels keep their distances"),
}
VALUE, BEST = 9, 6  # widths of columns


def table(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each measure, and a column for each map, by its title."""
    names = [name for name in next(iter(scores.values())) if name in WORDS]
    wide = max(map(len, names))
    head = " " * wide + "".join(f"{title:>{VALUE}s}" for title in scores) + f"{'best':>{BEST}s}"
    lines = []
    for name in names:
        best, words = WORDS[name]
        values = "".join(f"{_written(each[name]):>{VALUE}s}" for each in scores.values())
        lines.append((f"{name:<{wide}s}{values}{best:>{BEST}d}", words))
    width = max(len(line) + 2 + len(words) for line, words in lines)
    between = "  " if width <= shutil.get_terminal_size().columns else "\n    "  # many maps leave no room beside them
    return "\n".join([head, *(f"{line}{between}{words}" for line, words in lines)])


def _written(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "–"
