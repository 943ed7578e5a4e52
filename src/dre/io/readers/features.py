"""Which columns of a table are features, and why the others are not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dre.io.readers.missing import POLICIES, Completed, complete
from dre.io.readers.source import Array, Source, SourceError, summarize_names
from dre.io.readers.table import BOOLEAN, DATE, EMPTY, NUMBER, TEXT, Table, TableColumn
from dre.notation import unknown

ID_NAME = re.compile(r"id|ids|index|idx|key|uuid|guid|row|rowid|unnamed: ?0|.*[_\s.-](?:id|uuid|guid|key)")  # in lower case
COORDINATE = re.compile(r"dre\d+", re.IGNORECASE)  # columns of a map that dre has written
CAMEL_ID = re.compile(r".*[a-z](?:Id|ID|Key|Uuid)")
FEWEST = 20  # rows from which it tells something that all their values differ
EVEN, EVEN_OF_FEW = 0.1, 1.2  # largest distance from evenly spread integers, as a share of their range; of n rows, by √n
MANY = 20  # different values of a text: more are not categories
NAMES = "name"  # title of the names of rows that have none
DROPPED, CONSTANT = "dropped", "constant"
SERIES = 16  # columns with numbered names that belong together, such as pixels, from which none is left out alone
CATEGORY = "{name}={value}"  # name of a feature that is 1 where a column has this value


@dataclass(frozen=True)
class ColumnChoice:
    """What is said about the columns of a table; what is not said is decided by `choose`.

    Parameters
    ----------
    columns : sequence of str, default=()
        Features, and no others. ``"c-f"`` are all columns from c to f.
    drop : sequence of str, default=()
        Columns that are left out of everything.
    labels : sequence of str, default=()
        Columns that are no features but metadata.
    id : str, default=None
        The column with the names of the rows.
    categories : bool, default=False
        Whether columns of yes and no, and of few different texts, are features too.
    missing : {"error", "drop", "mean", "median"}, default="error"
        What is done with missing values of features.
    decimal : {".", ","}, default=None
        Mark of decimals in a text table; None finds it.
    coordinates : bool, default=False
        Whether the table is a map: its features are the columns dre1, dre2, …, or else all numbers that name no row.
    where_possible : bool, default=False
        Whether formats other than tables may leave all this aside.
    features : sequence of str, default=()
        Features of an earlier table, by name, such as those of a model; nothing else is decided then.
    fill : mapping of str to float, default=empty
        What stands for the missing values of these features.
    """

    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    labels: Sequence[str] = ()
    id: str | None = None
    categories: bool = False
    missing: str = "error"
    decimal: str | None = None
    coordinates: bool = False
    where_possible: bool = False
    features: Sequence[str] = ()
    fill: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.missing not in POLICIES:
            raise SourceError(unknown("missing", self.missing, list(POLICIES)))
        if self.decimal not in (None, ".", ","):
            raise SourceError(f"decimal={self.decimal!r}: must be '.' or ','")

    @property
    def is_said(self) -> bool:
        """Whether anything is said that only a table can follow."""
        if self.coordinates or self.where_possible:
            return False
        return bool(self.columns or self.drop or self.id or self.categories or self.missing != "error" or self.decimal)


@dataclass(frozen=True)
class Chosen:
    """Features of a table by name, and the reason for each column that is none."""

    features: list[str]
    reasons: dict[str, str] = field(default_factory=dict)
    names: str | None = None  # the column with the names of the rows


def choose(table: Table, said: ColumnChoice | None = None) -> Chosen:
    """Decide which columns are features: numbers that are neither constant nor identify the rows, unless it is said."""
    said = said or ColumnChoice()
    known = [column.name for column in table.columns]
    wanted, dropped = expand(said.columns, known), set(expand(said.drop, known))
    labels = {name for name in said.labels if name in known}  # others may be files
    names = said.id
    if names is not None and names not in known:
        raise SourceError(f"{table.path}: {unknown('column', names, known)}")
    numbered = _numbered(known)
    axes = [name for name in known if said.coordinates and COORDINATE.fullmatch(name)]
    features, reasons = [], {}
    for column in table.columns:
        reason = _reason(column, said.categories)
        if (reason == CONSTANT and column.name in numbered) or (said.coordinates and reason in (CONSTANT, UNIQUE_INTEGERS)):
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
            reason = _unusable(column, said.categories) if column.name in wanted else "not among the columns"
            if reason and column.name in wanted:
                raise SourceError(f"{table.path}: the column {column.name!r} cannot be a feature: {reason}")
        if reason is None:
            features.append(column.name)
        else:
            reasons[column.name] = reason
    if names is None and table.names is None:
        names = next((name for name, reason in reasons.items() if reason in IDENTIFYING and _is_complete(table[name])), None)
    return Chosen(features, reasons, names)


def expand(said: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names of columns, where ``"c-f"`` stands for all from c to f.

    >>> expand(["a", "c-e"], list("abcdef"))
    ['a', 'c', 'd', 'e']
    """
    found: list[str] = []
    for each in said:
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


CALLED_ID = "its name is that of an id"
UNIQUE_TEXTS, UNIQUE_INTEGERS = "a text of its own in each row", "integers that number the rows"
IDENTIFYING = (CALLED_ID, UNIQUE_TEXTS, UNIQUE_INTEGERS)
RULES: tuple[tuple[str, Callable[[TableColumn], bool]], ...] = (  # reasons against a column; the first that holds is told
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
    of, _, value = name.partition("=")
    if of not in table:
        raise SourceError(f"{table.path}: {unknown('column', name, [each.name for each in table.columns])}")
    return np.asarray(table[of].values == value, dtype=float)


def source_of(table: Table, said: ColumnChoice | None = None) -> Source:
    """The rows of a table by its features, with all other columns as metadata."""
    said = said or ColumnChoice()
    chosen = _as_before(table, said) if said.features else choose(table, said)
    names = list(said.features) or [each for name in chosen.features for each in _feature_names(table[name])]
    if not names:
        reasons = ", ".join(f"{name!r} ({reason})" for name, reason in chosen.reasons.items())
        raise SourceError(f"{table.path} has no column of numbers that can be a feature: {reasons or 'it has no columns'}")
    title = chosen.names or NAMES
    row_names = table.names if chosen.names is None else table[chosen.names].as_metadata().astype(str)
    found = complete(replace(table, names=row_names), names, features_of(table, names), said.missing, said.fill)
    kept = slice(None) if found.dropped is None else found.dropped.kept
    metadata = {name: table[name].as_metadata()[kept] for name, reason in chosen.reasons.items() if reason != DROPPED}
    metadata.pop(title, None)
    return Source(
        found.values,
        names if table.has_header else None,
        None if row_names is None else row_names[kept],
        metadata,
        [*([] if said.features else _messages(table, chosen, found)), *_dropped(found)],
        title,
        found.fill,
        found.dropped,
    )


def _as_before(table: Table, said: ColumnChoice) -> Chosen:
    """The features of an earlier table; all other columns are metadata."""
    read = {name if name in table else name.rpartition("=")[0] for name in said.features}
    reasons = {column.name: "not among the features" for column in table.columns if column.name not in read}
    names = said.id if said.id is not None else choose(table).names
    return Chosen([name for name in said.features if name in table], reasons, names if names in reasons else None)


def _feature_names(column: TableColumn) -> list[str]:
    if column.kind in (NUMBER, BOOLEAN):
        return [column.name]
    return [CATEGORY.format(name=column.name, value=value) for value in np.unique(column.values) if value]


def _messages(table: Table, chosen: Chosen, found: Completed) -> list[str]:
    lines = [] if table.names is None else ["the first column has no name: it holds the row names"]
    if chosen.reasons:
        count = len(chosen.features)
        lines.append(f"{count:,} feature{'s' if count != 1 else ''}: {summarize_names(chosen.features)}")
        by_reason: dict[str, list[str]] = {}
        for name, reason in chosen.reasons.items():
            by_reason.setdefault(reason, []).append(name)
        parts = [f"{summarize_names(names)} ({reason})" for reason, names in by_reason.items()]
        lines.append(f"not features: {'; '.join(parts)}")
    if found.fill:
        lines.append(
            f"missing values are filled in: {summarize_names([f'{name} {value:.4g}' for name, value in found.fill.items()])}"
        )
    return lines


def _dropped(found: Completed) -> list[str]:
    if found.dropped is None:
        return []
    kept = found.dropped.kept
    return [f"{int((~kept).sum()):,} of {len(kept):,} rows lack values and are left out"]
