"""A GPU that runs out of memory: work in pieces is tried again with smaller ones, and then fails with advice."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

import torch

LAST = 4  # times that pieces shrink: to a 256th of their size
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_level: ContextVar[int] = ContextVar("level", default=0)


class GPUMemoryError(MemoryError):
    """A GPU has too little memory; the message says what can be done."""


def piece(size: int, shrink: int = 4) -> int:
    """Return the size of a piece of work: as given, or smaller where the GPU has run out of memory.

    Parameters
    ----------
    size : int
    shrink : int, default=4
        Each time, the size is divided by it. 2 for the side of a square block, which then has a fourth of the values.

    Examples
    --------
    >>> piece(8192)
    8192
    """
    return max(1, size // int(shrink ** _level.get()))


def in_smaller_pieces(what: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorate a function whose pieces have the size ``piece(…)``: it is called again if the GPU runs out of memory.

    >>> @in_smaller_pieces("counting")
    ... def count(n: int) -> int:
    ...     if piece(100) > 10:
    ...         raise torch.OutOfMemoryError
    ...     return n
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     count(3)
    3
    """

    def decorate(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.wraps(work)
        def retried(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            first = _level.get()
            for level in range(first, LAST + 1):
                token = _level.set(level)
                try:
                    return work(*args, **kwargs)
                except torch.OutOfMemoryError as problem:
                    if level == LAST:
                        raise out_of_memory(what, "Close other programs that use it, or pass device='cpu'.") from problem
                finally:
                    _level.reset(token)
                # outside of the handler: its traceback holds the tensors
                torch.cuda.empty_cache()
                warnings.warn(f"the GPU ran out of memory in {what}: trying smaller pieces, which is slower", stacklevel=2)
            raise AssertionError("unreachable")

        return retried

    return decorate


@contextmanager
def memory_advice(what: str, advice: str) -> Iterator[None]:
    """Re-raise torch's error about memory as one that says what can be done."""
    try:
        yield
    except torch.OutOfMemoryError as problem:
        raise out_of_memory(what, advice) from problem


def out_of_memory(what: str, advice: str) -> GPUMemoryError:
    """Return the error, with the memory that is left."""
    left = ""
    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        left = f" ({free / 2**30:.1f} of {total / 2**30:.1f} GiB are free)"
    return GPUMemoryError(f"the GPU has too little memory for {what}{left}. {advice}")
