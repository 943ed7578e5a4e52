"""The stages of a fit in a table: what each was to do, what it took, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dre.observe.account import StageAccount
from dre.plan.schedule import Schedule


@dataclass(frozen=True)
class StageSummary:
    """A stage of a fit."""

    number: int
    plan: str  # its text in the schedule
    epochs: int = 0
    loss: float | None = None  # of the last epoch
    seconds: float = 0.0  # in epochs, and before them if that is known
    outcome: str = ""  # "", "undone", "skipped" or "not begun"
    trust: tuple[float, float] | None = None  # before and after an optional stage


def summarize_stages(
    history: list[dict[str, Any]], schedule: Schedule, kept: int, accounts: Mapping[int, StageAccount] | None = None
) -> list[StageSummary]:
    """Return one summary per stage.

    The first ``kept`` stages were not undone. One without any epoch was skipped, or the fit ended before it. ``accounts`` of a
    model that was not read from a file have the seconds before the epochs.

    >>> records = [{"stage": 0, "loss": 0.5, "seconds": 1.0}]
    >>> [(each.loss, each.outcome) for each in summarize_stages(records, Schedule.parse("x: gaussian(5) -> kl * 1"), 1)]
    [(0.5, '')]
    """
    records = {number: list(found) for number, found in groupby(history, lambda record: int(record["stage"]))}
    summaries = []
    for number, stage in enumerate(schedule):
        account, epochs = (accounts or {}).get(number, StageAccount()), records.get(number, [])
        seconds = sum(record["seconds"] for record in epochs) + account.graph_seconds + account.free_seconds
        outcome = account.outcome or ("undone" if epochs and number >= kept else "")
        if not epochs and number >= kept:
            outcome = account.outcome or "not begun"
        loss = float(epochs[-1]["loss"]) if epochs else None
        summaries.append(StageSummary(number, str(stage), len(epochs), loss, seconds, outcome, account.trust))
    return summaries
