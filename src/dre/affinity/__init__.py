"""How alike two rows are: weights over neighbours, found from their distances.

To add one, write a file here with a frozen dataclass like those beside it, or hand such an object to a ``Stage``.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dre.notation import Family, write

AFFINITIES = Family("affinity", __name__)
SCOPES = ("graph", "batch")


class Affinity:
    """Directed weights from each row to others, and how the two directions of a pair become one weight.

    ``over="graph"``: the neighbours are sought among all rows, once per stage. ``over="batch"``: among the rows of a batch.
    """

    name: ClassVar[str]
    over: str

    def __init_subclass__(cls, *, name: str) -> None:
        cls.name = name
        AFFINITIES.add(name, cls)

    def fitted_to(self, n: int) -> Affinity:
        """This affinity, or the nearest one that n rows allow (with a warning that says so)."""
        raise NotImplementedError

    def neighbors(self, n: int) -> int:
        """How many of the n - 1 others a row is compared with."""
        raise NotImplementedError

    def conditional(self, distances: Tensor) -> Tensor:
        """(n, k) distances, ascending in each row, to (n, k) directed weights."""
        raise NotImplementedError

    def combine(self, there: Tensor, back: Tensor) -> Tensor:
        """The symmetric weight of pairs whose directed weights are ``there`` and ``back``."""
        raise NotImplementedError

    def __str__(self) -> str:
        return write(self, self.name)


def check_scope(over: str) -> None:
    if over not in SCOPES:
        raise ValueError(f"over={over!r}: an affinity is taken over {' or '.join(SCOPES)}")
