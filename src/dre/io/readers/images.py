"""A folder of images of one size, grey or in colour, decoded when they are asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.blocks import Blocks
from dre.io.readers.file_rows import FileRows
from dre.io.readers.source import INSTALL, Array, Format, Source, SourceError, listed, reading
from dre.io.readers.texts import texts

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
GREY, COLOUR = "L", "RGB"
GREYS = ("1", "L", "LA", "I;16", "I;16B", "I", "F")  # as Pillow calls them; all else becomes colour
DEEP = ("I;16", "I;16B", "I", "F")  # more than 8 bits, which Pillow would cut off


def open_images(path: Path, part: str | None = None) -> Source:
    """Sorted by their paths; in folders inside the folder, those are what is known of them."""
    try:
        from PIL import Image
    except ImportError as problem:
        raise ImportError(f"{path} needs Pillow: {INSTALL}") from problem
    if not path.is_dir():
        raise SourceError(f"{path} is one image: pass the folder that holds all of them")
    with reading(path):
        files = sorted(file for file in path.rglob("*") if _is_image(file, path))
        if not files:
            raise SourceError(f"{path} is a folder without images ({', '.join(SUFFIXES)}): pass one that has some, or a file")
        size, mode = _common(path, files, Image)

    def load(start: int, stop: int) -> Array:
        return np.stack([_decoded(file, mode, Image) for file in files[start:stop]])

    shape = (len(files), size[1], size[0], *((3,) if mode == COLOUR else ()))
    folders = [file.parent.relative_to(path).as_posix() for file in files]
    return Source(
        FileRows(path, Blocks(shape, np.uint8, np.arange(len(files) + 1), load)),
        names=texts(file.relative_to(path).as_posix() for file in files),
        metadata={"folder": texts("" if name == "." else name for name in folders)} if set(folders) != {"."} else {},
    )


def _is_image(file: Path, folder: Path) -> bool:
    hidden = any(name.startswith(".") for name in file.relative_to(folder).parts)  # ._a.png, .thumbnails/
    return file.suffix.lower() in SUFFIXES and not hidden and file.is_file()


def _common(folder: Path, files: list[Path], library: Any) -> tuple[tuple[int, int], str]:
    """The size and the mode of all of them; only their first bytes are read."""
    looks = {}
    for file in files:
        with reading(file), library.open(file) as image:
            if image.mode in DEEP:
                raise SourceError(f"{file} has more than 8 bits a value: save such images as one array with numpy.save")
            looks[file] = (image.size, _mode(image))
    (usual, _), *others = Counter(looks.values()).most_common()
    if others:
        different = [file.relative_to(folder).as_posix() for file, look in looks.items() if look != usual]
        one = next(look for look in looks.values() if look != usual)
        raise SourceError(
            f"{folder}: most images are {_told(usual)}, but {listed(different)} "
            f"{'is' if len(different) == 1 else 'are'} not ({_told(one)}).\nMake them alike with Pillow: "
            f"Image.open(path).convert({usual[1]!r}).resize({usual[0]}).save(path)"
        )
    return usual


def _mode(image: Any) -> str:
    if image.mode == "P":  # a palette of greys is grey: so GIF stores them
        colours = np.reshape(image.getpalette(COLOUR), (-1, 3))
        return GREY if (colours == colours[:, :1]).all() else COLOUR
    return GREY if image.mode in GREYS else COLOUR


def _told(look: tuple[tuple[int, int], str]) -> str:
    (width, height), mode = look
    return f"{width} × {height}, {'grey' if mode == GREY else 'in colour'}"


def _decoded(file: Path, mode: str, library: Any) -> Array:
    with reading(file), library.open(file) as image:
        return np.asarray(image.convert(mode))


FORMAT = Format(SUFFIXES, open_images, is_folder=True)
