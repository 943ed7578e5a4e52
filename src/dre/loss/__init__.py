"""What the map must minimise: terms over the pairs of a batch that can be weighted and added up.

To add one, write a file here with a frozen dataclass like those beside it, or hand such an object to a ``Stage``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dre.affinity.target import Pairs
from dre.notation import Reader, Registry, write, write_value

LOSSES = Registry("loss", __name__)


class Loss:
    """A scalar from the embedding ``y`` (b, c) of a batch and the weights of its pairs.

    >>> from dre.loss.kl import KL
    >>> str(KL() + 0.1 * KL(alpha=0.5))
    '1.0*kl + 0.1*kl(alpha=0.5)'
    """

    name: ClassVar[str]
    combined: ClassVar[str] = "sum"  # written with + and *, never by name

    def __init_subclass__(cls, *, name: str) -> None:
        cls.name = name
        if name != Loss.combined:
            LOSSES.add(name, cls)

    def __call__(self, y: Tensor, pairs: Pairs) -> Tensor:
        raise NotImplementedError

    def __rmul__(self, weight: float) -> Sum:
        return Sum(tuple((float(weight) * w, term) for w, term in _terms(self)))

    def __add__(self, other: Loss) -> Sum:
        return Sum((*_terms(self), *_terms(other)))

    def __str__(self) -> str:
        return write(self, self.name)


@dataclass(frozen=True)
class Sum(Loss, name=Loss.combined):
    """Several terms, each with its weight; written ``1.0*kl + 0.1*ce``."""

    terms: tuple[tuple[float, Loss], ...]

    def __call__(self, y: Tensor, pairs: Pairs) -> Tensor:
        return torch.stack([weight * term(y, pairs) for weight, term in self.terms]).sum()

    def __str__(self) -> str:
        return " + ".join(f"{write_value(weight)}*{term}" for weight, term in self.terms)


def _terms(loss: Loss) -> tuple[tuple[float, Loss], ...]:
    return loss.terms if isinstance(loss, Sum) else ((1.0, loss),)


def read_loss(reader: Reader) -> Loss:
    """``kl``, ``0.5*kl``, ``kl + 0.1*ce(min_dist=0.1)``; parentheses around all of it are allowed."""
    if reader.accept("("):
        loss = read_loss(reader)
        reader.expect(")", "')'")
        return loss
    terms: list[tuple[float, Loss]] = []
    plain = True
    while True:
        weight = 1.0
        if reader.next.kind == "number":
            weight, plain = float(reader.take().text), False
            reader.expect("*", "'*' between a weight and its loss")
        terms.append((weight, LOSSES.read(reader)))
        if not reader.accept("+"):
            break
    return terms[0][1] if plain and len(terms) == 1 else Sum(tuple(terms))
