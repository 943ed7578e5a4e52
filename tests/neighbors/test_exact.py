"""Exact neighbors in the order of (distance, index): the same from every block size, precision and search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import Tensor

import dre.neighbors.distances
import dre.neighbors.exact
from dre.neighbors.distances import Distances
from dre.neighbors.exact import KNearest, nearest_rows, nearest_to, sort_candidates


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(n: int, columns: int, seed: int) -> Tensor:
    return torch.randn(n, columns, generator=seeded(seed), dtype=torch.double)


def with_an_outlier() -> Tensor:
    rows = draw(200, 12, 3)
    rows[7] = 1e4
    return rows


DATA = {
    "normal": draw(200, 12, 0),
    "map": draw(200, 2, 1),
    "one column": draw(200, 1, 2),
    "float32 map": draw(200, 2, 1).float(),
    "an outlier": with_an_outlier(),
    "far from the origin": draw(200, 12, 4) + 1e3,
    "tiny": 1e-8 * draw(200, 12, 5),
    "duplicates": draw(20, 12, 6).repeat(10, 1),
    "duplicates in a map": draw(20, 2, 7).repeat(10, 1) + 1e3,
    "digits": torch.tensor(load_digits().data[:200]),
    "grid": torch.randint(6, (200, 2), generator=seeded(8)).double(),
    "grid of 8 dimensions": torch.randint(3, (200, 8), generator=seeded(9)).double(),
    "one place": torch.full((200, 3), 0.1, dtype=torch.double),
    "one place of 9 dimensions": torch.full((200, 9), 0.1, dtype=torch.double),
}


def by_sorting(rows: Tensor, points: Tensor, k: int, exclude_self: bool) -> tuple[list[list[int]], list[list[float]]]:
    rows, points = rows.double(), points.double()
    orders, values = [], []
    for i, point in enumerate(points):
        squared = (rows - point).square().sum(1).tolist()
        order = sorted((j for j in range(len(rows)) if j != i or not exclude_self), key=lambda j: (squared[j], j))[:k]
        orders.append(order)
        values.append([squared[j] for j in order])
    return orders, values


@pytest.mark.parametrize("k", [1, 7, 50, 199])
@pytest.mark.parametrize("name", DATA)
def test_the_nearest_rows_are_the_first_by_distance_and_index(name: str, k: int) -> None:
    found = nearest_rows(Distances(DATA[name]), k)
    indices, squared = by_sorting(DATA[name], DATA[name], k, exclude_self=True)
    assert found.indices.tolist() == indices
    assert torch.allclose(found.squared, torch.tensor(squared, dtype=torch.double), rtol=1e-12, atol=0)


@pytest.mark.parametrize("k", [1, 7, 50])
@pytest.mark.parametrize("name", DATA)
def test_the_rows_nearest_to_any_points_are_the_first_by_distance_and_index(name: str, k: int) -> None:
    known, points = DATA[name][::2], DATA[name][1::2]
    assert nearest_to(Distances(known), points, k).indices.tolist() == by_sorting(known, points, k, exclude_self=False)[0]


@pytest.mark.parametrize("name", DATA)
def test_a_point_that_is_a_row_is_not_its_own_neighbor(name: str) -> None:
    rows = DATA[name]
    some = torch.tensor([3, 0, 199])
    found = nearest_to(Distances(rows), rows[some], 5, exclude=some)
    everyone = nearest_rows(Distances(rows), 5)
    assert torch.equal(found.indices, everyone.indices[some])


@pytest.mark.parametrize("products", [{"tf32": True}, {"dtype": torch.float32}, {"dtype": torch.double}], ids=str)
@pytest.mark.parametrize("block", [8, 104, 10**9])
@pytest.mark.parametrize("name", DATA)
def test_neither_blocks_nor_precision_nor_search_matter(
    monkeypatch: pytest.MonkeyPatch, name: str, block: int, products: dict[str, Any]
) -> None:
    whole = nearest_rows(Distances(DATA[name]), 9)
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    monkeypatch.setattr(dre.neighbors.exact, "TREE_UP_TO", 0)
    monkeypatch.setattr(dre.neighbors.distances, "TF32_TOLERANCE", torch.inf)  # always use TF32; the candidates are verified
    found = nearest_rows(Distances(DATA[name], **products), 9)
    assert torch.equal(found.indices, whole.indices)


@pytest.mark.parametrize("elements", [1, 900, 10**9])
@pytest.mark.parametrize("name", ["digits", "grid", "one place"])
def test_how_much_is_held_at_once_does_not_matter(monkeypatch: pytest.MonkeyPatch, name: str, elements: int) -> None:
    whole = nearest_rows(Distances(DATA[name]), 9)
    monkeypatch.setattr(dre.neighbors.distances, "ELEMENTS", {"cpu": elements})
    monkeypatch.setattr(dre.neighbors.exact, "WHOLE", {"cpu": elements})
    assert torch.equal(nearest_rows(Distances(DATA[name]), 9).indices, whole.indices)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_blocks_may_come_in_any_order(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": 24})
        distances = Distances(DATA["grid of 8 dimensions"])
        accumulated = KNearest(distances, 6)
        blocks = [(some, others) for some in distances.tiles() for others in distances.tiles()]
        for at in torch.randperm(len(blocks), generator=seeded(seed)).tolist():
            accumulated.update(*blocks[at], distances.block(*blocks[at]))
        found = accumulated.nearest()
    assert found.indices.tolist() == by_sorting(distances.rows, distances.rows, 6, exclude_self=True)[0]


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.double])
@pytest.mark.parametrize("columns", [2, 12])
@pytest.mark.parametrize("scale", [1e-30, 1e-23, 1e-8, 1e8, 1e20])
def test_the_scale_of_the_rows_does_not_matter(scale: float, columns: int, dtype: torch.dtype | None) -> None:
    rows = draw(150, columns, 10)
    found = nearest_rows(Distances(scale * rows, dtype), 5)
    assert found.indices.tolist() == by_sorting(rows, rows, 5, exclude_self=True)[0]


@pytest.mark.parametrize("columns", [2, 3, 12])
@pytest.mark.parametrize("n", [2, 3, 9, 10, 11])
def test_a_few_rows_are_enough(n: int, columns: int) -> None:
    rows = draw(n, columns, n)
    for k in range(1, n):
        assert nearest_rows(Distances(rows), k).indices.tolist() == by_sorting(rows, rows, k, exclude_self=True)[0]


def test_one_training_row_is_nearest_to_all() -> None:
    assert nearest_to(Distances(torch.zeros(1, 2)), torch.randn(5, 2), 1).indices.tolist() == [[0]] * 5


@settings(max_examples=40, deadline=None)
@given(angle=st.floats(0, 2 * np.pi), shift=st.floats(-100, 100))
def test_ties_that_rounding_has_split_are_still_ties(angle: float, shift: float) -> None:
    turn = torch.tensor([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], dtype=torch.double)
    rows = DATA["grid"] @ turn.T + shift
    assert nearest_rows(Distances(rows), 7).indices.tolist() == by_sorting(DATA["grid"], DATA["grid"], 7, exclude_self=True)[0]


def test_candidates_are_put_in_the_order_of_distance_and_index() -> None:
    squared = torch.tensor([[2.0, 1.0, 1.0, 0.0], [3.0, 3.0 * (1 + 1e-14), 3.0, torch.inf]], dtype=torch.double)
    indices = torch.tensor([[0, 9, 4, 7], [8, 5, 6, 1]])
    found = sort_candidates(squared, indices, 3)
    assert found.indices.tolist() == [[7, 4, 9], [5, 6, 8]]
    assert found.squared[0].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_tf32_products_of_rows_that_share_a_large_coordinate_lose_no_neighbor(seed: int) -> None:
    """The rounding of such rows to TF32 does not average out over the columns."""
    generator = seeded(seed)
    rows = torch.randn(4000, 400, generator=generator)
    apart = torch.randperm(4000, generator=generator)[:80]
    rows[apart, 0] += 300
    rows[apart, 1:3] += 14 * torch.randn(80, 2, generator=generator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dre.neighbors.distances, "TF32_TOLERANCE", torch.inf)
        distances = Distances(rows, tf32=True)
        assert distances.is_tf32
        assert torch.equal(nearest_rows(distances, 15).indices, nearest_rows(Distances(rows, torch.double), 15).indices)
