"""Graphs in random parts: valid graphs inside each part, in compact arrays, from rows in memory or read in one pass."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn

import dre.affinity.target
from dre import Fuzzy, Gaussian
from dre.affinity import Affinity
from dre.affinity.target import Graph, SearchInfo
from dre.data.rows import ArrayRows
from dre.neighbors.search import SharedCells, nearest
from dre.plan.recipe import Recipe
from dre.runtime import RandomStreams, Runtime, scratch
from dre.training import graph_parts
from dre.training.graph_parts import count_parts, make_graph
from dre.training.learner import make_learner
from dre.training.run import Run
from dre.training.targets import _distance_to_tenth

CPU = torch.device("cpu")
N, PARTS = 120, 4
X = torch.randn(N, 6, generator=torch.Generator().manual_seed(0))


class Stream:
    """Rows that are no array; counts what is read."""

    def __init__(self) -> None:
        self.shape = tuple(X.shape)
        self.read_rows, self.taken = 0, 0

    def read(self, start: int, stop: int) -> Tensor:
        self.read_rows += stop - start
        return X[start:stop]

    def take(self, ids: Tensor) -> Tensor:
        self.taken += len(ids)
        return X[ids]


def make_run(schedule: str, rows: ArrayRows | Stream) -> Run:
    torch.manual_seed(0)
    encoder = nn.Sequential(OrderedDict(h1=nn.Linear(6, 8), h2=nn.ReLU(), h3=nn.Linear(8, 2)))
    recipe = Recipe(schedule, encoder, "shuffled(20)", "adam(0.001)")
    streams = RandomStreams(0, CPU)
    learner = make_learner(encoder, rows, None, torch.zeros(6), streams.generator("front"))
    return Run(encoder, rows, recipe, Runtime.on("cpu"), streams, learner, torch.Generator())


@pytest.fixture
def four_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(graph_parts.SEARCHED, "cpu", N // PARTS)
    monkeypatch.setitem(graph_parts.PART, "cpu", N // PARTS)


def in_parts(schedule: str, rows: ArrayRows | Stream | None = None) -> Graph:
    run = make_run(schedule, ArrayRows(X, CPU) if rows is None else rows)
    return make_graph(run, run.current_stage)


def groups(graph: Graph) -> list[set[int]]:
    """Rows that hang together."""
    reached = [{i} for i in range(N)]
    for i, near in enumerate(graph.indices.tolist()):
        for j in near:
            joined = reached[i] | reached[j]
            for row in joined:
                reached[row] = joined
    return [set(group) for group in {frozenset(group) for group in reached}]


@pytest.mark.usefixtures("four_parts")
@pytest.mark.parametrize("affinity", [Gaussian(5), Fuzzy(8)], ids=str)
@pytest.mark.parametrize("source", ["x", "h1", "x+h1"])
def test_each_part_has_the_graph_of_its_rows_alone(affinity: Affinity, source: str) -> None:
    run = make_run(f"{source}: {affinity} -> kl * 1", ArrayRows(X, CPU))
    graph = make_graph(run, run.current_stage)
    assert graph.search == SearchInfo("exact", 1.0, PARTS)
    assert (graph.indices != torch.arange(N)[:, None]).all()
    whole = graph.block(torch.arange(N)).dense(N)
    assert torch.equal(whole, whole.T)
    parts = groups(graph)
    assert sorted(map(len, parts)) == [N // PARTS] * PARTS
    for part in parts:
        ids = torch.tensor(sorted(part))
        features = run.learner.features(source, ids)
        own = Graph.of(affinity, nearest(features, affinity.count_neighbors(len(ids))))
        expected = own.block(torch.arange(len(ids))).dense(len(ids))
        torch.testing.assert_close(whole[ids][:, ids], expected, rtol=2**-11, atol=2**-24)


@pytest.mark.usefixtures("four_parts")
def test_the_parts_are_random_and_the_same_for_the_same_seed() -> None:
    first, again = in_parts("x: gaussian(5) -> kl * 1"), in_parts("x: gaussian(5) -> kl * 1")
    assert torch.equal(first.indices, again.indices)
    assert not any(part == set(range(min(part), min(part) + len(part))) for part in groups(first))


@pytest.mark.usefixtures("four_parts")
@pytest.mark.parametrize("source", ["x", "h1", "x+h1"])
def test_a_stream_is_read_once_and_gives_the_same_graph(source: str) -> None:
    stream = Stream()
    found = in_parts(f"{source}: gaussian(5) -> kl * 1", stream)
    assert stream.taken == 0
    assert stream.read_rows == N * len(source.split("+"))
    expected = in_parts(f"{source}: gaussian(5) -> kl * 1")
    assert torch.equal(found.indices, expected.indices)
    torch.testing.assert_close(found.weight, expected.weight)


@pytest.mark.usefixtures("four_parts")
def test_a_scratch_file_holds_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = in_parts("x: gaussian(5) -> kl * 1", Stream())
    monkeypatch.setattr(scratch, "held", lambda: 0)
    in_file = in_parts("x: gaussian(5) -> kl * 1", Stream())
    assert torch.equal(in_memory.indices, in_file.indices)
    assert torch.equal(in_memory.weight, in_file.weight)


@pytest.mark.parametrize("affinity", [Gaussian(5), Fuzzy(8)], ids=str)
def test_compact_arrays_hold_the_same_graph(affinity: Affinity) -> None:
    parts = torch.arange(N).tensor_split(2)
    graphs = [(ids, Graph.of(affinity, nearest(X[ids], affinity.count_neighbors(len(ids))))) for ids in parts]
    wide, compact = Graph.joined(graphs, N), Graph.joined(iter(graphs), N, compact=True)
    assert (wide.indices.dtype, wide.weight.dtype) == (torch.int64, torch.float32)
    assert (compact.indices.dtype, compact.weight.dtype) == (torch.int32, torch.float16)
    assert compact.nbytes * 2 == wide.nbytes
    assert torch.equal(wide.indices, compact.indices.long())
    torch.testing.assert_close(compact.weight.float(), wide.weight, rtol=2**-11, atol=2**-24)
    for one, other in zip(wide.links, compact.links, strict=True):
        torch.testing.assert_close(one, other, rtol=2**-11, atol=2**-24)
    ids = torch.arange(0, N, 3)
    assert torch.equal(wide.block(ids).near, compact.block(ids).near)
    assert compact.block(ids).weight.dtype == torch.float32


def test_weights_are_the_same_bits_with_and_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    found = nearest(X, 15)
    fast = Graph.of(Gaussian(5), found).weight
    monkeypatch.setattr(dre.affinity.target, "has_numba", lambda: False)
    assert torch.equal(fast, Graph.of(Gaussian(5), found).weight)


def test_parts_share_the_cells_of_the_first() -> None:
    pytest.importorskip("faiss")
    shared = SharedCells()
    rows = torch.randn(4000, 5, generator=torch.Generator().manual_seed(1))
    first = nearest(rows[:2000], 10, method="approximate", shared=shared)
    centers = shared.centers
    second = nearest(rows[2000:], 10, method="approximate", shared=shared)
    assert centers is not None
    assert shared.centers is centers
    assert min(first.recall, second.recall) >= 0.95
    exact = nearest(rows[2000:], 10, method="exact")
    assert (second.distances <= exact.distances[:, -1:] * (1 + 1e-4)).double().mean() >= 0.9
    assert (second.indices != torch.arange(2000)[:, None]).all()


@pytest.mark.parametrize(
    ("n", "free", "parts"),
    [
        (1_000_000, None, 1),
        (1_000_000, 2**40, 1),
        (2**20, 2**40, 1),
        (10_000_000, 2**40, 100),
        (1_000_000, 5 * 10**9, 10),  # it needs 6.2 GB
        (1_000_000, 5 * 10**8, 25),  # a part takes half of what is free
        (1_000_000, 0, 100),
    ],
)
def test_the_rows_and_the_free_memory_decide_the_parts(
    n: int, free: int | None, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_parts, "available_bytes", lambda device: free)
    assert count_parts(n, 50, 90, "cpu") == parts


def test_the_radius_in_parts_is_about_that_among_all_rows():
    x = torch.randn(4000, 3, generator=torch.Generator().manual_seed(1))
    affinity = Gaussian(10)
    whole = Graph.of(affinity, nearest(x, 30))
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(2))
    parts = [ids.sort().values for ids in order.chunk(5)]
    joined = Graph.joined([(ids, Graph.of(affinity, nearest(x[ids], 30))) for ids in parts], len(x), compact=True)
    stage = Recipe("x: gaussian(10) -> kl * 1", "mlp", "shuffled(20)", "adam").schedule[0]
    ratio = _distance_to_tenth(x, stage, joined) / _distance_to_tenth(x, stage, whole)
    assert 0.8 < ratio.median() < 1.25
