"""A GPU that runs out of memory gets smaller pieces, with a warning and the same result, or an error with advice."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import dre.encoder.forward
import dre.model.fitting
import dre.neighbors.exact
from dre import DRE
from dre.metrics import evaluate
from dre.neighbors.search import nearest
from dre.runtime.gpu_memory import LAST, GPUMemoryError, in_smaller_pieces, piece

X = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
WARNING = "ran out of memory in .*: trying smaller pieces"


@contextmanager
def only_below(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, level: int) -> Iterator[list[int]]:
    """Let a function fail as torch does on a GPU, until pieces have shrunk so often."""
    original, tried = getattr(owner, name), []

    def limited(*arguments: object, **options: object) -> object:
        size = piece(4**LAST)
        tried.append(size)
        if size > 4 ** (LAST - level):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
        return original(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, limited)
        yield tried


@pytest.mark.parametrize("level", [1, 2, LAST])
def test_neighbors_are_the_same_in_smaller_pieces(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = nearest(X, 5)
    with (
        only_below(monkeypatch, dre.neighbors.exact.KNearest, "update", level),
        pytest.warns(UserWarning, match=WARNING) as told,
    ):
        found = nearest(X, 5)
    assert len(told) == level
    assert torch.equal(found.indices, wanted.indices)
    torch.testing.assert_close(found.distances, wanted.distances)


def test_metrics_are_the_same_in_smaller_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = evaluate(X, X[:, :2])
    with only_below(monkeypatch, dre.metrics.pairwise_pass.PairBlock, "squared", 3), pytest.warns(UserWarning, match=WARNING):
        found = evaluate(X, X[:, :2])
    assert found.scores == pytest.approx(wanted.scores, rel=1e-6)


def test_a_transform_is_the_same_in_smaller_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    model = DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(8)", random_state=0, device="cpu").fit(X)
    wanted = model.transform(X)
    with only_below(monkeypatch, dre.encoder.forward, "_chunks", 2) as tried, pytest.warns(UserWarning, match="embedding rows"):
        found = model.transform(X)
    assert tried == [256, 64, 16]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_pieces_have_their_size_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    with only_below(monkeypatch, dre.neighbors.exact.KNearest, "update", 2), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nearest(X, 5)
    assert piece(1000) == 1000


def test_in_the_end_there_is_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    message = r"too little memory for the search for neighbors.*device='cpu'"
    with only_below(monkeypatch, dre.neighbors.exact.KNearest, "update", LAST + 1) as tried, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(GPUMemoryError, match=message):
            nearest(X, 5)
    assert tried == [256, 64, 16, 4, 1]


def test_other_errors_pass_through_at_once() -> None:
    calls = []

    @in_smaller_pieces("a test")
    def fail() -> None:
        calls.append(1)
        raise RuntimeError("another one")

    with pytest.raises(RuntimeError, match="another one"):
        fail()
    assert calls == [1]


def test_training_that_needs_too_much_says_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(dre.model.fitting, "watch", fail)
    with pytest.raises(GPUMemoryError, match=r"too little memory for training.* Lower batch_size"):
        DRE(schedule="x: gaussian(5) -> kl * 1", device="cpu").fit(X)
