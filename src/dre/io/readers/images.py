"""A folder of images of one size, gray or color, decoded on demand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.file_rows import BlockArray, FileRows
from dre.io.readers.source import (
    INSTALL,
    Array,
    Source,
    SourceError,
    SourceFormat,
    as_source_error,
    summarize_names,
    to_strings,
)

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
GRAY, COLOR = "L", "RGB"  # modes of Pillow
GRAY_MODES = ("1", "L", "LA", "I;16", "I;16B", "I", "F")  # all other modes become color
DEEP_MODES = ("I;16", "I;16B", "I", "F")  # more than 8 bits, which Pillow would truncate

ImageFormat = tuple[tuple[int, int], str]  # the size (width, height) and the mode of an image


def _open_images(path: Path, part: str | None) -> Source:
    """Open the images of a folder in the order of their paths; subfolders become the metadata "folder"."""
    try:
        from PIL import Image
    except ImportError as problem:
        raise ImportError(f"{path} needs Pillow: {INSTALL}") from problem
    if not path.is_dir():
        raise SourceError(f"{path} is a single image: pass the folder that holds all images")
    with as_source_error(path):
        files = sorted(file for file in path.rglob("*") if _is_image(file, path))
        if not files:
            raise SourceError(f"{path} is a folder without images ({', '.join(SUFFIXES)}): pass a folder of images, or a file")
        size, mode = _common_format(path, files, Image)

    def load(start: int, stop: int) -> Array:
        return np.stack([_decode(file, mode, Image) for file in files[start:stop]])

    shape = (len(files), size[1], size[0], *((3,) if mode == COLOR else ()))
    folders = [file.parent.relative_to(path).as_posix() for file in files]
    return Source(
        FileRows(path, BlockArray(shape, np.uint8, np.arange(len(files) + 1), load)),
        names=to_strings(file.relative_to(path).as_posix() for file in files),
        metadata={"folder": to_strings("" if name == "." else name for name in folders)} if set(folders) != {"."} else {},
    )


def _is_image(file: Path, folder: Path) -> bool:
    is_hidden = any(name.startswith(".") for name in file.relative_to(folder).parts)  # ._a.png, .thumbnails/
    return file.suffix.lower() in SUFFIXES and not is_hidden and file.is_file()


def _common_format(folder: Path, files: list[Path], library: Any) -> ImageFormat:
    """Check that all images share one size and mode; reads only their headers."""
    formats: dict[Path, ImageFormat] = {}
    for file in files:
        with as_source_error(file), library.open(file) as image:
            if image.mode in DEEP_MODES:
                raise SourceError(f"{file} has more than 8 bits per channel: save such images as one array with numpy.save")
            formats[file] = (image.size, _mode(image))
    (usual, _), *others = Counter(formats.values()).most_common()
    if others:
        different = [file.relative_to(folder).as_posix() for file, format_ in formats.items() if format_ != usual]
        one = next(format_ for format_ in formats.values() if format_ != usual)
        raise SourceError(
            f"{folder}: most images are {_describe(usual)}, but {summarize_names(different)} "
            f"{'is' if len(different) == 1 else 'are'} not ({_describe(one)}).\nConvert them with Pillow: "
            f"Image.open(path).convert({usual[1]!r}).resize({usual[0]}).save(path)"
        )
    return usual


def _mode(image: Any) -> str:
    if image.mode == "P":  # GIF stores gray images with a palette of grays
        palette = np.reshape(image.getpalette(COLOR), (-1, 3))
        return GRAY if (palette == palette[:, :1]).all() else COLOR
    return GRAY if image.mode in GRAY_MODES else COLOR


def _describe(format_: ImageFormat) -> str:
    (width, height), mode = format_
    return f"{width} × {height}, {'gray' if mode == GRAY else 'color'}"


def _decode(file: Path, mode: str, library: Any) -> Array:
    with as_source_error(file), library.open(file) as image:
        return np.asarray(image.convert(mode))


FORMATS = (SourceFormat(SUFFIXES, _open_images, is_folder=True),)
