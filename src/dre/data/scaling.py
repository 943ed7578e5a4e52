"""Rows centred and divided by one number: found from them, and applied as they are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.image_layout import channels_first, image_layout, model_shape
from dre.data.rows import CACHED_VALUES, CPU, HostRows, Rows, check_stream_output, chunk_length, chunks, is_rows, read_checked


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
        n, values, step = rows.shape[0], math.prod(rows.shape[1:]), chunk_length(rows.shape[1:])
        total, norm = torch.zeros(rows.shape[1:], dtype=torch.float64, device=device), 0.0
        for start in range(0, n, step):
            total += read_checked(rows, start, min(n, start + step)).to(device).double().sum(0)
        mean = total / n
        for start in range(0, n, step):
            apart = read_checked(rows, start, min(n, start + step)).to(device).double() - mean
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


class ScaledRows:
    """Rows as the encoder reads them, scaled piece by piece as they are asked for: no more than that is ever held."""

    def __init__(self, rows: Rows, scaling: Scaling, device: torch.device) -> None:
        self.shape = (rows.shape[0], *model_shape(rows.shape[1:]))
        self._rows = rows
        self._layout = image_layout(rows.shape[1:])
        self._piece = chunk_length(rows.shape[1:], CACHED_VALUES)
        self._device = device
        # Both as tensors on the device: in float64, and by division, rows get the bits that Scaling.apply gives them.
        self._mean = torch.from_numpy(scaling.mean).to(device)
        self._scale = torch.tensor(scaling.scale, dtype=torch.float64, device=device)

    def read(self, start: int, stop: int) -> Tensor:
        step = chunk_length(self.shape[1:])
        if stop - start <= step:
            return self._scaled(read_checked(self._rows, start, stop))
        out = torch.empty(stop - start, *self.shape[1:], device=self._device)
        for at in range(start, stop, step):
            out[at - start : at - start + step] = self.read(at, min(stop, at + step))
        return out

    def take(self, ids: Tensor) -> Tensor:
        """Not looked at for NaN: each step would wait for the answer. The loss tells."""
        return self._scaled(check_stream_output(self._rows, self._rows.take(ids), len(ids), "take"))

    def _scaled(self, x: Tensor) -> Tensor:
        x = x.to(self._device)
        if self._device.type == "cpu" and x.numel() > CACHED_VALUES:  # in pieces that stay in its cache
            out = torch.empty(x.shape)
            for into, part in zip(out.split(self._piece), x.split(self._piece), strict=True):
                into.copy_((part.double() - self._mean) / self._scale)
        else:
            out = ((x.double() - self._mean) / self._scale).float()
        return channels_first(out, self._layout)
