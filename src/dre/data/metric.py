"""Metrics as transforms of the rows, after which the Euclidean distance orders pairs as the metric does.

========================  =====================================  ==========================================
metric                    transform of a row x                   Euclidean distance d of two transformed rows
========================  =====================================  ==========================================
``"euclidean"``           x                                      the metric itself
``"cosine"``              x / |x|                                d² = 2 · (1 - cosine similarity)
``"correlation"``         (x - mean(x)) / |x - mean(x)|          d² = 2 · (1 - Pearson correlation)
========================  =====================================  ==========================================
"""

from __future__ import annotations

import torch
from torch import Tensor

from dre.notation import unknown

METRICS = ("euclidean", "cosine", "correlation")
ROUNDING = 16  # of the last bit of a mean


def check_metric(metric: str) -> str:
    """Return the metric, or raise a ValueError that lists the known ones."""
    if metric not in METRICS:
        raise ValueError(unknown("metric", str(metric), list(METRICS)))
    return metric


def transform_rows(x: Tensor, metric: str) -> Tensor:
    """Transform rows so that their Euclidean distances order pairs as ``metric`` does.

    Parameters
    ----------
    x : Tensor of shape (n, ...)
        Rows as they were given, not centered: centering would change what an angle means.
    metric : {"euclidean", "cosine", "correlation"}

    Returns
    -------
    Tensor of the same shape. A row without a direction (all zeros, or constant under ``"correlation"``) becomes zero.

    Examples
    --------
    >>> transform_rows(torch.tensor([[3.0, 4.0]]), "cosine")
    tensor([[0.6000, 0.8000]])
    """
    if metric == "euclidean":
        return x
    flat = x.flatten(1)
    if metric == "correlation":
        mean = flat.mean(1, keepdim=True)
        centered = flat - mean
        # What is left of equal values is rounding, and no direction.
        rounding = ROUNDING * torch.finfo(centered.dtype).eps * mean.abs()
        flat = torch.where(centered.abs().amax(1, keepdim=True) > rounding, centered, 0.0)
    largest = flat.abs().amax(1, keepdim=True)
    flat = flat / torch.where(largest > 0, largest, 1.0)  # squares can't overflow or vanish
    norm = flat.norm(dim=1, keepdim=True)
    return (flat / torch.where(norm > 0, norm, 1.0)).reshape(x.shape)
