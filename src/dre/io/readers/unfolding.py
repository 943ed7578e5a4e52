"""How many bytes compressed content unfolds to, found without unfolding more than is allowed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import zlib
from collections.abc import Callable
from typing import Any

from dre.io.readers.memory import MOST_DEFLATED

XZ_BYTES = 2**27  # of memory for xz, whose highest level takes half of it
ZSTD_BLOCK = 2**17  # bytes of the largest block of Zstandard
ZSTD, SKIPPED_ZSTD = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)  # beginnings of a frame, and of one without content

RATIOS = {"gzip": MOST_DEFLATED, "zlib": MOST_DEFLATED, "lzf": 88}  # bytes that one compressed byte can become
HEADER = 16  # bytes at the beginning that have the size, if the compressor declares it
Size = float  # a number of bytes, infinite if nothing tells it


def _streamed(content: bytes, most: int, decompressor: Callable[[], Any]) -> Size:
    """Unfold one stream after the other, until there are more than ``most`` bytes."""
    total = 0
    while content:
        stream = decompressor()
        total += len(stream.decompress(content, most + 1 - total))
        if total > most or not stream.eof:
            break
        content = stream.unused_data
    return total


def _gunzipped(content: bytes, most: int) -> Size:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:  # all members
        return len(file.read(most + 1))


def _inflated(content: bytes, most: int) -> Size:
    return len(zlib.decompressobj().decompress(content, most + 1))


def _bunzipped(content: bytes, most: int) -> Size:
    return _streamed(content, most, bz2.BZ2Decompressor)


def _unxzed(content: bytes, most: int) -> Size:
    return _streamed(content, most, lambda: lzma.LZMADecompressor(memlimit=XZ_BYTES))


def _zstd(content: bytes, most: int) -> Size:
    """Sum of what the frames declare, or else of their largest possible blocks (RFC 8878, 3.1.1)."""
    total, at = 0, 0
    while at + 4 < len(content):
        magic = _number(content, at, 4)
        if magic in SKIPPED_ZSTD:
            at += 8 + _number(content, at + 4, 4)
            continue
        if magic != ZSTD:
            return math.inf
        descriptor = content[at + 4]
        is_single, dictionary = bool(descriptor & 32), (0, 1, 2, 4)[descriptor & 3]
        length = (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
        at += 5 + (not is_single) + dictionary
        declared = _number(content, at, length) + (256 if length == 2 else 0)
        unfolded, at = _zstd_blocks(content, at + length)
        total += declared if length else unfolded
        at += 4 * bool(descriptor & 4)  # a checksum
    return total


def _zstd_blocks(content: bytes, at: int) -> tuple[int, int]:
    """The most that the blocks of a frame unfold to, and where they end."""
    total, is_last = 0, False
    while not is_last and at < len(content):
        header = _number(content, at, 3)
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        total += size if kind < 2 else ZSTD_BLOCK  # as it is, one byte many times, or compressed
        at += 3 + (1 if kind == 1 else size)
    return total, at


def _number(content: bytes, at: int, length: int) -> int:
    return int.from_bytes(content[at : at + length], "little")


SIZES: dict[str, Callable[[bytes, int], Size]] = {
    "gzip": _gunzipped,
    "zlib": _inflated,
    "bz2": _bunzipped,
    "lzma": _unxzed,
    "zstd": _zstd,
    "blosc": lambda content, most: _number(content, 4, 4),
    "lz4": lambda content, most: _number(content, 0, 4),
    "lz4 of hdf5": lambda content, most: int.from_bytes(content[:8], "big"),
    "bitshuffle": lambda content, most: int.from_bytes(content[:8], "big"),
    "szip": lambda content, most: _number(content, 0, 4),
    "lzf": lambda content, most: RATIOS["lzf"] * len(content),
}
DECLARED = {"blosc", "lz4", "lz4 of hdf5", "bitshuffle", "szip"}  # compressors with a header
STREAMED = {"gzip", "zlib", "bz2", "lzma"}  # compressors whose content is unfolded to be checked


def unfolded_size(compressor: str, content: bytes, most: int) -> Size:
    """Bytes that some content unfolds to, or more than that; if they exceed ``most``, any larger number.

    >>> import zlib
    >>> unfolded_size("zlib", zlib.compress(bytes(1000)), 2000), unfolded_size("zlib", zlib.compress(bytes(1000)), 10)
    (1000, 11)
    """
    try:
        return SIZES[compressor](content, most)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):  # damaged, or more memory than xz takes
        return math.inf
