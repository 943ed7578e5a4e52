"""The rows and their map under study: what several metrics need is gathered once, in as few rounds over all pairs as can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from dre.distances import Distances
from dre.metrics.pairs import Block, progress
from dre.metrics.points import LOW
from dre.metrics.protocol import STANDARD

IN_FLOAT64_UP_TO = 5_000  # rows: below, products in float64 take less than a second


class Gathering(Protocol):
    """Under way: it is shown every block once."""

    def take(self, block: Block) -> None: ...

    def result(self) -> Any: ...


class Part(Protocol):
    """What is to be gathered, as data: the key under which a study keeps it."""

    @property
    def needs(self) -> tuple[Part, ...]: ...

    def begin(self, study: Study) -> Gathering: ...


class Train(NamedTuple):
    """Points of the map that were fitted, where those under study were held out."""

    places: Tensor  # (m, d)
    labels: Tensor  # (m,)
    own_labels: Tensor  # (n,) of the rows under study, on the same scale


@dataclass
class Study:
    """Points (n, d) by space, how to count, and all that was found so far."""

    spaces: dict[str, Tensor]
    k: int = 1
    protocol: str = STANDARD
    shepard: str = "auto"  # how the Shepard goodness is computed
    levels: dict[str, Tensor] = field(default_factory=dict)  # labels (n,) as numbers, by the name of their level
    train: Train | None = None
    only_order: bool = False  # the values of distances don't matter: their order can be had from float32 products
    title: str = "metrics"
    _distances: dict[str, Distances] = field(default_factory=dict)
    _found: dict[Part, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.spaces[LOW])

    @property
    def labels(self) -> Tensor:
        """Those of the first level."""
        return next(iter(self.levels.values()))

    def distances(self, space: str) -> Distances:
        if space not in self._distances:
            rows = self.spaces[space]
            small = self.n <= IN_FLOAT64_UP_TO or self.shepard == "exact"
            in_float64 = not self.only_order and (small or rows.dtype == torch.double)
            self._distances[space] = Distances(rows, torch.double if in_float64 else None)
        return self._distances[space]

    def find(self, *parts: Part) -> list[Any]:
        """The parts, gathered together; what one of them needs first is gathered in a round before it."""
        rounds = self._rounds(parts)
        if not rounds:
            return [self._found[part] for part in parts]
        blocks = list(self.distances(LOW).half())
        with progress(self.title, len(rounds) * len(blocks)) as bar:
            for ready in rounds:
                under_way = {part: part.begin(self) for part in ready}
                for some, others in blocks:
                    block = Block(some, others, {space: self.distances(space) for space in self.spaces})
                    for gathering in under_way.values():
                        gathering.take(block)
                    bar.update()
                self._found |= {part: gathering.result() for part, gathering in under_way.items()}
        return [self._found[part] for part in parts]

    def _rounds(self, parts: Sequence[Part]) -> list[list[Part]]:
        open_parts = {part: None for part in parts if part not in self._found}
        for part in list(open_parts):
            for level in self._rounds(part.needs):
                open_parts |= dict.fromkeys(level)
        rounds: list[list[Part]] = []
        known = set(self._found)
        while open_parts:
            ready = [part for part in open_parts if known.issuperset(part.needs)]
            rounds.append(ready)
            known |= set(ready)
            open_parts = {part: None for part in open_parts if part not in known}
        return rounds
