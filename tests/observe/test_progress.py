"""What a fit shows: a bar where someone watches, the choices when asked, nothing otherwise."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from dre import DRE
from dre.observe.progress import Progress
from dre.training.loop import StepEnded

SCHEDULE = "x: gaussian(5) -> kl * 6; h1: gaussian(5) -> kl * 6"


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 6))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if stderr were a terminal."""
    monkeypatch.setattr("dre.observe.progress.is_interactive", lambda: True)
    monkeypatch.setattr("dre.model.estimator.is_interactive", lambda: True)


def slowly(event: object) -> None:
    if isinstance(event, StepEnded):
        time.sleep(0.06)


@pytest.mark.usefixtures("watched")
def test_the_bar_names_stage_epoch_loss_speed_and_remaining_time(X, capfd):
    cheap().fit(X, observers=[Progress(delay=0), slowly])
    shown = capfd.readouterr().err
    for part in (
        r"stage 0 \(x\) ",
        r"stage 1 \(h1\) ",
        r"epoch [1-6]/6",
        r"loss \d+\.\d+",
        r"[\d,]+ rows/s",
        r"\d\d:\d\d<\d\d:\d\d",
    ):
        assert re.search(part, shown), part


@pytest.mark.usefixtures("watched")
def test_the_shown_speed_is_rows_per_second(X, capfd):
    cheap().fit(X, observers=[slowly, Progress(delay=0)])
    rates = [int(rate.replace(",", "")) for rate in re.findall(r"([\d,]+) rows/s", capfd.readouterr().err)]
    assert rates
    assert all(5 < rate <= 40 / 0.06 for rate in rates)  # 40 rows each time, and then at least 0.06 s


@pytest.mark.usefixtures("watched")
def test_a_bar_is_shown_by_itself_where_someone_watches_and_the_fit_takes_long(X, capfd):
    cheap(schedule="x: gaussian(5) -> kl * 30").fit(X, observers=[slowly])
    assert "stage 0 (x)" in capfd.readouterr().err


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(("verbose", "pause"), [(None, 0.0), (False, 0.06)], ids=["short", "told to be silent"])
def test_no_bar_is_shown_for_a_short_fit_or_when_told_so(verbose, pause, X, capfd):
    cheap(verbose=verbose, schedule="x: gaussian(5) -> kl * 20").fit(X, observers=[lambda event: time.sleep(pause)])
    assert capfd.readouterr() == ("", "")


def test_nothing_is_shown_when_nobody_watches(X, capfd):
    cheap(schedule="x: gaussian(5) -> kl * 20").fit(X, observers=[slowly])
    assert capfd.readouterr() == ("", "")


def test_verbose_says_what_was_chosen(X, capfd):
    model = cheap(verbose=True, augment="noise(0.25)").fit(X)
    out, err = capfd.readouterr()
    assert out == ""
    for line in str(model.recipe_).splitlines():
        assert line in err
    assert "noise(0.25)" in err
    assert "mlp(16)" in err
    assert "40 rows" in err
    assert "cpu" in err
    assert "exact graph of 15 neighbors" in err
    assert f"loss {model.history_[-1]['loss']:.4g}" in err


@pytest.mark.parametrize(("n", "chosen", "met"), [(40, r"shuffled\(4\)", "1.5"), (400, r"edges\(2\)", "0.15")])
def test_verbose_says_how_batches_are_drawn_and_why(n, chosen, met, capfd):
    X = np.random.default_rng(0).normal(size=(n, 6))
    cheap(verbose=True, schedule="x: gaussian(5) -> kl * 1", batch_size="auto(4)").fit(X)
    assert re.search(rf"batches {chosen}, since a row meets k·b/n = {met} of its neighbors", capfd.readouterr().err)


def test_verbose_says_that_a_target_is_inside_the_batch(X, capfd):
    cheap(verbose=True, schedule="x: gaussian(5, scope=batch) -> kl * 1", batch_size="fixed(20)").fit(X)
    assert "target inside each batch, batches fixed(20)" in capfd.readouterr().err
