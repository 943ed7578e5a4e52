"""Kernels for NVIDIA's GPUs, in Triton, each with a plain torch twin that is used everywhere else."""

from __future__ import annotations

import importlib.util
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor


@cache
def has_triton() -> bool:
    """It comes with torch where torch computes on NVIDIA's GPUs."""
    return importlib.util.find_spec("triton") is not None


def kernels_apply(x: Tensor) -> bool:
    """Cards before Ampere have no products of ten bits, nor bfloat16, which the kernels are made for."""
    return x.device.type == "cuda" and torch.version.hip is None and has_triton() and _is_new_enough(x.device)


@cache
def _is_new_enough(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= (8, 0)


def launched_at(x: Tensor) -> AbstractContextManager[object]:
    """Triton launches on the current device, whichever that is; inside, it is the one that x lies on."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
