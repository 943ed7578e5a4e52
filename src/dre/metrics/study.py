"""The rows and their map under study: what several metrics need is gathered once, in as few rounds over all pairs as can be."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Protocol

import torch
from torch import Tensor

from dre.metrics.bar import progress
from dre.metrics.pairs import Block
from dre.metrics.points import LOW
from dre.neighbors.distances import Distances

IN_FLOAT64_UP_TO = 5_000  # rows: below, products in float64 take less than a second


class Precision(IntEnum):
    """What a part needs of the products that distances come from."""

    ORDER = 0  # only who is nearer: float32 will do, since what it leaves open is settled
    VALUES = 1  # the distances, as precise as the data are
    FLOAT64 = 2


class Gathering(Protocol):
    """Under way: it is shown every block once."""

    def take(self, block: Block) -> None: ...

    def result(self) -> Any: ...


class Part(Protocol):
    """What is to be gathered, as data: the key under which a study keeps it."""

    @property
    def needs(self) -> tuple[Part, ...]: ...

    @property
    def precision(self) -> Precision: ...

    def begin(self, study: Study) -> Gathering: ...


class Study:
    """Points (n, d) by space, and all that was gathered about them so far."""

    def __init__(self, spaces: dict[str, Tensor], title: str = "metrics") -> None:
        self.spaces, self._title = spaces, title
        self._precision = Precision.ORDER
        self._distances: dict[str, Distances] = {}
        self._found: dict[Part, Any] = {}

    @property
    def n(self) -> int:
        return len(self.spaces[LOW])

    @property
    def device(self) -> torch.device:
        return self.spaces[LOW].device

    def distances(self, space: str) -> Distances:
        if space not in self._distances:
            rows = self.spaces[space]
            precise = rows.dtype == torch.double or self.n <= IN_FLOAT64_UP_TO
            in_float64 = self._precision == Precision.FLOAT64 or (self._precision == Precision.VALUES and precise)
            self._distances[space] = Distances(rows, torch.double if in_float64 else None)
        return self._distances[space]

    def find(self, *parts: Part) -> list[Any]:
        """The parts, gathered together; what one of them needs first is gathered in a round before it."""
        rounds = self._rounds(parts)
        if rounds:
            self._go_through(rounds)
        return [self._found[part] for part in parts]

    def _go_through(self, rounds: list[list[Part]]) -> None:
        needed = max(part.precision for ready in rounds for part in ready)
        if needed > self._precision:
            self._precision = needed
            self._distances.clear()
        distances = {space: self.distances(space) for space in self.spaces}
        blocks = list(distances[LOW].upper_blocks())
        with progress(self._title, len(rounds) * len(blocks)) as bar:
            for ready in rounds:
                under_way = {part: part.begin(self) for part in ready}
                for some, others in blocks:
                    block = Block(some, others, distances)
                    for gathering in under_way.values():
                        gathering.take(block)
                    bar.update()
                self._found |= {part: gathering.result() for part, gathering in under_way.items()}

    def _rounds(self, parts: Sequence[Part]) -> list[list[Part]]:
        """What is not found yet, in an order in which everything comes after what it needs."""
        missing = {part: None for part in parts if part not in self._found}
        for part in list(missing):
            for needed in self._rounds(part.needs):
                missing |= dict.fromkeys(needed)
        rounds: list[list[Part]] = []
        known = set(self._found)
        while missing:
            ready = [part for part in missing if known.issuperset(part.needs)]
            rounds.append(ready)
            known |= set(ready)
            missing = {part: None for part in missing if part not in known}
        return rounds
