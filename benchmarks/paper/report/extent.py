"""How many rows a value rests on, and what is to be said where the others of its column rest on other ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paper.report.reading import split_score


@dataclass(frozen=True)
class Extent:
    rows: int | None  # to learn from; None where all were fitted to the test rows
    test_rows: int


def usual(records: Iterable[dict[str, Any]]) -> Extent | None:
    """What most of these records have; of two that are as frequent the larger."""
    found = list(records)
    if not found:
        return None
    learned = [record["rows"] for record in found if not _fitted_to_test_rows(record)]
    return Extent(_most_frequent(learned) if learned else None, _most_frequent([record["test_rows"] for record in found]))


def departures(records: Iterable[dict[str, Any]], expected: Extent | None, score: str) -> list[str]:
    """Where the rows of these records are not the expected ones, and the score depends on them.

    >>> few = {"rows": 50, "test_rows": 100, "in_sample": False}
    >>> departures([few], Extent(50, 1000), "nearest_neighbor")
    ['on the first 100 test rows, the others on 1,000']
    >>> departures([few], Extent(50, 1000), "nearest_neighbor#100"), departures([few], Extent(50, 100), "fit_seconds")
    ([], [])
    """
    if expected is None:
        return []
    name, prefix = split_score(score)
    told = []
    for record in records:
        if expected.rows is not None and not _fitted_to_test_rows(record) and record["rows"] != expected.rows:
            told.append(f"fitted to {record['rows']:,} rows, the others to {expected.rows:,}")
        least = min(prefix or expected.test_rows, expected.test_rows)
        same = record["test_rows"] >= least if prefix else record["test_rows"] == expected.test_rows
        if name != "fit_seconds" and not same:
            first = "the first " if record["test_rows"] < expected.test_rows else ""
            told.append(f"on {first}{record['test_rows']:,} test rows, the others on {least:,}")
    return list(dict.fromkeys(told))


def _fitted_to_test_rows(record: dict[str, Any]) -> bool:
    """So is what embeds no new rows, but where times are compared."""
    return bool(record["in_sample"]) and not record["job"]["panel"]


def _most_frequent(counts: list[int]) -> int:
    return max(set(counts), key=lambda count: (counts.count(count), count))
