"""What a column is: classes, numbers, dates or free text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from dre.plot.kinds import as_dates, is_label_name, kind_of

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        (RNG.integers(18, 90, size=500), "age", "number"),
        (RNG.integers(1950, 2020, size=500), "year", "number"),
        (RNG.integers(0, 6, size=500), "children", "class"),
        (np.append(RNG.integers(0, 6, size=500) * 1.0, np.nan), "children", "class"),
        (np.full(500, np.nan), "empty", "class"),  # of no class
        (np.arange(500) % 60, "leiden", "class"),
        (np.arange(500) % 60, None, "class"),
        (np.arange(500) % 60 * 7, None, "number"),
        (np.arange(500), "cluster", "number"),
        (np.arange(500) % 3 / 10, "dose", "class"),
        (np.arange(150) % 22 / 10, "petal width", "number"),
        (np.array([f"{i % 200}" for i in range(600)]), "author", "class"),
        (np.array([f"text {i}" for i in range(600)]), "title", "text"),
        (np.array([f"w{i % 2000}" for i in range(9000)]), "word", "text"),
        (np.array([True, False, None], dtype=object), "flag", "class"),
    ],
)
def test_few_values_are_classes_and_many_are_numbers_or_text(values: np.ndarray, name: str | None, kind: str) -> None:
    assert kind_of(values, name) == kind


EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("values", "first"),
    [
        (["2026-03-01", "", "2025-01-01"], "2026-03-01T00:00:00.000"),
        (["2026-03-01 10:20:30.250000", "2026-03-01 10:20:31.000000"], "2026-03-01T10:20:30.250"),
        (["2026-03-01T10:20Z", "2026-03-01T10:20+02:00"], "2026-03-01T10:20:00.000"),
        (["2026-03-01T10:20+0200"], "2026-03-01T08:20:00.000"),
        ([date(2026, 3, 1), None], "2026-03-01T00:00:00.000"),
        ([datetime(2026, 3, 1, 10, tzinfo=EAST), datetime(2026, 3, 1, tzinfo=UTC)], "2026-03-01T08:00:00.000"),
        (np.array(["2026-03-01", "NaT"], dtype="M8[ns]"), "2026-03-01T00:00:00.000"),
    ],
)
def test_dates_of_every_writing_are_dates_in_utc(values: Any, first: str) -> None:
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    found = as_dates(array)
    assert found is not None
    assert str(found[0]) == first
    assert kind_of(array) == "date"


@pytest.mark.parametrize("values", [["2026-03-01", "soon"], ["2026-02-30"], ["20260301"], ["", ""], [20260301, 20260302]])
def test_what_is_not_a_date_is_not_taken_for_one(values: list[Any]) -> None:
    assert as_dates(np.array(values, dtype=object)) is None


def test_names_of_labels() -> None:
    assert all(map(is_label_name, ("label", "cell_type", "CellType", "Cluster ID", "leiden_res_1", "class")))
    assert not any(map(is_label_name, ("classification", "id", "age", "typewriter")))
