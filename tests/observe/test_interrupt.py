"""Ctrl-C ends the fit with a warning and a usable model."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import numpy as np
import pytest

from dre import DRE
from dre.training.events import StageBegan, StepEnded

SCHEDULE = "x: gaussian(5) -> kl * 3; h1: gaussian(5) -> kl * 3"


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 6))


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


class CtrlC:
    """Presses Ctrl-C so many times, at one event of a kind."""

    def __init__(self, kind: type, at: int, times: int = 1) -> None:
        self.kind, self.at, self.times, self.seen = kind, at, times, 0

    def __call__(self, event: object) -> None:
        self.seen += isinstance(event, self.kind)
        if isinstance(event, self.kind) and self.seen == self.at:
            for _ in range(self.times):
                press_ctrl_c()


@pytest.mark.parametrize(
    ("kind", "at", "stage", "epoch"),
    [(StepEnded, 1, 0, 1), (StepEnded, 2, 0, 2), (StepEnded, 4, 1, 1), (StepEnded, 6, 1, 3), (StageBegan, 2, 1, 1)],
)
def test_an_interrupted_fit_warns_where_it_was_and_gives_a_usable_model(kind, at, stage, epoch, X, tmp_path):
    model = cheap()
    with pytest.warns(UserWarning, match=rf"interrupted in stage {stage} \(.*\), epoch {epoch} of 3"):
        model.fit(X, observers=[CtrlC(kind, at)])
    assert (model.history_[-1]["stage"], model.history_[-1]["epoch"]) == (stage, epoch - 1)
    assert len(model.stages_) == stage + 1
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    np.testing.assert_array_equal(model.transform(X, stage=-1), model.embedding_)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(DRE.load(tmp_path / "model").transform(X), model.embedding_)


def test_the_weights_so_far_are_kept(X):
    with pytest.warns(UserWarning, match="interrupted"):
        model = cheap(schedule="x: gaussian(5) -> kl * 500", learning_rate=1e-2).fit(X, observers=[CtrlC(StepEnded, 20)])
    losses = [record["loss"] for record in model.history_]
    assert len(losses) == 20
    assert losses[-1] < losses[0]


def test_before_the_first_step_there_is_nothing_to_keep(X):
    model = cheap()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, observers=[CtrlC(StageBegan, 1)])
    assert not hasattr(model, "encoder_")


def test_a_second_interrupt_stops_at_once_and_leaves_the_model_as_it_was(X):
    model = cheap()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, observers=[CtrlC(StepEnded, 2, times=2)])
    assert not hasattr(model, "encoder_")


def test_a_second_interrupt_before_the_map_is_done_promises_no_model(X, recwarn, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("dre.model.fitting.embed", interrupt)
    model = cheap()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, observers=[CtrlC(StepEnded, 2)])
    assert not hasattr(model, "encoder_")
    assert not recwarn.list


def test_the_warning_names_the_line_that_called_fit(X):
    with pytest.warns(UserWarning, match="interrupted") as caught:
        cheap().fit(X, observers=[CtrlC(StepEnded, 2)])
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore:fit was interrupted")
@pytest.mark.parametrize("observers", [[], [CtrlC(StepEnded, 2)], [CtrlC(StageBegan, 1)], [CtrlC(StepEnded, 2, times=2)]])
def test_the_handler_that_was_there_is_there_again(observers, X):
    def mine(number, frame):
        raise AssertionError("not during fit")

    before = signal.signal(signal.SIGINT, mine)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            cheap().fit(X, observers=observers)
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_fit_that_was_not_interrupted_does_not_warn(X, recwarn):
    cheap().fit(X)
    assert not recwarn.list


def test_fit_works_in_another_thread(X):
    found = []

    def work() -> None:
        found.append(cheap().fit(X).embedding_)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], cheap().fit(X).embedding_)
