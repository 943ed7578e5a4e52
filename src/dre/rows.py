"""Rows to learn from: the protocol that training reads through, and arrays and streams that speak it."""

from __future__ import annotations

import math
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Scaling:
    """(x - mean) / scale: one mean per value, one scale for all, so that distances keep their proportions."""

    mean: np.ndarray[Any, Any]  # float64, one row's shape
    scale: float

    @classmethod
    def of(cls, X: Any, device: torch.device = CPU) -> Scaling:
        """That of an array or of Rows; on a GPU it is found there."""
        if device.type != "cpu":
            return cls._found_on(device, X if is_rows(X) else HostRows(X))
        n, values = X.shape[0], int(np.prod(X.shape[1:]))
        total, norm = np.zeros(X.shape[1:]), 0.0
        for part in chunks(X):
            total += part.sum(0)
        mean = total / n
        for part in chunks(X):
            norm = math.hypot(norm, _norm(part - mean))
        scale = norm / math.sqrt(n * values)
        return cls(mean, scale if scale > 0 else 1.0)

    @classmethod
    def _found_on(cls, device: torch.device, rows: Rows) -> Scaling:
        n, values, step = rows.shape[0], math.prod(rows.shape[1:]), _step(rows.shape[1:])
        total, norm = torch.zeros(rows.shape[1:], dtype=torch.float64, device=device), 0.0
        for start in range(0, n, step):
            total += checked(rows, start, min(n, start + step)).to(device).double().sum(0)
        mean = total / n
        for start in range(0, n, step):
            apart = checked(rows, start, min(n, start + step)).to(device).double() - mean
            largest = float(apart.abs().max())
            if largest > 0:  # squares may be too large or too small for a float
                norm = math.hypot(norm, largest * math.sqrt(float((apart / largest).square_().sum())))
        scale = norm / math.sqrt(n * values)
        return cls(mean.cpu().numpy(), scale if scale > 0 else 1.0)

    def apply(self, X: Any) -> Tensor:
        """Any array of numbers to a float32 tensor; X is not changed."""
        out = torch.empty(X.shape, dtype=torch.float32)
        at = 0
        for part in chunks(X):
            out[at : at + len(part)] = torch.from_numpy((part - self.mean) / self.scale)
            at += len(part)
        return out


def _norm(x: np.ndarray[Any, Any]) -> float:
    """Of all values together; their squares may be too large or too small for a float."""
    largest = float(np.abs(x).max())
    return largest * math.sqrt(float(np.square(x / largest).sum())) if largest > 0 else 0.0


def chunks(X: Any) -> Any:
    """Float64 copies of consecutive rows of a dense or sparse array, or of Rows."""
    n, step = X.shape[0], _step(X.shape[1:], min(CACHED_VALUES, CHUNK_VALUES))
    wide = step * max(1, CHUNK_VALUES // CACHED_VALUES) if is_rows(X) else step  # a stream is asked less often
    for start in range(0, n, wide):
        part = checked(X, start, min(n, start + wide)).cpu().numpy() if is_rows(X) else X[start : start + wide]
        for at in range(0, part.shape[0], step):
            some = part[at : at + step]
            yield np.asarray(some.toarray() if hasattr(some, "toarray") else some, dtype=np.float64)


def whole(rows: Rows, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
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


def _step(shape: tuple[int, ...], values: int | None = None) -> int:
    return max(1, (values or CHUNK_VALUES) // max(1, math.prod(shape)))


def checked(rows: Rows, start: int, stop: int) -> Tensor:
    """``rows.read``, and what a stream can only be asked for then: that it gives what it promised, and finite numbers."""
    if isinstance(rows, HostRows):  # an array was looked at when it was handed in
        return rows.read(start, stop)
    x = _promised(rows, rows.read(start, stop), stop - start, "read")
    finite = x.isfinite()
    if not bool(finite.all()):
        first = (~finite).flatten(1).any(1).nonzero()[0, 0]
        kind = "NaN" if x[first].isnan().any() else "infinity"
        raise ValueError(f"Input X contains {kind}, first in row {start + int(first)}. Leave such rows out, or fill them in.")
    return x


def _promised(rows: Rows, x: Any, n: int, method: str) -> Tensor:
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


class SomeRows:
    """Some of other rows, in the order of their ids."""

    def __init__(self, rows: Rows, ids: Tensor) -> None:
        self.shape = (len(ids), *rows.shape[1:])
        self._rows, self._ids = rows, ids

    def read(self, start: int, stop: int) -> Tensor:
        return self._rows.take(self._ids[start:stop])

    def take(self, ids: Tensor) -> Tensor:
        return self._rows.take(self._ids[ids])


def is_held(rows: Rows, device: torch.device) -> bool:
    """Whether they lie in the memory of this device."""
    return isinstance(rows, ArrayRows) and rows.data.device.type == device.type


class ScaledRows:
    """Rows as the encoder reads them, scaled piece by piece as they are asked for: no more than that is ever held."""

    def __init__(self, rows: Rows, scaling: Scaling, device: torch.device) -> None:
        self.shape = (rows.shape[0], *model_shape(rows.shape[1:]))
        self._rows = rows
        self._layout = image_layout(rows.shape[1:])
        self._piece = _step(rows.shape[1:], CACHED_VALUES)
        self._device = device
        # Both as tensors on the device: in float64, and by division, rows get the bits that Scaling.apply gives them.
        self._mean = torch.from_numpy(scaling.mean).to(device)
        self._scale = torch.tensor(scaling.scale, dtype=torch.float64, device=device)

    def read(self, start: int, stop: int) -> Tensor:
        step = _step(self.shape[1:])
        if stop - start <= step:
            return self._scaled(checked(self._rows, start, stop))
        out = torch.empty(stop - start, *self.shape[1:], device=self._device)
        for at in range(start, stop, step):
            out[at - start : at - start + step] = self.read(at, min(stop, at + step))
        return out

    def take(self, ids: Tensor) -> Tensor:
        """Not looked at for NaN: each step would wait for the answer. The loss tells."""
        return self._scaled(_promised(self._rows, self._rows.take(ids), len(ids), "take"))

    def _scaled(self, x: Tensor) -> Tensor:
        x = x.to(self._device)
        if self._device.type == "cpu" and x.numel() > CACHED_VALUES:  # in pieces that stay in its cache
            out = torch.empty(x.shape)
            for into, part in zip(out.split(self._piece), x.split(self._piece), strict=True):
                into.copy_((part.double() - self._mean) / self._scale)
        else:
            out = ((x.double() - self._mean) / self._scale).float()
        return channels_first(out, self._layout)


def fits(nbytes: int, device: torch.device) -> bool:
    """Whether a device can hold so much and still work."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return nbytes < free / 2  # the other half is for the graph, the network and its gradients


def image_layout(shape: tuple[int, ...]) -> str:
    """How the axes of one row are to be read: a vector, or an image with its channels absent, last or first.

    >>> image_layout((28, 28)), image_layout((32, 32, 3)), image_layout((3, 32, 32)), image_layout((50,))
    ('hw', 'hwc', 'chw', 'd')
    >>> image_layout((9, 9, 200)), image_layout((3, 32, 48))
    ('hwc', 'chw')
    """
    if len(shape) > 3:
        raise ValueError(f"rows of the shape {shape}: expected vectors (d,) or images (h, w), (h, w, c), (c, h, w); reshape X")
    if len(shape) < 3:
        return "hw" if len(shape) == 2 else "d"
    first, middle, last = shape
    if (first == middle) != (middle == last):  # a square image, whatever the number of its channels
        return "hwc" if first == middle else "chw"
    return "hwc" if last <= first else "chw"  # fewer channels than pixels


def channels_first(x: Tensor, layout: str) -> Tensor:
    """Images as (n, c, h, w); vectors as they are."""
    if layout == "hw":
        return x[:, None]
    if layout == "hwc":  # a copy: convolutions round differently where the channels lie last in memory
        return x.movedim(-1, 1).clone(memory_format=torch.contiguous_format)
    return x


def model_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which an encoder sees one row.

    >>> model_shape((28, 28)), model_shape((32, 32, 3)), model_shape((50,))
    ((1, 28, 28), (3, 32, 32), (50,))
    """
    return tuple(channels_first(torch.empty(0, *shape), image_layout(shape)).shape[1:])
