"""A folder of pieces: an embedding in many files, which several processes write, and which a later run completes.

Each piece is complete or absent. A small file beside them says of which model and data they are, so that pieces of others
are never taken for finished ones.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from dre.atomic import atomic_write
from dre.io.readers.source import Array

MANIFEST = "_pieces.json"  # readers of shards leave out names that begin with an underscore
# Rows of a piece: what is lost if a process ends in the middle of one. Processes share pieces evenly if there are many of them.
MIN_ROWS, MAX_ROWS, PIECES = 2**14, 2**18, 256
LARGEST = 4 * MAX_ROWS  # rows of a block that is a piece as a whole: cutting one means decoding it again
SHARD = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class Shard:
    """The share of one of several processes: every so-manieth piece.

    >>> Shard.parse("2/8").pieces(20)
    [2, 10, 18]
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``"i/n"``: process i of n, counted from 0."""
        match = SHARD.fullmatch(text.strip())
        number, count = (int(match[1]), int(match[2])) if match else (0, 0)
        if number >= count:
            raise ValueError(f"shard {text!r}: expected i/n, with i from 0 to n - 1, such as 0/8 for the first of eight")
        return cls(number, count)

    def pieces(self, count: int) -> list[int]:
        """Numbers of its pieces, of so many in all."""
        return list(range(self.number, count, self.count))


def piece_rows(n: int) -> int:
    """Rows of a piece, of n in all; they do not depend on the number of processes, which may change.

    >>> piece_rows(1_000), piece_rows(10_000_000), piece_rows(1_000_000_000)
    (16384, 39063, 262144)
    """
    return min(MAX_ROWS, max(MIN_ROWS, -(-n // PIECES)))


def piece_edges(n: int, blocks: Array | None = None, least: int | None = None) -> Array:
    """Rows at which pieces begin and end: the edges of a file's blocks, with small blocks joined and very large ones cut.

    >>> piece_edges(10, least=4).tolist(), piece_edges(10, np.array([0, 3, 6, 10]), least=4).tolist()
    ([0, 4, 8, 10], [0, 6, 10])
    """
    least = piece_rows(n) if least is None else least
    edges = [0]
    for edge in [] if blocks is None else blocks[1:].tolist():
        if edge - edges[-1] >= least:
            edges.append(edge)
    edges = edges if edges[-1] == n else [*edges, n]
    largest = least if blocks is None else LARGEST
    cut = [np.arange(start, stop, least if stop - start > largest else stop - start) for start, stop in pairwise(edges)]
    return np.concatenate([*cut, [n]])


class PieceFolder:
    """A folder with the pieces of one embedding.

    Parameters
    ----------
    path : Path
        It is created if it does not exist.
    about : dict of str to str
        What the pieces depend on: model, data, stage. A folder of others is refused.
    edges : array of shape (n_pieces + 1,)
        Rows at which the pieces begin and end.
    """

    def __init__(self, path: Path, about: dict[str, str], edges: Array) -> None:
        self.path, self.edges = path, edges
        path.mkdir(parents=True, exist_ok=True)
        content = {**about, "rows": str(int(edges[-1])), "pieces": str(len(edges) - 1)}
        manifest = path / MANIFEST
        if not manifest.exists():
            with atomic_write(manifest) as part:
                part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        _check_same(path, json.loads(manifest.read_text(encoding="utf-8")), content)

    def piece(self, i: int) -> Path:
        """The file of a piece."""
        return self.path / f"part-{i:06}.parquet"

    def missing(self, shard: Shard) -> list[int]:
        """Numbers of the pieces of a shard that are not written yet."""
        return [i for i in shard.pieces(len(self.edges) - 1) if not self.piece(i).exists()]


def _check_same(path: Path, found: dict[str, str], wanted: dict[str, str]) -> None:
    differing = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
    if differing:
        lines = [f"- {name}: there {found.get(name, 'none')}, here {wanted.get(name, 'none')}" for name in differing]
        raise ValueError("\n".join([f"{path} has pieces of another embedding; choose another folder:", *lines]))
