"""Chunks of HDF5 and the filters that they go through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dre.io.readers.chunk_limits import Check, ChunkLimit, chunk_limit, chunk_numbers, only_compressor

SHUFFLE, CHECKSUM = "shuffle", "fletcher32"
FILTERS = {  # by their numbers, which the HDF Group registers
    1: "zlib", 2: SHUFFLE, 3: CHECKSUM, 4: "szip", 5: "nbit", 6: "scaleoffset", 307: "bz2", 32000: "lzf", 32001: "blosc",
    32004: "lz4 of hdf5", 32008: "bitshuffle", 32015: "zstd",
}  # fmt: skip
RESIZING = ("nbit", "scaleoffset")  # filters that declare how many values of which size they return
COUNT, VALUE_BYTES = 2, 4  # places of these among their parameters
BITSHUFFLE_COMPRESSOR = 4  # place of the number of its compressor, if it has one
CHECKSUM_BYTES = 4
HARMLESS = (SHUFFLE, CHECKSUM, *RESIZING)
StoredChunk = tuple[tuple[int, ...], int, int]  # its offset, its size, and bits of the filters that were left out


def hdf5_check(path: Path, array: Any) -> Check:
    """A check of the chunks of a dataset by rows; those of a virtual one are all checked at once."""
    checks = [_stored_check(path, each) for each in _stored(array, set())]
    if not array.is_virtual:
        return checks[0]

    def check(start: int, stop: int) -> None:
        for each in checks:
            each(0, 2**63)

    return check


def _stored(array: Any, seen: set[str]) -> Iterator[Any]:
    """The dataset, or those of the same file that a virtual dataset consists of."""
    if array.name in seen:
        return
    seen.add(array.name)
    if not array.is_virtual:
        yield array
        return
    for source in array.virtual_sources():
        if source.file_name == "." and source.dset_name in array.file:
            yield from _stored(array.file[source.dset_name], seen)


def _stored_check(path: Path, array: Any) -> Check:
    if array.chunks is None:
        return lambda start, stop: None
    filters = _filters(array)
    names = [name for name, _ in filters]
    limit = chunk_limit(path, array, array.name, only_compressor(path, array.name, names, HARMLESS, CHECKSUM))
    for name, values in filters:
        if name in RESIZING and len(values) > VALUE_BYTES:
            limit.check_stored(values[COUNT] * values[VALUE_BYTES])
    suspicious: dict[int, list[StoredChunk]] | None = None

    def check(start: int, stop: int) -> None:
        nonlocal suspicious
        if suspicious is None:
            suspicious = _suspicious(array, limit)
        if not suspicious:
            return
        rows = chunk_numbers(start, min(stop, array.shape[0]), array.chunks[0])
        for number in rows if len(rows) < len(suspicious) else [each for each in suspicious if each in rows]:
            for chunk in suspicious.get(number, []):
                _check_chunk(array, limit, names, chunk)
            suspicious.pop(number, None)  # a chunk is checked once

    return check


def _filters(array: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Names and parameters of the filters, in the order in which they were applied."""
    plist, found = array.id.get_create_plist(), []
    for i in range(plist.get_nfilters()):
        number, _, values, label = plist.get_filter(i)
        name = FILTERS.get(number, f"filter {number} {label.decode(errors='replace')}".rstrip())
        if name == "bitshuffle" and not any(values[BITSHUFFLE_COMPRESSOR:]):
            name = SHUFFLE
        found.append((name, values))
    return found


def _suspicious(array: Any, limit: ChunkLimit) -> dict[int, list[StoredChunk]]:
    """Chunks that could fill the memory, by their numbers along the rows; all is judged by the sizes in the file."""
    if limit.is_harmless(array.id.get_storage_size()):
        return {}
    found: dict[int, list[StoredChunk]] = {}

    def add(info: Any) -> None:
        if info.size > limit.most or not limit.is_harmless(info.size):
            found.setdefault(info.chunk_offset[0] // array.chunks[0], []).append(
                (info.chunk_offset, info.size, info.filter_mask)
            )

    if hasattr(array.id, "chunk_iter"):
        array.id.chunk_iter(add)
    else:  # an older HDF5
        for i in range(array.id.get_num_chunks()):
            add(array.id.get_chunk_info(i))
    return found


def _check_chunk(array: Any, limit: ChunkLimit, names: list[str], chunk: StoredChunk) -> None:
    offset, size, mask = chunk
    applied = [name for i, name in enumerate(names) if not mask >> i & 1]

    def read(count: int) -> bytes:
        content = bytes(array.id.read_direct_chunk(offset)[1])
        return content[:-CHECKSUM_BYTES] if applied[-1] == CHECKSUM else content

    limit.check_stored(size)
    if limit.compressor in applied:
        limit.check(size, read)
