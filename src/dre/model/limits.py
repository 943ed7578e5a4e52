"""What a model file may cost to open: little more than its own length, however large the numbers in it are."""

from __future__ import annotations

import os
import stat
import struct
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from dre.encoder import Encoder
from dre.model.file_error import ModelFileError

# Of any file that `save` writes too, so that it can be opened again.
MAX_HEADER = 2**25  # bytes: names of a million columns, or the history of 200,000 epochs
MAX_TENSORS = 2**16
MAX_TEXT = 2**17  # characters of a name, or of an object such as a schedule: 1,000 stages
MAX_NESTING = 32  # of lists and objects in the configuration
MAX_INTEGER = 2**63

MAX_NETWORK = 2**13  # tensors of an encoder that is built from its text: 2,000 blocks
CALLS, CALLS_PER_TENSOR = 1000, 100  # of torch while an encoder is built; those here take 5 per tensor
MIN_FILLED, SPARSE_BYTES = 1 / 16, 2**24  # a longer file that takes less of the disk consists of holes


class TensorSpec(NamedTuple):
    """What is known of a tensor without its values."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')} {self.shape}"


def check_length(path: str | os.PathLike[str]) -> None:
    """Raise an error if the header is longer than the file or than the limit, or if the file is mostly holes."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ModelFileError("is not a file")
    held = getattr(found, "st_blocks", 0) * 512  # 0 where the system does not say
    if found.st_size > SPARSE_BYTES and 0 < held < MIN_FILLED * found.st_size:
        raise ModelFileError(f"is not a model that dre saved: of its {found.st_size:,} bytes the disk holds {held:,}")
    with open(path, "rb") as file:
        start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 0 < length <= found.st_size - 8:
        raise ModelFileError("is not a model that dre saved, or it is damaged: its header is incomplete")
    if length > MAX_HEADER:
        raise ModelFileError(f"is not a model that dre saved: its header has {length:,} bytes, the limit is {MAX_HEADER:,}")


def check_plain(value: Any, depth: int = 0) -> None:
    """Raise a ValueError if JSON is nested too deeply, or has longer texts or larger integers than a configuration has."""
    if depth > MAX_NESTING:
        raise ValueError(f"its configuration is nested more than {MAX_NESTING} deep")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ValueError(f"a text in its configuration has {len(value):,} characters, the limit is {MAX_TEXT:,}")
    if isinstance(value, int) and abs(value) >= MAX_INTEGER:
        raise ValueError("an integer in its configuration has more than 63 bits")
    if isinstance(value, dict):
        for key, item in value.items():
            check_plain(key, depth)
            check_plain(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check_plain(item, depth + 1)


def specs(weights: dict[str, Tensor]) -> dict[str, TensorSpec | None]:
    """Return dtype and shape of each tensor; None for one of a lazy module, which takes any."""
    return {name: None if is_lazy(value) else TensorSpec(value.dtype, tuple(value.shape)) for name, value in weights.items()}


def encoder_specs(encoder: Encoder, shape: tuple[int, ...], n_components: int, n_held: int) -> dict[str, TensorSpec | None]:
    """Return dtypes and shapes of the network that an encoder builds, without memory for its weights.

    Parameters
    ----------
    encoder : Encoder
    shape : tuple of int
        Shape of one row, (d,) or (channels, height, width).
    n_components : int
    n_held : int
        Number of tensors that the file has for it. One that needs far more is refused as soon as that shows.
    """
    if n_held > MAX_NETWORK:
        raise ModelFileError(f"has {n_held:,} tensors for its encoder, the limit is {MAX_NETWORK:,}")
    with torch.device("meta"), _CallLimit(encoder, CALLS + CALLS_PER_TENSOR * n_held):
        return specs(encoder.build(shape, n_components).state_dict())


class _CallLimit(TorchFunctionMode):
    """Ends a build that calls torch too often. Meta tensors need no memory, but each takes time."""

    def __init__(self, encoder: Encoder, calls: int) -> None:
        super().__init__()
        self._encoder, self._left = encoder, calls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ModelFileError(f"is damaged: its encoder {self._encoder} is far larger than the weights in the file")
        return func(*args, **(kwargs or {}))


def is_built_in(encoder: object) -> bool:
    """Whether an encoder is one of this package: what it does is known. A user's may compute on a GPU alone, for example."""
    return type(encoder).__module__.startswith("dre.encoder.") and getattr(encoder, "has_text", False)
