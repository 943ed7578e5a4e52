"""Where free coordinates start: at the first principal components of the rows."""

from __future__ import annotations

import torch
from torch import Tensor

from dre.encoder.pca_front import principal_axes
from dre.runtime import full_float32

SYMMETRY = 1e-3  # of the first component's standard deviation: rows that coincide, or lie on a line, can then part


def principal_components(features: Tensor, n_components: int, std: float) -> Tensor:
    """Project features (n, d) on their first principal axes; the first component gets the standard deviation ``std``.

    The result does not depend on a seed, and so neither does a map that starts here.

    >>> line = torch.arange(5.0)[:, None] * torch.tensor([3.0, 4.0])
    >>> coordinates = principal_components(line, 2, std=10.0)
    >>> coordinates.std(0, correction=0).round().tolist()
    [10.0, 0.0]
    """
    n, dim = features.shape
    generator = torch.Generator(features.device).manual_seed(0)
    with full_float32():
        centered = features.float() - features.float().mean(0)
        axes, _ = principal_axes(centered, min(n_components, dim), generator)
        coordinates = torch.zeros(n, n_components, device=features.device)
        coordinates[:, : len(axes)] = centered @ axes.T
    coordinates *= std / coordinates[:, 0].std(correction=0).clamp_min(1e-30)
    noise = torch.randn(n, n_components, generator=generator, device=features.device)
    return coordinates + SYMMETRY * std * noise
