"""Sizes that a file declares, or that its compressed content unfolds to, checked before the memory is taken."""

from __future__ import annotations

import gzip
import math
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dre.io.readers.source import SourceError
from dre.runtime import available_bytes

ARRAY_COPIES = 2  # of an array that is held in memory, on its way into a model
TEXT_COPIES = 3  # of a text: as it is read, decoded, and in columns
CELL_BYTES = 24  # of a number in a table: in its column, as float64, and among the features
STRING_BYTES = 64  # of a short string of Python, with its place in an array
ROW_BYTES = 16  # of each row in any map: its coordinates and its number
PIECE = 2**22  # bytes that are decompressed at a time
MOST_DEFLATED = 1032  # bytes that one compressed byte of zlib can become
LARGE_TEXT, MOST_RATIO = 2**30, 200  # bytes from which a text that is compressed so well is taken for an attack
SMALLER_TEXT = "split the file, or save it as Parquet, which is read in pieces"


def check_memory(path: Path, needed: float, what: str, remedy: str) -> None:
    """Raise a `SourceError` if reading something takes more memory than is available.

    Parameters
    ----------
    path : Path
    needed : float
        Bytes that are held at once.
    what : str
        The thing that is read, for the message.
    remedy : str
        What the user can do instead.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise SourceError(
            f"{path}: {what} takes about {describe(needed)} of memory, of which {describe(available)} are available; {remedy}"
        )


def describe(size: float) -> str:
    """A number of bytes as a person says it.

    >>> describe(3 * 2**20), describe(5e12), describe(10**40)
    ('3.0 MiB', '4.5 TiB', '9e+27 TiB')
    """
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    i = min(max(0, math.frexp(float(size))[1] - 1) // 10, len(units) - 1)
    value = float(size) / 1024**i
    return f"{value:,.1f} {units[i]}" if value < 1e6 else f"{value:.0e} {units[i]}"


def check_array(path: Path, shape: tuple[int, ...], dtype: Any, what: str, remedy: str) -> None:
    """Check an array that is going to be read as a whole."""
    itemsize = STRING_BYTES if dtype.kind in "OT" else dtype.itemsize
    check_memory(path, ARRAY_COPIES * math.prod(map(int, shape)) * itemsize, f"{what} of shape {tuple(shape)}", remedy)


def check_rows(path: Path, shape: tuple[int, ...], dtype: Any, what: str, chunk: tuple[int, ...] | None = None) -> None:
    """Check rows that are read in pieces: each row, each chunk of the file, and the coordinates of all rows must fit."""
    shape = tuple(int(size) for size in shape)
    check_memory(path, ROW_BYTES * shape[0], f"a map of all rows of {what} of shape {shape}", "take fewer rows")
    row = ARRAY_COPIES * math.prod(shape[1:]) * dtype.itemsize
    check_memory(path, row, f"a row of {what} of shape {shape}", "choose fewer columns, or reduce them")
    if chunk is not None:
        size = ARRAY_COPIES * math.prod(map(int, chunk)) * dtype.itemsize
        check_memory(path, size, f"a chunk {tuple(chunk)} of {what}", "store it in smaller chunks")


def read_text_bytes(path: Path) -> bytes:
    """Read a text file, decompressed if it is gzipped; stop as soon as it is too large."""
    is_gzipped = path.suffix.lower() == ".gz"
    if not is_gzipped:
        check_memory(path, TEXT_COPIES * path.stat().st_size, "the text", SMALLER_TEXT)
        return path.read_bytes()
    parts, total = [], 0
    with path.open("rb") as packed, gzip.GzipFile(fileobj=packed) as file:
        while piece := file.read(PIECE):
            total += len(piece)
            parts.append(piece)
            if total > LARGE_TEXT and total > MOST_RATIO * packed.tell():
                raise SourceError(
                    f"{path} unfolds to more than {describe(total)}, over {MOST_RATIO} times its size, which tables rarely do; "
                    "if it is sound, decompress it first"
                )
            check_memory(path, TEXT_COPIES * total - total, "the decompressed text", SMALLER_TEXT)
    return b"".join(parts)


def check_zip(path: Path, copies: int, remedy: str) -> None:
    """Check what the members of a zip file unfold to, and that it is what the file declares."""
    available = available_bytes()
    with zipfile.ZipFile(path) as archive:
        declared = sum(each.file_size for each in archive.infolist())
        check_memory(path, copies * declared, f"the content, {describe(declared)} unpacked,", remedy)
        if available is None or copies * MOST_DEFLATED * sum(each.compress_size for each in archive.infolist()) <= available:
            return
        for member in archive.infolist():
            total = 0
            for piece in inflate(path, member):
                total += len(piece)
                if total > member.file_size:
                    raise SourceError(f"{path} is damaged: {member.filename} unfolds to more than it declares; save it again")


def inflate(path: Path, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield a member of a zip file in pieces, to its end; zipfile itself stops at the size that the file declares."""
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)
        lengths = file.read(4)
        file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), 1)
        left, inflater = member.compress_size, zlib.decompressobj(-zlib.MAX_WBITS)
        while left > 0 and not inflater.eof and (piece := file.read(min(left, PIECE))):
            left -= len(piece)
            if member.compress_type != zipfile.ZIP_DEFLATED:
                yield piece
                continue
            while piece and not inflater.eof:
                yield inflater.decompress(piece, PIECE)
                piece = inflater.unconsumed_tail
