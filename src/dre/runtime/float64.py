"""Where float64 is computed: on the device itself, or on the CPU for a device that has none, such as an Apple GPU.

Networks are trained in float32. Scaling, distances, bandwidths and cumulative sums need more digits; decompositions of small
matrices go the same way, since such a device lacks some of them. Tensors of a CPU and of CUDA stay where they are.
"""

from __future__ import annotations

import torch
from torch import Tensor

WITHOUT_FLOAT64 = ("mps",)  # kinds of devices
CPU = torch.device("cpu")


def float64_device(device: torch.device) -> torch.device:
    """Return the device, or the CPU if the device has no float64.

    >>> float64_device(torch.device("cuda:1")), float64_device(torch.device("mps"))
    (device(type='cuda', index=1), device(type='cpu'))
    """
    return CPU if device.type in WITHOUT_FLOAT64 else device


def near_float64(x: Tensor) -> Tensor:
    """Return a tensor where float64 can be computed, with its own dtype: itself, or a copy on the CPU."""
    return x.to(float64_device(x.device))
