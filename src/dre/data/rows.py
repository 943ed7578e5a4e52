"""Rows to learn from: the protocol that training reads through, and arrays and streams that speak it."""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeGuard

import numpy as np
import torch
from torch import Tensor

from dre.runtime import available_bytes

CHUNK_VALUES = 2**24  # values read at a time
CACHED_VALUES = 2**18  # values of an array converted at a time: what stays in a CPU's cache is many times as quick
CPU = torch.device("cpu")


class Rows(Protocol):
    """Data that are read as float32 tensors of the shape (rows, *one row's shape), on whichever device they are made."""

    shape: tuple[int, ...]

    def read(self, start: int, stop: int) -> Tensor:
        """Sequential rows, what files are good at."""

    def take(self, ids: Tensor) -> Tensor:
        """Rows in any order, what memory is good at; the ids are on the device that computes."""


def is_rows(X: Any) -> TypeGuard[Rows]:
    """Whether X is read piece by piece: it has a shape, and can read and take; a column of a table may have such a name."""
    return hasattr(X, "shape") and all(callable(getattr(X, name, None)) for name in ("read", "take"))


def chunks(X: Any) -> Any:
    """Float64 copies of consecutive rows of a dense or sparse array, or of Rows."""
    n, step = X.shape[0], chunk_length(X.shape[1:], min(CACHED_VALUES, CHUNK_VALUES))
    wide = step * max(1, CHUNK_VALUES // CACHED_VALUES) if is_rows(X) else step  # a stream is asked less often
    for start in range(0, n, wide):
        part = read_checked(X, start, min(n, start + wide)).cpu().numpy() if is_rows(X) else X[start : start + wide]
        for at in range(0, part.shape[0], step):
            some = part[at : at + step]
            yield np.asarray(some.toarray() if hasattr(some, "toarray") else some, dtype=np.float64)


def read_all(rows: Rows, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """All of them as one array, read in chunks; where memory would not hold it, that is said before any is read."""
    needed, available = math.prod(rows.shape) * np.dtype(dtype).itemsize, available_bytes()
    if available is not None and needed > available / 2:
        raise ValueError(
            f"{rows.shape[0]:,} rows need {needed / 2**30:.1f} GiB as an array of {np.dtype(dtype).name}, more than half of "
            f"the {available / 2**30:.1f} GiB available: take fewer of them"
        )
    out, at = np.empty(rows.shape, dtype), 0
    for part in chunks(rows):
        out[at : at + len(part)] = part
        at += len(part)
    return out


def chunk_length(shape: tuple[int, ...], values: int | None = None) -> int:
    return max(1, (values or CHUNK_VALUES) // max(1, math.prod(shape)))


def read_checked(rows: Rows, start: int, stop: int) -> Tensor:
    """``rows.read``, and what a stream can only be asked for then: that it gives what it promised, and finite numbers."""
    if isinstance(rows, HostRows):  # an array was looked at when it was handed in
        return rows.read(start, stop)
    x = check_stream_output(rows, rows.read(start, stop), stop - start, "read")
    finite = x.isfinite()
    if not bool(finite.all()):
        first = (~finite).flatten(1).any(1).nonzero()[0, 0]
        kind = "NaN" if x[first].isnan().any() else "infinity"
        raise ValueError(f"Input X contains {kind}, first in row {start + int(first)}. Leave such rows out, or fill them in.")
    return x


def check_stream_output(rows: Rows, x: Any, n: int, method: str) -> Tensor:
    expected = (n, *rows.shape[1:])
    if not isinstance(x, Tensor) or tuple(x.shape) != expected:
        given = f"a tensor {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{type(rows).__name__}.{method} gave {given}: it must give a float32 tensor {expected}")
    return x


class HostRows:
    """An array on the host, of any kind of numbers, read as it is: what computes converts and scales it."""

    def __init__(self, X: Any) -> None:
        self.shape = tuple(X.shape)
        self._X = X

    def read(self, start: int, stop: int) -> Tensor:
        return _as_tensor(self._X[start:stop])

    def take(self, ids: Tensor) -> Tensor:
        return _as_tensor(self._X[ids.cpu().numpy()])


def _as_tensor(part: Any) -> Tensor:
    part = np.asarray(part.toarray() if hasattr(part, "toarray") else part)
    known = part.dtype.kind in "bf" or part.dtype.kind == "i" or part.dtype == np.uint8
    wide = part.dtype.itemsize > 8 or not part.dtype.isnative
    part = np.ascontiguousarray(part, None if known and not wide else np.float64)
    return torch.from_numpy(part if part.flags.writeable else part.copy())  # torch warns of memory that it must not write to


class ArrayRows:
    """A tensor in memory, kept on the device that computes if it fits there."""

    def __init__(self, data: Tensor, device: torch.device) -> None:
        self.data = data.to(device) if fits(data.nbytes, device) else data
        self.shape = tuple(data.shape)
        self._device = device

    def read(self, start: int, stop: int) -> Tensor:
        return self.data[start:stop].to(self._device)

    def take(self, ids: Tensor) -> Tensor:
        return self.data[ids.to(self.data.device)].to(self._device)


class RowSubset:
    """Some of other rows, in the order of their ids."""

    def __init__(self, rows: Rows, ids: Tensor) -> None:
        self.shape = (len(ids), *rows.shape[1:])
        self._rows, self._ids = rows, ids

    def read(self, start: int, stop: int) -> Tensor:
        """Piece by piece: what takes rows may need several times their memory."""
        pieces = self._ids[start:stop].split(chunk_length(self.shape[1:]))
        first = self._rows.take(pieces[0])
        out = torch.empty(stop - start, *first.shape[1:], dtype=first.dtype, device=first.device)
        at = len(first)
        out[:at] = first
        for piece in pieces[1:]:
            out[at : at + len(piece)] = self._rows.take(piece)
            at += len(piece)
        return out

    def take(self, ids: Tensor) -> Tensor:
        return self._rows.take(self._ids[ids])


class RowSlice:
    """Rows of others from one to another, as rows of their own."""

    def __init__(self, rows: Rows, start: int, stop: int) -> None:
        self.shape = (stop - start, *rows.shape[1:])
        self._rows, self._start = rows, start

    def read(self, start: int, stop: int) -> Tensor:
        return self._rows.read(self._start + start, self._start + stop)

    def take(self, ids: Tensor) -> Tensor:
        return self._rows.take(self._start + ids)


def is_on_device(rows: Rows, device: torch.device) -> bool:
    """Whether they lie in the memory of this device."""
    return isinstance(rows, ArrayRows) and rows.data.device.type == device.type


def fits(nbytes: int, device: torch.device) -> bool:
    """Whether a device can hold so much and still work."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return nbytes < free / 2  # the other half is for the graph, the network and its gradients
