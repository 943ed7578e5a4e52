"""Blocks of distances: within their margin of the true distances for all kinds of data, and every pair once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch import Tensor

import dre.neighbors.distances
from dre.neighbors.distances import Distances, pairwise_distances, with_transpose


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def with_an_outlier() -> Tensor:
    rows = torch.randn(300, 20, generator=seeded(3), dtype=torch.double)
    rows[7] = 1e4
    return rows


DATA = {
    "normal": torch.randn(300, 20, generator=seeded(0), dtype=torch.double),
    "float32": torch.randn(300, 20, generator=seeded(1)),
    "one column": torch.randn(300, 1, generator=seeded(2), dtype=torch.double),
    "an outlier": with_an_outlier(),
    "far from the origin": torch.randn(300, 20, generator=seeded(4), dtype=torch.double) + 1e3,
    "tiny": 1e-8 * torch.randn(300, 5, generator=seeded(5), dtype=torch.double),
    "duplicates": torch.randn(30, 6, generator=seeded(6), dtype=torch.double).repeat(10, 1) + 1e3,
    "digits": torch.tensor(load_digits().data[:300]),
    "many columns": torch.rand(300, 700, generator=seeded(7)),
    "equal columns": torch.rand(300, 1, generator=seeded(8), dtype=torch.double).expand(300, 800) * 0.1,
    "many equal columns": torch.rand(300, 1, generator=seeded(9), dtype=torch.double).expand(300, 4000) * 0.1,
}
DTYPES = [torch.float32, torch.double]


def truth(rows: Tensor, points: Tensor | None = None) -> Tensor:
    points = rows if points is None else points
    return torch.stack([(rows.double() - point).square().sum(1) for point in points.double()])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DATA)
def test_a_block_is_within_its_margin_of_the_truth(monkeypatch: pytest.MonkeyPatch, name: str, dtype: torch.dtype) -> None:
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": 104})
    rows = DATA[name]
    distances, true = Distances(rows, dtype), truth(rows)
    margin = distances.margin(distances.radius(rows), true)
    for some, others in distances.upper_blocks():
        block = distances.block(some, others)
        assert block.dtype == dtype
        finite = block.isfinite()
        assert torch.equal(finite, torch.ones_like(finite) if some != others else ~torch.eye(len(finite), dtype=torch.bool))
        error = (block.double() - true[some, others]).abs()[finite]
        assert (error <= margin[some, others][finite]).all()


@pytest.mark.parametrize(("dtype", "part"), [(torch.float32, 1e-4), (torch.double, 1e-12)])
def test_the_margin_is_a_small_part_of_the_distances_of_ordinary_data(dtype: torch.dtype, part: float) -> None:
    rows = DATA["normal"]
    true = truth(rows)
    others = ~torch.eye(len(rows), dtype=torch.bool)
    assert (Distances(rows, dtype).margin(rows.sub(rows.mean(0)).norm(dim=1), true)[others] <= part * true[others]).all()


@pytest.mark.parametrize("name", DATA)
def test_distances_from_any_points_are_within_the_margin_of_float64(name: str) -> None:
    rows = DATA[name]
    distances, points = Distances(rows), rows[:40].double() * 1.01 + 0.1
    true = truth(rows, points)
    found = distances.from_points(points)
    assert found.dtype == torch.double
    assert ((found - true).abs() <= distances.margin(distances.radius(points), true, torch.double)).all()


@pytest.mark.parametrize("elements", [1, 700, 10**9])
@pytest.mark.parametrize("name", DATA)
def test_direct_distances_are_those_of_the_differences(monkeypatch: pytest.MonkeyPatch, name: str, elements: int) -> None:
    monkeypatch.setattr(dre.neighbors.distances, "ELEMENTS", {"cpu": elements})
    rows = DATA[name]
    distances, true = Distances(rows), truth(rows)
    others = torch.randint(len(rows), (len(rows), 3), generator=seeded(0))
    everyone = torch.arange(len(rows))
    assert torch.allclose(distances.direct(rows, others), true.gather(1, others), rtol=1e-14, atol=0)
    assert torch.allclose(distances.direct_pairs(everyone, others[:, 0]), true[everyone, others[:, 0]], rtol=1e-14, atol=0)
    assert (distances.direct(rows, everyone[:, None]) == 0).all()


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 3000), limit=st.integers(8, 1600))
def test_stretches_are_of_one_size_and_cover_all_rows_once(n: int, limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": limit})
        tiles = Distances(torch.zeros(n, 1)).tiles()
    sizes = [part.stop - part.start for part in tiles]
    assert [i for part in tiles for i in range(part.start, part.stop)] == list(range(n))
    assert len(set(sizes[:-1])) <= 1
    assert all(size % 8 == 0 for size in sizes[:-1])
    assert 1 <= sizes[-1] <= max(sizes) < limit + 8


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 90), limit=st.integers(8, 40))
def test_blocks_and_their_transposes_show_every_pair_once(n: int, limit: int) -> None:
    rows = torch.randn(n, 3, generator=seeded(n), dtype=torch.double)
    seen, values = torch.zeros(n, n, dtype=torch.long), torch.zeros(n, n, dtype=torch.double)

    def take(some: slice, others: slice, block: Tensor) -> None:
        seen[some, others] += 1
        values[some, others] = block

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": limit})
        distances = Distances(rows, torch.double)
        for some, others in distances.upper_blocks():
            with_transpose(take, some, others, distances.block(some, others))
    assert (seen == 1).all()
    assert torch.allclose(values.fill_diagonal_(0), truth(rows), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("normal", torch.float32),
        ("tiny", torch.float32),
        ("far from the origin", torch.float32),  # the rows are centered
        ("an outlier", torch.double),
        ("duplicates", torch.double),
    ],
)
def test_products_are_in_float32_where_neighbors_stand_clear_of_its_rounding(name: str, dtype: torch.dtype) -> None:
    assert Distances(DATA[name]).dtype == dtype


@pytest.mark.parametrize("kind", [torch.float32, torch.double])
def test_where_two_clusters_lie_far_from_each_other_float32_is_refused(kind: torch.dtype) -> None:
    sides = torch.tensor([1e3, -1e3]).repeat(150)[:, None]
    rows = (torch.randn(300, 20, generator=seeded(8)) + sides).to(kind)
    assert Distances(rows).dtype == torch.double


def test_rows_are_left_as_they_were() -> None:
    rows = DATA["far from the origin"].clone()
    distances = Distances(rows)
    for some, others in distances.upper_blocks():
        distances.block(some, others)
    assert torch.equal(rows, DATA["far from the origin"])


def test_asking_for_a_block_twice_gives_the_same() -> None:
    distances = Distances(DATA["normal"])
    some = distances.tiles()[0]
    assert torch.equal(distances.block(some, some), distances.block(some, some))


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_pairwise_distances_are_euclidean_and_0_between_equal_rows(offset: float) -> None:
    rng = np.random.default_rng(0)
    a, b = torch.tensor(rng.normal(size=(20, 4)) + offset), torch.tensor(rng.normal(size=(30, 4)) + offset)
    b[:5] = a[:5]
    found = pairwise_distances(a, b)
    assert torch.allclose(found, truth(b, a).sqrt(), rtol=1e-9)
    assert (found.diagonal()[:5] == 0).all()
