"""Rows to learn from: the protocol that training reads through, and arrays and streams that implement it."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, Protocol, TypeGuard

import numpy as np
import torch
from torch import Tensor

from dre.progress.activity import activity
from dre.runtime import available_bytes, scratch
from dre.runtime.float64 import float64_device

CHUNK_VALUES = 2**24  # values read at a time
CACHED_VALUES = 2**18  # values converted at a time on a CPU: within its cache that is many times as fast
CPU = torch.device("cpu")


class Rows(Protocol):
    """Data that are read as tensors of shape (rows, *shape of one row), on any device.

    Rows that set ``thread_safe = True`` may be read by several threads at once. With ``in_blocks = True`` reading one row means
    decoding a block of them, as in compressed files. ``is_stream = True`` says that they may be larger than the memory.
    """

    shape: tuple[int, ...]

    def read(self, start: int, stop: int) -> Tensor:
        """Return consecutive rows, which files are good at."""

    def take(self, ids: Tensor) -> Tensor:
        """Return rows in any order, which memory is good at; the ids are on the device that computes."""


def is_rows(X: Any) -> TypeGuard[Rows]:
    """Whether X has a shape and can be read in pieces; a DataFrame may have columns with these names."""
    return (
        not isinstance(X, Tensor) and hasattr(X, "shape") and all(callable(getattr(X, name, None)) for name in ("read", "take"))
    )


def chunk_length(shape: tuple[int, ...], values: int | None = None) -> int:
    """Number of rows of this shape that are read at a time."""
    return max(1, (values or CHUNK_VALUES) // max(1, math.prod(shape)))


def float64_pieces(X: Any, device: torch.device = CPU) -> Generator[Tensor, None, None]:
    """Yield consecutive rows of a dense or sparse array, or of Rows, as float64 tensors on a device, if it has float64.

    On a CPU the pieces fit into its cache. Rows are read in chunks, whatever the size of the pieces.
    """
    device = float64_device(device)
    rows = X if is_rows(X) else HostRows(X)
    n, step = rows.shape[0], chunk_length(rows.shape[1:])
    piece = chunk_length(rows.shape[1:], min(CACHED_VALUES, CHUNK_VALUES)) if device.type == "cpu" else step
    read = step if is_rows(X) else piece
    with activity("reading rows", n) as reading:
        for start in range(0, n, read):
            for part in read_checked(rows, start, min(n, start + read)).split(piece):
                yield part.to(device).double()
                reading.advance(len(part))


def read_all(rows: Rows, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Read all rows into one array, in chunks. Raise a ValueError first if they need more than half of the free memory."""
    needed, available = math.prod(rows.shape) * np.dtype(dtype).itemsize, available_bytes()
    if available is not None and needed > available / 2:
        raise ValueError(
            f"{rows.shape[0]:,} rows need {needed / 2**30:.1f} GiB as an array of {np.dtype(dtype).name}, more than half of "
            f"the {available / 2**30:.1f} GiB available: take fewer of them"
        )
    out, at = np.empty(rows.shape, dtype), 0
    for part in float64_pieces(rows):
        out[at : at + len(part)] = part.numpy()
        at += len(part)
    return out


def read_checked(rows: Rows, start: int, stop: int) -> Tensor:
    """Read rows, and raise if a stream returns another shape than it promised, NaN or infinity."""
    if isinstance(rows, HostRows):  # an array was checked when it was passed in
        return rows.read(start, stop)
    x = check_stream_output(rows, rows.read(start, stop), stop - start, "read")
    finite = x.isfinite()
    if not bool(finite.all()):
        first = (~finite).flatten(1).any(1).nonzero()[0, 0]
        kind = "NaN" if x[first].isnan().any() else "infinity"
        where = describe_row(rows, start + int(first))
        raise ValueError(f"Input X contains {kind}, first in {where}. Leave such rows out, or impute them.")
    return x


def describe_row(rows: Rows, row: int) -> str:
    """Name a row for messages; rows of a file know its name."""
    place = getattr(rows, "place", None)
    return f"row {row}" if place is None else str(place(row))


def check_stream_output(rows: Rows, x: Any, n: int, method: str) -> Tensor:
    """Raise a TypeError if a user's ``read`` or ``take`` does not return n rows as a tensor."""
    expected = (n, *rows.shape[1:])
    if not isinstance(x, Tensor) or tuple(x.shape) != expected:
        given = f"a tensor {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{type(rows).__name__}.{method} returned {given}: it must return a float32 tensor {expected}")
    return x


def empty_rows(shape: tuple[int, ...], device: torch.device, rows: Rows, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return an uninitialized tensor for what is computed from rows; a large one of a stream lies in a scratch file."""
    if device.type != "cpu" or not is_stream(rows):
        return torch.empty(shape, dtype=dtype, device=device)
    return scratch.empty(
        shape, dtype, what=f"{shape[0]:,} rows of {math.prod(shape[1:]):,} values", held_bytes=held_of_stream()
    )


def held_of_stream() -> int:
    """Largest size in bytes of an array that is held in memory for a stream."""
    return min(scratch.HELD_BYTES, scratch.held())


def is_stream(rows: Rows) -> bool:
    """Whether rows may be larger than the memory."""
    return bool(getattr(rows, "is_stream", False))


def in_blocks(rows: Rows) -> bool:
    """Whether reading one row means decoding a block of them."""
    return bool(getattr(rows, "in_blocks", False))


class HostRows:
    """An array on the host, or a tensor where it lies, of any number type, read unchanged. The computing device scales it."""

    thread_safe = True

    def __init__(self, X: Any) -> None:
        self.shape = tuple(X.shape)
        self.X = X

    def read(self, start: int, stop: int) -> Tensor:
        return _as_tensor(self.X[start:stop])

    def take(self, ids: Tensor) -> Tensor:
        return _as_tensor(rows_at(self.X, ids))


def rows_at(X: Any, ids: Tensor) -> Any:
    """Return the rows of an array or a tensor with these ids, of its own kind."""
    return X[ids.to(X.device) if isinstance(X, Tensor) else ids.cpu().numpy()]


def _as_tensor(part: Any) -> Tensor:
    if isinstance(part, Tensor):
        return part.contiguous()
    part = np.asarray(part.toarray() if hasattr(part, "toarray") else part)
    known = part.dtype.kind in "bf" or part.dtype.kind == "i" or part.dtype == np.uint8
    wide = part.dtype.itemsize > 8 or not part.dtype.isnative
    part = np.ascontiguousarray(part, None if known and not wide else np.float64)
    # torch warns of read-only memory, and refuses the negative stride that numpy ignores in a single row
    return torch.from_numpy(part if part.flags.writeable and min(part.strides, default=0) >= 0 else part.copy())


class ArrayRows:
    """A float32 tensor, kept on the computing device if it fits there; ``is_stream=True`` if it lies in a file."""

    thread_safe = True

    def __init__(self, data: Tensor, device: torch.device, *, is_stream: bool = False) -> None:
        self.data = data.to(device) if fits(data.nbytes, device) else data
        self.shape, self.is_stream = tuple(data.shape), is_stream
        self._device = device

    def read(self, start: int, stop: int) -> Tensor:
        return self.data[start:stop].to(self._device)

    def take(self, ids: Tensor) -> Tensor:
        wanted = ids.to(self.data.device)
        if self._device.type != "cuda" or self.data.is_cuda:
            return self.data[wanted].to(self._device)
        # Pinned memory is copied while the GPU computes. Its allocator waits for the copy before it gives it out again.
        buffer = torch.empty(len(wanted), *self.shape[1:], dtype=self.data.dtype, pin_memory=True)
        return torch.index_select(self.data, 0, wanted, out=buffer).to(self._device, non_blocking=True)


class RowSubset:
    """Rows of other Rows, in the order of the given ids."""

    def __init__(self, rows: Rows, ids: Tensor) -> None:
        self.shape = (len(ids), *rows.shape[1:])
        self._rows, self._ids = rows, ids
        self.in_blocks, self.is_stream = in_blocks(rows), is_stream(rows)

    def place(self, row: int) -> str:
        return describe_row(self._rows, int(self._ids[row]))

    def read(self, start: int, stop: int) -> Tensor:
        """Take the rows in chunks: ``take`` may need several times their memory."""
        pieces = self._ids[start:stop].split(chunk_length(self.shape[1:]))
        first = self._rows.take(pieces[0])
        out = empty_rows((stop - start, *first.shape[1:]), first.device, self, first.dtype)
        at = len(first)
        out[:at] = first
        for piece in pieces[1:]:
            out[at : at + len(piece)] = self._rows.take(piece)
            at += len(piece)
        return out

    def take(self, ids: Tensor) -> Tensor:
        return self._rows.take(self._ids[ids.to(self._ids.device)])


class RowSlice:
    """A range of other Rows."""

    def __init__(self, rows: Rows, start: int, stop: int) -> None:
        self.shape = (stop - start, *rows.shape[1:])
        self._rows, self._start = rows, start
        self.thread_safe = bool(getattr(rows, "thread_safe", False))
        self.in_blocks, self.is_stream = in_blocks(rows), is_stream(rows)

    def place(self, row: int) -> str:
        return describe_row(self._rows, self._start + row)

    def read(self, start: int, stop: int) -> Tensor:
        return self._rows.read(self._start + start, self._start + stop)

    def take(self, ids: Tensor) -> Tensor:
        return self._rows.take(self._start + ids)


def is_on_device(rows: Rows, device: torch.device) -> bool:
    """Whether the rows are in the memory of this device."""
    return isinstance(rows, ArrayRows) and rows.data.device.type == device.type and not rows.is_stream


def fits(nbytes: int, device: torch.device) -> bool:
    """Whether a device can hold so much and still work."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return nbytes < free / 2  # the other half is for the graph, the network and its gradients
