"""Kernels for NVIDIA's GPUs, in Triton, each with a plain torch twin that is used everywhere else."""

from __future__ import annotations

import importlib.util
from functools import cache

import torch
from torch import Tensor


@cache
def has_triton() -> bool:
    """It comes with torch where torch computes on NVIDIA's GPUs."""
    return importlib.util.find_spec("triton") is not None


def kernels_apply(x: Tensor) -> bool:
    return x.device.type == "cuda" and torch.version.hip is None and has_triton()
