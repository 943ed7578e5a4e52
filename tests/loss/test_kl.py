"""KL(P‖Q) and its gradient, against the closed forms of t-SNE with the embedding itself as the free parameter."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dre import CE, KL, Gaussian
from dre.affinity.bank import Bank
from dre.affinity.target import Graph, Pairs
from dre.loss import Step
from dre.neighbors.search import nearest

N = 40


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dense_pairs(n: int, seed: int = 0) -> Pairs:
    return Pairs(None, torch.rand(n, n, generator=seeded(seed), dtype=torch.double).triu(1))


def sparse_pairs(n: int, seed: int = 0) -> Pairs:
    pairs = Graph.of(Gaussian(5), nearest(torch.randn(n, 6, generator=seeded(seed)), 15)).block(torch.arange(n))
    return Pairs(pairs.near, pairs.weight.double())


def embedding(n: int, components: int = 2, seed: int = 1) -> Tensor:
    return torch.randn(n, components, generator=seeded(seed), dtype=torch.double).requires_grad_()


def gradient(loss: KL, y: Tensor, pairs: Pairs) -> Tensor:
    (grad,) = torch.autograd.grad(loss(Step.of(y, pairs)), y)
    return grad


KINDS = pytest.mark.parametrize("make", [dense_pairs, sparse_pairs])


@KINDS
@pytest.mark.parametrize("components", [1, 2, 5])
def test_the_gradient_is_t_snes_closed_form(make, components: int) -> None:
    pairs, y = make(N), embedding(N, components)
    P = pairs.dense(N)
    P = P / P.sum()
    difference = (y[:, None] - y[None, :]).detach()
    student = 1 / (1 + difference.square().sum(2))
    Q = student.clone().fill_diagonal_(0)
    Q = Q / Q.sum()
    closed = 4 * (((P - Q) * student)[:, :, None] * difference).sum(1)
    assert torch.allclose(gradient(KL(), y, pairs), closed, rtol=1e-10, atol=1e-15)


@KINDS
@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 2.0, 5.0])
def test_the_value_is_the_definition(make, alpha: float) -> None:
    pairs, y = make(12 if make is dense_pairs else N), embedding(12 if make is dense_pairs else N)
    n = len(y)
    P = (pairs.dense(n) / pairs.dense(n).sum()).tolist()
    points = y.tolist()
    kernel = [
        [
            (1 + sum((a - b) ** 2 for a, b in zip(p, q, strict=True))) ** (-(alpha + 1) / 2) if p is not q else 0.0
            for q in points
        ]
        for p in points
    ]
    z = sum(map(sum, kernel))
    wanted = sum(P[i][j] * math.log(P[i][j] / (kernel[i][j] / z)) for i in range(n) for j in range(n) if i != j and P[i][j] > 0)
    assert KL(alpha=alpha)(Step.of(y, pairs)).item() == pytest.approx(wanted, rel=1e-10)


@KINDS
@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_autograd_agrees_with_finite_differences(make, alpha: float) -> None:
    pairs = make(20)
    assert torch.autograd.gradcheck(lambda y: KL(alpha=alpha)(Step.of(y, pairs)), embedding(20))


@settings(max_examples=30, deadline=None)
@given(angle=st.floats(0, 6.3), shift=st.floats(-100, 100), flip=st.booleans())
def test_turning_mirroring_and_shifting_the_map_changes_nothing(angle: float, shift: float, flip: bool) -> None:
    pairs, y = sparse_pairs(N), embedding(N)
    c, s = math.cos(angle), math.sin(angle)
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.double)
    turn = turn * torch.tensor([-1.0 if flip else 1.0, 1.0], dtype=torch.double)
    moved = (y @ turn + shift).detach().requires_grad_()
    assert KL()(Step.of(moved, pairs)).item() == pytest.approx(KL()(Step.of(y, pairs)).item(), rel=1e-9)
    assert torch.allclose(gradient(KL(), moved, pairs), gradient(KL(), y, pairs) @ turn, rtol=1e-7, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), alpha=st.floats(0.1, 5), size=st.floats(1e-3, 1e3), weight=st.floats(1e-6, 1e6))
def test_it_is_never_negative_and_ignores_the_scale_of_the_weights(seed: int, alpha: float, size: float, weight: float) -> None:
    pairs, y = dense_pairs(15, seed), size * embedding(15, seed=seed)
    value = KL(alpha=alpha)(Step.of(y, pairs)).item()
    assert value >= -1e-12
    assert KL(alpha=alpha)(Step.of(y, Pairs(None, weight * pairs.weight))).item() == pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_it_is_zero_and_flat_where_the_map_already_matches(alpha: float) -> None:
    y = embedding(N)
    kernel = (1 + torch.cdist(y, y).square().detach()) ** (-(alpha + 1) / 2)
    pairs = Pairs(None, kernel.triu(1))
    assert KL(alpha=alpha)(Step.of(y, pairs)).item() == pytest.approx(0, abs=1e-12)
    assert gradient(KL(alpha=alpha), y, pairs).abs().max() <= 1e-12


def test_a_step_down_the_gradient_lowers_it() -> None:
    pairs, y = sparse_pairs(N), embedding(N)
    after = y.detach() - 0.1 * gradient(KL(), y, pairs)
    assert KL()(Step.of(after, pairs)) < KL()(Step.of(y, pairs))


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "place",
    [
        lambda y: y * (torch.arange(len(y)) % 3 > 0)[:, None],  # many on one point
        lambda y: torch.zeros_like(y),
        lambda y: 1e4 * y,
        lambda y: torch.cat([y[:-1], torch.full_like(y[:1], 1e4)]),
    ],
    ids=["duplicates", "all on one point", "far apart", "one far away"],
)
def test_value_and_gradient_are_finite_wherever_the_points_lie(place, dtype: torch.dtype, alpha: float) -> None:
    y = place(embedding(N).detach()).to(dtype).requires_grad_()
    pairs = sparse_pairs(N)
    pairs = Pairs(pairs.near, pairs.weight.to(dtype))
    assert KL(alpha=alpha)(Step.of(y, pairs)).isfinite()
    assert gradient(KL(alpha=alpha), y, pairs).isfinite().all()


def test_a_batch_without_any_pair_only_repels() -> None:
    y = embedding(N)
    pairs = Pairs(torch.zeros(N, 3, dtype=torch.long), torch.zeros(N, 3, dtype=torch.double))
    assert KL()(Step.of(y, pairs)).isfinite()
    step = -gradient(KL(), y, pairs)
    assert step.isfinite().all()
    outward = (step * (y - y.mean(0)).detach()).sum()
    assert outward > 0


@pytest.mark.parametrize("alpha", [0, -1, math.inf, math.nan])
def test_a_degree_of_freedom_that_is_not_positive_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        KL(alpha=alpha)


# Against the bank of all rows.


def graph_of(n: int) -> Graph:
    return Graph.of(Gaussian(5), nearest(torch.randn(n, 6, generator=seeded(0)), 15))


@pytest.mark.parametrize("numba", [True, False], ids=["numba", "torch"])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("components", [1, 2, 3])
def test_with_all_rows_in_a_batch_the_bank_changes_nothing(
    components: int, alpha: float, numba: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dre.loss.bank_sums.has_numba", lambda: numba)
    graph, loss = graph_of(N), KL(alpha=alpha)
    y = (3 * embedding(N, components)).detach().float().requires_grad_()
    ids = torch.randperm(N, generator=seeded(5))
    inside = loss(Step.of(y[ids], graph.block(ids)))
    against = loss(Step.of(y[ids], Bank(graph, y.detach()).block(ids)))
    torch.testing.assert_close(against, inside, rtol=1e-5, atol=1e-6)
    (wanted,), (found,) = (torch.autograd.grad(each, y) for each in (inside, against))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max()))


def test_against_the_bank_a_batch_is_normalized_over_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The losses of the batches of an epoch are about that of all rows, and so are their gradients."""
    monkeypatch.setattr("dre.loss.numba.bank_sums.COUNTED", 1)
    n = 200
    graph, y = graph_of(n), embedding(n).detach().float().requires_grad_()
    bank = Bank(graph, y.detach())
    whole = KL()(Step.of(y, bank.block(torch.arange(n))))
    (wanted,) = torch.autograd.grad(whole, y)
    losses = [KL()(Step.of(y[ids], bank.block(ids))) for ids in torch.randperm(n, generator=seeded(7)).split(50)]
    (found,) = torch.autograd.grad(torch.stack(losses).mean(), y)
    assert torch.stack(losses).mean().item() == pytest.approx(whole.item(), rel=0.02)
    assert torch.cosine_similarity(found.ravel(), wanted.ravel(), 0) > 0.99


def test_it_can_be_taken_against_a_bank_and_a_sum_of_such_losses_too() -> None:
    assert KL().reads_bank
    assert (KL() + 0.5 * KL(alpha=0.5)).reads_bank
    assert not (KL() + CE()).reads_bank
    graph, y = graph_of(N), embedding(N).detach().float()
    block = Bank(graph, y).block(torch.arange(N))
    both = (KL() + 0.5 * KL(alpha=0.5))(Step.of(y, block))
    torch.testing.assert_close(both, KL()(Step.of(y, block)) + 0.5 * KL(alpha=0.5)(Step.of(y, block)))
