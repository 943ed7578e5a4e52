"""A folder of images, decoded on demand; those of different sizes are resized, and gray beside color becomes color."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dre.data.block_array import BlockArray
from dre.io.readers.file_rows import FileRows
from dre.io.readers.memory import check_memory
from dre.io.readers.source import (
    INSTALL,
    Array,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    to_strings,
)

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
GRAY, COLOR = "L", "RGB"  # modes of Pillow
CHANNELS = {1: GRAY, 3: COLOR}
DEEP_MODES = ("I;16", "I;16B", "I")  # 16 bits, of which the upper 8 are read
FLOAT_MODES = ("F",)
GRAY_MODES = ("1", "L", "LA", *DEEP_MODES)  # all other modes become color

FORMATS_READ = ("PNG", "JPEG", "BMP", "DIB", "GIF", "TIFF", "WEBP")  # others run programs, or are not images
PIXEL_BYTES, COPIES = 4, 3  # of a decoded image, while it is converted and resized
FEW_BYTES = 2**24  # that need no check
SMALLER = "save it with fewer pixels, or leave it out of the folder"

SIDE = 64  # pixels on a side of resized images, if no size is shared by most of them
SHARED = 0.5  # of the images: a size that so many have is that of all
Size = tuple[int, int]  # width and height


def _open_images(path: Path, part: str | None) -> Source:
    """Open the images of a folder in the order of their paths; subfolders become the metadata "folder".

    ``part`` is the size in pixels to which images are resized: the side of a square, HEIGHTxWIDTH, or HEIGHTxWIDTHx3 for
    color and x1 for gray.
    """
    wanted, channels = (None, 0) if part is None else _parse_size(path, part)
    try:
        import PIL  # noqa: F401
    except ImportError as problem:
        raise ImportError(f"{path} needs Pillow: {INSTALL}") from problem
    if not path.is_dir():
        raise SourceError(f"{path} is a single image: pass the folder that holds all images")
    with as_source_error(path):
        files = sorted(file for file in path.rglob("*") if _is_image(file, path))
        if not files:
            raise SourceError(f"{path} is a folder without images ({', '.join(SUFFIXES)}): pass a folder of images, or a file")
        sizes, modes = _headers(files)
    size = wanted or _common_size(sizes)
    mode = CHANNELS.get(channels) or (COLOR if COLOR in modes else GRAY)

    def load(start: int, stop: int) -> Array:
        return np.stack([_decode(file, mode, size) for file in files[start:stop]])

    shape = (len(files), size[1], size[0], *((3,) if mode == COLOR else ()))
    folders = [file.parent.relative_to(path).as_posix() for file in files]
    return Source(
        FileRows(path, BlockArray(shape, np.uint8, np.arange(len(files) + 1), load)),
        names=to_strings(file.relative_to(path).as_posix() for file in files),
        metadata={"folder": to_strings("" if name == "." else name for name in folders)} if set(folders) != {"."} else {},
        messages=_messages(sizes, modes, size),
    )


def _parse_size(path: Path, text: str) -> tuple[Size, int]:
    """Width and height, and the number of channels, 0 if it is not given."""
    parts = text.lower().split("x")
    if not all(part.isdecimal() and int(part) > 0 for part in parts) or (len(parts) > 2 and int(parts[2]) not in CHANNELS):
        raise SourceError(f"{path}:{text}: expected a number of pixels, as in {path.name}:{SIDE}, or HEIGHTxWIDTH")
    height, width, channels = (*map(int, parts), *([int(parts[0])] if len(parts) == 1 else []), 0)[:3]
    return (width, height), channels


def _is_image(file: Path, folder: Path) -> bool:
    is_hidden = any(name.startswith(".") for name in file.relative_to(folder).parts)  # ._a.png, .thumbnails/
    return file.suffix.lower() in SUFFIXES and not is_hidden and file.is_file()


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """An image whose header is read."""
    from PIL import Image

    try:
        image = Image.open(file, formats=FORMATS_READ)
    except Image.DecompressionBombError as problem:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise SourceError(f"{file} has more than {most:,} pixels, the most that Pillow decodes: {SMALLER}") from problem
    with image:
        yield image


def _check_size(file: Path, size: Size) -> None:
    """Check that decoding an image does not take too much memory."""
    needed = COPIES * PIXEL_BYTES * size[0] * size[1]
    if needed > FEW_BYTES:  # asking for the free memory takes longer than decoding a small image
        check_memory(file, needed, f"an image of {size[0]:,} × {size[1]:,} pixels", SMALLER)


def _headers(files: list[Path]) -> tuple[list[Size], list[str]]:
    """Sizes and modes of all images; reads only their headers."""
    sizes, modes = [], []
    for file in files:
        with as_source_error(file), _opened(file) as image:
            if image.mode in FLOAT_MODES:
                raise SourceError(f"{file} has fractions as pixels: save such images as one array with numpy.save")
            sizes.append(image.size)
            modes.append(_mode(image))
    largest = max(range(len(files)), key=lambda i: sizes[i][0] * sizes[i][1])
    _check_size(files[largest], sizes[largest])
    return sizes, modes


def _common_size(sizes: list[Size]) -> Size:
    """The size that most images have, or else a small square."""
    size, count = Counter(sizes).most_common(1)[0]
    return size if count >= SHARED * len(sizes) else (SIDE, SIDE)


def _messages(sizes: list[Size], modes: list[str], size: Size) -> list[str]:
    resized = sum(each != size for each in sizes)
    lines = []
    if resized:
        lines.append(
            f"{resized:,} of {len(sizes):,} images are cropped in the middle and resized to {size[0]} × {size[1]} pixels"
        )
    if len(set(modes)) > 1:
        lines.append(f"{modes.count(GRAY):,} gray images are read as color, like the other {modes.count(COLOR):,}")
    return lines


def _mode(image: Any) -> str:
    if image.mode == "P":  # GIF stores gray images with a palette of grays
        palette = np.reshape(image.getpalette(COLOR), (-1, 3))
        return GRAY if (palette == palette[:, :1]).all() else COLOR
    return GRAY if image.mode in GRAY_MODES else COLOR


def _upper_bits(image: Any) -> Any:
    """The upper 8 of 16 bits, which Pillow would cut off."""
    from PIL import Image

    return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))


def _decode(file: Path, mode: str, size: Size) -> Array:
    from PIL import ImageOps

    with as_source_error(file), _opened(file) as image:
        _check_size(file, image.size)
        converted = (_upper_bits(image) if image.mode in DEEP_MODES else image).convert(mode)
        return np.asarray(converted if converted.size == size else ImageOps.fit(converted, size))


FORMATS = (SourceFormat(SUFFIXES, _open_images, part="size", is_folder=True),)
