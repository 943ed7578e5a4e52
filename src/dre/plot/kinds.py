"""What the values of a column are: classes, numbers, dates or free text. Figures and the explorer decide it alike."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from dre.metrics.inputs import has_label

Array = np.ndarray[Any, Any]
CLASS, NUMBER, DATE, TEXT = "class", "number", "date", "text"
ALWAYS_FEW = 10  # different values that are classes even if none occurs twice
MAX_INTEGER_CLASSES = 20  # integers with more values are numbers, such as ages and years
MAX_CODE_CLASSES = 150  # unless they number the classes of a clustering or of labels
MAX_TEXT_CLASSES = 1000  # texts with more values are read, not colored
# Names that people give to columns of classes; a column is one if its name has such a word.
LABEL_WORDS = (
    "label", "labels", "class", "classes", "target", "cluster", "clusters", "type", "celltype", "subtype", "category",
    "species", "kind", "group", "leiden", "louvain", "community", "topic", "digit", "genre", "subclass", "y",
)  # fmt: skip
ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2}| UTC)?)?")
OFFSET = re.compile(r":\d.*[+-]\d{2}:?\d{2}$")


def kind_of(values: Array, name: str | None = None) -> str:
    """Tell what an array of values is; missing values do not count.

    Parameters
    ----------
    values : array of shape (n,)
    name : str, default=None
        Name of the column. Integers that number many classes are told from quantities by a name such as "cluster"; without a
        name, by being 0, 1, 2, … without a gap.

    Returns
    -------
    {"class", "number", "date", "text"}

    Examples
    --------
    >>> kind_of(np.array(["T cell", "B cell", "T cell"])), kind_of(np.linspace(0, 1, 50))
    ('class', 'number')
    >>> kind_of(np.array(["2026-01-02", "2026-01-05"])), kind_of(np.array([f"https://a.org/{i}" for i in range(30)]))
    ('date', 'text')
    >>> ages = np.tile(np.arange(90), 5)
    >>> kind_of(ages, "age"), kind_of(ages, "cluster")
    ('number', 'class')
    """
    if as_dates(values) is not None:
        return DATE
    known = known_values(values)
    if known.dtype.kind == "b":
        return CLASS
    distinct = np.unique(known)
    if known.dtype.kind in "iuf":
        return CLASS if _is_few(len(distinct), len(known), _most_classes(distinct, name)) else NUMBER
    return CLASS if _is_few(len(distinct), len(known), MAX_TEXT_CLASSES) else TEXT


def known_values(values: Array) -> Array:
    """The values that are not missing: booleans, numbers, or strings."""
    known = values[has_label(values)]
    if known.dtype.kind == "O" and all(isinstance(each, str) for each in known.tolist()):
        return known  # long texts, which numpy would all pad to the longest
    if known.dtype.kind == "O":
        known = np.asarray(known.tolist())
    return known.astype(str) if known.dtype.kind not in "biufSU" else known


def is_label_name(name: str) -> bool:
    """Whether a column of this name holds labels.

    >>> is_label_name("cell_type"), is_label_name("Cluster ID"), is_label_name("id")
    (True, True, False)
    """
    return any(word.lower() in LABEL_WORDS for word in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name))


def as_dates(values: Array) -> Array | None:
    """Dates as datetime64[ms] in UTC, NaT where missing; None if any value is not a date.

    Parameters
    ----------
    values : array of shape (n,)
        datetime64, Python's dates, or strings as in ISO 8601. Numbers are never dates.

    Returns
    -------
    array of shape (n,) or None

    Examples
    --------
    >>> as_dates(np.array(["2026-01-02", "", "2026-01-02T12:00:00+02:00"])).astype(str).tolist()
    ['2026-01-02T00:00:00.000', 'NaT', '2026-01-02T10:00:00.000']
    """
    if values.dtype.kind == "M":
        return values.astype("datetime64[ms]")
    if values.dtype.kind not in "OU":
        return None
    known = has_label(values)
    listed = values[known].tolist()
    if not listed or not all(map(_is_date, listed)):
        return None
    found = np.full(len(values), np.datetime64("NaT", "ms"))
    try:
        found[known] = np.array([_in_utc(each) for each in listed], dtype="datetime64[ms]")
    except ValueError:  # such as February 30
        return None
    return found


def _is_date(value: Any) -> bool:
    return isinstance(value, date | np.datetime64) or (isinstance(value, str) and ISO.fullmatch(value) is not None)


def _in_utc(value: Any) -> Any:
    """A date without a time zone, which numpy reads."""
    if isinstance(value, str):
        value = value.replace(" UTC", "").replace(",", ".").removesuffix("Z")
        if not OFFSET.search(value):
            return value
        value = datetime.fromisoformat(value)
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def _is_few(distinct: int, known: int, most: int) -> bool:
    return distinct <= min(most, ALWAYS_FEW) or (distinct <= most and 2 * distinct <= known)


def _most_classes(distinct: Array, name: str | None) -> int:
    """How many different numbers are classes at most."""
    if not len(distinct) or not bool((distinct == np.floor(distinct)).all()):
        return ALWAYS_FEW
    numbers = distinct[0] in (0, 1) and distinct[-1] - distinct[0] == len(distinct) - 1
    is_code = numbers if name is None else is_label_name(name)
    return MAX_CODE_CLASSES if is_code else MAX_INTEGER_CLASSES
