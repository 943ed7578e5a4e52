"""A folder of images, decoded on demand; those of different sizes are resized, and gray beside color becomes color."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dre.data.pictures import COLOR, FLOAT_MODE, GRAY, SIDE, Header, PictureArray, Size, common_size, describe, to_pixels
from dre.io.readers.arrays import with_options
from dre.io.readers.file_rows import FileRows
from dre.io.readers.memory import check_memory
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import INSTALL, Array, DroppedRows, Source, SourceError, SourceFormat, as_source_error, to_strings
from dre.progress.activity import activity
from dre.progress.counted import agreeing
from dre.runtime.threads import map_in_threads

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
CHANNELS = {1: GRAY, 3: COLOR}

FORMATS_READ = ("PNG", "JPEG", "BMP", "DIB", "GIF", "TIFF", "WEBP")  # others run programs, or are not images
PIXEL_BYTES, COPIES = 4, 3  # of a decoded image, while it is converted and resized
FEW_BYTES = 2**24  # that need no check
SMALLER = "save it with fewer pixels, or leave it out of the folder"
DAMAGED = "Download or write it again, or pass missing='drop' to leave out images that can't be read."
TRIED = (8, 8)  # pixels to which images are reduced when it is tried whether they can be read


def _open_images(path: Path, part: str | None, options: ReadOptions) -> Source:
    """Open the images of a folder in the order of their paths.

    Subfolders become the metadata "folder", and the outermost ones "top_folder" if some are nested. ``part`` is the size in
    pixels to which images are resized: the side of a square, HEIGHTxWIDTH, or HEIGHTxWIDTHx3 for color and x1 for gray.
    """
    wanted, channels = (None, 0) if part is None else _parse_size(path, part)
    try:
        import PIL  # noqa: F401
    except ImportError as problem:
        raise ImportError(f"{path} needs Pillow: {INSTALL}") from problem
    if not path.is_dir():
        raise SourceError(f"{path} is a single image: pass the folder that holds all images")
    with as_source_error(path):
        files, others = _list(path)
    if not files:
        raise SourceError(f"{path} is a folder without images ({', '.join(SUFFIXES)}): pass a folder of images, or a file")
    found = _headers(path, files, is_tried=options.missing == "drop")
    kept = np.array([header is not None for header in found])
    files = [file for file, header in zip(files, found, strict=True) if header is not None]
    headers = [header for header in found if header is not None]
    size = wanted or common_size([header.size for header in headers])
    mode = CHANNELS.get(channels) or (COLOR if any(header.mode == COLOR for header in headers) else GRAY)
    shape = (len(files), size[1], size[0], *((3,) if mode == COLOR else ()))
    pictures = PictureArray(shape, np.uint8, lambda i: _decode(files[i], mode, size))
    names = to_strings(file.relative_to(path).as_posix() for file in files)
    source = Source(
        FileRows(path, pictures),
        names=names,
        metadata=_folders([file.parent.relative_to(path).parts for file in files]),
        messages=[*describe(headers, mode, size), *_left_out(path, others)],
    )
    source = with_options(path, source, replace(options, missing="error"))
    return source if kept.all() else _without(source, path, kept)


def _list(path: Path) -> tuple[list[Path], list[Path]]:
    """The images in a folder and its subfolders, and the other files; hidden ones are neither."""
    found = sorted(file for file in path.rglob("*") if file.is_file() and not _is_hidden(file, path))
    images = [file for file in found if file.suffix.lower() in SUFFIXES]
    return images, [file for file in found if file.suffix.lower() not in SUFFIXES]


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(name.startswith(".") for name in file.relative_to(folder).parts)  # ._a.png, .thumbnails/


def _parse_size(path: Path, text: str) -> tuple[Size, int]:
    """Width and height, and the number of channels, 0 if it is not given."""
    parts = text.lower().split("x")
    if not all(part.isdecimal() and int(part) > 0 for part in parts) or (len(parts) > 2 and int(parts[2]) not in CHANNELS):
        raise SourceError(f"{path}:{text}: expected a number of pixels, as in {path.name}:{SIDE}, or HEIGHTxWIDTH")
    height, width, channels = (*map(int, parts), *([int(parts[0])] if len(parts) == 1 else []), 0)[:3]
    return (width, height), channels


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


def _headers(folder: Path, files: list[Path], *, is_tried: bool) -> list[Header | None]:
    """The headers of all images; with ``is_tried`` also decode each, and return None for those that can't be read."""
    with activity(f"looking at the images of {folder}", len(files)) as looking:
        if is_tried:
            found = []
            for header in map_in_threads(_try, files):
                found.append(header)
                looking.advance(1)
            if not any(found):
                raise SourceError(f"{folder}: none of its {len(files):,} images can be read: check what they are")
            return found
        headers: list[Header | None] = []
        for file in files:
            headers.append(_header(file))
            looking.advance(1)
    return headers


def _header(file: Path) -> Header:
    with as_source_error(file, DAMAGED), _opened(file) as image:
        if image.mode == FLOAT_MODE:
            raise SourceError(f"{file} has fractions as pixels: save such images as one array with numpy.save")
        _check_size(file, image.size)
        return Header.of(image)


def _try(file: Path) -> Header | None:
    try:
        header = _header(file)
        _decode(file, header.mode, TRIED)
    except SourceError:
        return None
    return header


def _decode(file: Path, mode: str, size: Size) -> Array:
    with as_source_error(file, DAMAGED), _opened(file) as image:
        _check_size(file, image.size)
        return to_pixels(image, mode, size)


def _folders(parts: list[tuple[str, ...]]) -> dict[str, Array]:
    """The folder of each image as metadata, if there are any; of nested folders the outermost, too."""
    if not any(parts):
        return {}
    folders = {"folder": to_strings("/".join(each) for each in parts)}
    if any(len(each) > 1 for each in parts):
        folders["top_folder"] = to_strings(each[0] if each else "" for each in parts)
    return folders


def _left_out(folder: Path, others: Sequence[Path]) -> list[str]:
    if not others:
        return []
    first = others[0].relative_to(folder).as_posix()
    what = f"{first} is no image" if len(others) == 1 else f"{len(others):,} files are no images, such as {first},"
    return [f"{what} ({', '.join(SUFFIXES)}) and left out"]


def _without(source: Source, folder: Path, kept: Array) -> Source:
    """A source of the images that can be read; the others keep their places in the output."""
    files, _ = _list(folder)
    names = to_strings(file.relative_to(folder).as_posix() for file in files)
    lost = names[~kept]
    count = f"{len(lost):,} of {len(kept):,} images"
    line = f"{count} cannot be read and {agreeing(len(lost), 'are')} left out: {', '.join(lost[:5])}"
    return replace(source, dropped=DroppedRows(kept, names), messages=[*source.messages, line + ("…" if len(lost) > 5 else "")])


FORMATS = (SourceFormat(SUFFIXES, part="size", is_folder=True, open_with=_open_images),)
