"""The axes of a row: a vector, or an image whose channels are first, last or absent."""

from __future__ import annotations

import torch
from torch import Tensor


def image_layout(shape: tuple[int, ...]) -> str:
    """Tell whether a row of this shape is a vector, or an image with its channels absent, last or first.

    >>> image_layout((28, 28)), image_layout((32, 32, 3)), image_layout((3, 32, 32)), image_layout((50,))
    ('hw', 'hwc', 'chw', 'd')
    >>> image_layout((9, 9, 200)), image_layout((3, 32, 48))
    ('hwc', 'chw')
    """
    if len(shape) > 3:
        raise ValueError(f"rows of the shape {shape}: expected vectors (d,) or images (h, w), (h, w, c), (c, h, w); reshape X")
    if len(shape) < 3:
        return "hw" if len(shape) == 2 else "d"
    first, middle, last = shape
    if (first == middle) != (middle == last):  # a square image with any number of channels
        return "hwc" if first == middle else "chw"
    return "hwc" if last <= first else "chw"  # fewer channels than pixels


def channels_first(x: Tensor, layout: str) -> Tensor:
    """Return images as (n, c, h, w), and vectors unchanged."""
    if layout == "hw":
        return x[:, None]
    if layout == "hwc":  # a copy: convolutions round differently if the channels are last in memory
        return x.movedim(-1, 1).clone(memory_format=torch.contiguous_format)
    return x


def model_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape in which an encoder reads one row.

    >>> model_shape((28, 28)), model_shape((32, 32, 3)), model_shape((50,))
    ((1, 28, 28), (3, 32, 32), (50,))
    """
    return tuple(channels_first(torch.empty(0, *shape), image_layout(shape)).shape[1:])
