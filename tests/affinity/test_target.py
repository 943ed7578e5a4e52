"""Targets: a graph's blocks are the sub-matrices of one symmetric P, and each pair stands once."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dre.affinity.target
from dre import Fuzzy, Gaussian
from dre.affinity import Affinity
from dre.affinity.target import Graph, InBatch
from dre.neighbors.search import Neighbors, nearest

N = 60
X = torch.randn(N, 5, generator=torch.Generator().manual_seed(0))
AFFINITIES = pytest.mark.parametrize("affinity", [Gaussian(5), Fuzzy(8)], ids=str)


def graph(affinity: Affinity, features: Tensor = X) -> Graph:
    return Graph.of(affinity, nearest(features, affinity.count_neighbors(len(features))))


def full_matrix(affinity: Affinity, neighbors: Neighbors) -> Tensor:
    """Both directions of every pair, combined entry by entry."""
    n = len(neighbors.indices)
    directed = affinity.conditional(neighbors.distances).tolist()
    there = [[0.0] * n for _ in range(n)]
    for i, row in enumerate(neighbors.indices.tolist()):
        for slot, j in enumerate(row):
            there[i][j] = directed[i][slot]
    matrix = torch.tensor(there, dtype=torch.double)
    return affinity.combine(matrix, matrix.T)


def some_ids(seed: int, size: int, n: int = N) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:size]


@AFFINITIES
def test_a_graph_over_all_rows_is_the_full_symmetric_matrix(affinity: Affinity) -> None:
    target = graph(affinity)
    ours = target.block(torch.arange(N)).dense(N)
    found = nearest(X, affinity.count_neighbors(N))
    assert torch.allclose(ours.double(), full_matrix(affinity, found), rtol=1e-6, atol=0)
    assert torch.equal(ours, ours.T)
    assert (ours.diagonal() == 0).all()


@AFFINITIES
def test_pairs_symmetrized_a_few_at_a_time_make_no_difference(affinity: Affinity, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = graph(affinity).weight
    monkeypatch.setitem(dre.affinity.target.SYMMETRIZED, "cpu", 7 * affinity.count_neighbors(N))
    assert torch.equal(graph(affinity).weight, at_once)


@AFFINITIES
def test_graphs_of_parts_joined_are_one_that_has_no_pairs_between_them(affinity: Affinity) -> None:
    parts = some_ids(3, N).tensor_split(3)
    graphs = [(ids, Graph.of(affinity, nearest(X[ids], affinity.count_neighbors(len(ids))))) for ids in parts]
    whole = Graph.joined(graphs, N)
    assert whole.search == ("exact", 1.0, 3)
    dense = whole.block(torch.arange(N)).dense(N)
    for ids, own in graphs:
        torch.testing.assert_close(dense[ids][:, ids], own.block(torch.arange(len(ids))).dense(len(ids)))
        others = torch.ones(N, dtype=torch.bool).index_fill(0, ids, 0)  # type: ignore[arg-type]
        assert (dense[ids][:, others] == 0).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.integers(2, N), affinity=st.sampled_from([Gaussian(5), Fuzzy(8)]))
def test_a_block_is_the_sub_matrix_of_its_rows_in_their_order(seed: int, size: int, affinity: Affinity) -> None:
    target = graph(affinity)
    whole = target.block(torch.arange(N)).dense(N)
    ids = some_ids(seed, size)
    assert torch.equal(target.block(ids).dense(size), whole[ids][:, ids])


@AFFINITIES
def test_one_block_leaves_no_trace_in_the_next(affinity: Affinity) -> None:
    target, ids = graph(affinity), some_ids(1, 20)
    before = target.block(ids)
    target.block(some_ids(2, 40))
    after = target.block(ids)
    assert torch.equal(before.near, after.near)
    assert torch.equal(before.weight, after.weight)


@AFFINITIES
def test_each_pair_stands_once(affinity: Affinity) -> None:
    target = graph(affinity)
    pairs = target.block(torch.arange(N))
    stored = [
        frozenset((i, j))
        for i, (row, weights) in enumerate(zip(pairs.near.tolist(), pairs.weight.tolist(), strict=True))
        for j, weight in zip(row, weights, strict=True)
        if weight > 0
    ]
    assert all(len(pair) == 2 for pair in stored)
    assert len(stored) == len(set(stored))
    assert len(stored) == int((full_matrix(affinity, nearest(X, affinity.count_neighbors(N))) > 0).sum()) // 2


@AFFINITIES
def test_an_asymmetric_neighbourhood_makes_a_symmetric_pair(affinity: Affinity) -> None:
    """A hub and its spokes: the spokes choose the hub, the hub chooses none of them but one."""
    points = torch.tensor([[0.0, 0], [1, 0], [-1.1, 0], [0, 1.2], [0, -1.3], [9, 9]])
    neighbors = nearest(points, 1)
    target = Graph.of(affinity, neighbors)
    V = target.block(torch.arange(6)).dense(6)
    for i, (j,) in enumerate(neighbors.indices.tolist()):
        assert V[i, j] == V[j, i] > 0
    assert int((V > 0).sum()) == 2 * len({frozenset((i, j)) for i, (j,) in enumerate(neighbors.indices.tolist())})


def test_in_a_batch_of_all_rows_the_fuzzy_target_is_the_graph() -> None:
    whole = InBatch(Fuzzy(8, scope="batch"), X).block(torch.arange(N)).dense(N)
    theirs = graph(Fuzzy(8)).block(torch.arange(N)).dense(N)
    assert torch.equal(whole > 0, theirs > 0)
    assert torch.allclose(whole, theirs, rtol=1e-3, atol=1e-5)


def test_in_a_batch_of_all_rows_the_gaussian_target_is_the_graph_of_all_neighbours() -> None:
    whole = InBatch(Gaussian(5, scope="batch"), X).block(torch.arange(N)).dense(N)
    theirs = Graph.of(Gaussian(5), nearest(X, N - 1)).block(torch.arange(N)).dense(N)
    assert torch.allclose(whole, theirs, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("affinity", [Gaussian(5, scope="batch"), Fuzzy(8, scope="batch")], ids=str)
def test_the_target_of_a_batch_follows_the_order_of_its_rows_and_knows_no_others(affinity: Affinity) -> None:
    ids, order = some_ids(3, 30), some_ids(4, 30, 30)
    straight = InBatch(affinity, X).block(ids).dense(30)
    shuffled = InBatch(affinity, X).block(ids[order]).dense(30)
    alone = InBatch(affinity, X[ids]).block(torch.arange(30)).dense(30)
    assert torch.allclose(shuffled, straight[order][:, order], rtol=1e-3, atol=1e-5)
    assert torch.equal(straight, alone)


@pytest.mark.parametrize("affinity", [Gaussian(5, scope="batch"), Fuzzy(8, scope="batch")], ids=str)
def test_the_target_of_a_batch_does_not_depend_on_where_the_rows_lie(affinity: Affinity) -> None:
    rows = (X * 1024).round() / 1024  # these can be shifted without rounding
    here = InBatch(affinity, rows).block(torch.arange(N)).dense(N)
    there = InBatch(affinity, rows + 1024).block(torch.arange(N)).dense(N)
    assert torch.allclose(here, there, rtol=1e-3, atol=1e-6)


def test_duplicates_in_a_batch_are_full_members_and_do_not_count_as_nearest() -> None:
    rows, n = torch.cat([X, X[:10]]) + 5, N + 10
    V = InBatch(Fuzzy(n, scope="batch"), rows).block(torch.arange(n)).dense(n)
    theirs = Graph.of(Fuzzy(n), nearest(rows, n - 1)).block(torch.arange(n)).dense(n)
    assert (V[torch.arange(10), torch.arange(N, n)] == 1).all()
    assert torch.allclose(V, theirs, rtol=1e-3, atol=1e-5)


def test_a_batch_smaller_than_the_others_gets_the_perplexity_it_can_have() -> None:
    with pytest.warns(UserWarning, match="too large for 10 rows"):
        pairs = InBatch(Gaussian(30, scope="batch"), X).block(torch.arange(10))
    assert pairs.weight.isfinite().all()
    assert pairs.weight.sum() == pytest.approx(5, rel=1e-5)  # each row gives 1, halved by the pair's two directions
