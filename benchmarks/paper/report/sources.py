"""Where the numbers come from: the machines, the versions and the days that the records name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dre.compare.jobs import Selection, jobs
from paper.report.reading import Reader
from paper.report.wording import listed


@dataclass(frozen=True)
class Sources:
    """Of all records: how many there are, what failed, and what made them."""

    count: int
    failed: int
    planned: int  # cells that the plans ask for on any machine
    done: int
    days: str
    machines: tuple[str, ...]
    versions: tuple[str, ...]


def sources(reader: Reader) -> Sources:
    found = list(reader.cells.all())
    wanted = jobs(reader.plans, Selection())
    days = sorted({record["date"][:10] for record in found if "date" in record})
    return Sources(
        count=len(found),
        failed=sum("failed" in record for record in found),
        planned=len(wanted),
        done=sum(reader.cells.is_done(job, reader.plans) for job in wanted),
        days=f"{days[0]} to {days[-1]}" if len(days) > 1 else "".join(days),
        machines=_counted(machine_name(record) for record in found if "machine" in record),
        versions=_versions(found),
    )


def machine_name(record: dict[str, Any]) -> str:
    """What the work was done on: the GPU, or so many cores."""
    machine = record["machine"]
    on_gpu = machine["gpu"] is not None and not str(record.get("device", "cuda")).startswith("cpu")
    name = f"{machine['gpu']}, {machine['cpus']} CPU cores" if on_gpu else f"{machine['cpus']} CPU cores"
    return f"{name}, {machine['system']}"


def machines_of(records: Iterable[dict[str, Any]]) -> str:
    """All of them in words."""
    return " and on ".join(dict.fromkeys(machine_name(record) for record in records if "machine" in record))


def _counted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name} ({count:,} record{'s' * (count != 1)})" for name, count in Counter(names).most_common())


def _versions(records: list[dict[str, Any]]) -> tuple[str, ...]:
    """Each library with its version; with several where the records differ."""
    seen: dict[str, dict[str, None]] = {}
    for record in records:
        for library, version in record.get("versions", {}).items():
            seen.setdefault(library, {})[version] = None
    return tuple(f"{library} {listed(list(versions))}" for library, versions in seen.items())
