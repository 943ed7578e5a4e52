"""What a fit shows: a bar where someone watches, the choices when asked, nothing otherwise."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from torch import nn

from dre import DRE
from dre.observe.progress import Progress
from dre.progress.activity import activities
from dre.training.events import CoordinatesMoved, StageEnded, StageSkipped, StageUndone, StepEnded

SCHEDULE = "x: gaussian(5) -> kl * 6; h1: gaussian(5) -> kl * 6"


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 6))


OPTIONAL = f"{SCHEDULE} optional"


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if stderr were a terminal."""
    monkeypatch.setattr("dre.progress.display.is_interactive", lambda: True)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar need not wait for a second."""
    monkeypatch.setattr("dre.progress.display.DELAY", 0.0)
    monkeypatch.setattr("dre.progress.display.REDRAWN", 0.01)


def slowly(event: object) -> None:
    if isinstance(event, StepEnded):
        time.sleep(0.06)


@pytest.mark.usefixtures("watched", "at_once")
def test_the_bar_names_stage_epoch_loss_speed_and_remaining_time(X, capfd):
    cheap().fit(X, observers=[slowly])
    shown = capfd.readouterr().err
    for part in (
        r"stage 0 \(x\) ",
        r"stage 1 \(h1\) ",
        r"epoch [1-6] of 6",
        r"loss \d+\.\d+",
        r"[\d,]+ rows/s",
        r"\d\d:\d\d<\d\d:\d\d",
    ):
        assert re.search(part, shown), part


@pytest.mark.usefixtures("watched", "at_once")
def test_the_shown_speed_is_rows_per_second(X, capfd):
    cheap().fit(X, observers=[slowly])
    rates = [int(rate.replace(",", "")) for rate in re.findall(r"([\d,]+) rows/s", capfd.readouterr().err)]
    assert rates
    assert min(rates) > 5
    assert rates[-1] <= 1.5 * 40 / 0.06  # 40 rows each time, and then at least 0.06 s


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


def test_verbose_tells_the_seconds_of_free_steps_apart_from_those_of_the_graph(X, capfd):
    cheap(verbose=True, schedule="x: gaussian(5) -> kl * 2 from pca free 30 follow 2 against bank").fit(X)
    assert re.search(r"exact graph of 15 neighbors in [\d.]+ s, \d+ MiB, 30 free steps in [\d.]+ s, ", capfd.readouterr().err)


@pytest.mark.parametrize(("n", "chosen", "met"), [(40, r"shuffled\(4\)", "1.5"), (400, r"edges\(2\)", "0.15")])
def test_verbose_says_how_batches_are_drawn_and_why(n, chosen, met, capfd):
    X = np.random.default_rng(0).normal(size=(n, 6))
    cheap(verbose=True, schedule="x: gaussian(5) -> kl * 1", batch_size="auto(4)").fit(X)
    assert re.search(rf"batches {chosen}, since a row meets k·b/n = {met} of its neighbors", capfd.readouterr().err)


def test_verbose_says_that_a_target_is_inside_the_batch(X, capfd):
    cheap(verbose=True, schedule="x: gaussian(5, scope=batch) -> kl * 1", batch_size="fixed(20)").fit(X)
    assert "target inside each batch, batches fixed(20)" in capfd.readouterr().err


def judge(monkeypatch: pytest.MonkeyPatch, before: float, after: float) -> None:
    """Let the optional stage have these values of trust; the map after it is measured first."""
    values = iter((after, before))
    monkeypatch.setattr("dre.training.optional.sample_trust", lambda features, embedding: next(values))
    monkeypatch.setattr("dre.training.loop.skip", lambda run, target: None)


@pytest.mark.parametrize(
    ("after", "said", "unsaid"),
    [
        (0.95, r"stage 1 done: 6 epochs, loss .*; kept, trustworthiness 0\.9000 before it, 0\.9500 after", "undone"),
        (0.5, r"stage 1 undone, and the fit ended: trustworthiness 0\.9000 before it, 0\.5000 after", "kept"),
    ],
    ids=["kept", "undone"],
)
def test_verbose_says_what_became_of_an_optional_stage(after, said, unsaid, X, monkeypatch, capfd):
    judge(monkeypatch, 0.9, after)
    cheap(verbose=True, schedule=OPTIONAL).fit(X)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("stage") and "batches" not in line]
    assert "kept" not in lines[-2]
    assert re.search(said, lines[-1])
    assert unsaid not in lines[-1]


@pytest.mark.usefixtures("watched", "at_once")
def test_the_bar_of_a_stage_that_is_undone_is_closed(X, monkeypatch, capfd):
    judge(monkeypatch, 0.9, 0.5)
    cheap(schedule=OPTIONAL).fit(X, observers=[slowly])
    assert "stage 1 (h1)" in capfd.readouterr().err
    assert activities() == []


@pytest.mark.usefixtures("watched", "at_once")
def test_free_coordinates_have_a_bar_inside_of_their_stage(X, capfd):
    def slow(event: object) -> None:
        time.sleep(0.02 if isinstance(event, CoordinatesMoved) else 0)

    cheap(schedule="x: gaussian(5) -> kl * 2 from pca free 20 follow 2 against bank").fit(X, observers=[slow])
    assert re.search(r"stage 0 \(x\): coordinates \|", capfd.readouterr().err)


def test_a_log_gets_lines_when_verbose(X, monkeypatch, capfd):
    monkeypatch.setattr("dre.progress.display.LINES", 0.2)
    cheap(verbose=True, schedule="x: gaussian(5) -> kl * 12").fit(X, observers=[slowly])
    shown = capfd.readouterr().err
    assert re.search(
        r"\ndre: stage 0 \(x\), epoch \d+ of 12, loss [\d.]+, [\d,]+ rows/s, 00:0\d elapsed, about 00:0\d left\n", shown
    )
    assert "\r" not in shown


def test_activities_end_with_a_fit_that_fails(X):
    def fail(event: object) -> None:
        if isinstance(event, StepEnded):
            raise KeyError

    with pytest.raises(KeyError):
        cheap().fit(X, observers=[fail])
    assert activities() == []


def test_a_stage_that_ends_without_a_step_needs_no_bar():
    """As after a run was resumed behind its last epoch."""
    Progress()(StageEnded(None, {}))  # type: ignore[arg-type]
    Progress()(StageUndone(None, (1.0, 0.0)))  # type: ignore[arg-type]
    Progress()(StageSkipped(None, (1.0, 2.0)))  # type: ignore[arg-type]


def test_verbose_says_that_an_optional_stage_is_skipped(X, monkeypatch, capfd):
    monkeypatch.setattr("dre.training.loop.skip", lambda run, target: StageSkipped(run, (1.25, 2.5)))
    cheap(verbose=True, schedule=OPTIONAL).fit(X)
    last = capfd.readouterr().err.splitlines()[-1]
    assert last == "stage 1 skipped, and the fit ended: the map's loss is 1.25 on the neighborhoods before, 2.5 on its own"


def test_verbose_says_why_the_loss_goes_through_the_network_from_the_start(X, capfd):
    why = "The loss goes through the network from the start, inside each batch"
    cheap(verbose=True).fit(X)
    assert f"{why}: so says the schedule." in capfd.readouterr().err
    cheap(verbose=True, schedule=None, encoder=nn.Linear(6, 2), recipe="fast", recursions=0, perplexity=5).fit(X)
    assert f"{why}: only mlp, patch-mlp and a frozen backbone follow coordinates quickly, not Linear." in capfd.readouterr().err
    cheap(verbose=True, schedule="x: gaussian(5) -> kl * 1 against bank").fit(X)
    assert why not in capfd.readouterr().err
    cheap(schedule="x: gaussian(5) -> kl * 1").fit(X)
    assert capfd.readouterr().err == ""
