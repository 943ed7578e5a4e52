"""The bank of all rows: their coordinates, and all links of each of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import dre.affinity.bank
from dre import Fuzzy, Gaussian
from dre.affinity import Affinity
from dre.affinity.bank import Bank, one_in
from dre.affinity.target import BatchCoordinates, Coordinates, Graph, SearchInfo
from dre.batches import Auto, Edges, Fixed, Shuffled
from dre.neighbors.search import nearest

N = 60
X = torch.randn(N, 5, generator=torch.Generator().manual_seed(0))
COORDINATES = torch.randn(N, 2, generator=torch.Generator().manual_seed(1))
GAUSSIAN = Gaussian(5)
AFFINITIES = pytest.mark.parametrize("affinity", [GAUSSIAN, Fuzzy(8)], ids=str)


def graph(affinity: Affinity = GAUSSIAN) -> Graph:
    return Graph.of(affinity, nearest(X, affinity.count_neighbors(N)))


def dense_links(target: Graph) -> Tensor:
    """The links as a matrix; a link that stands twice would be seen."""
    start, others, weight = target.links
    n = len(start) - 1
    matrix = torch.zeros(n, n)
    for i in range(n):
        ids = others[start[i] : start[i + 1]].long()
        assert len(ids.unique()) == len(ids)
        matrix[i, ids] = weight[start[i] : start[i + 1]]
    return matrix


# Links.


@AFFINITIES
def test_every_pair_is_linked_at_both_of_its_ends(affinity: Affinity) -> None:
    target = graph(affinity)
    matrix = dense_links(target)
    assert torch.equal(matrix, matrix.T)
    assert torch.equal(matrix, target.block(torch.arange(N)).dense(N))
    assert (matrix.diagonal() == 0).all()
    assert (target.links.weight > 0).all()


@AFFINITIES
def test_the_links_weigh_twice_what_is_stored_once(affinity: Affinity) -> None:
    target = graph(affinity)
    assert target.links.weight.sum().item() == pytest.approx(2 * target.weight.sum().item(), rel=1e-5)
    assert len(target.links.weight) == 2 * int((target.weight > 0).sum())


def test_a_row_that_no_pair_holds_has_no_links() -> None:
    indices, weight = torch.tensor([[1], [0], [0], [1]]), torch.tensor([[0.5], [0.0], [0.0], [2.0]])
    start, others, found = Graph(indices, weight, SearchInfo("exact")).links
    assert start.tolist() == [0, 1, 3, 3, 4]
    assert others.tolist() == [1, 0, 3, 1]
    assert found.tolist() == [0.5, 0.5, 2.0, 2.0]


def test_the_links_of_joined_graphs_are_those_of_the_parts() -> None:
    parts = torch.randperm(N, generator=torch.Generator().manual_seed(3)).tensor_split(2)
    graphs = [(ids, Graph.of(Fuzzy(8), nearest(X[ids], 7))) for ids in parts]
    whole = dense_links(Graph.joined(graphs, N))
    for ids, own in graphs:
        assert torch.equal(whole[ids][:, ids], dense_links(own))
    assert not whole[parts[0]][:, parts[1]].any()


# The bank.


@AFFINITIES
def test_a_bank_knows_the_total_and_the_entropy_of_all_pairs(affinity: Affinity) -> None:
    target = graph(affinity)
    block, pairs = Bank(target, COORDINATES).block(torch.arange(N)), target.block(torch.arange(N))
    torch.testing.assert_close(block.total, pairs.total)
    torch.testing.assert_close(block.entropy, pairs.entropy)


def test_blocks_differ_in_their_rows_alone() -> None:
    bank = Bank(graph(), COORDINATES)
    one, other = bank.block(torch.arange(10)), bank.block(torch.tensor([50, 3]))
    assert torch.equal(other.ids, torch.tensor([50, 3]))
    assert one.varying[0] is one.ids
    assert len(one.varying) == 1
    swapped = one.with_varying(*other.varying)
    assert all(a is b for a, b in zip(swapped, other, strict=True) if isinstance(a, Tensor))
    assert torch.equal(one.coordinates.T, COORDINATES)


def test_a_block_says_nothing_of_exaggeration_or_a_grid_unless_told() -> None:
    block = Bank(graph(), COORDINATES).block(torch.arange(10))
    assert (block.exaggeration, block.values, block.on_grid, block.every) == (1.0, True, False, 1)


@pytest.mark.parametrize(("n", "enough", "wanted"), [(10, 20, 1), (39, 20, 1), (40, 20, 2), (2000, 20, 100)])
def test_one_row_stands_for_as_many_as_leave_enough(n: int, enough: int, wanted: int) -> None:
    assert one_in(n, enough) == wanted


def test_a_part_of_many_rows_repels_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.affinity.bank, "REPELLING", len(COORDINATES) // 5)
    assert Bank(graph(), COORDINATES).block(torch.arange(10)).every == 5


@pytest.mark.parametrize("components", [1, 2, 3])
def test_a_bank_remembers_where_the_encoder_has_put_the_rows_of_a_batch(components: int) -> None:
    coordinates = torch.randn(N, components, generator=torch.Generator().manual_seed(2))
    before = coordinates.clone()
    bank = Bank(graph(), coordinates)
    block, ids = bank.block(torch.tensor([8, 2])), torch.tensor([40, 7, 20])
    y = torch.randn(3, components, generator=torch.Generator().manual_seed(4)).requires_grad_()
    bank.renew(ids, y)
    assert torch.equal(bank.columns.T[ids], y.detach())
    others = torch.ones(N, dtype=torch.bool).index_fill(0, ids, 0)  # type: ignore[arg-type]
    assert torch.equal(bank.columns.T[others], before[others])
    assert block.coordinates is bank.columns  # a block that is captured sees the change
    assert not bank.columns.requires_grad
    assert torch.equal(coordinates, before)  # what was passed stays as it was


def test_a_bank_is_in_float32_whatever_it_is_given() -> None:
    bank = Bank(graph(), COORDINATES.double())
    assert bank.columns.dtype == torch.float32
    bank.renew(torch.tensor([1]), torch.ones(1, 2, dtype=torch.double))
    assert bank.columns[:, 1].tolist() == [1.0, 1.0]


# Coordinates.


def test_coordinates_give_those_of_the_rows_of_a_batch() -> None:
    ids = torch.tensor([7, 3, 59])
    block = Coordinates(COORDINATES).block(ids)
    assert torch.equal(block.at, COORDINATES[ids])
    assert block.varying[0] is block.at
    other = torch.zeros(3, 2)
    assert block.with_varying(other) == BatchCoordinates(other)


@pytest.mark.parametrize("target", [Bank(graph(), COORDINATES), Coordinates(COORDINATES)], ids=["bank", "coordinates"])
@pytest.mark.parametrize("batches", [Shuffled(20), Fixed(20), Edges(10), Auto(20)], ids=str)
def test_rows_need_not_meet_their_neighbors_where_all_rows_are_known(target: Bank | Coordinates, batches: Edges) -> None:
    """Batches along edges would show the rows with many links more often than others."""
    chosen = batches.select(target, N)
    assert chosen == (batches if isinstance(batches, Fixed) else Shuffled(20))
    assert target.k is None
    assert target.capturable
