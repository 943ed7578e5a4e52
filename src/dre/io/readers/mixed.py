"""Tables with categories: rows of numbers by a preparation, which a model takes over, beside the columns as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dre.data.table_columns import BOOLEAN, CATEGORY, to_texts
from dre.data.table_columns import NUMBER as QUANTITY
from dre.data.table_columns import missing as missing_values
from dre.data.table_preparation import EncodedTable, TablePreparation
from dre.io.readers.features import DROPPED, NAMES, Chosen, choice_messages, dropped_message
from dre.io.readers.missing import MIDDLES, places
from dre.io.readers.not_numbers import check_features
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import Array, DroppedRows, Source, SourceError, summarize_names
from dre.io.readers.table import BOOLEAN as ANSWER
from dre.io.readers.table import EMPTY, MISSING, NUMBER, TEXT, Table, TableColumn

KINDS = {NUMBER: QUANTITY, ANSWER: BOOLEAN, TEXT: CATEGORY}  # of a file's columns, for a preparation


def needs_preparation(table: Table, chosen: Chosen, options: ReadOptions) -> bool:
    """Whether the features are not only numbers, or a model has prepared them before."""
    kinds = {table[name].kind for name in chosen.features}
    return options.preparation is not None or (not options.features and bool(kinds - {NUMBER}))


def mixed_source(table: Table, chosen: Chosen, options: ReadOptions) -> Source:
    """The rows of a table by a preparation: that of a model or of the first file, or one that is fitted to this table."""
    known = options.preparation
    kinds = _kinds_of(known) if known is not None else {name: KINDS[table[name].kind] for name in chosen.features}
    _check_kinds(table, kinds, options)
    values = {name: _values(table, name, kind, known) for name, kind in kinds.items()}
    kept, dropped = _kept(table, values, known, options)
    values = {name: column[kept] for name, column in values.items()}
    own: list[str] = []
    try:
        if known is None:
            missing = options.missing if options.missing in MIDDLES else "error"
            preparation = TablePreparation.fit(values, kinds, missing=missing, standardize=options.standardize)
        else:
            preparation, own = filling(known, values.__getitem__, options)
        found = preparation.encode(values)
    except ValueError as problem:
        raise SourceError(f"{table.path}: {problem}") from None
    title = chosen.names or NAMES
    names = table.names if chosen.names is None else table[chosen.names].as_names()
    beside = [name for name, reason in chosen.reasons.items() if reason != DROPPED and name != title]
    news = [] if options.features else [*choice_messages(table, chosen), *_encoding_messages(preparation)]
    return Source(
        found.rows,
        preparation.names_out,
        None if names is None else names[kept],
        {name: table[name].as_metadata()[kept] for name in [*beside, *kinds]},
        [*news, *fill_messages(preparation, found), *dropped_message(dropped)],
        title,
        dropped=dropped,
        cautions=[*found.unknown_notes, *own],
        filled=found.filled,
        preparation=preparation,
    )


def prepare(
    table: Table, preparation: TablePreparation, options: ReadOptions | None = None, *, allow_gaps: bool = False
) -> EncodedTable:
    """Prepare the rows of a table by the preparation of a model; with ``allow_gaps``, rows with gaps are NaN."""
    _check_kinds(table, _kinds_of(preparation), options or ReadOptions())
    values = {name: _values(table, name, kind, preparation) for name, kind in _kinds_of(preparation).items()}
    if not allow_gaps:
        _kept(table, values, preparation, ReadOptions())  # names the gaps that no fill is known for
    try:
        return preparation.encode(values, allow_gaps=allow_gaps)
    except ValueError as problem:
        raise SourceError(f"{table.path}: {problem}") from None


def filling(
    known: TablePreparation, column: Callable[[str], Array], options: ReadOptions
) -> tuple[TablePreparation, list[str]]:
    """The preparation with fills of these rows, where the fit did not store any and they are asked for; and a line about it.

    The columns are read one by one.
    """
    fills: dict[str, Any] = {}
    for each in known.encodings if options.missing in MIDDLES else ():
        if each.fill is not None or not missing_values(values := column(each.name)).any():
            continue
        fitted = TablePreparation.fit({each.name: values}, {each.name: each.kind}, missing=options.missing)
        fills[each.name] = fitted.encodings[0].fill
        if each.kind == CATEGORY and fills[each.name] not in each.categories:
            raise ValueError(f"the most frequent value of {each.name!r} is none that the fit had: pass missing='drop'")
    if not fills:
        return known, []
    encodings = [replace(each, fill=fills.get(each.name, each.fill)) for each in known.encodings]
    names = summarize_names(list(fills))
    line = f"missing values of {names} are filled in by the {options.missing} of these rows, not of the fit"
    return TablePreparation(encodings, known.named), [line]


def column_values(table: Table, name: str, preparation: TablePreparation) -> Array:
    """The values of a column as a preparation reads them: NaN, or None among texts, where one is missing."""
    return _values(table, name, _kinds_of(preparation)[name], preparation)


def fill_messages(preparation: TablePreparation, found: EncodedTable | None = None) -> list[str]:
    """A line with what replaces missing values, and in how many rows, if there are any."""
    wanted = [each for each in preparation.encodings if each.fill is not None and (found is None or each.name in found.filled)]
    if not wanted:
        return []
    shown = [f"{each.name} {_shown(each.fill, each.kind)}" for each in wanted]
    rows = 0 if found is None else int(np.any(list(found.filled.values()), axis=0).sum())
    where = "" if found is None else f" in {rows:,} of {len(found.rows):,} rows"
    return [f"missing values{where} are filled in: {summarize_names(shown)}"]


def column_messages(preparation: TablePreparation) -> list[str]:
    """A line for each kind of columns: numbers, yes and no, and categories with their values."""
    by_kind = {kind: [each for each in preparation.encodings if each.kind == kind] for kind in (QUANTITY, BOOLEAN)}
    titles = {QUANTITY: "numbers", BOOLEAN: "yes or no"}
    lines = [f"{titles[kind]}: {summarize_names([each.name for each in found])}" for kind, found in by_kind.items() if found]
    categories = [each for each in preparation.encodings if each.kind == CATEGORY]
    return [*lines, *(f"categories of {each.name}: {summarize_names(list(each.categories))}" for each in categories)]


def _encoding_messages(preparation: TablePreparation) -> list[str]:
    """A line that tells what is done with numbers and categories."""
    numbers = [each for each in preparation.encodings if each.kind == QUANTITY]
    encoded = [each.name for each in preparation.encodings if each.kind != QUANTITY]
    line = f"encoded as categories: {summarize_names(encoded)}"
    if any(each.scale != 1 for each in numbers):
        line += "; the numbers are divided by their standard deviations, --no-standardize keeps their units"
    return [line]


def _shown(fill: Any, kind: str) -> str:
    if kind == BOOLEAN:
        return "yes" if fill else "no"
    return f"{fill:.4g}" if kind == QUANTITY else str(fill)


def _kinds_of(preparation: TablePreparation) -> dict[str, str]:
    return {each.name: each.kind for each in preparation.encodings}


def _values(table: Table, name: str, kind: str, known: TablePreparation | None) -> Array:
    """The values of a column for its kind: NaN, or None among texts, where one is missing."""
    column = table[name]
    if kind == CATEGORY:
        return _texts(column, _categories(known, name))
    if column.kind == EMPTY:
        return np.full(len(table), np.nan)
    if column.kind in (NUMBER, ANSWER):
        return column.values
    return _texts(column, set())


def _check_kinds(table: Table, kinds: Mapping[str, str], options: ReadOptions) -> None:
    """Fail if the table lacks a column, or one can't be of the kind that a preparation reads."""
    check_features(table, {name: _WANTED[kind] for name, kind in kinds.items()}, options)


_WANTED: dict[str, tuple[str, tuple[str, ...]]] = {
    QUANTITY: ("numbers", (NUMBER, ANSWER, EMPTY)),
    BOOLEAN: ("yes and no", (NUMBER, ANSWER, EMPTY, TEXT)),
    CATEGORY: ("categories", ()),
}


def _categories(preparation: TablePreparation | None, name: str) -> set[str]:
    found = next((each for each in preparation.encodings if each.name == name), None) if preparation is not None else None
    return set() if found is None else set(found.categories)


def _texts(column: TableColumn, known: set[str]) -> Array:
    """The texts of a column; words that stand for a missing value are None, unless they are known categories."""
    texts = column.texts if column.texts is not None else column.values
    found = to_texts(texts)
    for i, text in enumerate(found):
        if text is not None and text not in known and text.lower() in MISSING:
            found[i] = None
    return found


def _kept(
    table: Table, values: dict[str, Array], known: TablePreparation | None, options: ReadOptions
) -> tuple[Any, DroppedRows | None]:
    """Which rows are kept: all, or those without a gap that nothing fills."""
    filled = {each.name for each in known.encodings if each.fill is not None} if known is not None else set()
    open_ = [name for name in values if name not in filled]
    gaps = np.column_stack([missing_values(values[name]) for name in open_]) if open_ else np.zeros((len(table), 0), bool)
    if not gaps.any() or options.missing in MIDDLES:
        return slice(None), None
    if options.missing == "error":
        raise SourceError(
            f"{table.path}: {places(table, open_, gaps)}.\nPass missing='drop', missing='mean' or missing='median'."
        )
    kept = np.asarray(~gaps.any(1))
    if not kept.any():
        raise SourceError(f"{table.path}: every row lacks a value; leave out the columns that lack most of them")
    return kept, DroppedRows(kept, table.names)
