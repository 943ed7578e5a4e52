"""Rows to learn from: the protocol that training reads through, and arrays that speak it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

CHUNK_VALUES = 2**24  # values converted at a time


class Rows(Protocol):
    """Data that are read as float32 tensors of the shape (rows, *one row's shape)."""

    shape: tuple[int, ...]

    def read(self, start: int, stop: int) -> Tensor:
        """Sequential rows, what files are good at."""

    def take(self, ids: Tensor) -> Tensor:
        """Rows in any order, what memory is good at."""


@dataclass(frozen=True)
class Scaling:
    """(x - mean) / scale: one mean per value, one scale for all, so that distances keep their proportions."""

    mean: np.ndarray[Any, Any]  # float64, one row's shape
    scale: float

    @classmethod
    def of(cls, X: Any) -> Scaling:
        n, values = X.shape[0], int(np.prod(X.shape[1:]))
        total, norm = np.zeros(X.shape[1:]), 0.0
        for part in chunks(X):
            total += part.sum(0)
        mean = total / n
        for part in chunks(X):
            norm = math.hypot(norm, _norm(part - mean))
        scale = norm / math.sqrt(n * values)
        return cls(mean, scale if scale > 0 else 1.0)

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
    """Float64 copies of consecutive rows of a dense or sparse array."""
    step = max(1, CHUNK_VALUES // max(1, int(np.prod(X.shape[1:]))))
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        yield np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)


class ArrayRows:
    """A tensor in memory, kept on the device that computes if it fits there."""

    def __init__(self, data: Tensor, device: torch.device) -> None:
        self.data = data.to(device) if _fits(data, device) else data
        self.shape = tuple(data.shape)
        self._device = device

    def read(self, start: int, stop: int) -> Tensor:
        return self.data[start:stop].to(self._device)

    def take(self, ids: Tensor) -> Tensor:
        return self.data[ids.to(self.data.device)].to(self._device)


def _fits(data: Tensor, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return data.nbytes < free / 2  # the other half is for the graph, the network and its gradients


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
