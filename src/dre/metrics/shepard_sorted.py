"""The rank correlation of all distances by sorting them: exact, and the one part that holds all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dre.metrics.mean_ranks import correlation, mean_ranks
from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW
from dre.metrics.study import Gathering, Part, Precision, Study

BYTES_PER_PAIR = 72  # while two lists of distances are ranked
CLOSE = 1e-3  # of the squared norms: below, a product of float64 is off by more than ``SAME``, and the differences are taken


@dataclass(frozen=True)
class Sorted:
    """The correlation, and its error: none."""

    needs: ClassVar[tuple[Part, ...]] = ()
    precision: ClassVar[Precision] = Precision.FLOAT64

    def begin(self, study: Study) -> Gathering:
        return _Sorted(study)


class _Sorted:
    def __init__(self, study: Study) -> None:
        self._study = study
        self._lists: dict[str, list[Tensor]] = {HIGH: [], LOW: []}

    def take(self, block: Block) -> None:
        for space, parts in self._lists.items():
            parts.append(block.once(self._true(block, space)))

    def _true(self, block: Block, space: str) -> Tensor:
        """Squared distances that are right in parts of themselves, also of close and of equal rows."""
        distances, squared = self._study.distances(space), block.squared(space)
        norms = distances.norms[block.some, None] + distances.norms[block.others]
        rows, columns = (squared <= CLOSE * norms).nonzero(as_tuple=True)
        true = distances.direct_pairs(block.some.start + rows, block.others.start + columns)
        return squared.index_put((rows, columns), true)

    def result(self) -> tuple[float, float]:
        high, low = (mean_ranks(torch.cat(self._lists.pop(space))) for space in (HIGH, LOW))
        return correlation(high, low), 0.0
