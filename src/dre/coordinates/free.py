"""Minimizes a loss over the places of all rows, by its full gradient."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dre.affinity.bank import Bank
from dre.coordinates.momentum import Momentum
from dre.loss import Loss, Step

# A map that starts at the tiny first components is pulled together first, so that clusters can pass each other.
EXAGGERATION = 12.0
EXAGGERATED = 2 / 7  # of the steps
SMALLEST_RATE = 50.0
START_STD = 1e-4  # of the first principal component, as in other t-SNE programs
EXACT_ROWS = {"cpu": 20_000, "cuda": 150_000}  # up to which all pairs are visited; beyond, the sums are taken on a grid


def needs_grid(n: int, device: torch.device) -> bool:
    """Whether the exact sum over all pairs of n rows takes too long."""
    return n > EXACT_ROWS.get(device.type, EXACT_ROWS["cuda"])


def optimize(bank: Bank, loss: Loss, steps: int, *, exaggerate: bool) -> Iterator[int]:
    """Move the places of the bank to where the loss is least, and yield the number of steps made.

    Parameters
    ----------
    bank : Bank
        Holds the places at the start, and receives the new ones after each step.
    loss : Loss
        One that reads a bank.
    steps : int
    exaggerate : bool
        Multiply the attraction in the first part of the steps: for places that start close together.
    """
    n = bank.columns.shape[1]
    ids = torch.arange(n, device=bank.columns.device)
    all_rows = bank.block(ids)._replace(values=False, on_grid=needs_grid(n, ids.device))
    places = bank.columns.T.clone()
    momentum = Momentum(places)
    exaggerated = round(EXAGGERATED * steps) if exaggerate else 0
    for step in range(steps):
        if step == exaggerated:
            momentum = Momentum(places)
        factor = EXAGGERATION if step < exaggerated else 1.0
        gradient = _gradient(loss, places, all_rows._replace(exaggeration=factor))
        # The gradient of all rows is of the order 1/n. Its factor 4 is not counted in the rates that t-SNE programs use.
        momentum.move(places, gradient, max(SMALLEST_RATE, n / factor / 4), 0.5 if step < exaggerated else 0.8)
        bank.columns.copy_(places.T)
        yield step + 1


def _gradient(loss: Loss, places: Tensor, pairs: object) -> Tensor:
    y = places.detach().requires_grad_()
    with torch.enable_grad():
        value = loss(Step.of(y, pairs))  # type: ignore[arg-type]
    (gradient,) = torch.autograd.grad(value, y)
    return gradient
