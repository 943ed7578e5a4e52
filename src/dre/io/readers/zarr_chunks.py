"""Chunks of zarr, alone in their files or in shards, and the codecs that they go through."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dre.io.readers.chunk_limits import Check, ChunkLimit, chunk_limit, chunk_numbers, only_compressor
from dre.io.readers.memory import check_memory
from dre.io.readers.source import SourceError
from dre.io.readers.unfolding import STREAMED

SHARDS, CHECKSUM, NUMCODECS = "sharding_indexed", "crc32c", "numcodecs."
SAME_SIZE = (
    "bytes", "transpose", "vlen-utf8", "vlen-bytes", "shuffle", "bitround", CHECKSUM, NUMCODECS + CHECKSUM, "crc32", "adler32",
    "fletcher32", "jenkins_lookup3",
)  # fmt: skip
RETYPING = ("delta", "fixedscaleoffset", "quantize", "astype", "packbits")  # they return values of another size
TYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")  # their parameters
LARGEST_VALUE = 16  # bytes, which one byte can become by them
INDEX_ENTRY, CHECKSUM_BYTES = 16, 4  # bytes of a shard's index: the offset and the size of a chunk
NO_CHUNK = 2**64 - 1
Codec = tuple[str, dict[str, Any]]  # a name and its parameters
Stored = tuple[Path, int, int]  # a chunk: its file, offset and size


def zarr_check(path: Path, array: Any) -> Check:
    """A check of the chunks of an array by rows."""
    if not path.is_dir():
        return lambda start, stop: None
    outer = _codecs(array.metadata)
    shards = next((settings for name, settings in outer if name == SHARDS), None)
    if shards is not None and len(outer) > 1:
        raise SourceError(f"{path}: the shards of {array.path!r} go through other codecs as well; save it without them")
    codecs = outer if shards is None else [_codec(each) for each in shards["codecs"]]
    limit = _limit(path, array, codecs)
    index = None if shards is None else _index_reader(limit, array, shards)
    checked: set[Stored] = set()  # those whose check takes long

    def check(start: int, stop: int) -> None:
        for file, rows in _files(path, array, start, stop):
            size = file.stat().st_size
            with file.open("rb") as opened:
                chunks = [(0, size)] if index is None else index(opened, size, rows)
                for offset, length in chunks:
                    if (file, offset, length) not in checked:
                        limit.check(length, _reader(opened, offset, length, [name for name, _ in codecs]))
                        if limit.compressor in STREAMED:
                            checked.add((file, offset, length))

    return check


def _codecs(metadata: Any) -> list[Codec]:
    """Codecs in the order in which they were applied."""
    if metadata.zarr_format == 2:
        found = [*(metadata.filters or ()), *([metadata.compressor] if metadata.compressor else [])]
        return [(str(each["id"]), each) for each in (codec.get_config() for codec in found)]
    return [_codec(each.to_dict()) for each in metadata.codecs]


def _codec(about: Any) -> Codec:
    return str(about["name"]), dict(about.get("configuration") or {})


def _limit(path: Path, array: Any, codecs: list[Codec]) -> ChunkLimit:
    names = [name if name == NUMCODECS + CHECKSUM else name.removeprefix(NUMCODECS) for name, _ in codecs]
    limit = chunk_limit(path, array, array.path, only_compressor(path, array.path, names, (*SAME_SIZE, *RETYPING), CHECKSUM))
    for name, (_, settings) in zip(names, codecs, strict=True):
        if name in RETYPING:
            if any(np.dtype(settings[each]).kind not in "biufc" for each in TYPES if settings.get(each) is not None):
                raise SourceError(f"{path}: the codec {name!r} of {array.path!r} returns no numbers; save it without")
            what = f"a chunk of {array.path or 'the array'}, stored by {name!r},"
            check_memory(path, LARGEST_VALUE * limit.most, what, "store it in smaller chunks")
        if name == "lzma" and settings.get("format", 1) != 1:
            raise SourceError(f"{path}: {array.path!r} is stored by {name!r} without its header; save it with zstd or gzip")
    return limit


def _files(path: Path, array: Any, start: int, stop: int) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Files of the chunks or shards with the rows from start to stop, and these rows within each."""
    if not array.ndim:
        places: Iterator[tuple[int, ...]] = iter([()])
        sizes: tuple[int, ...] = (1,)
    else:
        sizes = array.shards or array.chunks
        numbers = chunk_numbers(start, min(stop, array.shape[0]), sizes[0])
        others = [range(math.ceil(size / chunk)) for size, chunk in zip(array.shape[1:], sizes[1:], strict=True)]
        places = itertools.product(numbers, *others)
    for place in places:
        file = path / array.path / array.metadata.encode_chunk_key(place)
        if file.is_file():
            first = sizes[0] * (place or (0,))[0]
            yield file, (max(0, start - first), min(sizes[0], stop - first))
        elif file.exists():
            raise SourceError(f"{file} is no file: save the array again")  # one that is absent has equal values


def _reader(file: BinaryIO, offset: int, length: int, codecs: list[str]) -> Callable[[int], bytes]:
    """A function that reads the first bytes of a chunk, or all but its checksum."""

    def read(count: int) -> bytes:
        file.seek(offset)
        return file.read(min(count, length) if count >= 0 else length - CHECKSUM_BYTES * (codecs[-1] == CHECKSUM))

    return read


def _index_reader(
    limit: ChunkLimit, array: Any, shards: dict[str, Any]
) -> Callable[[BinaryIO, int, tuple[int, int]], list[tuple[int, int]]]:
    """A function that finds the offsets and sizes of the chunks of some rows in a shard of a given size."""
    codecs = [_codec(each) for each in shards["index_codecs"]]
    if [name for name, _ in codecs] not in (["bytes"], ["bytes", CHECKSUM]) or codecs[0][1].get("endian", "little") != "little":
        raise SourceError(f"{limit.path}: the index of the shards of {array.path!r} is compressed; save the array again")
    counts = tuple(shard // chunk for shard, chunk in zip(array.shards, array.chunks, strict=True))
    length = INDEX_ENTRY * math.prod(counts)
    stored = length + CHECKSUM_BYTES * (len(codecs) - 1)
    is_first = str(getattr(shards["index_location"], "value", shards["index_location"])) == "start"
    most = math.prod(counts) * limit.most + stored

    def find(file: BinaryIO, size: int, rows: tuple[int, int]) -> list[tuple[int, int]]:
        if not stored <= size <= most:
            what = f"a shard of {size:,} bytes, of which its index takes {stored:,}"
            raise SourceError(f"{file.name} is damaged: {what}, where its values need at most {most:,}")
        file.seek(0 if is_first else size - stored)
        entries = np.frombuffer(file.read(length), "<u8").reshape(*counts, 2)
        numbers = chunk_numbers(*rows, array.chunks[0])
        chosen = np.unique(entries[numbers.start : numbers.stop].reshape(-1, 2), axis=0)
        chosen = chosen[(chosen != NO_CHUNK).any(1)]
        if any(int(offset) + int(count) > size for offset, count in chosen):
            raise SourceError(f"{file.name} is damaged: a chunk ends behind the end of its shard; save the array again")
        return [(int(offset), int(count)) for offset, count in chosen]

    return find
