"""Which columns of a table are features, and why the others are not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dre.data.units import DominantColumns, dominant_columns
from dre.io.readers.missing import Completed, complete
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import Array, DroppedRows, Source, SourceError, summarize_names, to_strings
from dre.io.readers.table import BOOLEAN, DATE, EMPTY, NUMBER, TEXT, Table, TableColumn
from dre.notation import unknown

ID_NAME = re.compile(r"id|ids|index|idx|key|uuid|guid|row|rowid|unnamed: ?0|.*[_\s.-](?:id|uuid|guid|key)")  # in lower case
COORDINATE = re.compile(r"dre\d+", re.IGNORECASE)  # columns of a map that dre has written
NUMBER_NAME = re.compile(r".*(?:nummer|[\s_.-](?:nr|no|number)\.?)")  # in lower case; of an id if nearly all values differ
CAMEL_ID = re.compile(r".*[a-z](?:Id|ID|Key|Uuid)")
MOSTLY_DIFFERENT = 0.9  # of the values of a column of numbers that name rows
FEWEST = 20  # rows from which it tells something that all their values differ
EVEN, EVEN_OF_FEW = 0.1, 1.2  # largest distance from evenly spread integers, as a share of their range; of n rows, by √n
MANY = 20  # different values of a text: more are not categories
NAMES = "name"  # title of the names of rows that have none
DROPPED, CONSTANT = "dropped", "constant"
SERIES = 16  # columns with numbered names that belong together, such as pixels, from which none is left out alone
FAR = 1000  # times the interquartile range from the median: a value that no measurement has
MOST_UNITS = 100  # columns: wider tables are spectra, genes or pixels, in one unit
CATEGORY = "{name}={value}"  # name of a feature that is 1 where a column has this value


@dataclass(frozen=True)
class Chosen:
    """Features of a table by name, and the reason for each column that is none."""

    features: list[str]
    reasons: dict[str, str] = field(default_factory=dict)
    names: str | None = None  # the column with the names of the rows


def choose(table: Table, options: ReadOptions | None = None) -> Chosen:
    """The features of an earlier table, or else those that the columns and the user's choices make."""
    options = options or ReadOptions()
    return _as_before(table, options) if options.features else _by_rules(table, options)


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
        reason = _reason(column, options.categories)
        if (reason == CONSTANT and column.name in numbered) or (options.coordinates and reason in (CONSTANT, UNIQUE_INTEGERS)):
            reason = None
        if axes:
            reason = None if column.name in axes else reason or "beside the coordinates"
        if column.name in dropped:
            reason = DROPPED
        elif column.name in labels:
            reason = "labels"
        elif column.name == names:
            reason = "names of the rows"
        elif wanted:
            reason = _unusable(column, options.categories) if column.name in wanted else "not among the columns"
            if reason and column.name in options.columns:  # a column within a range is left out instead
                raise SourceError(f"{table.path}: the column {column.name!r} cannot be a feature: {reason}")
        if reason is None:
            features.append(column.name)
        else:
            reasons[column.name] = reason
    if names is None and table.names is None:
        names = next((name for name, reason in reasons.items() if reason in IDENTIFYING and _is_complete(table[name])), None)
    return Chosen(features, reasons, names)


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


def _unusable(column: TableColumn, categories: bool) -> str | None:
    """Why a column can't be a feature even if it is asked for."""
    if column.kind == NUMBER or (categories and column.kind == BOOLEAN):
        return None
    if column.kind == BOOLEAN:
        return "yes or no"
    return None if categories and column.kind == TEXT and _count(column) <= MANY else column.kind


def _is_called_id(column: TableColumn) -> bool:
    name = column.name.strip()
    is_called = ID_NAME.fullmatch(name.lower()) is not None or CAMEL_ID.fullmatch(name) is not None
    if not is_called and NUMBER_NAME.fullmatch(name.lower()) is not None:
        is_called = _count(column) >= MOSTLY_DIFFERENT * len(column.values) >= MOSTLY_DIFFERENT * FEWEST
    return is_called and (column.kind == TEXT or column.integers)


def _count(column: TableColumn) -> int:
    """The number of different values that are not missing."""
    return len(np.unique(column.values[~column.missing]))


def _is_constant(column: TableColumn) -> bool:
    return _count(column) == 1 < int((~column.missing).sum())


def _all_differ(column: TableColumn) -> bool:
    return _count(column) == len(column.values) >= FEWEST


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
    return not column.missing.any()


def features_of(table: Table, names: Sequence[str]) -> Array:
    """The values (n, d) of features by name; ``"kind=a"`` is 1 where the column kind has the value a."""
    return np.column_stack([_values(table, name) for name in names]) if names else np.empty((len(table), 0))


def _values(table: Table, name: str) -> Array:
    if name in table:
        column = table[name]
        if column.kind == EMPTY:
            return np.full(len(table), np.nan)
        if column.kind not in (NUMBER, BOOLEAN):
            raise SourceError(f"{table.path}: the column {name!r} should hold numbers, but it is one of kind {column.kind!r}")
        return column.values
    of = _category_column(table, name)
    if of is None:
        known = summarize_names([each.name for each in table.columns])
        raise SourceError(f"{table.path} lacks the column {name!r} of the model or of the first file; its columns are {known}")
    return np.asarray(to_strings(table[of].as_metadata().tolist()) == name[len(of) + 1 :], dtype=float)


def _category_column(table: Table, feature: str) -> str | None:
    """The column whose value a feature such as ``"kind=a"`` tells; names and values may have an equals sign too."""
    stems = (feature[:i] for i, character in enumerate(feature) if character == "=")
    return next((stem for stem in stems if stem in table), None)


def source_of(table: Table, options: ReadOptions | None = None) -> Source:
    """The rows of a table by its features, with all other columns as metadata."""
    options = options or ReadOptions()
    chosen = choose(table, options)
    names = list(options.features) or [each for name in chosen.features for each in _feature_names(table[name])]
    if not names:
        reasons = ", ".join(f"{name!r} ({reason})" for name, reason in chosen.reasons.items())
        categories = any(column.kind in (TEXT, BOOLEAN) and _count(column) <= MANY for column in table.columns)
        hint = ".\nPass categories=True to use texts of few values" if categories and not options.categories else ""
        raise SourceError(
            f"{table.path} has no column of numbers that can be a feature: {reasons or 'it has no columns'}{hint}"
        )
    title = chosen.names or NAMES
    row_names = table.names if chosen.names is None else to_strings(table[chosen.names].as_metadata().tolist())
    found = complete(replace(table, names=row_names), names, features_of(table, names), options.missing, options.fill)
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
        cautions=[*_unknown_categories(table, options), *_own_fill(found, options)],
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
    return [f"{len(names) - len(set(names.tolist())):,} values of {title!r} occur more than once: a join by them repeats rows"]


def _own_fill(found: Completed, options: ReadOptions) -> list[str]:
    """A line if gaps are filled in without the values of the fit, which did not store any."""
    own = [name for name in found.filled if name not in options.fill] if options.features else []
    if not own:
        return []
    return [f"missing values of {summarize_names(own)} are filled in by the {options.missing} of these rows, not of the fit"]


def _unknown_categories(table: Table, options: ReadOptions) -> list[str]:
    """Lines about values of categories that a model does not know: they are none of its features."""
    known: dict[str, set[str]] = {}
    for name in options.features:
        if name not in table:
            column = _category_column(table, name)
            assert column is not None  # else the table lacks a feature, which was an error
            known.setdefault(column, set()).add(name[len(column) + 1 :])
    lines = []
    for column, values in known.items():
        count = sum(value not in values and value != "" for value in table[column].values.tolist())
        if count:
            lines.append(f"{count:,} rows have a value of {column!r} that the fit did not have: they are placed without it")
    return lines


def _as_before(table: Table, options: ReadOptions) -> Chosen:
    """The features of an earlier table; all other columns are metadata."""
    read = {name if name in table else _category_column(table, name) for name in options.features}
    reasons = {column.name: "not among the features" for column in table.columns if column.name not in read}
    names = options.id if options.id is not None else _by_rules(table, ReadOptions(coordinates=options.coordinates)).names
    return Chosen([name for name in options.features if name in table], reasons, names if names in reasons else None)


def _feature_names(column: TableColumn) -> list[str]:
    if column.kind in (NUMBER, BOOLEAN):
        return [column.name]
    return [CATEGORY.format(name=column.name, value=value) for value in np.unique(column.values) if value]


def choice_messages(table: Table, chosen: Chosen) -> list[str]:
    """Lines that name the features, and the columns that are not features with the reasons."""
    lines = list(table.notes)
    lines += [] if table.names is None else ["the first column has no name: it holds the row names"]
    if chosen.reasons:
        count = len(chosen.features)
        lines.append(f"{count:,} feature{'s' if count != 1 else ''}: {summarize_names(chosen.features)}")
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
    return [f"{int((~dropped.kept).sum()):,} of {len(dropped.kept):,} rows lack values and are left out"]


def mixed_units(names: Sequence[str], values: Array) -> DominantColumns | None:
    """The few columns that outweigh all others, which then seem to have different units; None if there are none.

    Numbered columns, such as pixel1, pixel2, …, have one unit.
    """
    stems = {name.rstrip("0123456789") for name in names}
    if len(names) > MOST_UNITS or (len(stems) == 1 and names[0] not in stems):
        return None
    with np.errstate(over="ignore"):  # an infinite variance is no answer, and none is given
        return dominant_columns(values.var(axis=0))
