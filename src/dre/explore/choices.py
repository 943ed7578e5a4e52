"""What a page shows first: the column that colors the points, and the column that names a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from dre.explore.columns import Column
from dre.plot.colors import MAX_COLORS
from dre.plot.kinds import CLASS, NUMBER, TEXT, is_label_name

FEW = 20  # classes that can be told apart at first sight
MANY = 100  # classes of a text column that still group the rows
TITLES = ("title", "name", "headline", "subject", "caption", "product")  # in this order
MAX_TITLE = 120  # characters of a headline
ADDRESS = re.compile(r"\w+://\S+")


def choose_color(columns: Sequence[Column]) -> str | None:
    """The column that a person would choose.

    Labels by their name, else texts of few values, else numbers of few values, else texts of up to 100 values. None if no
    column has classes.

    >>> import numpy as np
    >>> from dre.explore.columns import make_column
    >>> table = {"id": np.arange(40), "member": [True, False] * 20, "city": ["Rome", "Oslo"] * 20, "species": [0, 1] * 20}
    >>> columns = [make_column(name, values) for name, values in table.items()]
    >>> choose_color(columns), choose_color(columns[:3]), choose_color(columns[:1])
    ('species', 'city', None)
    """
    grouping = [column for column in columns if column.groups_rows]
    for suits in (_is_labels, _is_category, _has_few_classes, _is_large_category):
        found = next((column.name for column in grouping if suits(column)), None)
        if found is not None:
            return found
    return None


def has_labels(columns: Sequence[Column]) -> bool:
    """Whether a column groups the rows as labels do, so that clusters need not be found."""
    suits = (_is_labels, _is_category, _is_large_category)
    return any(column.groups_rows and any(each(column) for each in suits) for column in columns)


def _is_labels(column: Column) -> bool:
    return is_label_name(column.name) and len(column.class_names) <= MAX_COLORS


def _is_category(column: Column) -> bool:
    return _has_few_classes(column) and _is_text(column)


def _is_large_category(column: Column) -> bool:
    return len(column.class_names) <= MANY and _is_text(column)


def _has_few_classes(column: Column) -> bool:
    return len(column.class_names) <= FEW


def _is_text(column: Column) -> bool:
    """Neither numbers nor yes and no."""
    answers = {"true", "false", "yes", "no", "t", "f", "y", "n"}
    return not column.integer and not {name.lower() for name in column.class_names} <= answers


def choose_title(columns: Sequence[Column], *, has_names: bool = False) -> int | None:
    """The position of the column that heads a row's card: a title, or else a short text if rows have no names; or None."""
    readable = [i for i, column in enumerate(columns) if column.kind == TEXT and _is_readable(column) and not has_names]
    named = [i for i, column in enumerate(columns) if column.kind in (TEXT, CLASS) and _is_titled(column)]
    return min(named, key=lambda i: _place(columns[i]), default=next(iter(readable), None))


def _is_titled(column: Column) -> bool:
    """Whether a column is called a title, and most rows have one of their own."""
    return _place(column) < len(TITLES) and 2 * len(column.class_names) > len(column.values)


def _place(column: Column) -> int:
    name = column.name.lower()
    return next((i for i, word in enumerate(TITLES) if name == word), len(TITLES))


def _is_readable(column: Column) -> bool:
    """Short texts that are not addresses."""
    some = column.class_names[:200]
    return median(map(len, some)) <= MAX_TITLE and not all(map(ADDRESS.match, some))


def is_numeric(column: Column) -> bool:
    """Whether the values are numbers, few or many, that can be high or low."""
    return column.kind == NUMBER or (column.kind == CLASS and column.integer)
