"""Images of Pillow as arrays: upright, gray or in color, without transparency, and all of one size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dre.runtime import available_bytes
from dre.runtime.threads import map_in_threads

Array = np.ndarray[Any, Any]
Size = tuple[int, int]  # width and height

GRAY, COLOR = "L", "RGB"  # modes of Pillow
DEEP_MODES = ("I;16", "I;16L", "I;16B", "I")  # 16 bits, of which the upper 8 are read
GRAY_MODES = ("1", "L", "LA", "La", *DEEP_MODES)  # all other modes become color
ALPHA_MODES = ("LA", "La", "PA", "RGBA", "RGBa")
FLOAT_MODE = "F"

SIDE = 64  # pixels on a side of resized images, if no size is shared by most of them
SHARED = 0.5  # of the images: a size that so many have is that of all
DRAFT = 2  # times the wanted size, at which a large JPEG is decoded before it is resized
CACHE_BYTES, CACHE_SHARE = 2**29, 4  # of decoded images: so many, and at most one part in four of the memory

ORIENTATION = 0x0112  # of EXIF
TURNS = {  # by orientation, the transpose of Pillow that turns an image upright
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
SWAPS = (5, 6, 7, 8)  # orientations that exchange width and height


class Header(NamedTuple):
    """What is known of an image before it is decoded."""

    size: Size  # when it is upright
    mode: str  # GRAY or COLOR
    is_turned: bool
    is_deep: bool
    has_alpha: bool

    @classmethod
    def of(cls, image: Any) -> Header:
        """Read the header of an image of Pillow."""
        turn = _orientation(image)
        size = _stored_size(image)
        size = size[::-1] if turn in SWAPS else size
        has_alpha = image.mode in ALPHA_MODES or "transparency" in image.info
        return cls(size, _mode(image), turn in TURNS, image.mode in DEEP_MODES, has_alpha)


def _stored_size(image: Any) -> Size:
    """Width and height as they are in the file: of a TIFF, newer versions of Pillow tell those of the upright image."""
    tags = getattr(image, "tag_v2", {})
    return (int(tags[256]), int(tags[257])) if 256 in tags and 257 in tags else image.size


def _orientation(image: Any) -> int:
    """The orientation in the EXIF data of an image, 1 where there is none."""
    if image.format == "PNG" and "exif" not in image.info:
        return 1  # to ask would decode the image
    try:
        return int(image.getexif().get(ORIENTATION, 1))
    except Exception:  # damaged EXIF data, of which Pillow raises anything, leave an image as it is
        return 1


def _mode(image: Any) -> str:
    if image.mode == "P":  # GIF stores gray images with a palette of grays
        palette = np.reshape(image.getpalette(COLOR), (-1, 3))
        return GRAY if (palette == palette[:, :1]).all() else COLOR
    return GRAY if image.mode in GRAY_MODES else COLOR


def common_size(sizes: Sequence[Size]) -> Size:
    """Return the size that most images have, or else a small square.

    >>> common_size([(28, 28), (28, 28), (30, 20)]), common_size([(50, 40), (30, 20), (100, 90)])
    ((28, 28), (64, 64))
    """
    size, count = Counter(sizes).most_common(1)[0]
    return size if count >= SHARED * len(sizes) else (SIDE, SIDE)


def to_pixels(image: Any, mode: str, size: Size) -> Array:
    """Return an image of Pillow as uint8, (height, width) or (height, width, 3).

    It is turned upright, laid on white where it is transparent, cropped in the middle and resized if it has another size.
    """
    from PIL import Image, ImageOps

    turn, has_alpha = _orientation(image), Header.of(image).has_alpha
    wanted = size[::-1] if turn in SWAPS else size
    if image.format in ("JPEG", "MPO") and image.size != wanted:
        image.draft(None, (DRAFT * wanted[0], DRAFT * wanted[1]))
    image.load()
    turn = _orientation(image)  # Pillow has turned a TIFF by now
    if image.mode in DEEP_MODES:  # Pillow would cut the upper bits off
        image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    elif has_alpha:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = image.convert(mode)
    if turn in TURNS:
        image = image.transpose(getattr(Image.Transpose, TURNS[turn]))
    return np.asarray(image if image.size == size else ImageOps.fit(image, size))


def describe(headers: Sequence[Header], mode: str, size: Size) -> list[str]:
    """Return what users should know about the way that images are read."""
    n = len(headers)
    resized, deep = sum(each.size != size for each in headers), sum(each.is_deep for each in headers)
    turned, clear = sum(each.is_turned for each in headers), sum(each.has_alpha for each in headers)
    gray = sum(each.mode == GRAY for each in headers)
    lines = [sizes_message([each.size for each in headers], size)] if resized else []
    if mode == COLOR and 0 < gray < n:
        lines.append(f"{gray:,} gray images are read as color, like the other {n - gray:,}")
    elif mode == GRAY and gray < n:
        lines.append(f"{n - gray:,} of {n:,} images are in color, and read as gray")
    if clear:
        lines.append(f"{clear:,} of {n:,} images may be transparent, and are laid on white")
    if deep:
        lines.append(f"{deep:,} of {n:,} images have 16 bits, of which the upper 8 are read")
    if turned:
        lines.append(f"{turned:,} of {n:,} images are turned upright, as their EXIF data say")
    return lines


def sizes_message(sizes: Sequence[Size], size: Size) -> str:
    """Say how many images of how many sizes are resized, and to which.

    >>> sizes_message([(28, 28), (28, 28), (30, 20)], (28, 28))
    '1 of 3 images, of 2 sizes, are cropped in the middle and resized to 28 × 28 pixels'
    """
    resized, n = sum(each != size for each in sizes), len(sizes)
    many, axes = len(set(sizes)), "" if size[0] == size[1] else ", height × width"
    of = f"{resized:,} of {n:,} images" if resized < n else f"{n:,} images"
    of += f", of {many:,} sizes," if many > 1 else ""
    return f"{of} are cropped in the middle and resized to {size[1]} × {size[0]} pixels{axes}"


class PictureArray:
    """A lazy array of images, which are decoded when they are read, and kept where there is room.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
    load : callable
        ``load(i)`` decodes one image.
    in_threads : bool, default=True
        Whether several may be decoded at a time.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, load: Callable[[int], Array], *, in_threads: bool = True) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self._load, self._in_threads = load, in_threads
        available, each = available_bytes(), int(np.prod(shape[1:])) * self.dtype.itemsize
        room = CACHE_BYTES if available is None else min(CACHE_BYTES, available // CACHE_SHARE)
        self._cache: dict[int, Array] = {}
        self._most = room // max(1, each)

    def __getitem__(self, which: slice | Array) -> Array:
        """Read a slice, or images by their ids."""
        ids = np.arange(self.shape[0])[which].tolist()
        out = np.empty((len(ids), *self.shape[1:]), self.dtype)
        missing = [i for i in ids if i not in self._cache]
        found = map_in_threads(self._load, missing) if self._in_threads else map(self._load, missing)
        at = {i: place for place, i in enumerate(ids)} if missing else {}
        for i, image in zip(missing, found, strict=True):
            out[at[i]] = image
            if len(self._cache) < self._most:
                self._cache[i] = image
        new = set(missing)
        for place, i in enumerate(ids):
            if i not in new:
                out[place] = self._cache[i]
        return out
