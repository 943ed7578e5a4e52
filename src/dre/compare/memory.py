"""Peak memory of a block of code, in addition to what was in use before: of the process and of the GPU."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from types import TracebackType

import torch

STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """Context manager that measures peak memory.

    ``host_mb`` is None on systems other than Linux, ``gpu_mb`` without a GPU.


    >>> with PeakMemory() as peak:
    ...     held = bytearray(50_000_000)
    >>> peak.host_mb is None or peak.host_mb > 40
    True
    """

    host_mb: float | None = None
    gpu_mb: float | None = None

    def __enter__(self) -> PeakMemory:
        _release_free_memory()
        self._before = _reset_peak()
        self._gpu_before = 0
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self._gpu_before = torch.cuda.memory_allocated()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            self.host_mb = round(max(0.0, _status("VmHWM") - self._before), 1)
        if torch.cuda.is_available():
            self.gpu_mb = round((torch.cuda.max_memory_allocated() - self._gpu_before) / 1e6, 1)


def _release_free_memory() -> None:
    """Return memory to the system that the allocator kept, or the block could reuse it unseen."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return  # another system, or another C library


def _reset_peak() -> float | None:
    try:
        CLEAR_REFS.write_text("5")
    except OSError:
        return None
    return _status("VmRSS")


def _status(name: str) -> float:
    """Return a field of /proc/self/status in MB."""
    return next(int(line.split()[1]) * 1024 / 1e6 for line in STATUS.read_text().splitlines() if line.startswith(name))
