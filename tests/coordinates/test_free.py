"""Free coordinates of all rows: they lower the loss, always in the same way."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor

import dre.coordinates.free
from dre import KL, Gaussian
from dre.affinity.bank import Bank, BankPairs
from dre.affinity.target import Graph
from dre.coordinates.free import EXAGGERATED, EXAGGERATION, START_STD, needs_grid, optimize
from dre.coordinates.start import principal_components
from dre.loss import Loss, Step
from dre.metrics import trustworthiness
from dre.neighbors.search import nearest

N = 250
ROWS = torch.from_numpy(load_digits().data[:N]).float()
LOSS = KL()
GRAPH = Graph.of(Gaussian(15), nearest(ROWS, 45))


def bank(components: int = 2) -> Bank:
    return Bank(GRAPH, principal_components(ROWS, components, START_STD))


def value(at: Bank, loss: Loss = LOSS) -> float:
    return float(loss(Step.of(at.columns.T.contiguous(), at.block(torch.arange(N)))))


def optimized(components: int = 2, steps: int = 100, loss: Loss = LOSS, *, exaggerate: bool = True) -> Bank:
    at = bank(components)
    assert list(optimize(at, loss, steps, exaggerate=exaggerate)) == list(range(1, steps + 1))
    return at


@pytest.mark.parametrize("components", [1, 2, 3])
def test_the_loss_falls_and_neighbors_come_together(components: int) -> None:
    before, after = bank(components), optimized(components)
    assert value(after) < 0.7 * value(before)
    coordinates = after.columns.T
    assert coordinates.isfinite().all()
    assert coordinates.shape == (N, components)
    if components > 1:
        start = trustworthiness(ROWS.numpy(), before.columns.T.numpy())
        assert trustworthiness(ROWS.numpy(), coordinates.numpy()) > start + 0.02


def test_more_steps_lower_it_further() -> None:
    losses = [value(optimized(steps=steps)) for steps in (40, 80, 160)]
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize("loss", [KL(alpha=0.5), 0.5 * KL() + 0.5 * KL(alpha=0.5)], ids=str)
def test_any_loss_that_reads_a_bank_is_minimized(loss: Loss) -> None:
    assert value(optimized(loss=loss), loss) < 0.7 * value(bank(), loss)


@pytest.mark.parametrize("components", [1, 2, 3])
def test_the_same_coordinates_come_out_every_time(components: int) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one = optimized(components, 30).columns
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(one, optimized(components, 30).columns)


def test_the_bank_has_the_coordinates_of_every_step() -> None:
    at, seen = bank(), []
    for _ in optimize(at, KL(), 6, exaggerate=False):
        seen.append(at.columns.clone())
        assert at.columns.mean(1).abs().max() < 1e-4
    assert all(not torch.equal(one, other) for one, other in pairwise(seen))
    assert torch.equal(at.columns, seen[-1])


def test_coordinates_that_a_map_has_already_are_not_torn_apart() -> None:
    """Later stages start from a map, without exaggeration, and improve it."""
    at = optimized(steps=150)
    before, loss = at.columns.clone(), value(at)
    list(optimize(at, KL(), 30, exaggerate=False))
    assert value(at) <= loss
    assert (at.columns - before).norm() < 0.3 * before.norm()


def watched(monkeypatch: pytest.MonkeyPatch) -> list[BankPairs]:
    """The pairs that the loss gets in each step."""
    seen: list[BankPairs] = []
    original = KL.__call__
    monkeypatch.setattr(KL, "__call__", lambda self, step: seen.append(step.pairs) or original(self, step))
    return seen


@pytest.mark.parametrize("exaggerate", [True, False])
def test_the_attraction_is_exaggerated_first_and_only_if_asked_for(exaggerate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch)
    optimized(steps=21, exaggerate=exaggerate)
    first = round(21 * EXAGGERATED) if exaggerate else 0
    assert [pairs.exaggeration for pairs in seen] == [EXAGGERATION] * first + [1.0] * (21 - first)
    assert all(torch.equal(pairs.ids, torch.arange(N)) for pairs in seen)


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run can be ended between two steps."""
    seen = watched(monkeypatch)
    steps = optimize(bank(), KL(), 100, exaggerate=True)
    assert len(seen) == 0
    next(steps)
    next(steps)
    assert len(seen) == 2


@pytest.mark.parametrize("components", [1, 3])
def test_a_grid_is_for_the_plane_and_other_maps_are_computed_exactly(components: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = optimized(components, 20).columns
    monkeypatch.setitem(dre.coordinates.free.EXACT_ROWS, "cpu", N - 1)
    assert needs_grid(N, 2, torch.device("cpu"))
    assert not needs_grid(N, components, torch.device("cpu"))
    assert torch.equal(optimized(components, 20).columns, wanted)


def similarity(a: Tensor, b: Tensor) -> float:
    """Procrustes similarity of two maps that are centered."""
    return float(torch.linalg.svdvals(a @ b.T).sum() / (a.norm() * b.norm()))


@pytest.mark.parametrize("components", [2, 3])
@pytest.mark.parametrize("numba", [True, False], ids=["numba", "torch"])
def test_parts_of_the_rows_lead_to_nearly_as_low_a_loss(numba: bool, components: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.loss.bank_sums.has_numba", lambda: numba)
    exact = optimized(components, 100)
    monkeypatch.setattr(dre.coordinates.free, "FREE_REPELLING", N // 3)
    visits: list[tuple[int, int]] = []
    original = KL.__call__

    def call(self: KL, step: Step) -> Tensor:
        visits.append((step.pairs.every, int(step.pairs.first)))
        return original(self, step)

    monkeypatch.setattr(KL, "__call__", call)
    sampled = optimized(components, 100)
    assert visits[:4] == [(3, 0), (3, 1), (3, 2), (3, 0)]
    assert visits[-14:] == [(1, 0)] * 14  # all rows repel in the end
    assert visits[-15][0] == 3
    assert value(sampled) < 1.25 * value(exact)  # from 83 rows at a time; the default visits thousands


@pytest.mark.parametrize("numba", [True, False], ids=["numba", "torch"])
def test_a_grid_leads_to_nearly_the_same_map(numba: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = optimized(steps=60)
    seen = watched(monkeypatch)
    monkeypatch.setitem(dre.coordinates.free.EXACT_ROWS, "cpu", N - 1)
    for module in ("bank_sums", "grid_sums"):
        monkeypatch.setattr(f"dre.loss.{module}.has_numba", lambda: numba)
    on_grid = optimized(steps=60)
    assert all(pairs.on_grid for pairs in seen)
    assert similarity(exact.columns, on_grid.columns) > 0.98
    assert value(on_grid) == pytest.approx(value(exact), rel=0.02)


@pytest.mark.parametrize("components", [2, 3])
def test_without_numba_the_map_is_nearly_the_same(components: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with_numba = optimized(components, 40)
    monkeypatch.setattr("dre.loss.bank_sums.has_numba", lambda: False)
    without = optimized(components, 40)
    assert similarity(with_numba.columns, without.columns) > 0.999
