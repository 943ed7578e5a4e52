"""Which columns of a table are features, and why the others are not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dre.data.mixed_table import MANY, MOST, is_called_id
from dre.data.units import DominantColumns, dominant_columns
from dre.io.readers.not_numbers import WITH_COMMAS, check_features, has_decimal_commas, malformed_error
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import Array, DroppedRows, SourceError, summarize_names
from dre.io.readers.table import BOOLEAN, DATE, EMPTY, NUMBER, TEXT, Table, TableColumn
from dre.notation import unknown
from dre.progress.counted import agreeing, counted

COORDINATE = re.compile(r"dre\d+", re.IGNORECASE)  # columns of a map that dre has written
NUMBER_NAME = re.compile(r".*(?:nummer|[\s_.-](?:nr|no|number)\.?)")  # in lower case; of an id if nearly all values differ
MOSTLY_DIFFERENT = 0.9  # of the values of a column of numbers that name rows
FEWEST = 20  # rows from which it tells something that all their values differ
EVEN, EVEN_OF_FEW = 0.1, 1.2  # largest distance from evenly spread integers, as a share of their range; of n rows, by √n
NAMES = "name"  # title of the names of rows that have none
DROPPED, CONSTANT, LABELS = "dropped", "constant", "labels"
ROW_NAMES, UNWANTED, BESIDE = "names of the rows", "not among the columns", "beside the coordinates"
SERIES = 16  # columns with numbered names that belong together, such as pixels, from which none is left out alone
MOST_UNITS = 100  # columns: wider tables are spectra, genes or pixels, in one unit


@dataclass(frozen=True)
class Chosen:
    """Features of a table by name, and the reason for each column that is none."""

    features: list[str]
    reasons: dict[str, str] = field(default_factory=dict)
    names: str | None = None  # the column with the names of the rows


def choose(table: Table, options: ReadOptions | None = None) -> Chosen:
    """The features of an earlier table, or else those that the columns and the user's choices make."""
    options = options or ReadOptions()
    if options.features:
        return _as_before(table, options)
    chosen = _by_rules(table, options)
    for name, found in table.malformed.items():
        if chosen.reasons.get(name) not in SET_ASIDE:
            raise malformed_error(table, found, options)
    return chosen


def _by_rules(table: Table, options: ReadOptions) -> Chosen:
    """Numbers that are neither constant nor identify the rows are features, unless the options say otherwise."""
    known = [column.name for column in table.columns]
    wanted, dropped = expand(options.columns, known), set(expand(options.drop, known))
    labels = {name for name in options.labels if name in known}  # others may be files
    names = options.id
    if names is not None and names not in known:
        raise SourceError(f"{table.path}: {unknown('column', names, known)}")
    numbered = _numbered(known)
    axes = [name for name in known if options.coordinates and COORDINATE.fullmatch(name)]
    features, reasons = [], {}
    for column in table.columns:
        if column.name in dropped:
            reason: str | None = DROPPED
        elif column.name in labels:
            reason = LABELS
        elif column.name == names:
            reason = ROW_NAMES
        elif wanted:
            reason = _wanted_reason(table, column, options) if column.name in wanted else UNWANTED
        else:
            reason = _usual_reason(table, column, options, numbered, axes)
        if reason is None:
            features.append(column.name)
        else:
            reasons[column.name] = reason
    if names is None and table.names is None:
        names = next((name for name, reason in reasons.items() if reason in IDENTIFYING and _is_complete(table[name])), None)
    return Chosen(features, reasons, names)


def _wanted_reason(table: Table, column: TableColumn, options: ReadOptions) -> str | None:
    """Why a column that the user names is not a feature; None if it is one. Within a range, such a column is left out."""
    if column.name in table.malformed:
        raise malformed_error(table, table.malformed[column.name], options)
    is_named = column.name in options.columns
    most = MOST if is_named else MANY
    reason = WITH_COMMAS if has_decimal_commas(table, column) else _unusable(column, options.categories, most)
    if reason and is_named:
        can_be = not options.categories and _unusable(column, categories=True, most=most) is None
        remedy = "; pass categories=True" if can_be else ""
        raise SourceError(f"{table.path}: the column {column.name!r} cannot be a feature: {reason}{remedy}")
    return reason


def _usual_reason(
    table: Table, column: TableColumn, options: ReadOptions, numbered: Container[str], axes: Sequence[str]
) -> str | None:
    """Why a column that nobody names is not a feature; None if it is one."""
    reason = WITH_COMMAS if has_decimal_commas(table, column) else _reason(column, options.categories)
    if (reason == CONSTANT and column.name in numbered) or (options.coordinates and reason in (CONSTANT, UNIQUE_INTEGERS)):
        reason = None
    if not axes:
        return reason
    if column.name in axes:
        return None
    return BESIDE if reason is None or column.name in table.malformed else reason


def expand(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names of columns, where ``"c-f"`` stands for all from c to f.

    >>> expand(["a", "c-e"], list("abcdef"))
    ['a', 'c', 'd', 'e']
    """
    found: list[str] = []
    for each in wanted:
        first, dash, last = each.partition("-")
        if each in known:
            found.append(each)
        elif dash and first in known and last in known and known.index(first) <= known.index(last):
            found += known[known.index(first) : known.index(last) + 1]
        else:
            raise SourceError(unknown("column", each, list(known)))
    return found


def _reason(column: TableColumn, categories: bool) -> str | None:
    """Why a column is not a feature; None if it is one."""
    return next((reason for reason, holds in RULES if holds(column)), None) or _unusable(column, categories)


def _unusable(column: TableColumn, categories: bool, most: int = MANY) -> str | None:
    """Why a column can't be a feature even if it is asked for; a text of at most this many values is a category."""
    if column.kind == NUMBER or (categories and column.kind == BOOLEAN):
        return None
    if column.kind == BOOLEAN:
        return "yes or no"
    if not categories or column.kind != TEXT:
        return column.kind
    count = count_values(column)
    if count <= most:
        return None
    repeats = 2 * count <= int((~column.missing).sum())  # notes, of which few occur twice, are no categories
    return f"text of more than {most:,} values" + (": name it in columns=[…]" if repeats and most < count <= MOST else "")


def _is_called_id(column: TableColumn) -> bool:
    is_called = is_called_id(column.name)
    if not is_called and NUMBER_NAME.fullmatch(column.name.strip().lower()) is not None:
        is_called = count_values(column) >= MOSTLY_DIFFERENT * len(column.values) >= MOSTLY_DIFFERENT * FEWEST
    return is_called and (column.kind == TEXT or column.integers)


def count_values(column: TableColumn) -> int:
    """The number of different values that are not missing."""
    return len(np.unique(column.values[~column.missing]))


def _is_constant(column: TableColumn) -> bool:
    return count_values(column) == 1 < int((~column.missing).sum())


def _all_differ(column: TableColumn) -> bool:
    count = len(set(column.as_names().tolist())) if column.kind == TEXT else count_values(column)
    return count == len(column.values) >= FEWEST


def _numbers_rows(values: Array) -> bool:
    """Whether different integers only tell the rows apart: they are in order, or spread evenly between their ends."""
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return True
    ordered = np.sort(values)
    even = np.linspace(ordered[0], ordered[-1], len(ordered))
    apart = np.abs(ordered - even).max() / (ordered[-1] - ordered[0])
    return bool(apart <= max(EVEN, EVEN_OF_FEW / math.sqrt(len(values))))


CALLED_ID = "named like an id"
UNIQUE_TEXTS, UNIQUE_INTEGERS = "a different text in each row", "integers that number the rows"
SET_ASIDE = (DROPPED, LABELS, ROW_NAMES, UNWANTED, BESIDE, CALLED_ID)  # reasons that hold whatever a column contains
IDENTIFYING = (CALLED_ID, UNIQUE_TEXTS, UNIQUE_INTEGERS)
RULES: tuple[tuple[str, Callable[[TableColumn], bool]], ...] = (  # reasons against a column; the first that holds is given
    ("empty", lambda column: column.kind == EMPTY),
    ("dates", lambda column: column.kind == DATE),
    (CALLED_ID, _is_called_id),
    ("codes with leading zeros", lambda column: column.codes),
    (CONSTANT, _is_constant),
    (UNIQUE_TEXTS, lambda column: column.kind == TEXT and _all_differ(column)),
    (UNIQUE_INTEGERS, lambda column: column.integers and _all_differ(column) and _numbers_rows(column.values)),
)


def _numbered(names: Sequence[str]) -> set[str]:
    """Names that are numbered, such as pixel0, pixel1 and so on: columns that only mean something together."""
    stems: dict[str, list[str]] = {}
    for name in names:
        stems.setdefault(name.rstrip("0123456789"), []).append(name)
    return {name for stem, group in stems.items() if len(group) >= SERIES for name in group if name != stem}


def _is_complete(column: TableColumn) -> bool:
    return bool((column.as_names() != "").all()) if column.kind == TEXT else not column.missing.any()


def features_of(table: Table, names: Sequence[str], options: ReadOptions) -> Array:
    """The values (n, d) of features by name."""
    check_features(table, dict.fromkeys(names, ("numbers", (NUMBER, BOOLEAN, EMPTY))), options)
    return np.column_stack([_values(table, name) for name in names]) if names else np.empty((len(table), 0))


def _values(table: Table, name: str) -> Array:
    column = table[name]
    return np.full(len(table), np.nan) if column.kind == EMPTY else column.values


def _as_before(table: Table, options: ReadOptions) -> Chosen:
    """The features of an earlier table; all other columns are metadata."""
    read = set(options.features)
    reasons = {column.name: "not among the features" for column in table.columns if column.name not in read}
    names = options.id if options.id is not None else _by_rules(table, ReadOptions(coordinates=options.coordinates)).names
    return Chosen([name for name in options.features if name in table], reasons, names if names in reasons else None)


def choice_messages(table: Table, chosen: Chosen) -> list[str]:
    """Lines that name the features, and the columns that are not features with the reasons."""
    lines = list(table.notes)
    lines += [] if table.names is None else ["the first column has no name: it holds the row names"]
    if chosen.reasons:
        lines.append(f"{counted(len(chosen.features), 'feature')}: {summarize_names(chosen.features)}")
        by_reason: dict[str, list[str]] = {}
        for name, reason in chosen.reasons.items():
            by_reason.setdefault(reason, []).append(name)
        parts = [f"{summarize_names(names)} ({reason})" for reason, names in by_reason.items()]
        lines.append(f"not features: {'; '.join(parts)}")
    return lines


def fill_message(fill: Mapping[str, float], n: int = 0, filled: Mapping[str, Array] | None = None) -> list[str]:
    """A line with the values that replace missing ones, and how many of the n rows have them, if there are any."""
    listed = [f"{name} {value:.4g}" for name, value in fill.items()]
    rows = int(np.any(list(filled.values()), axis=0).sum()) if filled else 0
    where = f" in {rows:,} of {n:,} rows" if rows else ""
    return [f"missing values{where} are filled in: {summarize_names(listed)}"] if listed else []


def dropped_message(dropped: DroppedRows | None) -> list[str]:
    """A line that counts the rows without a place, if there are any."""
    if dropped is None:
        return []
    count, total = int((~dropped.kept).sum()), len(dropped.kept)
    return [f"{count:,} of {counted(total, 'row')} {agreeing(count, 'lack')} values and {agreeing(count, 'are')} left out"]


def mixed_units(names: Sequence[str], values: Array) -> DominantColumns | None:
    """The few columns that outweigh all others, which then seem to have different units; None if there are none.

    Numbered columns, such as pixel1, pixel2, …, have one unit.
    """
    stems = {name.rstrip("0123456789") for name in names}
    if len(names) > MOST_UNITS or (len(stems) == 1 and names[0] not in stems):
        return None
    with np.errstate(over="ignore"):  # an infinite variance is no answer, and none is given
        return dominant_columns(values.var(axis=0))
