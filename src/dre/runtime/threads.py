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


class _Process:
    """What threads of this process share: a lock, and whether the process was forked."""

    def __init__(self) -> None:
        self.lock, self.is_forked = threading.Lock(), False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self.lock, self.is_forked = threading.Lock(), True  # the old lock may be held by a thread that was not forked


_process = _Process()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread inside; ``in_threads`` and ``map_in_threads`` use as many as outside."""
    before = _use_one_thread()
    _outside.counts.append(before)
    try:
        yield
    finally:
        if before != 1:
            torch.set_num_threads(before)
        _outside.counts.pop()


def _use_one_thread() -> int:
    """Let torch compute on one thread in the calling thread alone; return the number that it had.

    ``torch.set_num_threads`` sets the number of the calling thread, and that of all threads to come. Those begin with the
    number found here, as they would outside of a fit.
    """
    with _process.lock:
        before = torch.get_num_threads()
        if before != 1:
            torch.set_num_threads(1)
            other = threading.Thread(target=torch.set_num_threads, args=(before,))
            other.start()
            other.join()
    return before


@contextmanager
def all_threads() -> Iterator[None]:
    """Let torch compute on as many threads as outside of ``one_thread``: for operations that take long each.

    A forked process stays with one thread: those of torch do not survive a fork, and torch would wait for them forever.
    """
    before, wanted = torch.get_num_threads(), 1 if _process.is_forked else thread_count()
    if before == wanted:
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        if before == 1:
            _use_one_thread()
        else:
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
                ahead.append(pool.submit(work, item))
                if len(ahead) > workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:  # after an error, or if no more results are asked for
            for other in ahead:
                if not other.cancel():
                    other.exception()


@cache
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Threads of a process, which a fork does not inherit. Torch computes on one thread in each."""
    return ThreadPoolExecutor(workers, "dre", initializer=_use_one_thread)
