"""Minimizes a loss over the coordinates of all rows, by its gradient over all pairs or an estimate of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from dre.affinity.bank import Bank, BankPairs, one_in
from dre.coordinates.momentum import Momentum
from dre.loss import Loss, Step

# Coordinates that start close together are pulled together first, so that clusters can pass each other.
EXAGGERATION = 12.0
EXAGGERATED = 2 / 7  # of the steps
SMALLEST_RATE = 50.0
START_STD = 1e-4  # of the first principal component, as in other t-SNE programs
EXACT_ROWS = {"cpu": 20_000, "cuda": 150_000}  # up to which pairs are visited; beyond, the sums are taken on a grid
GRID_COMPONENTS = 2  # dimensions of a map whose sums can be taken on a grid
FREE_REPELLING = 4_000  # rows that tell well enough how the others repel: each has its turn in every few steps
SETTLING = 1 / 7  # of the steps, the last ones, in which as many rows repel as repel a batch: small forces count then
WARM_UP = 3  # eager steps before a capture: libraries choose their kernels in the first ones


def needs_grid(n: int, n_components: int, device: torch.device) -> bool:
    """Whether sums over all rows are taken on a grid, since all pairs take too long: in a plane.

    A grid of more dimensions would be too large, and one of a line is not worth a kernel: a part of the rows repels there.
    """
    return n_components == GRID_COMPONENTS and n > EXACT_ROWS.get(device.type, EXACT_ROWS["cuda"])


def optimize(bank: Bank, loss: Loss, steps: int, *, exaggerate: bool, held: Tensor | None = None) -> Iterator[int]:
    """Move the coordinates of the bank to where the loss is least, and yield the number of steps made.

    Parameters
    ----------
    bank : Bank
        Holds the coordinates at the start, and receives the new ones after each step.
    loss : Loss
        One that reads a bank.
    steps : int
    exaggerate : bool
        Multiply the attraction in the first part of the steps: for coordinates that start close together.
    held : Tensor of shape (n,), optional
        Mask of the rows that stay where they are. The others then start anywhere among them.
    """
    n, device = bank.columns.shape[1], bank.columns.device
    offset = torch.zeros((), dtype=torch.long, device=device)
    block = bank.block(torch.arange(n, device=device))
    everything = block._replace(
        values=False, on_grid=needs_grid(n, len(bank.columns), device), every=one_in(n, FREE_REPELLING), offset=offset
    )
    coordinates = bank.columns.T.contiguous()
    exaggerated = round(EXAGGERATED * steps) if exaggerate else 0
    # A grid has a size that depends on the coordinates, and so can't be captured.
    captured = device.type == "cuda" and loss.capturable and not everything.on_grid
    settling = round(SETTLING * steps) if everything.every > block.every else 0
    first, last = everything._replace(exaggeration=EXAGGERATION), everything._replace(every=block.every, offset=offset.clone())
    state = Momentum(coordinates, held)
    phases = (
        (exaggerated, _move(bank, coordinates, loss, first, Momentum(coordinates, held), momentum=0.5)),
        (steps - exaggerated - settling, _move(bank, coordinates, loss, everything, state, momentum=0.8)),
        (settling, _move(bank, coordinates, loss, last, state, momentum=0.8)),
    )
    done = 0
    for count, move in phases:
        for _ in _repeat(move, count, device if captured else None):
            done += 1
            yield done


def _move(
    bank: Bank, coordinates: Tensor, loss: Loss, pairs: BankPairs, state: Momentum, *, momentum: float
) -> Callable[[], None]:
    """Return a function that makes one step."""
    # The gradient of all rows is of the order 1/n. Its factor 4 is not counted in the rates that t-SNE programs use.
    lr = max(SMALLEST_RATE, len(coordinates) / pairs.exaggeration / 4)

    def move() -> None:
        with torch.enable_grad():
            y = coordinates.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(loss(Step.of(y, pairs)), y)
        state.move(coordinates, gradient, lr, momentum)
        if pairs.offset is not None:
            pairs.offset.add_(1).remainder_(pairs.every)
        bank.columns.copy_(coordinates.T)

    return move


def _repeat(move: Callable[[], None], count: int, capture_on: torch.device | None) -> Iterator[None]:
    """Make so many steps; all but the first are replayed from a CUDA graph if they are captured on a GPU."""
    if capture_on is None or count <= WARM_UP:
        for _ in range(count):
            move()
            yield
        return
    side = torch.cuda.Stream(capture_on)  # not of the current device, which may be another
    side.wait_stream(torch.cuda.current_stream(capture_on))
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            move()
    torch.cuda.current_stream(capture_on).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        move()
    yield from (None for _ in range(WARM_UP))
    for _ in range(count - WARM_UP):
        graph.replay()
        yield
