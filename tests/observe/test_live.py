"""The map in a notebook: pictures that replace each other. A stand-in takes the place of IPython's display."""

from __future__ import annotations

import base64
import io
import re
import sys
import time
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dre import DRE
from dre.observe.live import Live, open_display
from dre.observe.pace import Pace
from dre.training.events import StepEnded

SCHEDULE = "x: gaussian(5) -> kl * 6 from pca free 60 follow 3 against bank; h1: gaussian(5) -> kl * 4"
Array = np.ndarray[Any, Any]


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture(scope="module")
def X() -> Array:
    return np.random.default_rng(0).normal(size=(60, 6))


class Shown:
    """What IPython returns for ``display(..., display_id=True)``."""

    def __init__(self) -> None:
        self.bundles: list[dict[str, str]] = []

    def update(self, bundle: dict[str, str], raw: bool = False) -> None:
        assert raw
        self.bundles.append(bundle)

    @property
    def titles(self) -> list[str]:
        return [each["text/plain"] for each in self.bundles]

    def pictures(self) -> list[Array]:
        found = [re.search(r"data:image/png;base64,([^\"]+)", each["text/html"]) for each in self.bundles]
        return [np.asarray(Image.open(io.BytesIO(base64.b64decode(each[1])))) for each in found if each]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """As if the program ran in a kernel."""
    shown, module, displays = Shown(), ModuleType("IPython"), ModuleType("IPython.display")
    module.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    displays.display = lambda bundle, raw, display_id: shown  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    return shown


def test_pictures_follow_free_coordinates_and_epochs_and_the_last_one_is_the_map(
    X: Array, notebook: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dre.observe.live.SHARE", 1e9)
    cheap().fit(X, observers=[Live(every=0.0), lambda event: time.sleep(0.001)])
    assert re.fullmatch(r"stage 0 \(x\), free step 1", notebook.titles[0])
    assert any(re.fullmatch(r"stage 0 \(x\), epoch \d of 9 · loss [\d.]+", each) for each in notebook.titles)
    assert "stage 1 (h1), epoch 1 of 4" in notebook.titles  # the loss of another stage says nothing about it
    assert re.fullmatch(r"done · \d+ steps · loss [\d.]+ · [\d.]+ s", notebook.titles[-1])
    pictures = notebook.pictures()
    assert len(pictures) == len(notebook.titles) > 2
    assert not np.array_equal(pictures[0], pictures[-1])
    assert pictures[-1].shape[2] == 4  # transparent, for dark notebooks
    assert pictures[-1][..., 3].max() > 128


def test_live_of_fit_colors_by_y_and_changes_no_bit(X: Array, notebook: Shown) -> None:
    y = np.array(["left", "<b>right"])[(X[:, 0] > 0).astype(int)]
    alone = cheap().fit(X, y).embedding_
    assert notebook.bundles == []
    assert np.array_equal(alone, cheap().fit(X, y, live=True).embedding_)
    html = notebook.bundles[-1]["text/html"]
    assert "left" in html
    assert "&lt;b&gt;right" in html
    assert "<b>" not in html
    colors = {tuple(color) for color in notebook.pictures()[-1].reshape(-1, 4)[:, :3].tolist()}
    assert len(colors) > 2


def test_slow_pictures_come_less_often() -> None:
    pace, worked, began = Pace(0.0, 0.1), 0.0, time.monotonic()
    while time.monotonic() < began + 0.5:
        if pace.is_due():
            with pace.working():
                time.sleep(0.01)
            worked += 1
        time.sleep(0.001)
    assert 2 <= worked <= 6  # at most every 0.1 s


def test_a_first_slow_picture_does_not_stop_those_that_follow() -> None:
    pace = Pace(0.0, 0.5)
    with pace.working():
        time.sleep(0.2)
    assert not pace.is_due()
    with pace.working():
        pass
    time.sleep(0.05)
    assert pace.is_due()


def test_the_second_picture_comes_soon_after_a_first_slow_one() -> None:
    pace = Pace(0.0, 0.01)
    for _ in range(2):
        assert pace.is_due()
        with pace.working():
            time.sleep(0.02)
        time.sleep(0.25)
    assert not pace.is_due()  # from then on the share counts: every two seconds


def test_pictures_that_become_slower_come_less_often() -> None:
    pace = Pace(0.0, 0.5)
    for seconds in (0.0, 0.2, 0.2):
        with pace.working():
            time.sleep(seconds)
    time.sleep(0.1)
    assert not pace.is_due()


def test_a_y_of_several_values_for_a_row_colors_nothing(X: Array, notebook: Shown) -> None:
    with pytest.warns(UserWarning, match=r"y of shape \(60, 3\) has several values"):
        cheap().fit(X, np.eye(3)[np.arange(60) % 3], live=True)
    assert "border-radius" not in notebook.bundles[-1]["text/html"]


@pytest.mark.parametrize("labels", [np.arange(60) % 70 / 7.0, None, [None] * 60])
def test_numbers_no_labels_and_missing_labels_have_no_legend(labels: Any, X: Array, notebook: Shown) -> None:
    cheap().fit(X, observers=[Live(labels=labels)])
    assert "border-radius" not in notebook.bundles[-1]["text/html"]


def test_what_became_of_the_fit_is_in_the_last_title(X: Array, notebook: Shown) -> None:
    def stop(event: object) -> None:
        if isinstance(event, StepEnded) and event.run.steps == 3:
            event.run.end_fit()

    def fail(event: object) -> None:
        if isinstance(event, StepEnded):
            raise KeyError

    cheap().fit(X, observers=[Live(), stop])
    assert notebook.titles[-1].startswith("ended early · 3 steps")
    with pytest.raises(KeyError):
        cheap().fit(X, observers=[Live(), fail])
    assert notebook.titles[-1].startswith("the fit failed")


def test_outside_of_a_notebook_it_warns_at_the_line_of_the_caller_and_the_fit_goes_on(
    X: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with pytest.warns(UserWarning, match="this is none.*--watch.*Watch") as caught:
        cheap().fit(X, live=True)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cheap().fit(X, live=False)


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch, notebook: Shown) -> None:
    assert open_display() is notebook
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())
    assert open_display() is None


def test_a_wrong_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="every=-1"):
        Live(every=-1)


def test_the_problem_of_a_fit_is_the_one_to_see(X: Array, notebook: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="labels has 3 values"):
        cheap().fit(X, observers=[Live(labels=[1, 2, 3])])

    def fail(event: object) -> None:
        if isinstance(event, StepEnded):
            monkeypatch.setattr("dre.observe.live.image_element", None)  # no picture from now on
            raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        cheap().fit(X, observers=[Live(every=0.0), fail])
