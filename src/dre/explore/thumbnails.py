"""Images of rows, small, many to a sheet: a browser decodes the sheets that are looked at."""

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

Array = np.ndarray[Any, Any]
ACROSS = 32  # images in each row of a sheet, and rows
LARGEST = 48  # pixels of a side
QUALITY = 75  # of WebP


@dataclass(frozen=True, eq=False)
class Thumbnails:
    width: int
    height: int
    sheets: list[str]  # data URIs

    def about(self) -> dict[str, Any]:
        return {"width": self.width, "height": self.height, "across": ACROSS, "sheets": len(self.sheets)}


def images_of(rows: Any, shape: tuple[int, ...] | None = None) -> Shaped | None:
    """The rows where they are images, (n, h, w[, c]), or vectors that are of this shape; None where they are not."""
    size = tuple(rows.shape[1:])
    if shape is not None:
        if int(np.prod(size)) != int(np.prod(shape)):
            told = " × ".join(map(str, shape))
            raise ValueError(f"rows of {int(np.prod(size)):,} values are no images of {told}: say their height and width")
        return Shaped(rows, shape)
    is_image = len(size) == 2 or (len(size) == 3 and (size[-1] in CHANNELS or size[0] in CHANNELS))
    return Shaped(rows, size) if is_image else None


class Shaped:
    """Rows as images with channels last, a stretch at a time, wherever they lie."""

    def __init__(self, rows: Any, shape: tuple[int, ...]) -> None:
        self._rows, self._shape, self.n = rows, shape, int(rows.shape[0])

    def stretch(self, start: int, stop: int) -> Array:
        return channels_last(to_array(self._rows, np.arange(start, stop)).reshape(-1, *self._shape))


def check_pillow() -> None:
    try:
        from PIL import features
    except ImportError as problem:
        raise ImportError(f"thumbnails need Pillow: {INSTALL}; or go without, --no-thumbnails") from problem
    if not features.check("webp"):
        raise ImportError("this Pillow can't write WebP: install the one from PyPI, or go without, --no-thumbnails")


def thumbnails(images: Shaped) -> Thumbnails:
    """Grey or coloured; values that are no bytes are stretched from the least to the largest."""
    from PIL import Image

    low, high = _extent(images)
    height, width = images.stretch(0, 1).shape[1:3]
    shrink = min(1.0, LARGEST / max(height, width))
    height, width = max(1, round(height * shrink)), max(1, round(width * shrink))
    sheets = []
    for pixels in _stretches(images):
        values = pixels if pixels.dtype == np.uint8 else _bytes(pixels, low, high)
        small = [np.asarray(Image.fromarray(each).resize((width, height))) for each in values] if shrink < 1 else list(values)
        sheets.append(_uri(_sheet(small, height, width), Image))
    return Thumbnails(width, height, sheets)


def _stretches(images: Shaped) -> Iterator[Array]:
    of_sheet = ACROSS * ACROSS
    return (images.stretch(start, min(images.n, start + of_sheet)) for start in range(0, images.n, of_sheet))


def _extent(images: Shaped) -> tuple[float, float]:
    first = next(_stretches(images))
    if first.dtype == np.uint8:
        return 0.0, 255.0
    ends = [(float(part.min()), float(part.max())) for part in _stretches(images)]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _bytes(pixels: Array, low: float, high: float) -> Array:
    found: Array = np.clip((pixels - low) / (high - low or 1) * 255, 0, 255).astype(np.uint8)
    return found


def _sheet(images: list[Array], height: int, width: int) -> Array:
    rows = -(-len(images) // ACROSS)
    sheet = np.zeros((rows * height, ACROSS * width, *images[0].shape[2:]), np.uint8)
    for i, image in enumerate(images):
        y, x = i // ACROSS * height, i % ACROSS * width
        sheet[y : y + height, x : x + width] = image
    return sheet


def _uri(sheet: Array, library: Any) -> str:
    file = io.BytesIO()
    library.fromarray(sheet).save(file, "WEBP", quality=QUALITY, method=2)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode("ascii")
