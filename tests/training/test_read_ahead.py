"""Rows that a thread reads ahead: the same steps, errors arrive, and nobody else reads rows that are not thread-safe."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
from torch import Tensor

from dre import DRE
from dre.affinity.target import Coordinates
from dre.batches import Shuffled
from dre.runtime import RandomStreams
from dre.training.stepper import EagerStepper, ReadAheadStepper

X = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))


class Stream:
    """Rows that notice whether two threads read them at once."""

    def __init__(self, *, thread_safe: bool = False, fails_at: int | None = None) -> None:
        self.shape, self.thread_safe, self.fails_at = tuple(X.shape), thread_safe, fails_at
        self.threads: set[str] = set()
        self.reading = self.together = False
        self.calls = 0

    def _enter(self) -> None:
        self.together |= self.reading
        self.reading = True
        self.threads.add(threading.current_thread().name)
        time.sleep(0.001)

    def read(self, start: int, stop: int) -> Tensor:
        self._enter()
        self.reading = False
        return X[start:stop]

    def take(self, ids: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.fails_at:
            raise OSError("the disk is gone")
        self._enter()
        self.reading = False
        return X[ids]


def sums(stepper_of, rows: Stream) -> list[Tensor]:
    sample = Shuffled(10).sampler(Coordinates(X[:, :2]), len(X), RandomStreams(0, torch.device("cpu")))
    return [step.loss for step in stepper_of(lambda batch, x: x.sum() + batch.ids[0], rows).steps(sample(0))]


@pytest.mark.parametrize("thread_safe", [True, False])
def test_the_steps_are_those_without_a_thread(thread_safe: bool) -> None:
    rows = Stream(thread_safe=thread_safe)
    ahead = sums(ReadAheadStepper, rows)
    eager = sums(lambda learn, rows: EagerStepper(learn, rows.take), Stream())
    assert len(ahead) == 20
    assert torch.stack(ahead).equal(torch.stack(eager))
    assert all(name.startswith("rows") for name in rows.threads)


def test_an_error_of_the_rows_ends_the_steps() -> None:
    with pytest.raises(OSError, match="the disk is gone"):
        sums(ReadAheadStepper, Stream(fails_at=7))
    assert not [each for each in threading.enumerate() if each.name.startswith("rows")]


def test_steps_that_nobody_asks_for_end_the_thread() -> None:
    sample = Shuffled(10).sampler(Coordinates(X[:, :2]), len(X), RandomStreams(0, torch.device("cpu")))
    steps = ReadAheadStepper(lambda batch, x: x.sum(), Stream()).steps(sample(0))
    next(steps)
    steps.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("rows")]


def test_observers_that_read_rows_are_alone() -> None:
    rows = Stream()

    def look(event) -> None:
        rows.read(0, 5)

    settings = {"schedule": "x: gaussian(5) -> kl * 2", "encoder": "mlp(8, depth=2)", "batch_size": 20, "device": "cpu"}
    from_stream = DRE(**settings, random_state=0).fit(rows, observers=[look]).embedding_
    assert not rows.together
    assert any(name.startswith("rows") for name in rows.threads)
    np.testing.assert_array_equal(from_stream, DRE(**settings, random_state=0).fit(X.numpy()).embedding_)
