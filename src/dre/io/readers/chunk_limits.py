"""What the chunks of an array may unfold to, and which compressors it may have.

An array may have one compressor, of those whose result can be told before it is held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dre.io.readers.memory import ARRAY_COPIES, check_memory
from dre.io.readers.source import SourceError
from dre.io.readers.unfolding import DECLARED, HEADER, RATIOS, SIZES, unfolded_size
from dre.runtime import available_bytes

SLACK = 2**18  # bytes that a chunk may take beyond its values: of headers, checksums, and a block of a compressor
SUSPICIOUS = 8  # parts of the available memory: a smaller result of a chunk does no harm
Check = Callable[[int, int], None]  # of the chunks with the rows from start to stop


@dataclass(frozen=True)
class ChunkLimit:
    """What a chunk of an array may unfold to.

    Parameters
    ----------
    path : Path
    name : str
        Of the array.
    most : int
        Bytes.
    compressor : str or None
    harmless : float
        Bytes that may be held in any case.
    """

    path: Path
    name: str
    most: int
    compressor: str | None
    harmless: float

    def is_harmless(self, size: int) -> bool:
        """Whether so many compressed bytes cannot become many."""
        return size * (1 if self.compressor is None else RATIOS.get(self.compressor, math.inf)) <= self.harmless

    def check_stored(self, size: int) -> None:
        """Check the size of a chunk as it is in the file."""
        if size > self.most:
            raise self._error(size)

    def check(self, size: int, read: Callable[[int], bytes]) -> None:
        """Check a chunk of ``size`` bytes; ``read(n)`` returns its first n bytes or more, all for -1."""
        self.check_stored(size)
        if self.compressor is None or self.is_harmless(size):
            return
        if self.compressor == "lzf":
            what = f"a chunk of {self.name or 'the array'}, compressed by LZF,"
            check_memory(self.path, RATIOS["lzf"] * size, what, "store it in smaller chunks")
            return
        found = unfolded_size(self.compressor, read(HEADER if self.compressor in DECLARED else -1), self.most)
        if found > self.most:
            raise self._error(found)

    def _error(self, size: float) -> ValueError:
        which = f" of {self.name.strip('/')!r}" if self.name else ""
        if math.isinf(size):
            return ValueError(f"a chunk{which} can't be decompressed by {self.compressor}")
        return SourceError(
            f"{self.path} is damaged: a chunk{which} has {size:,} bytes or more, where its values need at most {self.most:,}"
        )


def chunk_limit(path: Path, array: Any, name: str, compressor: str | None) -> ChunkLimit:
    """The limit of an array's chunks; texts may fill the memory that is available."""
    available = available_bytes()
    if array.dtype.kind in "OT" and not hasattr(array, "id"):  # HDF5 has only references in a chunk
        most = 2**40 if available is None else available // ARRAY_COPIES
    else:
        most = 2 * math.prod(map(int, array.chunks)) * int(array.dtype.itemsize) + SLACK
    return ChunkLimit(path, name, most, compressor, math.inf if available is None else available / SUSPICIOUS)


def only_compressor(path: Path, name: str, codecs: Sequence[str], harmless: Sequence[str], behind: str) -> str | None:
    """The compressor among the codecs of an array, in the order in which they were applied.

    Raises a `SourceError` if nothing tells what a chunk unfolds to: with several compressors, with an unknown codec, or with
    a codec behind the compressor that is not ``behind``, a checksum.
    """
    what = f"{path}: {name.strip('/')!r}" if name else str(path)
    for codec in codecs:
        if codec not in SIZES and codec not in harmless:
            raise SourceError(f"{what} is stored by {codec!r}, and nothing tells what it unfolds to; save it with gzip")
    found = [i for i, codec in enumerate(codecs) if codec in SIZES]
    if len(found) > 1 or (found and any(codec != behind for codec in codecs[found[0] + 1 :])):
        several = ", ".join(codecs)
        raise SourceError(f"{what} is compressed by {several}, which may unfold to any size; save it with one compressor")
    return codecs[found[0]] if found else None


def chunk_numbers(start: int, stop: int, size: int) -> range:
    """Numbers of the chunks of ``size`` rows that have rows from start to stop.

    >>> chunk_numbers(5, 20, 10)
    range(0, 2)
    """
    return range(start // size, math.ceil(stop / size))
