"""Which rows meet: every row once, never alone, and edges in proportion to their weight."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dre.batches
from dre import KL, Fuzzy, Gaussian
from dre.affinity.target import Graph, InBatch, Pairs, SearchInfo, Target
from dre.batches import BATCHES, Auto, Batch, Batches, Edges, Fixed, Neighborhoods, Shuffled
from dre.loss import Step
from dre.neighbors.search import nearest
from dre.runtime import RandomStreams

SEED = 11


def rows_of(n: int) -> Tensor:
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(0))


def graph(n: int = 60, k: int = 6) -> Graph:
    return Graph.of(Gaussian(2), nearest(rows_of(n), k))


class NoPairs:
    """A target for which only the drawing matters."""

    k = 1
    capturable = True

    def block(self, ids: Tensor) -> Pairs:
        return Pairs(torch.zeros(len(ids), 1, dtype=torch.long), torch.zeros(len(ids), 1))


def sample(batches: Batches, target: Target, n: int, epochs: int = 1, stage: int = 0) -> list[list[Batch]]:
    sampler = batches.sampler(target, n, RandomStreams(SEED, torch.device("cpu"), stage))
    return [[lazy.batch() for lazy in sampler(epoch)] for epoch in range(epochs)]


@settings(max_examples=80, deadline=None)
@given(kind=st.sampled_from([Fixed, Shuffled]), n=st.integers(2, 300), size=st.integers(2, 400))
def test_every_row_comes_once_per_epoch_and_never_alone(kind: type[Batches], n: int, size: int) -> None:
    for epoch in sample(kind(size), NoPairs(), n, 2):
        assert torch.cat([batch.ids for batch in epoch]).sort().values.tolist() == list(range(n))
        sizes = [len(batch.ids) for batch in epoch]
        assert min(sizes) >= 2
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= max(size, 3)
        assert len(sizes) == kind(size).steps(n)


@pytest.mark.parametrize(("n", "size"), [(60, 20), (61, 20), (7, 20), (3, 2), (2, 2)])
@pytest.mark.parametrize("kind", [Fixed, Shuffled])
def test_divisible_or_not_or_smaller_than_a_batch_makes_no_difference(kind: type[Batches], n: int, size: int) -> None:
    (epoch,) = sample(kind(size), graph(n, 1), n)
    assert sorted(i for batch in epoch for i in batch.ids.tolist()) == list(range(n))
    for batch in epoch:
        assert torch.equal(batch.block.weight, graph(n, 1).block(batch.ids).weight)


def test_fixed_batches_are_the_same_in_every_epoch_and_stage() -> None:
    first = sample(Fixed(20), graph(), 60, 3)
    later = sample(Fixed(20), graph(k=4), 60, 1, stage=3)  # another stage has another target
    parts = [[batch.ids.tolist() for batch in epoch] for epoch in (*first, *later)]
    assert all(part == parts[0] for part in parts)


def test_fixed_batches_are_the_same_whether_or_not_their_targets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = sample(Fixed(20), graph(), 60, 2)
    monkeypatch.setattr(dre.batches, "KEEP_BYTES", 0)
    again = sample(Fixed(20), graph(), 60, 2)
    for a, b in zip(itertools.chain(*kept), itertools.chain(*again), strict=True):
        assert torch.equal(a.ids, b.ids)
        assert torch.equal(a.block.weight, b.block.weight)


def test_shuffled_batches_differ_from_epoch_to_epoch() -> None:
    first, second = sample(Shuffled(20), graph(), 60, 2)
    assert [b.ids.tolist() for b in first] != [b.ids.tolist() for b in second]


@pytest.mark.parametrize("batches", [Fixed(20), Shuffled(20), Edges(16), Neighborhoods(4, 3)], ids=str)
def test_the_same_seed_draws_the_same_batches(batches: Batches) -> None:
    once, again = (list(itertools.chain(*sample(batches, graph(), 60, 2))) for _ in range(2))
    assert all(
        torch.equal(a.ids, b.ids) and torch.equal(a.block.weight, b.block.weight) for a, b in zip(once, again, strict=True)
    )


@pytest.mark.parametrize("batches", [Fixed(20), Shuffled(20), Edges(16), Neighborhoods(4, 3)], ids=str)
def test_an_epoch_can_be_entered_from_the_outside(batches: Batches) -> None:
    streams = RandomStreams(SEED, torch.device("cpu"), stage=2)
    in_order, directly = (batches.sampler(graph(), 60, streams) for _ in range(2))
    for epoch in range(4):
        last = [lazy.batch().ids.tolist() for lazy in in_order(epoch)]
    assert [lazy.batch().ids.tolist() for lazy in directly(3)] == last


@pytest.mark.parametrize("batches", [Fixed(20), Shuffled(20), Edges(16), Neighborhoods(4, 3)], ids=str)
def test_an_epoch_has_as_many_steps_as_it_says(batches: Batches) -> None:
    for epoch in sample(batches, graph(), 60, 2):
        assert len(epoch) == batches.steps(60)


def attraction(y: Tensor, pairs: Pairs) -> Tensor:
    """What draws pairs together: KL, less what it is when no pair attracts."""
    return KL()(Step.of(y, pairs)) - KL()(Step.of(y, pairs._replace(weight=torch.zeros_like(pairs.weight))))


def test_the_expected_attractive_gradient_of_edges_is_the_full_graphs() -> None:
    n, target = 40, graph(40)
    y = torch.randn(n, 2, generator=torch.Generator().manual_seed(1), dtype=torch.double).requires_grad_()
    (full,) = torch.autograd.grad(attraction(y, target.block(torch.arange(n))), y)
    batches = list(itertools.chain(*sample(Edges(32), target, n, 1500)))  # two steps an epoch
    samples = torch.stack([torch.autograd.grad(attraction(y[b.ids], b.block), y)[0] for b in batches])

    error = samples.std(0) / len(samples) ** 0.5
    z = (samples.mean(0) - full) / error
    assert error.norm() < 0.05 * full.norm()  # sharp enough to see a bias
    assert z.abs().max() < 4.5
    assert z.square().mean() < 1.5  # 80 squares of standard normals: 1 ± 0.16


def test_edges_are_drawn_in_proportion_to_their_weight_and_join_neighbours_only() -> None:
    n, target = 40, graph(40)
    counts = torch.zeros(n, n, dtype=torch.double)
    for batch in itertools.islice(itertools.chain.from_iterable(sample(Edges(64), target, n, 400)), 400):
        heads, tails = batch.ids[:64], batch.ids[64:]
        assert torch.equal(batch.block.near[:64, 0], torch.arange(64, 128))
        assert batch.block.weight.ravel().tolist() == [1.0] * 64 + [0.0] * 64
        counts.index_put_((heads, tails), torch.ones(64, dtype=torch.double), accumulate=True)
    counts = counts + counts.T
    weight = target.block(torch.arange(n)).dense(n).double()
    expected = weight / weight.sum() * counts.sum()
    assert (counts[weight == 0] == 0).all()
    often = expected > 20
    assert often.sum() > 100
    z = (counts - expected)[often] / expected[often].sqrt()
    assert z.abs().max() < 5


def test_seeds_come_with_their_neighbours() -> None:
    target = graph(200)
    chosen = [set(row) for row in target.indices.tolist()]
    for batch in itertools.chain(*sample(Neighborhoods(5, 3), target, 200, 5)):
        ids = batch.ids.tolist()
        assert len(set(ids)) == len(ids)
        for i in ids:
            assert any(j in chosen[i] or i in chosen[j] for j in ids if j != i)
        assert torch.equal(batch.block.weight, target.block(batch.ids).weight)
        assert (batch.block.weight > 0).any()


@pytest.mark.parametrize(
    ("k", "n", "chosen"),
    [(90, 60_000, Shuffled(2500)), (90, 225_000, Shuffled(2500)), (90, 225_001, Edges(1250)), (14, 1_000_000, Edges(1250))],
)
def test_auto_redraws_while_a_row_meets_a_neighbour_and_samples_edges_beyond(k: int, n: int, chosen: Batches) -> None:
    assert Auto(2500).select(SimpleNamespace(k=k), n) == chosen


def test_auto_needs_no_graph_for_a_target_inside_the_batch() -> None:
    target = InBatch(Fuzzy(5, scope="batch"), rows_of(60))
    assert Auto(20).select(target, 60) == Shuffled(20)
    assert Auto(20).select(target, 10**9) == Shuffled(20)
    assert Auto(20).steps(60) == Shuffled(20).steps(60)


@pytest.mark.parametrize("batches", [Edges(16), Neighborhoods(4, 3)], ids=str)
def test_drawing_along_edges_is_refused_where_there_is_no_graph(batches: Batches) -> None:
    target = InBatch(Gaussian(5, scope="batch"), rows_of(60))
    with pytest.raises(ValueError, match=r"scope=graph, or fixed or shuffled batches"):
        sample(batches, target, 60)


@given(
    batches=st.one_of(
        *(st.builds(kind, st.integers(2, 10**6)) for kind in (Fixed, Shuffled, Edges, Auto)),
        st.builds(Neighborhoods, st.integers(1, 10**4), st.integers(1, 100)),
    )
)
def test_the_text_of_a_plan_is_read_back_without_loss(batches: Batches) -> None:
    assert BATCHES.parse(str(batches)) == batches


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Fixed(1),
        lambda: Shuffled(0),
        lambda: Edges(1),
        lambda: Auto(-5),
        lambda: Neighborhoods(0, 5),
        lambda: Neighborhoods(5, 0),
    ],
)
def test_a_plan_in_which_rows_would_be_alone_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="at least"):
        wrong()


@pytest.mark.parametrize("summed", [0, 2**27], ids=["by row", "by one sum"])
def test_edges_are_sampled_in_proportion_to_their_weight(summed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.batches, "SUMMED", summed)
    generator = torch.Generator().manual_seed(0)
    indices = torch.stack([(i + 1 + torch.randperm(19, generator=generator)[:6]) % 20 for i in range(20)])
    weight = torch.rand(20, 6, generator=generator) * (torch.rand(20, 6, generator=generator) < 0.7)
    weight[[0, 7, 19]] = 0.0  # rows whose pairs are all stored at the other end
    target = Graph(indices.int(), weight.half(), SearchInfo("exact"))
    sample = Edges(1000).sampler(target, 20_000, RandomStreams(SEED, torch.device("cpu")))
    draws = [lazy.batch().ids for epoch in range(20) for lazy in sample(epoch)]
    heads, tails = torch.cat([ids[:1000] for ids in draws]), torch.cat([ids[1000:] for ids in draws])
    counts = torch.zeros(20, 20, dtype=torch.double).index_put_(
        (heads, tails), torch.ones(len(heads)).double(), accumulate=True
    )
    p = torch.zeros(20, 20, dtype=torch.double).scatter_(1, indices, target.weight.double())
    expected = p / p.sum() * len(heads)
    assert not counts[p == 0].any()
    enough = expected >= 5
    squares = ((counts - expected).square() / expected)[enough].sum()
    freedom = int(enough.sum()) - 1
    assert abs(float(squares) - freedom) < 4 * (2 * freedom) ** 0.5  # chi-square
