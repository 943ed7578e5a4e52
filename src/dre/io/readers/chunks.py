"""Compressed chunks of arrays in HDF5 and zarr: none may unfold to more than its values, or than the memory.

The libraries decompress a chunk in full before they look at its size.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dre.io.readers.memory import ARRAY_COPIES, MOST_DEFLATED, check_array, check_memory
from dre.io.readers.source import Array, SourceError
from dre.runtime import available_bytes

SLACK = 2**16  # bytes that a chunk may take beyond its values: of headers, checksums and compression in vain
ZSTD, GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"  # beginnings of compressed chunks
AUTO_DEFLATE = 32 + zlib.MAX_WBITS  # zlib or gzip, whichever it is
MOST_AT_ONCE = 1024  # strings of HDF5 that are read together, whatever their length
SUSPICIOUS = 8  # parts of the available memory: a smaller result of a chunk does no harm


def checked_chunks(path: Path, array: Any) -> Callable[[int, int], Any]:
    """A function that reads the rows from start to stop of an array of HDF5 or zarr, once its chunks are checked."""
    if hasattr(array, "id"):  # of HDF5
        check_hdf5_chunks(path, array)
        return lambda start, stop: array[start:stop]

    def read(start: int, stop: int) -> Any:
        check_zarr_chunks(path, array, start, min(stop, array.shape[0]))
        return array[start:stop]

    return read


def read_whole(path: Path, array: Any, what: str = "an array") -> Array:
    """Read all of an array of HDF5 or zarr; texts in pieces, since a file can hold one long text in many places."""
    check_array(path, tuple(array.shape), array.dtype, what, "leave it out of the file, or divide the file")
    read = checked_chunks(path, array)
    if array.dtype.kind != "O" or array.ndim != 1 or not path.is_file():
        return np.asarray(read(0, array.shape[0]) if array.ndim else array[...])
    available, parts, total = available_bytes(), [], 0
    step = max(MOST_AT_ONCE, (available or 2**30) // max(1, path.stat().st_size) // ARRAY_COPIES)
    for start in range(0, array.shape[0], step):
        parts.append(np.asarray(read(start, start + step)))
        total += sum(len(each) for each in parts[-1] if isinstance(each, str | bytes))
        check_memory(path, ARRAY_COPIES * total, f"the text of {what}", "shorten it, or leave it out of the file")
    return np.concatenate(parts) if parts else np.asarray(read(0, 0))


def check_hdf5_chunks(path: Path, array: Any) -> None:
    """Check all chunks of a dataset that are stored; only those that could fill the memory are decompressed for it."""
    if array.chunks is None or not array.compression or not hasattr(array.id, "chunk_iter"):
        return
    most, harmless = _most_bytes(array), _harmless_bytes()
    stored: list[tuple[Any, int, bool]] = []
    array.id.chunk_iter(lambda info: stored.append((info.chunk_offset, info.size, info.filter_mask == 0)))
    for offset, size, is_compressed in stored:
        if size > most:
            raise _oversized(path, array.name, size, most)
        if array.compression == "gzip" and is_compressed and size > harmless:
            _check_deflated(path, array.name, array.id.read_direct_chunk(offset)[1], most)


def check_zarr_chunks(path: Path, array: Any, start: int, stop: int) -> None:
    """Check the chunks of some rows of an array by the sizes that they declare, before they are decompressed."""
    if array.shards is not None or not path.is_dir() or not array.ndim:
        return
    is_text, chunks, harmless = array.dtype.kind not in "biufc", array.chunks, _harmless_bytes()
    rows = range(start // chunks[0], math.ceil(stop / chunks[0]))
    others = [range(math.ceil(size / chunk)) for size, chunk in zip(array.shape[1:], chunks[1:], strict=True)]
    for place in itertools.product(rows, *others):
        file = path / array.path / array.metadata.encode_chunk_key(place)
        if not file.is_file():
            if file.exists():
                raise SourceError(f"{file} is no file: save the array again")
            continue  # all values are equal
        size = file.stat().st_size
        with file.open("rb") as opened:
            beginning = opened.read(18)
        unfolded = max(size, _zstd_size(beginning))
        if is_text:
            check_memory(path, ARRAY_COPIES * unfolded, f"a chunk of {array.path or 'the array'}", "store it in smaller chunks")
        elif unfolded > _most_bytes(array):
            raise _oversized(path, array.path, unfolded, _most_bytes(array))
        elif beginning.startswith(GZIP) and size > harmless:
            _check_deflated(path, array.path, file.read_bytes(), _most_bytes(array))


def _most_bytes(array: Any) -> int:
    return 2 * math.prod(map(int, array.chunks)) * int(array.dtype.itemsize) + SLACK


def _harmless_bytes() -> float:
    """Size of a compressed chunk that cannot unfold to much of the memory."""
    available = available_bytes()
    return math.inf if available is None else available / SUSPICIOUS / MOST_DEFLATED


def _check_deflated(path: Path, name: str, content: bytes, most: int) -> None:
    try:
        found = len(zlib.decompressobj(AUTO_DEFLATE).decompress(content, most + 1))
    except zlib.error:
        return  # whoever reads it says what is wrong
    if found > most:
        raise _oversized(path, name, found, most)


def _oversized(path: Path, name: str, size: int, most: int) -> SourceError:
    which = f" of {name.strip('/')!r}" if name else ""
    return SourceError(f"{path} is damaged: a chunk{which} has {size:,} bytes or more, where its values need at most {most:,}")


def _zstd_size(beginning: bytes) -> int:
    """The size that a frame of Zstandard declares, 0 if it does not (RFC 8878, 3.1.1.1)."""
    if not beginning.startswith(ZSTD) or len(beginning) < 6:
        return 0
    descriptor = beginning[4]
    is_single, dictionary = bool(descriptor & 32), (0, 1, 2, 4)[descriptor & 3]
    length = (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
    start = 5 + (not is_single) + dictionary
    return int.from_bytes(beginning[start : start + length], "little") + (256 if length == 2 else 0)
