"""Checkpoints are written in time, and a signal ends the process only after one was written."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from dre import DRE
from dre.observe import watch
from dre.observe.checkpoints import Checkpoints, StoppedBySignal
from dre.training.events import CoordinatesMoved, EpochEnded, Event, StageEnded, StepEnded, TargetBegan
from dre.training.run import Run

X = np.random.default_rng(0).normal(size=(60, 6))
SCHEDULE = "x: gaussian(5) -> kl * 3 from pca free 4 follow 2; h1: gaussian(5) -> kl * 2"
OPTIONS = {"schedule": SCHEDULE, "encoder": "mlp(8)", "batch_size": 20, "random_state": 0, "device": "cpu"}


class Written:
    """Remembers where a run was when it was written."""

    def __init__(self) -> None:
        self.at: list[tuple[int, int, int]] = []

    def __call__(self, run: Run) -> None:
        self.at.append((*run.resume_at, run.steps))


def observe(minutes: float, *others: object) -> list[tuple[int, int, int]]:
    written = Written()
    DRE(**OPTIONS).fit(X, observers=[*others, Checkpoints(written, minutes)])
    return written.at


def test_the_start_and_the_end_of_each_stage_are_written() -> None:
    assert observe(1e9) == [(0, 0, 0), (1, 0, 15), (2, 0, 21)]


def test_every_state_is_written_once() -> None:
    found = observe(0)
    assert len(found) == len(set(found)) + 1 == 32  # twice before the first step: without coordinates and with them
    assert [steps for _, _, steps in found if steps] == sorted(steps for _, _, steps in found if steps)


def test_time_is_counted_from_the_last_write(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("dre.observe.checkpoints.time.monotonic", lambda: clock[0])

    def tick(event: Event) -> None:
        clock[0] += 10.0 * isinstance(event, StepEnded)

    assert [steps for _, _, steps in observe(1.0, tick)] == [0, 6, 12, 15, 21, 21]  # the last step, and the end of the stage


@contextmanager
def handler(number: int, action: object) -> Iterator[None]:
    before = signal.signal(number, action)
    try:
        yield
    finally:
        signal.signal(number, before)


def raise_at(kind: type, number: int, count: int = 1):
    left = [count]

    def observer(event: Event) -> None:
        left[0] -= isinstance(event, kind)
        if isinstance(event, kind) and left[0] == 0:
            os.kill(os.getpid(), number)

    return observer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("kind", "count"), [(StepEnded, 7), (EpochEnded, 2), (StageEnded, 1), (CoordinatesMoved, 2)])
def test_a_signal_ends_the_fit_after_a_checkpoint(number: int, kind: type, count: int, tmp_path: Path) -> None:
    wanted = DRE(**OPTIONS).fit(X).embedding_
    steps: list[int] = []
    with handler(number, signal.SIG_DFL):
        with pytest.raises(StoppedBySignal) as stopped:
            DRE(**OPTIONS).fit(
                X, checkpoint=tmp_path, observers=[lambda event: steps.append(event.run.steps), raise_at(kind, number, count)]
            )
        assert stopped.value.code == 128 + number
        assert stopped.value.signal == signal.Signals(number).name
        assert signal.getsignal(number) is signal.SIG_DFL
    resumed: list[int] = []
    again = DRE(**OPTIONS).fit(X, checkpoint=tmp_path, resume=True, observers=[lambda event: resumed.append(event.run.steps)])
    np.testing.assert_array_equal(again.embedding_, wanted)
    assert resumed[0] == steps[-1]  # no step was lost


def test_a_signal_in_a_search_does_not_wait_for_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*arguments: object, **options: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the search went on")

    monkeypatch.setattr("dre.training.graph_parts.nearest", search)
    with handler(signal.SIGTERM, signal.SIG_DFL), pytest.raises(StoppedBySignal):
        DRE(**OPTIONS).fit(X, checkpoint=tmp_path)
    assert os.listdir(tmp_path) == ["checkpoint-000001.safetensors"]


def test_the_programs_own_handler_is_called_after_the_checkpoint() -> None:
    heard: list[int] = []
    written = Written()
    with handler(signal.SIGTERM, lambda number, frame: heard.append(len(written.at))):
        DRE(**OPTIONS).fit(X, observers=[raise_at(StepEnded, signal.SIGTERM, 5), Checkpoints(written, 1e9)])
    assert heard == [2]
    assert written.at == [(0, 0, 0), (0, 1, 5), (1, 0, 15), (2, 0, 21)]


def test_every_signal_is_written_where_the_program_goes_on() -> None:
    written = Written()
    signals = [raise_at(StepEnded, signal.SIGTERM, 5), raise_at(StepEnded, signal.SIGTERM, 9)]
    with handler(signal.SIGTERM, lambda number, frame: None):
        DRE(**OPTIONS).fit(X, observers=[*signals, Checkpoints(written, 1e9)])
    assert [steps for _, _, steps in written.at] == [0, 5, 9, 15, 21]


def test_a_signal_that_the_program_ignores_is_ignored() -> None:
    with handler(signal.SIGHUP, signal.SIG_IGN):
        assert observe(1e9, raise_at(StepEnded, signal.SIGHUP, 5)) == [(0, 0, 0), (1, 0, 15), (2, 0, 21)]


@pytest.mark.filterwarnings("ignore:fit was interrupted")
def test_ctrl_c_keeps_a_model_and_a_checkpoint_that_goes_on(tmp_path: Path) -> None:
    wanted = DRE(**OPTIONS).fit(X).embedding_
    model = DRE(**OPTIONS).fit(X, checkpoint=tmp_path, observers=[raise_at(StepEnded, signal.SIGINT, 8)])
    assert model.interrupted_
    assert np.isfinite(model.transform(X)).all()
    again = DRE(**OPTIONS).fit(X, checkpoint=tmp_path, resume=True)
    assert not again.interrupted_
    np.testing.assert_array_equal(again.embedding_, wanted)


def test_what_an_observer_ends_is_written_before_it_ends() -> None:
    def end(event: Event) -> None:
        if isinstance(event, StepEnded) and event.run.steps == 5:
            event.run.end_fit()

    assert observe(1e9, end) == [(0, 0, 0), (0, 1, 5)]


def test_handlers_are_put_back_after_an_error() -> None:
    def fail(event: Event) -> None:
        raise RuntimeError

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    with pytest.raises(RuntimeError):
        watch(iter([TargetBegan(None)]), [fail, Checkpoints(Written(), 1)])  # type: ignore[arg-type]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before
