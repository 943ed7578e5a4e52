"""The loss while an encoder follows coordinates: plain regression."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from dre.loss import Loss, Step


@dataclass(frozen=True)
class Follow(Loss, name="follow", registered=False):
    """Mean absolute error to the coordinates that the rows should have. It forgives single rows that no network can reach."""

    capturable = True

    def __call__(self, step: Step) -> Tensor:
        assert step.target is not None  # the loop sets it
        return (step.y - step.target).abs().mean()
