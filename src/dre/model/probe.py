"""Raw rows around those of a fit, on which a network is tried without the data."""

from __future__ import annotations

import torch
from torch import Tensor

from dre.data.scaling import Scaling

PROBES, PROBE_SCALE = 16, 4.0  # rows on which a network is tried, farther out than those of its training


def probe_rows(scaling: Scaling) -> Tensor:
    """Return random raw rows (16, ...), float64, spread around the mean of the fit.

    >>> probe_rows(Scaling(torch.tensor([5.0, 7.0], dtype=torch.double), 2.0)).shape
    torch.Size([16, 2])
    """
    noise = torch.randn(PROBES, *scaling.shape, generator=torch.Generator().manual_seed(0))
    raw = scaling.mean.cpu() + PROBE_SCALE * scaling.scale.cpu() * noise
    if scaling.column_mean is None or scaling.column_std is None:
        return raw
    return scaling.column_mean.cpu() + scaling.column_std.cpu() * raw
