"""--labels of a command, by name: those that are classes are scored, numbers and dates are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dre.cli.data import split_labels
from dre.cli.echo import echo
from dre.io.readers.source import Source
from dre.metrics.inputs import has_label
from dre.plot.colors import is_continuous
from dre.plot.kinds import as_dates
from dre.progress.counted import agreeing, counted

Array = np.ndarray[Any, Any]


def split_classes(source: Source, labels: Sequence[str]) -> tuple[Source, dict[str, Array]]:
    """Separate the features from all labels, and return those that are classes, by the name of the column or file.

    Numbers and dates are not scored as classes, and a message says so.
    """
    classes = {}
    for label in dict.fromkeys(labels):
        name = label if label in [*source.metadata, *(source.columns or [])] else Path(label).name
        source, values = split_labels(source, label)
        if is_continuous(values, name):
            kind = "numbers" if as_dates(values) is None else "dates"
            echo(f"dre: {name} holds {kind}, not classes, and is not scored", err=True)
        else:
            classes[name] = values
    return source, classes


def labeled_rows(classes: dict[str, Array], n: int) -> Array:
    """Positions of the rows that have every label; the number of the others is printed."""
    labeled = np.ones(n, dtype=bool)
    for values in classes.values():
        labeled &= has_label(values)
    if not labeled.all():
        count = int((~labeled).sum())
        rows, are = counted(count, "row", "have"), agreeing(count, "are")
        which = "" if len(classes) == 1 else f" of {' or '.join(classes)}"
        echo(f"dre: {rows} no label{which} and {are} not scored", err=True)
    return np.flatnonzero(labeled)
