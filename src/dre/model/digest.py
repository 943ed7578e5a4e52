"""The digest of a model file, by which a changed file is noticed. It is no signature: who writes a file can compute it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch
from torch import Tensor


def digest(configuration: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """Return the digest of the configuration, and of every tensor's name, dtype, shape and bytes."""
    found = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode())
    for name in sorted(tensors):
        found.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        found.update(tensor_bytes(tensors[name]))
    return found.hexdigest()


def digest_format_1(tensors: dict[str, Tensor]) -> str:
    """Return the digest that files of format 1 have: of names and bytes alone."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        found.update(name.encode())
        found.update(tensor_bytes(tensors[name]))
    return found.hexdigest()


def tensor_bytes(tensor: Tensor) -> memoryview:
    """Return the bytes of a tensor on the host, without copying them."""
    content: memoryview = tensor.reshape(-1).view(torch.uint8).numpy().data
    return content
