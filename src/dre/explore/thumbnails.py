"""Thumbnails of the rows, many on one sheet, so that a browser decodes only the sheets it shows."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.data.subsample import to_array
from dre.io.readers.source import INSTALL
from dre.plot.thumbnails import CHANNELS, channels_last
from dre.progress.display import progress_bar

Array = np.ndarray[Any, Any]
PER_SIDE = 32  # images along each side of a sheet
MAX_PIXELS = 48  # of a side of an image
WEBP_QUALITY = 75


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Sheets of equally large images, row by row."""

    width: int
    height: int
    sheets: list[str]  # data URIs

    def about(self) -> dict[str, Any]:
        return {"width": self.width, "height": self.height, "perSide": PER_SIDE, "sheets": len(self.sheets)}


def as_images(rows: Any, shape: tuple[int, ...] | None = None) -> ImageView | None:
    """View rows as images if they are (n, h, w[, c]), or vectors of the given shape; None if they are neither."""
    size = tuple(rows.shape[1:])
    if shape is not None:
        if int(np.prod(size)) != int(np.prod(shape)):
            wanted = " × ".join(map(str, shape))
            raise ValueError(
                f"rows of {int(np.prod(size)):,} values are not images of {wanted} pixels: pass their height and width"
            )
        return ImageView(rows, shape)
    is_image = len(size) == 2 or (len(size) == 3 and (size[-1] in CHANNELS or size[0] in CHANNELS))
    return ImageView(rows, size) if is_image else None


class ImageView:
    """Rows read as images with channels last, a slice at a time."""

    def __init__(self, rows: Any, shape: tuple[int, ...]) -> None:
        self._rows, self.shape, self.n = rows, shape, int(rows.shape[0])

    def read(self, start: int, stop: int) -> Array:
        return channels_last(to_array(self._rows, np.arange(start, stop)).reshape(-1, *self.shape))

    def value_range(self) -> tuple[float, float]:
        """The ends of the values; those of bytes are 0 and 255."""
        first = next(_batches(self))
        if first.dtype == np.uint8:
            return 0.0, 255.0
        ends = [(float(part.min()), float(part.max())) for part in _batches(self)]
        return min(low for low, _ in ends), max(high for _, high in ends)


def check_pillow() -> None:
    try:
        from PIL import features
    except ImportError as problem:
        raise ImportError(f"thumbnails need Pillow: {INSTALL}; or pass images=False") from problem
    if not features.check("webp"):
        raise ImportError("the installed Pillow cannot write WebP: install it from PyPI, or pass images=False")


def thumbnails(images: ImageView) -> Thumbnails:
    """Shrink the images onto sheets; values other than uint8 are scaled from their range to 0…255."""
    from PIL import Image

    low, high = images.value_range()
    height, width = images.read(0, 1).shape[1:3]
    shrink = min(1.0, MAX_PIXELS / max(height, width))
    height, width = max(1, round(height * shrink)), max(1, round(width * shrink))
    sheets = []
    with progress_bar("images", images.n) as advance:
        for pixels in _batches(images):
            small = list(pixels if pixels.dtype == np.uint8 else _to_bytes(pixels, low, high))
            if shrink < 1:
                small = [np.asarray(Image.fromarray(each).resize((width, height))) for each in small]
            sheets.append(_data_uri(_sheet(small, height, width), Image))
            advance(len(small))
    return Thumbnails(width, height, sheets)


def _batches(images: ImageView) -> Iterator[Array]:
    per_sheet = PER_SIDE * PER_SIDE
    return (images.read(start, min(images.n, start + per_sheet)) for start in range(0, images.n, per_sheet))


def _to_bytes(pixels: Array, low: float, high: float) -> Array:
    scaled: Array = np.clip((pixels - low) / (high - low or 1) * 255, 0, 255).astype(np.uint8)
    return scaled


def _sheet(images: list[Array], height: int, width: int) -> Array:
    rows = -(-len(images) // PER_SIDE)
    sheet = np.zeros((rows * height, PER_SIDE * width, *images[0].shape[2:]), np.uint8)
    for i, image in enumerate(images):
        y, x = i // PER_SIDE * height, i % PER_SIDE * width
        sheet[y : y + height, x : x + width] = image
    return sheet


def _data_uri(sheet: Array, pillow: Any) -> str:
    file = io.BytesIO()
    pillow.fromarray(sheet).save(file, "WEBP", quality=WEBP_QUALITY, method=2)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode("ascii")
