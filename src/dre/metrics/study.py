"""The rows and their map under study: what several metrics need is gathered once, in as few rounds over all pairs as can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from dre.distances import Distances
from dre.metrics.pairs import Block, progress
from dre.metrics.points import Device, check_k, points, two_spaces
from dre.metrics.protocol import STANDARD

HIGH, LOW = "high", "low"
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
            wide = not self.only_order and (rows.dtype == torch.double or self.n <= IN_FLOAT64_UP_TO)
            self._distances[space] = Distances(rows, torch.double if wide else None)
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


class Score(NamedTuple):
    value: Any
    per_point: Tensor | None = None  # (n,)
    remark: str = ""


@dataclass(frozen=True)
class Measure:
    """A metric, as data: the name of its function, what it needs gathered, how it is read off that, and when it applies."""

    name: str
    parts: Callable[[Study], tuple[Part, ...]]
    score: Callable[[Study], Score]
    applies: Callable[[Study], bool] = lambda study: True

    def __call__(self, study: Study, per_point: bool = False) -> Any:
        study.find(*self.parts(study))
        found = self.score(study)
        if per_point:
            assert found.per_point is not None
            return found.per_point.cpu().numpy()
        return found.value


def of_both(X: Any, Y: Any, k: Any = None, device: Device = "auto", **options: Any) -> Study:
    high, low = two_spaces(X, Y, device)
    return Study({HIGH: high, LOW: low}, 1 if k is None else check_k(k, len(low)), **options)


def of_map(Y: Any, k: Any = None, device: Device = "auto", **options: Any) -> Study:
    low = points(Y, "Y", device)
    return Study({LOW: low}, 1 if k is None else check_k(k, len(low)), **options)
