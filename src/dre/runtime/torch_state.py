"""The state of torch in which this package computes, whatever the caller has set, and the caller's state afterwards.

Gradient mode, inference mode, autocast and the default device belong to a thread. The default dtype and the precision of
products belong to the process: threads that need them at the same time share them, and the last one restores them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Generic, TypeVar

import torch

Value = TypeVar("Value")
AUTOCAST = ("cpu", "cuda")


@contextmanager
def plain_torch() -> Iterator[None]:
    """Gradients on, no inference mode, no autocast, float32 and the CPU as defaults; all as before on exit.

    >>> with torch.no_grad(), plain_torch():
    ...     torch.is_grad_enabled()
    True
    """
    with ExitStack() as stack:
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        for device in AUTOCAST:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":  # the context costs a little at every call of torch
            stack.enter_context(torch.device("cpu"))
        stack.enter_context(_default_dtype(torch.float32))
        yield


class ProcessSetting(Generic[Value]):
    """A setting of the whole process that several threads may need at the same time.

    The first thread that enters remembers the value found, and the last one that leaves restores it. While threads need
    different values, ``prefer`` chooses among them.

    Parameters
    ----------
    get, set_value : callables
    prefer : callable
        From the values that are needed to the one to set.
    """

    def __init__(
        self, get: Callable[[], Value], set_value: Callable[[Value], object], prefer: Callable[[list[Value]], Value]
    ) -> None:
        self._get, self._set, self._prefer = get, set_value, prefer
        self._needed: list[Value] = []
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    @contextmanager
    def __call__(self, value: Value) -> Iterator[None]:
        with self._lock:
            if not self._needed:
                self._before = self._get()
            self._needed.append(value)
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                if value in self._needed:  # else this is a child that was forked inside
                    self._needed.remove(value)
                    self._apply()

    def _apply(self) -> None:
        value = self._prefer(self._needed) if self._needed else self._before
        if self._get() != value:
            self._set(value)

    def _after_fork(self) -> None:
        """The other threads do not exist in a forked child."""
        self._lock = threading.Lock()
        if self._needed:
            self._needed = []
            self._set(self._before)


_default_dtype = ProcessSetting(torch.get_default_dtype, torch.set_default_dtype, lambda needed: needed[0])


def _get_precision() -> tuple[str, bool]:
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


def _set_precision(precision: tuple[str, bool]) -> None:
    torch.set_float32_matmul_precision(precision[0])
    torch.backends.cudnn.allow_tf32 = precision[1]


FULL, TF32 = ("highest", False), ("high", True)
matmul_precision = ProcessSetting(_get_precision, _set_precision, lambda needed: FULL if FULL in needed else needed[-1])
