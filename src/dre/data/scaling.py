"""Rows as the encoder reads them: standardized if asked for, transformed by the metric, centered and divided by one number."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from dre.data.image_layout import channels_first, image_layout, model_shape
from dre.data.metric import check_transform, transform_rows
from dre.data.moments import Moments, find_moments
from dre.data.range_error import RangeError
from dre.data.rows import (
    CACHED_VALUES,
    CPU,
    HostRows,
    Rows,
    check_stream_output,
    chunk_length,
    describe_row,
    empty_rows,
    float64_pieces,
    in_blocks,
    read_checked,
)
from dre.data.sparse import METRICS as SPARSE_METRICS
from dre.data.sparse import ScaledSparse, is_sparse
from dre.data.sparse import moments as sparse_moments
from dre.data.units import DominantColumns, dominant_columns
from dre.progress.activity import activity
from dre.runtime.float64 import float64_device

FARTHEST = 1e15  # units of the scale: float32 holds squares of such values and sums of 1e8 of them, as layer norm computes


def is_near(scaled: Tensor) -> Tensor:
    """Whether float32 can compute with scaled values; NaN is not near.

    >>> is_near(torch.tensor([0.0, -1e14, 1e16, float("nan")]))
    tensor([ True,  True, False, False])
    """
    return scaled.abs() <= FARTHEST


class Scaling(nn.Module):
    """From raw rows to what an encoder reads, in float64 and then rounded to float32.

    ==========================  =====================================================================
    standardized only           x ← (x - column_mean) / column_std
    metric                      x ← ``transform_rows(x, metric)``
    always                      x ← (x - mean) / scale, with one scale for all values
    beyond ``FARTHEST``         NaN
    images                      channels first
    ==========================  =====================================================================

    One scale for all values keeps the proportions of distances.

    Parameters
    ----------
    mean : Tensor of the shape of one row, float64
    scale : float
    metric : {"euclidean", "cosine", "correlation"}
    columns : (mean, std), optional
        Of each column, two tensors of the shape of one row: only for standardized rows.
    """

    mean: Tensor
    scale: Tensor
    column_mean: Tensor | None
    column_std: Tensor | None

    def __init__(
        self, mean: Tensor, scale: float, *, metric: str = "euclidean", columns: tuple[Tensor, Tensor] | None = None
    ) -> None:
        super().__init__()
        self.metric = check_transform(metric)
        self.register_buffer("mean", mean)
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.double))
        self.register_buffer("column_mean", None if columns is None else columns[0])
        self.register_buffer("column_std", None if columns is None else columns[1])
        self.dominant_columns: DominantColumns | None = None  # a few that outweigh all others
        self.is_constant = False  # whether all rows of the fit were equal

    @classmethod
    def fit(
        cls,
        X: Any,
        device: torch.device = CPU,
        *,
        metric: str = "euclidean",
        standardize: bool = False,
        merge: Callable[[Moments], Moments] = lambda found: found,
    ) -> Scaling:
        """Find the scaling of an array or of Rows; ``device`` computes it.

        ``merge`` returns the moments of all rows, from those of X, where X is a part of them.

        Examples
        --------
        >>> scaling = Scaling.fit(torch.tensor([[0.0, 100.0], [2.0, 300.0]]).numpy(), standardize=True)
        >>> scaling(torch.tensor([[2.0, 300.0]]))
        tensor([[1., 1.]])
        """
        n, shape, device = X.shape[0], tuple(X.shape[1:]), float64_device(device)
        columns = None
        if standardize:
            raw = merge(find_moments(lambda: float64_pieces(X, device), n))
            _check_range(raw, float64_pieces(X, device))
            columns = raw.mean.cpu(), raw.column_scales().cpu()
        if is_sparse(X) and not standardize and metric in SPARSE_METRICS:
            moments = sparse_moments(X, metric)
        else:
            unscaled = cls(torch.zeros(shape, dtype=torch.double), 1.0, metric=metric, columns=columns).to(device)
            moments = find_moments(lambda: (unscaled._before_centering(part) for part in float64_pieces(X, device)), n)
        moments = merge(moments)
        _check_range(moments, float64_pieces(X, device))
        scaling = cls(moments.mean.cpu(), moments.scale(), metric=metric, columns=columns)
        scaling.is_constant = moments.unit == 0
        if not standardize and len(shape) == 1 and shape[0] > 1 and moments.unit > 0:
            scaling.dominant_columns = dominant_columns(moments.squares.cpu())
        return scaling

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one raw row."""
        return tuple(self.mean.shape)

    def forward(self, x: Tensor) -> Tensor:
        """Scale raw rows (n, ...) of any number type; the result is float32, images with channels first."""
        scaled = self.scores(x).float()
        return channels_first(torch.where(is_near(scaled), scaled, torch.nan), image_layout(self.shape))

    def scores(self, x: Tensor) -> Tensor:
        """Return the scaled values as float64, in the layout of the raw rows: deviations in units of the scale."""
        return (self._before_centering(x.double()) - self.mean) / self.scale

    def standardized(self, x: Tensor) -> Tensor:
        """Return the rows whose distances the metric measures: standardized if the model standardizes, else unchanged."""
        if self.column_mean is None or self.column_std is None:
            return x
        return (x - self.column_mean) / self.column_std

    def _before_centering(self, x: Tensor) -> Tensor:
        return transform_rows(self.standardized(x), self.metric)

    def scaled_mean(self) -> Tensor:
        """Return what was subtracted from every row, at the scale and in the layout that the encoder sees."""
        return self._as_row(self.mean / self.scale)

    def mean_image(self) -> Tensor:
        """Return the mean of the raw images, with channels first."""
        return self._as_row(self.mean)

    def _as_row(self, mean: Tensor) -> Tensor:
        return channels_first(mean.float()[None], image_layout(self.shape))[0]


def _check_range(moments: Moments, pieces: Iterator[Tensor]) -> None:
    """Raise a RangeError that names the largest value if the moments have overflowed."""
    if moments.is_finite:
        return
    row, found, start = 0, torch.zeros(1, dtype=torch.double), 0
    for part in pieces:
        largest = part.flatten(1).abs().amax(1)
        if float(largest.max()) > float(found.abs().max()):
            row, found = start + int(largest.argmax()), part[int(largest.argmax())]
        start += len(part)
    at = int(found.abs().argmax())
    place = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), found.shape))
    reason = "sums of such values are too large for float64. Divide X by a constant, or leave this row out."
    raise RangeError(row, place, float(found.flatten()[at]), reason)


class ScaledRows:
    """Rows that are scaled when they are read, piece by piece: no more than a piece is held."""

    def __init__(self, rows: Rows, scaling: Scaling, device: torch.device) -> None:
        self.shape = (rows.shape[0], *model_shape(rows.shape[1:]))
        self._rows, self._device = rows, device
        self._scaling = copy.deepcopy(scaling).to(float64_device(device))
        self._piece = chunk_length(rows.shape[1:], CACHED_VALUES)
        self.thread_safe = bool(getattr(rows, "thread_safe", False))
        self.in_blocks, self.is_stream = in_blocks(rows), not isinstance(rows, HostRows)

    def place(self, row: int) -> str:
        return describe_row(self._rows, row)

    @property
    def sparse(self) -> ScaledSparse | None:
        """Products with the scaled rows that never make them dense; None if they are not sparse."""
        scaling, X = self._scaling, self._rows.X if isinstance(self._rows, HostRows) else None
        if not is_sparse(X) or scaling.column_mean is not None or scaling.metric not in SPARSE_METRICS:
            return None
        return ScaledSparse(X, scaling.metric, scaling.mean, float(scaling.scale))

    def read(self, start: int, stop: int) -> Tensor:
        step = chunk_length(self.shape[1:])
        if stop - start <= step:
            return self._scale(read_checked(self._rows, start, stop))
        out = empty_rows((stop - start, *self.shape[1:]), self._device, self)
        with activity("reading rows", stop - start) as reading:
            for at in range(start, stop, step):
                out[at - start : at - start + step] = self.read(at, min(stop, at + step))
                reading.advance(step)
        return out

    def take(self, ids: Tensor) -> Tensor:
        """Take rows without looking for NaN: each step would wait for the answer, and the loss shows it."""
        return self._scale(check_stream_output(self._rows, self._rows.take(ids), len(ids), "take"))

    def _scale(self, x: Tensor) -> Tensor:
        x = x.to(self._scaling.mean.device)
        if not x.is_cpu or x.numel() <= CACHED_VALUES:
            scaled: Tensor = self._scaling(x)
        else:
            scaled = torch.cat([self._scaling(part) for part in x.split(self._piece)])  # pieces stay in the CPU's cache
        return scaled.to(self._device)
