"""From a table to a source: rows of its features, all other columns as metadata, and what to say about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dre.data.mixed_table import MANY
from dre.io.readers.features import (
    DROPPED,
    NAMES,
    choice_messages,
    choose,
    count_values,
    dropped_message,
    features_of,
    fill_message,
    mixed_units,
)
from dre.io.readers.missing import Completed, complete
from dre.io.readers.mixed import mixed_source, needs_preparation
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import Array, Source, SourceError, summarize_names
from dre.io.readers.table import BOOLEAN, TEXT, Table
from dre.progress.counted import agreeing, counted

FAR = 1000  # times the interquartile range from the median: a value that no measurement has


def source_of(table: Table, options: ReadOptions | None = None) -> Source:
    """The rows of a table by its features, with all other columns as metadata."""
    options = options or ReadOptions()
    chosen = choose(table, options)
    if needs_preparation(table, chosen, options):
        mixed = mixed_source(table, chosen, options)
        return replace(mixed, messages=[*mixed.messages, *_repeated_names(options.id, mixed.names)])
    names = list(options.features) or chosen.features
    if not names:
        reasons = ", ".join(f"{name!r} ({reason})" for name, reason in chosen.reasons.items())
        categories = any(column.kind in (TEXT, BOOLEAN) and count_values(column) <= MANY for column in table.columns)
        hint = ".\nPass categories=True to use texts of few values" if categories and not options.categories else ""
        raise SourceError(
            f"{table.path} has no column of numbers that can be a feature: {reasons or 'it has no columns'}{hint}"
        )
    title = chosen.names or NAMES
    row_names = table.names if chosen.names is None else table[chosen.names].as_names()
    found = complete(replace(table, names=row_names), names, features_of(table, names, options), options.missing, options.fill)
    kept = slice(None) if found.dropped is None else found.dropped.kept
    metadata = {name: table[name].as_metadata()[kept] for name, reason in chosen.reasons.items() if reason != DROPPED}
    metadata.pop(title, None)
    return Source(
        found.values,
        names if table.has_header else None,
        None if row_names is None else row_names[kept],
        metadata,
        [
            *([] if options.features else choice_messages(table, chosen)),
            *fill_message({name: found.fill[name] for name in found.filled}, len(found.values), found.filled),
            *([] if options.features else _outliers(table, names, found)),
            *_repeated_names(options.id, row_names),
            *dropped_message(found.dropped),
        ],
        title,
        found.fill,
        found.dropped,
        mixed_units(names, found.values) if table.has_header or len(names) > 1 else None,
        cautions=_own_fill(found, options),
        filled=found.filled,
    )


def _outliers(table: Table, names: Sequence[str], found: Completed) -> list[str]:
    """A line that names a value far from all others of its column, which it would squeeze together."""
    values = found.values
    low, middle, high = np.percentile(values, [25, 50, 75], axis=0)
    apart = np.abs(values - middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(high > low, apart.max(0) / (high - low), 0)
    worst = int(ratio.argmax())
    if ratio[worst] < FAR or names[worst] not in table:
        return []
    row = int(apart[:, worst].argmax())
    line = row if found.dropped is None else int(np.flatnonzero(found.dropped.kept)[row])
    where = f"{table.place(line, names[worst])} is {values[row, worst]:.4g}"
    return [f"{where}, {ratio[worst]:,.0f} times as far from the middle as usual: it squeezes all others together"]


def _repeated_names(title: str | None, names: Array | None) -> list[str]:
    if title is None or names is None or len(set(names.tolist())) == len(names):
        return []
    count = len(names) - len(set(names.tolist()))
    return [f"{counted(count, 'value')} of {title!r} {agreeing(count, 'occur')} more than once: a join by them repeats rows"]


def _own_fill(found: Completed, options: ReadOptions) -> list[str]:
    """A line if gaps are filled in without the values of the fit, which did not store any."""
    own = [name for name in found.filled if name not in options.fill] if options.features else []
    if not own:
        return []
    return [f"missing values of {summarize_names(own)} are filled in by the {options.missing} of these rows, not of the fit"]
