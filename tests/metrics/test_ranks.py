"""Ranks by counting: those of a sort by (distance, index), from any blocks, in any precision."""

from __future__ import annotations

import definitions
import pytest
import torch
from definitions import CASES
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dre.metrics.ranks
import dre.neighbors.distances
from dre.metrics.ranks import RankCounter, count_true
from dre.neighbors.distances import Distances, with_transpose


def targets(n: int, k: int) -> Tensor:
    """Any others of each row."""
    others = [torch.randperm(n - 1, generator=torch.Generator().manual_seed(i))[:k] for i in range(n)]
    return torch.stack([some + (some >= i) for i, some in enumerate(others)])


def ranked(rows: Tensor, others: Tensor, dtype: torch.dtype | None) -> Tensor:
    distances = Distances(rows, dtype)
    ranks = RankCounter(distances, others)
    for some, those in distances.upper_blocks():
        with_transpose(ranks.add, some, those, distances.block(some, those))
    return ranks.ranks


def by_sorting(rows: Tensor, others: Tensor) -> list[list[int]]:
    table = definitions.ranks(rows.numpy())
    return [[table[i][j] for j in row] for i, row in enumerate(others.tolist())]


@pytest.mark.parametrize(
    ("block", "dtype"), [(8, torch.float32), (104, torch.float32), (104, torch.double), (10**9, torch.double)]
)
@pytest.mark.parametrize("which", ["X", "Y"])
@pytest.mark.parametrize("name", CASES)
def test_ranks_are_those_of_a_sort_from_any_blocks_in_any_precision(
    monkeypatch: pytest.MonkeyPatch, name: str, which: str, block: int, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": block})
    rows = torch.tensor(getattr(CASES[name], which))
    others = targets(len(rows), 4)
    assert ranked(rows, others, dtype).tolist() == by_sorting(rows, others)


@pytest.mark.parametrize("at_once", [1, 7])
def test_how_many_rows_are_looked_at_again_at_once_does_not_matter(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(dre.metrics.ranks, "CHUNK", at_once)
    rows = torch.tensor(CASES["digits"].Y)
    others = targets(len(rows), 4)
    assert ranked(rows, others, None).tolist() == by_sorting(rows, others)


@pytest.mark.parametrize("name", ["normal", "digits", "a map in one place"])
def test_the_ranks_of_all_others_of_a_row_are_1_to_n_less_1(name: str) -> None:
    rows = torch.tensor(CASES[name].Y)[:50]
    everyone = torch.arange(50)
    others = torch.stack([everyone[everyone != i] for i in range(50)])
    assert torch.equal(ranked(rows, others, torch.float32).sort(dim=1).values, torch.arange(1, 50).expand(50, 49))


@pytest.mark.parametrize("scale", [1e-23, 1e20])
def test_the_scale_of_the_rows_does_not_matter(scale: float) -> None:
    rows = torch.tensor(CASES["normal"].X)
    others = targets(len(rows), 4)
    assert ranked(scale * rows, others, None).tolist() == by_sorting(rows, others)


@settings(max_examples=60, deadline=None)
@given(
    height=st.integers(1, 40),
    width=st.one_of(st.integers(1, 70), st.integers(2030, 2060), st.sampled_from([4079, 4080, 4081, 5000])),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    transposed=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_counting_eight_at_once_is_counting(height: int, width: int, share: float, transposed: bool, seed: int) -> None:
    shape = (width, height) if transposed else (height, width)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share
    mask = mask.T if transposed else mask
    assert torch.equal(count_true(mask), mask.sum(1))


@settings(max_examples=20, deadline=None)
@given(height=st.integers(2040, 2100), width=st.integers(1, 20), transposed=st.booleans())
def test_counting_is_right_for_many_rows_as_well(height: int, width: int, transposed: bool) -> None:
    mask = torch.ones((width, height) if transposed else (height, width), dtype=torch.bool)
    mask = mask.T if transposed else mask
    assert count_true(mask).tolist() == [width] * height


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("width", [255, 256, 257, 2040, 2041, 2048, 4096])
def test_no_byte_overflows_where_all_are_true(width: int, transposed: bool) -> None:
    mask = torch.ones((width, 9) if transposed else (9, width), dtype=torch.bool)
    assert count_true(mask.T if transposed else mask).tolist() == [width] * 9


def test_a_part_of_a_mask_is_counted_as_the_whole_would_be() -> None:
    mask = torch.rand(64, 96, generator=torch.Generator().manual_seed(0)) < 0.5
    for part in (mask[:, 8:40], mask[8:24], mask[:, ::2], mask[3:20, 5:60], mask.T[7:30, 9:50]):
        assert torch.equal(count_true(part), part.sum(1))
