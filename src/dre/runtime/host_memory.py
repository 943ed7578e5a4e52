"""Memory of the host that this process may still take: of the system, of its control group, and of its own limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MEMINFO, STATM, GROUPS = Path("/proc/meminfo"), Path("/proc/self/statm"), Path("/proc/self/cgroup")
CGROUP = Path("/sys/fs/cgroup")


def free_bytes() -> int | None:
    """The smallest of all limits; None if the system tells none."""
    shared = [each for each in (_system(), *_groups()) if each is not None]
    known = [each // _processes() for each in shared] + [each for each in (_address_space(),) if each is not None]
    return max(0, min(known)) if known else None


def _processes() -> int:
    """Processes that torchrun has started on this machine, and that share its memory."""
    count = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return int(count) if count.isdecimal() and int(count) > 0 else 1


def _system() -> int | None:
    try:
        lines = MEMINFO.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None


def _address_space() -> int | None:
    """What ``ulimit -v`` leaves."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        return limit - int(STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError):
        return None


def _groups() -> Iterator[int]:
    """What the control groups of this process leave, as a container or a job of a cluster has them."""
    for folder, limit, used, stat in _group_files():
        try:
            most, now = (folder / limit).read_text().strip(), int((folder / used).read_text())
            counts = dict(line.split() for line in (folder / stat).read_text().splitlines())
        except (OSError, ValueError):
            continue
        cache = int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))  # which the system takes back
        if most.isdecimal():  # "max" is no limit
            yield int(most) - now + cache


def _group_files() -> Iterator[tuple[Path, str, str, str]]:
    """Folders of the groups from this process to the root, and the names of their files, of version 2 and 1."""
    try:
        entries = [line.split(":", 2) for line in GROUPS.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, name in entries:
        if controllers not in ("", "memory"):
            continue
        root = CGROUP / controllers
        files = ("memory.max", "memory.current") if not controllers else ("memory.limit_in_bytes", "memory.usage_in_bytes")
        group = Path(name.lstrip("/"))
        for each in (group, *group.parents):
            yield root / each, *files, "memory.stat"
