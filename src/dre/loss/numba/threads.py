"""Kernels on several threads. They release the interpreter's lock; numba's own threads would not survive a fork."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from dre.runtime import thread_count

PARALLEL = 2**20  # pairs of rows from which a second thread pays


def in_threads(kernel: Any, rows: int, work: int, arguments: tuple[Any, ...]) -> None:
    """Call ``kernel(first, last, *arguments)`` on parts of the rows, in as many threads as torch uses and the work pays."""
    # ``work`` counts pairs of rows.
    threads = max(1, min(thread_count(), 1 + work // PARALLEL, rows))
    ends = [rows * t // threads for t in range(threads + 1)]
    others = [_pool(threads).submit(kernel, ends[t], ends[t + 1], *arguments) for t in range(1, threads)]
    kernel(ends[0], ends[1], *arguments)
    for other in others:
        other.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads - 1, "kernels")
