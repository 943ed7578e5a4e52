"""The Shepard loss: 1 minus the correlation of distances in the input and in the map."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dre import DRE, KL
from dre.affinity.bank import Bank
from dre.affinity.gaussian import Gaussian
from dre.affinity.landmarks import Landmarks
from dre.affinity.target import Graph
from dre.data.rows import ArrayRows
from dre.loss import Step
from dre.loss.shepard import Shepard
from dre.metrics import evaluate
from dre.neighbors.search import nearest

N = 40
CPU = torch.device("cpu")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows_and_map(components: int = 2, n: int = N) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(n, 6, generator=seeded(0))
    return x, (3 * torch.randn(n, components, generator=seeded(1))).requires_grad_()


def bank_of(x: torch.Tensor, y: torch.Tensor) -> Bank:
    return Bank(Graph.of(Gaussian(5), nearest(x, 15)), y.detach(), Landmarks.of(ArrayRows(x, CPU), CPU))


def correlation(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """By its definition, over the pairs of all rows, each with itself too."""
    dx, dy = torch.cdist(x, x), (y[:, None] - y).square().sum(2).add(1e-30).sqrt()
    return torch.corrcoef(torch.stack([dx.flatten(), dy.flatten()]))[0, 1]


@pytest.mark.parametrize("numba", [True, False], ids=["numba", "torch"])
@pytest.mark.parametrize("components", [1, 2, 3])
@pytest.mark.parametrize("against", ["batch", "bank"])
def test_it_is_one_minus_the_correlation_and_so_is_its_gradient(
    against: str, components: int, numba: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dre.loss.shepard.has_numba", lambda: numba)
    x, y = rows_and_map(components)
    ids = torch.randperm(N, generator=seeded(5))
    bank = bank_of(x, y)  # fewer rows than landmarks: each is one
    pairs = bank.block(ids) if against == "bank" else bank.graph.block(ids)
    found = Shepard()(Step(y[ids], pairs, ids, x[ids]))
    wanted = 1 - correlation(x.double(), y.double())
    assert found.item() == pytest.approx(wanted.item(), abs=1e-5)
    gradient, expected = torch.autograd.grad(found, y)[0], torch.autograd.grad(wanted, y)[0]
    torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


def test_it_is_zero_for_a_map_at_another_scale_and_pulls_nowhere() -> None:
    x = torch.randn(N, 2, generator=seeded(2))
    y = (7 * x + 3).requires_grad_()
    loss = Shepard()(Step(y, None, torch.arange(N), x))
    assert loss.item() == pytest.approx(0, abs=1e-4)
    assert torch.autograd.grad(loss, y)[0].abs().max() < 1e-5


@pytest.mark.parametrize("numba", [True, False], ids=["numba", "torch"])
def test_rows_at_one_point_are_left_where_they_are(numba: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.loss.shepard.has_numba", lambda: numba)
    x, _ = rows_and_map()
    y = torch.zeros(N, 2, requires_grad=True)
    for rows in (x, torch.zeros_like(x)):
        loss = Shepard()(Step.of(y, bank_of(rows, y).block(torch.arange(N))))
        assert torch.equal(torch.autograd.grad(loss, y)[0], torch.zeros(N, 2))


def test_a_small_map_is_not_torn_apart() -> None:
    """The gradient of a correlation grows without a limit when the map shrinks; that of the loss shrinks with it."""
    x, y = rows_and_map()
    sizes = []
    for scale in (1.0, 1e-2, 1e-4):
        small = (scale * y.detach() / y.detach().std()).requires_grad_()
        (gradient,) = torch.autograd.grad(Shepard()(Step.of(small, bank_of(x, small).block(torch.arange(N)))), small)
        sizes.append(float(gradient.norm()))
    assert sizes[1] == pytest.approx(sizes[0] / 100, rel=0.01)
    assert sizes[2] == pytest.approx(sizes[0] / 10_000, rel=0.01)


def test_landmarks_are_rows_from_end_to_end_with_their_distances() -> None:
    x, _ = rows_and_map(n=500)
    found = Landmarks.of(ArrayRows(x, CPU), CPU, count=20)
    assert found.ids.tolist() == sorted(set(found.ids.tolist()))
    assert (found.ids[0], found.ids[-1], len(found.ids)) == (0, 499, 20)
    true = torch.cdist(x.double(), x[found.ids].double())
    np.testing.assert_allclose(found.distances, (true - true.mean()) / true.std(correction=0), atol=5e-3)


@pytest.mark.parametrize("solution", ["from pca free 150 with 0.3*shepard follow 20", "from network"])
def test_a_map_with_it_keeps_more_of_the_global_structure_and_no_less_of_the_neighborhoods(solution: str) -> None:
    """Six clusters on a circle that is wide in one plane and waves in two other directions."""
    rng = np.random.default_rng(0)
    turn = 2 * np.pi * rng.integers(6, size=600) / 6
    centers = np.stack([6 * np.cos(turn), 2 * np.sin(turn), 3 * np.cos(2 * turn), *np.zeros((5, 600))], 1)
    X = centers + rng.standard_normal(centers.shape)
    loss = "kl" if "with" in solution else "kl + 0.3*shepard"
    texts = [f"x: gaussian(20) -> ({loss}) * 40 {solution} against bank"]
    texts.append(texts[0].replace(" + 0.3*shepard", "").replace(" with 0.3*shepard", ""))
    with_it, plain = (evaluate(X, DRE(schedule=text, random_state=0, device="cpu").fit_transform(X)) for text in texts)
    assert with_it["shepard_goodness"] > plain["shepard_goodness"] + 0.02
    assert with_it["trustworthiness"] > plain["trustworthiness"] - 0.01


def test_a_sum_with_it_asks_for_landmarks_and_can_be_captured() -> None:
    both = KL() + 0.3 * Shepard()
    assert both.reads_landmarks
    assert both.reads_bank
    assert both.capturable
    assert not KL().reads_landmarks


@pytest.mark.parametrize("x", [torch.zeros(6, 3), torch.full((6, 3), 0.1)])
@pytest.mark.parametrize("dim", [2, 3])
def test_equal_distances_have_no_correlation_and_no_gradient(x, dim):
    """All rows of the batch lie at one point, and those of the bank at another: what differs is rounding."""
    from dre.loss.shepard import Apart, _correlate

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        y, others = torch.rand(dim, generator=generator).expand(6, dim), torch.rand(dim, 1, generator=generator).expand(dim, 6)
        noise = 1e-20 * torch.rand(6, 6, generator=generator)
        for distances in (torch.cdist(x, x), noise, torch.ones(6, 6)):
            correlation, pull = _correlate(Apart(y.contiguous(), others.contiguous(), distances, torch.arange(6)))
            assert correlation == 0
            assert not pull.any()
