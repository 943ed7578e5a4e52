"""The fuzzy cross entropy, against its definition and against UMAP's curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dre import CE, Fuzzy
from dre.affinity.target import Graph, Pairs
from dre.loss import Step
from dre.loss.curves import fit_ab
from dre.neighbors.search import nearest


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dense_pairs(n: int, seed: int = 0) -> Pairs:
    v = torch.rand(n, n, generator=seeded(seed), dtype=torch.double).triu(1)
    v[0, 1], v[0, 2] = 1.0, 0.0  # full members and strangers too
    return Pairs(None, v)


def sparse_pairs(n: int, seed: int = 0) -> Pairs:
    pairs = Graph.of(Fuzzy(6), nearest(torch.randn(n, 6, generator=seeded(seed)), 5)).block(torch.arange(n))
    return Pairs(pairs.near, pairs.weight.double())


def embedding(n: int, components: int = 2, seed: int = 1) -> Tensor:
    return torch.randn(n, components, generator=seeded(seed), dtype=torch.double).requires_grad_()


def gradient(loss: CE, y: Tensor, pairs: Pairs) -> Tensor:
    (grad,) = torch.autograd.grad(loss(Step.of(y, pairs)), y)
    return grad


def simplex(n: int, side: float) -> Tensor:
    """n points, every two of them at the same distance."""
    return side / math.sqrt(2) * torch.eye(n, dtype=torch.double)


def strangers(n: int) -> Pairs:
    return Pairs(None, torch.zeros(n, n, dtype=torch.double))


KINDS = pytest.mark.parametrize("make", [dense_pairs, sparse_pairs])


@KINDS
@pytest.mark.parametrize("loss", [CE(), CE(min_dist=0.001), CE(min_dist=0.5, spread=2.0)])
@pytest.mark.parametrize("components", [1, 2, 5])
def test_the_value_times_the_rows_is_the_definition_over_all_pairs(make, loss: CE, components: int) -> None:
    n = 25
    pairs, y = make(n), embedding(n, components)
    V, points, (a, b) = pairs.dense(n).tolist(), y.tolist(), fit_ab(loss.min_dist, loss.spread)
    wanted = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                d = math.dist(points[i], points[j])
                v, w = V[i][j], 1 / (1 + a * d ** (2 * b))
                wanted += v * math.log(v / w) if v > 0 else 0.0
                wanted += (1 - v) * math.log((1 - v) / (1 - w)) if v < 1 else 0.0
    assert n * loss(Step.of(y, pairs)).item() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("min_dist", "spread"), [(0.0, 1.0), (0.001, 1.0), (0.1, 1.0), (0.5, 1.0), (0.25, 2.0), (0.99, 1.0)])
def test_a_and_b_are_umaps(min_dist: float, spread: float) -> None:
    from umap.umap_ import find_ab_params

    assert fit_ab(min_dist, spread) == pytest.approx(find_ab_params(spread, min_dist), rel=1e-9)


@KINDS
@pytest.mark.parametrize("loss", [CE(), CE(min_dist=0.001), CE(negative_sample_rate=5)])
def test_autograd_agrees_with_finite_differences(make, loss: CE) -> None:
    pairs = make(15)
    assert torch.autograd.gradcheck(lambda y: loss(Step.of(y, pairs)), embedding(15))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.floats(0.1, 100))
def test_it_is_never_negative(seed: int, size: float) -> None:
    assert CE()(Step.of(size * embedding(15, seed=seed), dense_pairs(15, seed))).item() >= -1e-12


def test_it_is_zero_and_flat_where_the_map_already_matches() -> None:
    y, (a, b) = embedding(30), fit_ab(0.1, 1.0)
    pairs = Pairs(None, (1 / (1 + a * torch.cdist(y, y).detach() ** (2 * b))).triu(1))
    assert CE()(Step.of(y, pairs)).item() == pytest.approx(0, abs=1e-12)
    assert gradient(CE(), y, pairs).abs().max() <= 1e-12


@pytest.mark.parametrize("loss", [CE(), CE(min_dist=0.001), CE(negative_sample_rate=5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "place",
    [
        lambda y: y * (torch.arange(len(y)) % 3 > 0)[:, None],
        lambda y: torch.zeros_like(y),
        lambda y: 1e-6 * y,
        lambda y: 1e4 * y,
    ],
    ids=["duplicates", "all on one point", "all close", "far apart"],
)
def test_value_and_gradient_are_finite_wherever_the_points_lie(place, dtype: torch.dtype, loss: CE) -> None:
    y = place(embedding(40).detach()).to(dtype).requires_grad_()
    pairs = sparse_pairs(40)
    pairs = Pairs(pairs.near, pairs.weight.to(dtype))
    assert loss(Step.of(y, pairs)).isfinite()
    assert gradient(loss, y, pairs).isfinite().all()
    assert gradient(loss, y, pairs).abs().max() <= 1e4


@pytest.mark.parametrize("rate", [1, 5, 12.5])
@pytest.mark.parametrize("n", [4, 20])
def test_the_rate_is_the_ratio_of_repulsive_to_attractive_terms_whatever_the_number_of_rows(n: int, rate: float) -> None:
    side, pairs, (a, b) = 0.7, dense_pairs(n), fit_ab(0.1, 1.0)
    w = 1 / (1 + a * side ** (2 * b))
    terms = pairs.dense(n).sum().item()
    wanted = terms * -math.log(w) + rate * terms * -math.log(1 - w)
    assert n * CE(negative_sample_rate=rate)(Step.of(simplex(n, side), pairs)).item() == pytest.approx(wanted, rel=1e-9)


def test_two_strangers_are_pushed_apart_and_two_full_members_drawn_together() -> None:
    y = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.double, requires_grad=True)
    member = Pairs(None, torch.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=torch.double))
    apart, assemble = -gradient(CE(), y, strangers(2)), -gradient(CE(), y, member)
    assert apart[1, 0] > 0 > apart[0, 0]
    assert assemble[1, 0] < 0 < assemble[0, 0]


@pytest.mark.parametrize("n", [10, 40, 160])
def test_the_repulsion_does_not_vanish_as_it_does_when_both_sides_are_made_to_sum_to_one(n: int) -> None:
    y = embedding(n)
    a, b = fit_ab(0.1, 1.0)
    w = 1 / (1 + a * torch.cdist(y, y).clamp_min(1e-2) ** (2 * b))
    w = w.masked_fill(torch.eye(n, dtype=torch.bool), 0.0)
    normalised = -torch.log1p(-w / w.sum()).sum() / n  # what the authors' program minimises
    (vanishing,) = torch.autograd.grad(normalised, y)
    force = gradient(CE(), y, strangers(n)).norm(dim=1).mean().item()
    assert force > 0.1
    assert vanishing.norm(dim=1).mean().item() < force / n


def test_exact_repulsion_grows_with_the_strangers_a_row_meets() -> None:
    values = [CE()(Step.of(simplex(n, 1.0), strangers(n))).item() for n in (5, 9, 17)]
    assert np.allclose(np.diff(values), [4 * values[0] / 4, 8 * values[0] / 4])


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_dist": -0.1},
        {"min_dist": 2.0},
        {"negative_sample_rate": 0},
        {"negative_sample_rate": -1},
        {"min_dist": 0.0, "spread": 0.0},
    ],
)
def test_impossible_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"min_dist|negative_sample_rate"):
        CE(**wrong)
