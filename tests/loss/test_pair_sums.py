"""Sums over the pairs of a batch and their gradients, against plain torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dre.affinity.target import Pairs
from dre.loss import pair_sums
from dre.loss.curves import Attraction, LogOdds, NegLogStudent, Repulsion, Student
from dre.loss.pair_sums import Curve, sum_over_pairs, sum_over_target

ODDS = LogOdds(1.5, 0.9)
CURVES = [Student(1.0), Student(0.75), Student(0.6), Student(3.0), NegLogStudent(0.75), ODDS, Attraction(ODDS), Repulsion(ODDS)]
EACH = pytest.mark.parametrize("curve", CURVES, ids=str)


def points(n: int, components: int = 2, seed: int = 0) -> Tensor:
    """No two of them within the hundredth where the slopes of UMAP's curves are held back."""
    generator = torch.Generator().manual_seed(seed)
    apart = torch.randperm(n, generator=generator)[:, None] / 10
    return (torch.rand(n, components, generator=generator, dtype=torch.double) / 20 + apart).requires_grad_()


def values(curve: Curve, squared: Tensor) -> Tensor:
    """By autograd's own means."""
    if isinstance(curve, Student):
        return (1 + squared) ** -curve.exponent
    if isinstance(curve, NegLogStudent):
        return curve.exponent * (1 + squared).log()
    w = 1 / (1 + ODDS.a * squared**ODDS.b)
    return {LogOdds: ((1 - w) / w).log(), Attraction: -w.log(), Repulsion: -(1 - w).log()}[type(curve)]


def plain(y: Tensor, curve: Curve, weight: Tensor) -> Tensor:
    i, j = weight.nonzero(as_tuple=True)
    return (weight[i, j] * values(curve, (y[i] - y[j]).square().sum(1))).sum()


def targets(n: int) -> dict[str, tuple[Pairs, Tensor]]:
    """Pairs, and the same as a matrix that has each of them once."""
    generator = torch.Generator().manual_seed(3)
    dense = torch.rand(n, n, generator=generator, dtype=torch.double).triu(1)
    near = torch.stack([torch.randperm(n, generator=generator)[:4] for _ in range(n)])
    own = torch.arange(n)[:, None]
    weight = torch.rand(n, 4, generator=generator, dtype=torch.double).masked_fill(near == own, 0.0)
    weight[::3, 1] = 0.0
    once = torch.zeros(n, n, dtype=torch.double).scatter_add(1, near, weight)
    return {"dense": (Pairs(None, dense), dense), "sparse": (Pairs(near.where(weight > 0, own), weight), once)}


@pytest.fixture(params=[2**16, 64, 7], ids=["one block", "several blocks", "a row each"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pair_sums.BLOCK, "cpu", request.param)


@EACH
@pytest.mark.parametrize("components", [1, 2, 5])
@pytest.mark.usefixtures("block")
def test_all_pairs_sum_to_what_plain_torch_finds(curve: Curve, components: int) -> None:
    y = points(23, components)
    ours, theirs = sum_over_pairs(y, curve), plain(y, curve, torch.ones(23, 23, dtype=torch.double).triu(1))
    assert torch.allclose(ours, theirs, rtol=1e-12)
    (gradient,), (wanted,) = torch.autograd.grad(3 * ours, y), torch.autograd.grad(3 * theirs, y)
    assert torch.allclose(gradient, wanted, rtol=1e-9, atol=1e-12)


@EACH
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.usefixtures("block")
def test_the_pairs_of_a_target_sum_to_what_plain_torch_finds(curve: Curve, kind: str) -> None:
    y, (pairs, once) = points(23), targets(23)[kind]
    ours, theirs = sum_over_target(y, pairs, curve), plain(y, curve, once)
    assert torch.allclose(ours, theirs, rtol=1e-12)
    (gradient,), (wanted,) = torch.autograd.grad(ours, y), torch.autograd.grad(theirs, y)
    assert torch.allclose(gradient, wanted, rtol=1e-9, atol=1e-12)


def test_the_target_is_left_as_it_was() -> None:
    for pairs, _ in targets(9).values():
        before = pairs.weight.clone()
        sum_over_target(points(9), pairs, NegLogStudent(1.0))
        assert torch.equal(pairs.weight, before)


def test_close_pairs_far_from_the_origin_keep_their_distance_in_float32() -> None:
    y = torch.tensor([[1000.0, -1000.0], [1000.001, -1000.0]])
    exact = float((y[1, 0].double() - y[0, 0].double()) ** 2)
    found = sum_over_pairs(y, LogOdds(1.0, 1.0)).exp().item()
    assert found == pytest.approx(max(exact, 1e-12), rel=1e-5)


def test_the_gradient_keeps_its_precision_far_from_the_origin_in_float32() -> None:
    y = (points(30).detach() * 4096).round().float() / 4096  # these can be shifted without rounding
    near, far = y.clone().requires_grad_(), (y + 1024).requires_grad_()
    (at_origin,) = torch.autograd.grad(sum_over_pairs(near, NegLogStudent(1.0)), near)
    (elsewhere,) = torch.autograd.grad(sum_over_pairs(far, NegLogStudent(1.0)), far)
    assert torch.allclose(at_origin, elsewhere, rtol=0, atol=1e-4)


def test_what_is_kept_for_the_way_back_does_not_grow_with_the_square_of_the_batch() -> None:
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda tensor: tensor):
        sum_over_pairs(points(300), Student(1.0))
    assert sum(kept) == 2 * 300
