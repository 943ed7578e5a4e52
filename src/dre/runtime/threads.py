"""Threads: work that several share in parts, with the same bits whatever their number and whatever else the machine does.

The threads of torch wait for each other after every operation. Beside other programs that takes many times as long as a single
thread, and their number changes the last bits of a product. Here torch computes on one thread, and work of some size is split
into parts, which threads take as they become free: one that waits for a core delays nothing but its own part.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from itertools import count
from typing import Any, TypeVar

import torch

PART = 2**21  # pairs of rows, a third of a millisecond: less is not worth a thread
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read by libraries as they are loaded
NUMBA = "NUMBA_NUM_THREADS"
Item = TypeVar("Item")
Result = TypeVar("Result")


class _Outside(threading.local):
    """Numbers of threads outside of each ``one_thread`` that this thread is in."""

    def __init__(self) -> None:
        self.counts: list[int] = []


_outside = _Outside()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread inside; ``in_threads`` and ``map_in_threads`` use as many as outside."""
    before = torch.get_num_threads()
    _outside.counts.append(before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _outside.counts.pop()


@contextmanager
def all_threads() -> Iterator[None]:
    """Let torch compute on as many threads as outside of ``one_thread``: for operations that take long each."""
    before = torch.get_num_threads()
    torch.set_num_threads(thread_count())
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread_on(device: torch.device) -> AbstractContextManager[None]:
    """``one_thread`` if the device is the CPU; nothing else waits for its threads."""
    return one_thread() if device.type == "cpu" else nullcontext()


def thread_count() -> int:
    """Number of threads that work may share: that of torch, as it is outside of ``one_thread``."""
    return max([torch.get_num_threads(), *_outside.counts])


@contextmanager
def at_most_threads(limit: int | None) -> Iterator[None]:
    """Let torch, BLAS, OpenMP and numba use so many threads inside, also if they are loaded there; None changes nothing.

    >>> with at_most_threads(1):
    ...     thread_count()
    1
    """
    if limit is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        stack.callback(_set_variables, {name: os.environ.get(name) for name in LIMITS})
        stack.enter_context(threadpool_limits(limit))
        _set_variables(dict.fromkeys(LIMITS, str(limit)))
        numba = sys.modules.get("numba")
        if numba is None:
            stack.callback(_set_variables, {NUMBA: os.environ.get(NUMBA)})
            _set_variables({NUMBA: str(limit)})
        else:  # once it is loaded, it refuses another value of its variable
            stack.callback(numba.set_num_threads, numba.get_num_threads())
            numba.set_num_threads(min(limit, numba.config.NUMBA_NUM_THREADS))
        torch.set_num_threads(limit)
        yield


def _set_variables(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def in_threads(kernel: Callable[..., object], rows: int, work: int, arguments: tuple[Any, ...]) -> None:
    """Call ``kernel(first, last, *arguments)`` on parts of the rows, in as many threads as the work pays.

    ``work`` counts pairs of rows, or anything that takes as long. What a kernel writes for a row must not depend on the other
    rows of its part. Kernels should release the interpreter's lock. numba's own threads would not survive a fork.
    """
    parts = max(1, min(work // PART, rows))
    helpers = min(thread_count(), parts) - 1
    if helpers == 0:
        kernel(0, rows, *arguments)
        return
    numbers = count()

    def take_parts() -> None:
        while (part := next(numbers)) < parts:
            kernel(rows * part // parts, rows * (part + 1) // parts, *arguments)

    others = [_pool(os.getpid(), helpers).submit(take_parts) for _ in range(helpers)]
    take_parts()
    for other in others:
        if not other.cancel():  # one that has not begun finds nothing left to do
            other.result()


def map_in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``work(item)`` for each of the items, in their order; torch computes each on one thread.

    Items are drawn in the calling thread, a few ahead of the results that were taken. What torch keeps for each thread, such as
    ``no_grad``, must be set inside ``work``.

    >>> list(map_in_threads(lambda x: x * x, range(4)))
    [0, 1, 4, 9]
    """
    workers = thread_count()
    with one_thread():
        if workers == 1:
            yield from map(work, items)
            return
        pool, ahead = _pool(os.getpid(), workers), deque[Future[Result]]()
        try:
            for item in items:
                ahead.append(pool.submit(_on_one_thread, work, item))
                if len(ahead) > workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:  # after an error, or if no more results are asked for
            for other in ahead:
                if not other.cancel():
                    other.exception()


def _on_one_thread(work: Callable[[Item], Result], item: Item) -> Result:
    if torch.get_num_threads() != 1:  # the first work of this thread; the caller waits inside of ``one_thread``
        torch.set_num_threads(1)
    return work(item)


@cache
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Threads of a process, which a fork does not inherit."""
    return ThreadPoolExecutor(workers, "dre")
