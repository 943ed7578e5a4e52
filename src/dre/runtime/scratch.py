"""Arrays that are larger than the memory should hold, in files that vanish with the process.

Their pages belong to a file: the system writes them out and reads them again as it needs memory. ``TMPDIR`` names the folder.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile

import torch
from torch import Tensor

from dre.runtime.host_memory import free_bytes

HELD_BYTES = 2**30  # of an array that is held in memory in any case, if so much is free
HELD_SHARE = 4  # an array takes at most one part in four of the free memory
FREE_DISK = 2**30  # that is left on the disk


class ScratchError(OSError):
    """No room for a scratch file; the message names the folder and the remedy."""


def empty(shape: tuple[int, ...], dtype: torch.dtype, *, what: str, held_bytes: int | None = None) -> Tensor:
    """Return an uninitialized tensor on the host, in memory or in a scratch file.

    Parameters
    ----------
    shape : tuple of int
    dtype : torch.dtype
    what : str
        What it will hold, for the error if the disk is full.
    held_bytes : int, default=None
        Largest size in memory; by default what a quarter of the free memory allows.

    Examples
    --------
    >>> empty((3, 2), torch.float32, what="features").shape
    torch.Size([3, 2])
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes <= (held() if held_bytes is None else held_bytes):
        return torch.empty(shape, dtype=dtype)
    return in_file(shape, dtype, what=what)


def held() -> int:
    """Largest size in bytes of an array that is held in memory at present."""
    free = free_bytes()
    return HELD_BYTES if free is None else free // HELD_SHARE


def in_file(shape: tuple[int, ...], dtype: torch.dtype, *, what: str) -> Tensor:
    """Return an uninitialized tensor in a scratch file, whatever its size."""
    size = math.prod(shape)
    nbytes, folder = size * dtype.itemsize, tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if nbytes + FREE_DISK > free:
        raise ScratchError(
            f"{what} need a scratch file of {nbytes / 2**30:.1f} GiB, but {folder} has {free / 2**30:.1f} GiB left. "
            "Set TMPDIR to a folder on a larger disk, or pass sample=1_000_000."
        )
    handle, path = tempfile.mkstemp(prefix="dre-", suffix=".scratch", dir=folder)
    try:
        with os.fdopen(handle, "r+b") as file:
            if hasattr(os, "posix_fallocate"):  # a disk that fills up later would end the process without a word
                os.posix_fallocate(file.fileno(), 0, max(1, nbytes))
            else:
                file.truncate(max(1, nbytes))
        return torch.from_file(path, shared=True, size=size, dtype=dtype).view(shape)
    except (OSError, RuntimeError) as problem:
        raise ScratchError(f"{what} need a scratch file of {nbytes / 2**30:.1f} GiB in {folder}: {problem}") from problem
    finally:
        os.unlink(path)  # the mapping keeps the content until it is released
