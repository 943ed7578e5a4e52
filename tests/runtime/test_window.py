"""A windowed order is a permutation, mixes sorted rows, and reads a file nearly in sequence."""

from __future__ import annotations

import pytest
import torch

from dre.runtime import RandomStreams
from dre.runtime.window import WINDOWED_BYTES, Window

CPU = torch.device("cpu")
N, WINDOW = 100_003, Window(rows=100, blocks=64)


def order(seed: int = 0, n: int = N) -> torch.Tensor:
    return WINDOW.order(n, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("n", [1, 99, 6_400, 6_401, N])
def test_each_row_comes_once(n: int) -> None:
    assert order(n=n).sort().values.equal(torch.arange(n))


def test_the_order_depends_on_the_seed_alone() -> None:
    assert order(1).equal(order(1))
    assert not order(1).equal(order(2))


def test_rows_that_are_sorted_by_class_give_mixed_batches() -> None:
    classes = order() * 10 // N  # ten classes, one after the other in the file
    shares = torch.stack([batch.bincount(minlength=10) / len(batch) for batch in classes.split(500)[:-1]])
    assert shares.min() > 0
    assert shares.std(0).max() < 0.02  # 0.013 is that of 500 random rows


def test_few_blocks_are_open_at_a_time_from_the_first_batch_to_the_last() -> None:
    blocks = order() // WINDOW.rows
    counts = torch.tensor([len(part.unique()) for part in blocks.split(1000)[:-1]])
    assert counts.max() <= WINDOW.blocks + 1000 // WINDOW.rows + 1
    assert counts.min() > WINDOW.blocks / 2


def test_a_block_is_read_once_in_a_pass_and_only_the_first_ones_again() -> None:
    blocks = order() // WINDOW.rows
    first, last = torch.full((1001,), N), torch.zeros(1001, dtype=torch.int64)
    at = torch.arange(N)
    first.scatter_reduce_(0, blocks, at, "amin")
    last.scatter_reduce_(0, blocks, at, "amax")
    long = (last - first) > (WINDOW.blocks + 1) * WINDOW.rows * 1.1
    assert int(long.sum()) <= WINDOW.blocks


def test_small_arrays_are_shuffled_as_ever() -> None:
    assert Window.of(1000, 4) is None
    assert Window.of(WINDOWED_BYTES // 4000, 4001) is not None
    streams = RandomStreams(0, CPU)
    expected = torch.randperm(50, generator=streams.generator("batches", 3))
    assert streams.order(50, "batches", 3).equal(expected)
