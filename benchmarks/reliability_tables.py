"""The tables of docs/reliability.md, from results/checkpoints*.json and results/reliability-*.json."""

from __future__ import annotations

from collections.abc import Callable

from record import RESULTS
from result_text import load, machine, table

# What is meant to happen; everything else that a run counts is a bug.
GOOD = (
    "refused", "same model", "other model", "same bits", "same bits, from the start", "read", "mapped", "passed", "skipped",
)  # fmt: skip


def checkpoints() -> str:
    """What checkpoints cost."""
    rows = []
    for name in ("checkpoints", "checkpoints-gpu"):
        if not (RESULTS / f"{name}.json").exists():
            continue
        result = load(name)
        found = result["results"]
        rows.append(
            [
                f"{found['rows']:,} rows, {found['seconds'] / 60:.0f} minutes, {machine(result)}",
                f"{found['checkpoints']}, every {found['minutes_between']:g} min",
                f"{found['megabytes']:.0f}",
                f"{found['longest_seconds']:.2f}",
                f"{100 * found['share']:.2f} %",
            ]
        )
    head = ["fit", "checkpoints", "MB", "longest, s", "of the time of the fit"]
    return table(head, rows) + f"\n`{load('checkpoints')['command']}`\n"


def reliability() -> str:
    """What every run has tried, and what happened."""
    rows = []
    for path in sorted(RESULTS.glob("reliability-*.json")):
        result = load(path.stem)
        found = result["results"]
        parts = [
            f"{name} {count:,}" if name in GOOD or not count else f"**{name} {count:,}**"
            for name, count in found["outcomes"].items()
        ]
        rows.append([found["about"], f"`{result['command']}`", f"{found['cases']:,}", ", ".join(parts)])
    return table(["what", "command", "cases", "outcomes"], rows)


TABLES: dict[str, Callable[[], str]] = {"checkpoints": checkpoints, "reliability": reliability}
