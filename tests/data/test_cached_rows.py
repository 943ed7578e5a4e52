"""Streams in blocks are copied once, in order, and then training takes their rows from an array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dre import DRE
from dre.data.block_array import BlockArray
from dre.data.cached_rows import copy_rows, without_blocks
from dre.data.foreign_rows import ForeignRows
from dre.data.rows import ArrayRows, RowSlice, RowSubset, empty_rows, is_on_device
from dre.data.scaling import ScaledRows, Scaling
from dre.runtime import scratch
from dre.runtime.window import Window

CPU = torch.device("cpu")
X = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
SETTINGS = {"schedule": "x: gaussian(5) -> kl * 3", "batch_size": 50, "encoder": "mlp(16, depth=2)", "device": "cpu"}


def in_blocks(loaded: list[int] | None = None) -> ForeignRows:
    def load(start: int, stop: int) -> np.ndarray:
        if loaded is not None:
            loaded.append(start)
        return X[start:stop].copy()

    return ForeignRows(BlockArray(X.shape, X.dtype, np.array([0, 50, 60, 200, 400]), load))


@pytest.fixture
def in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever belongs to a stream is too large for the memory."""
    monkeypatch.setattr(scratch, "HELD_BYTES", 1000)


def test_blocks_are_read_once_and_in_order() -> None:
    loaded: list[int] = []
    copied = without_blocks(in_blocks(loaded), CPU)
    assert isinstance(copied, ArrayRows)
    assert loaded == [0, 50, 60, 200]
    np.testing.assert_array_equal(copied.take(torch.tensor([399, 3, 3])).numpy(), X[[399, 3, 3]])


def test_rows_that_can_be_read_alone_stay_where_they_are() -> None:
    rows = ForeignRows(X)
    assert without_blocks(rows, CPU) is rows
    subset = RowSubset(in_blocks(), torch.tensor([2, 7, 300]))
    np.testing.assert_array_equal(without_blocks(subset, CPU).read(0, 3).numpy(), X[[2, 7, 300]])
    assert without_blocks(RowSlice(rows, 3, 9), CPU).shape == (6, 8)


def test_large_copies_lie_in_files_and_count_as_streams(in_files: None) -> None:
    scaled = ScaledRows(in_blocks(), Scaling.fit(X), CPU)
    copied = copy_rows(scaled, CPU)
    assert copied.is_stream
    assert not is_on_device(copied, CPU)
    np.testing.assert_array_equal(copied.read(0, 400).numpy(), Scaling.fit(X)(torch.from_numpy(X)).numpy())


def test_arrays_of_streams_are_in_files_and_those_of_arrays_in_memory(monkeypatch: pytest.MonkeyPatch, in_files: None) -> None:
    made = []
    monkeypatch.setattr(scratch, "in_file", lambda shape, dtype, what: made.append(what) or torch.empty(shape, dtype=dtype))
    empty_rows((400, 8), CPU, ScaledRows(in_blocks(), Scaling.fit(X), CPU))
    assert made == ["400 rows of 8 values"]
    empty_rows((400, 8), CPU, ArrayRows(torch.zeros(400, 8), CPU))
    assert len(made) == 1


@pytest.mark.parametrize("encoder", ["mlp(16, depth=2)", "mlp(16, depth=2, n_pcs=3)"])
def test_a_fit_of_a_stream_has_the_bits_of_a_fit_in_memory(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit() -> np.ndarray:
        return DRE(**{**SETTINGS, "encoder": encoder}, random_state=0).fit(in_blocks()).embedding_

    from_memory = DRE(**{**SETTINGS, "encoder": encoder}, random_state=0).fit(X).embedding_
    held = fit()
    monkeypatch.setattr(scratch, "HELD_BYTES", 1000)
    np.testing.assert_array_equal(fit(), held)
    np.testing.assert_array_equal(held, from_memory)


def test_batches_of_large_streams_follow_a_window(monkeypatch: pytest.MonkeyPatch, in_files: None) -> None:
    asked: list[int] = []
    monkeypatch.setattr("dre.runtime.window.WINDOWED_BYTES", 1000)
    order = Window.order
    monkeypatch.setattr(Window, "order", lambda self, n, generator: asked.append(n) or order(self, n, generator))
    model = DRE(**SETTINGS, random_state=0).fit(in_blocks())
    assert asked == 3 * [400]
    assert np.isfinite(model.embedding_).all()
    DRE(**SETTINGS, random_state=0).fit(X)
    assert len(asked) == 3


def test_a_fit_decodes_a_file_in_passes_and_not_in_every_step(tmp_path: Path) -> None:
    loaded: list[int] = []
    rows = in_blocks(loaded)
    rows._rows.X._free_bytes = 0  # without a cache
    DRE(**{**SETTINGS, "schedule": "x: gaussian(5) -> kl * 20"}, random_state=0).fit(rows)
    assert len(loaded) < 40  # 160 steps that take rows from everywhere would decode each of the four blocks
