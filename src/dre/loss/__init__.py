"""Losses of a training step, which can be weighted and added.

To add one, write a file here with a frozen dataclass like those beside it, or pass such an object to a ``Stage``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from dre.affinity.bank import BankPairs
from dre.affinity.target import Pairs
from dre.notation import Reader, Registry, write, write_value

LOSSES = Registry("loss", __name__)


@dataclass(frozen=True)
class Step:
    """Inputs of a loss: one training step with b rows.

    Attributes
    ----------
    y : Tensor of shape (b, n_components)
        Embedding of the batch, with gradients.
    pairs : Pairs or BankPairs
        Pairs of rows that attract, and their weights, in the batch; or the batch's rows against a bank of all rows, for
        losses with ``reads_bank``. None while the encoder follows coordinates.
    ids : Tensor of shape (b,)
        Row numbers, on the device of ``y``.
    x : Tensor of shape (b, ...)
        What the trained part of the encoder read: scaled rows, or the output of a PCA front, after augmentation.
    labels : Tensor of shape (b,) or None
        Of the rows, from ``fit(X, y)``; only for losses with ``reads_labels``.
    hidden : mapping of str to Tensor
        Outputs of the encoder's submodules that the loss names in ``reads_hidden``.
    target : Tensor of shape (b, n_components) or None
        Coordinates that the rows should have, while the encoder follows them.
    """

    y: Tensor
    pairs: Any  # mostly Pairs
    ids: Tensor
    x: Tensor
    labels: Tensor | None = None
    hidden: Mapping[str, Tensor] = field(default_factory=dict)
    target: Tensor | None = None

    @classmethod
    def of(cls, y: Tensor, pairs: Pairs | BankPairs) -> Step:
        """Return a step with an embedding and its pairs alone, to try a loss out."""
        return cls(y, pairs, torch.arange(len(y), device=y.device), y)


class Loss:
    """A scalar loss of one training step.

    Subclasses are frozen dataclasses with a name, ``class Spring(Loss, name="spring")``, and implement ``__call__``. They may
    declare, as class attributes or properties,

    - ``reads_hidden``: names of encoder submodules whose outputs they want in ``step.hidden``;
    - ``reads_bank``: that ``step.pairs`` may be a bank of all rows. They then have a gradient over free coordinates too;
    - ``reads_landmarks``: that, against a bank, ``step.pairs.landmarks`` must be there;
    - ``reads_labels``: that they need ``step.labels``;
    - ``capturable``: that a step can be captured in a CUDA graph. It promises no host synchronization and no shapes that
      depend on values. It is not inherited, nor is ``reads_bank``.

    Examples
    --------
    >>> from dre.loss.kl import KL
    >>> str(KL() + 0.1 * KL(alpha=0.5))
    '1.0*kl + 0.1*kl(alpha=0.5)'
    """

    name: ClassVar[str]
    reads_hidden: tuple[str, ...] = ()
    reads_labels: bool = False
    reads_bank: bool = False
    reads_landmarks: bool = False
    capturable: bool = False

    def __init_subclass__(cls, *, name: str, registered: bool = True) -> None:
        cls.name = name
        cls.capturable = cls.__dict__.get("capturable", False)
        cls.reads_bank = cls.__dict__.get("reads_bank", False)
        if registered:
            LOSSES.add(name, cls)

    def __call__(self, step: Step) -> Tensor:
        """Return the loss as a scalar tensor with gradients."""
        raise NotImplementedError

    def __rmul__(self, weight: float) -> Sum:
        return Sum(tuple((float(weight) * w, term) for w, term in _terms(self)))

    def __add__(self, other: Loss) -> Sum:
        return Sum((*_terms(self), *_terms(other)))

    def __str__(self) -> str:
        return write(self, self.name)


@dataclass(frozen=True)
class Sum(Loss, name="sum", registered=False):
    """A weighted sum of losses, written ``1.0*kl + 0.1*ce``."""

    terms: tuple[tuple[float, Loss], ...]

    @property
    def reads_hidden(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(name for _, term in self.terms for name in term.reads_hidden))

    @property
    def reads_labels(self) -> bool:  # type: ignore[override]
        return any(term.reads_labels for _, term in self.terms)

    @property
    def reads_bank(self) -> bool:  # type: ignore[override]
        return all(term.reads_bank for _, term in self.terms)

    @property
    def reads_landmarks(self) -> bool:  # type: ignore[override]
        return any(term.reads_landmarks for _, term in self.terms)

    @property
    def capturable(self) -> bool:  # type: ignore[override]
        return all(term.capturable for _, term in self.terms)

    def __call__(self, step: Step) -> Tensor:
        return torch.stack([weight * term(step) for weight, term in self.terms]).sum()

    def __str__(self) -> str:
        return " + ".join(f"{write_value(weight)}*{term}" for weight, term in self.terms)


def terms_of(loss: Loss) -> list[Loss]:
    """Return the losses that a sum adds, without their weights."""
    return [term for _, term in _terms(loss)]


def _terms(loss: Loss) -> tuple[tuple[float, Loss], ...]:
    return loss.terms if isinstance(loss, Sum) else ((1.0, loss),)


def read_loss(reader: Reader) -> Loss:
    """Read ``kl``, ``0.5*kl`` or ``kl + 0.1*ce(min_dist=0.1)``, with or without parentheses around it."""
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
