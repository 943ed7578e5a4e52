"""The page that follows a training: its files, and what a browser shows while they change."""

from __future__ import annotations

import base64
import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import Seen

from dre import DRE
from dre.atomic import WriteError
from dre.explore import Watch, build_explorer, write_page
from dre.explore.page import UnfinishedTraining
from dre.explore.training_page import MARK, TrainingPage, encode_frame
from dre.observe.checkpoints import StoppedBySignal
from dre.training.events import EpochEnded, StepEnded

SCHEDULE = "x: gaussian(5) -> kl * 4 from pca free 30 follow 2 against bank; h1: gaussian(5) -> kl * 3"
LABELS = np.array(["a", "</script><b>"])[np.arange(60) % 2]
Array = np.ndarray[Any, Any]


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture(scope="module")
def X() -> Array:
    return np.random.default_rng(0).normal(size=(60, 6))


def message_of(path: Path) -> dict[str, Any]:
    """The present message of the script beside a page."""
    text = path.with_name(f"{path.stem}.training.js").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text[text.index("({") + 1 : text.rindex(")")])
    return found


def about_of(path: Path) -> dict[str, Any]:
    """What a page says about itself."""
    text = path.read_text(encoding="utf-8").partition('id="about">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(text)
    return found


def decoded(frame: dict[str, Any]) -> Array:
    values = np.frombuffer(base64.b64decode(frame["values"]), "<u2").reshape(len(frame["low"]), -1).T / 65535
    return np.asarray(frame["low"]) + values * (np.asarray(frame["high"]) - frame["low"])


class Reader:
    """Notes what a page would show during a fit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pages: list[str] = []
        self.messages: list[dict[str, Any]] = []

    def __call__(self, event: object) -> None:
        if isinstance(event, (EpochEnded, StepEnded)):
            time.sleep(0.02)
            self.pages.append(self.path.read_text(encoding="utf-8"))
            self.messages.append(message_of(self.path))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new frame as often as there is one."""
    monkeypatch.setattr("dre.explore.training_page.BEAT", 0.005)
    monkeypatch.setattr("dre.explore.watch.EVERY", 0.0)
    monkeypatch.setattr("dre.explore.watch.SHARE", 1e9)


@pytest.mark.usefixtures("quick")
def test_a_fit_writes_frames_and_ends_in_one_page(X: Array, tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    reader = Reader(path)
    watch = Watch(path, labels=LABELS, label_name="kind")
    watch._pace = type(watch._pace)(0.0, 1e9)
    model = cheap().fit(X, observers=[watch, reader])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["map.html"]
    assert len(set(reader.pages)) == 1  # the page itself stays while the script changes
    assert "strict-dynamic" in reader.pages[0]
    assert '"follow": "map.training.js"' in reader.pages[0]
    numbers = [each["frame"]["number"] for each in reader.messages]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 3
    last = reader.messages[-1]
    assert last["stage"].startswith("stage 1 (h1)")
    assert [title for title, _ in last["losses"]] == ["stage 0, coordinates", "stage 0, bank", "stage 1, batch"]
    final = path.read_text(encoding="utf-8")
    assert '"follow": null' in final
    assert "strict-dynamic" not in final
    assert "trustworthiness" in final
    assert "<b>" not in final.partition('id="about"')[2].partition("</script>")[0]
    assert len(model.stages_) == final.count('"title": "stage ')


@pytest.mark.usefixtures("quick")
def test_a_frame_holds_the_coordinates(X: Array, tmp_path: Path) -> None:
    frames = []

    def note(event: object) -> None:
        if isinstance(event, EpochEnded) and event.run.stage == 1:
            frames.append(event.run.learner.embedding().numpy())

    path = tmp_path / "map.html"
    reader = Reader(path)
    watch = Watch(path, keep_open=True)
    model = cheap().fit(X, observers=[watch, reader, note])
    time.sleep(0.1)
    message = message_of(path)
    watch.finish()
    assert message["state"] == "finishing"
    span = np.ptp(model.embedding_, axis=0).max()
    assert np.abs(decoded(message["frame"]) - model.embedding_).max() < 1e-4 * span
    assert np.array_equal(frames[-1], model.embedding_)


def test_watching_does_not_change_a_bit(X: Array, tmp_path: Path) -> None:
    alone = cheap().fit(X)
    watched = cheap().fit(X, observers=[Watch(tmp_path / "map.html")])
    assert np.array_equal(alone.embedding_, watched.embedding_)


@pytest.mark.parametrize(
    ("problem", "state", "reason"),
    [
        (KeyError("lost"), "failed", "KeyError: 'lost'"),
        (KeyboardInterrupt(), "stopped by Ctrl-C", "stopped by Ctrl-C"),
        (StoppedBySignal(signal.SIGTERM), "stopped by SIGTERM", "stopped by SIGTERM"),
    ],
)
def test_after_a_failure_the_page_says_so_and_the_script_is_gone(
    problem: BaseException, state: str, reason: str, X: Array, tmp_path: Path
) -> None:
    def fail(event: object) -> None:
        if isinstance(event, StepEnded) and event.run.steps == 5:
            raise problem

    with pytest.raises(type(problem)):
        cheap().fit(X, observers=[Watch(tmp_path / "map.html"), fail])
    assert [each.name for each in tmp_path.iterdir()] == ["map.html"]
    about = about_of(tmp_path / "map.html")
    assert about["follow"] is None
    told = about["unfinished"]
    assert (told["state"], told["sentence"]) == (state, f"The training ended before the map was done: {reason}")
    assert told["stage"].startswith("stage 0 (x), ")
    assert told["losses"][0][0] == "stage 0, coordinates"


def test_a_page_that_can_not_be_made_is_a_warning_and_the_fit_stays(
    X: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise ImportError("thumbnails need Pillow")

    monkeypatch.setattr("dre.explore.watch.build_explorer", fail)
    with pytest.warns(UserWarning, match=r"map\.html: the page could not be made: thumbnails need Pillow\. The fit is done"):
        model = cheap().fit(X, observers=[Watch(tmp_path / "map.html")])
    assert model.embedding_.shape == (60, 2)
    assert "The page could not be made: thumbnails need Pillow" in (tmp_path / "map.html").read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["map.html"]


@pytest.mark.parametrize("keep_open", [False, True])
def test_an_observer_serves_several_fits(keep_open: bool, X: Array, tmp_path: Path) -> None:
    watch = Watch(tmp_path / "map.html", force=True, keep_open=keep_open)
    for n in (60, 40):
        cheap().fit(X[:n], observers=[watch])
    assert [len(Y) for _, Y in watch._stages] == [40, 40]
    watch.finish()
    assert '"n": 40' in (tmp_path / "map.html").read_text(encoding="utf-8")


def test_few_points_are_shown_of_many_rows(X: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.explore.watch.MOST_ROWS", 25)
    cheap().fit(X, observers=[Watch(tmp_path / "map.html", labels=LABELS, names=[f"row {i}" for i in range(60)])])
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert '"n": 25' in page
    assert "The page has 25 of 60 rows." in page


@pytest.mark.parametrize("metric", ["manhattan", "cosine"])
def test_the_last_page_follows_the_metric(metric: str, X: Array, tmp_path: Path) -> None:
    cheap(metric=metric).fit(X, observers=[Watch(tmp_path / "map.html")])
    assert "trustworthiness" in (tmp_path / "map.html").read_text(encoding="utf-8")


def test_files_of_others_are_not_overwritten(X: Array, tmp_path: Path) -> None:
    (tmp_path / "map.html").write_text("mine")
    with pytest.raises(FileExistsError, match="force=True"):
        cheap().fit(X, observers=[Watch(tmp_path / "map.html")])
    (tmp_path / "map.training.js").write_text("mine")
    with pytest.raises(FileExistsError, match="move it, or choose another page"):
        cheap().fit(X, observers=[Watch(tmp_path / "map.html", force=True)])
    assert (tmp_path / "map.training.js").read_text() == "mine"
    (tmp_path / "map.training.js").write_text(f"{MARK}\n")  # of a fit that was killed
    cheap().fit(X, observers=[Watch(tmp_path / "map.html", force=True)])
    assert [each.name for each in tmp_path.iterdir()] == ["map.html"]


def test_wrong_names_folders_and_maps_are_refused(X: Array, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"map\.csv: a page is an \.html file"):
        Watch(tmp_path / "map.csv")
    with pytest.raises(WriteError, match="choose another folder"):
        cheap().fit(X, observers=[Watch(tmp_path / "nowhere" / "map.html")])
    with pytest.raises(ValueError, match="two or three components"):
        cheap(n_components=1).fit(X, observers=[Watch(tmp_path / "map.html")])


@pytest.mark.parametrize("components", [2, 3])
def test_frames_keep_their_coordinates(components: int) -> None:
    Y = np.random.default_rng(0).normal(size=(1000, components)) * 100 + 1e4
    frame = encode_frame(Y.astype(np.float32), 7)
    assert np.abs(decoded(frame) - Y.astype(np.float32)).max() < np.ptp(Y, axis=0).max() / 65535
    assert encode_frame(np.ones((5, 2)), 0)["side"] == 1.0


@pytest.mark.slow  # it waits for the seconds of the page
@pytest.mark.parametrize("is_phone", [False, True])
def test_in_a_browser_the_points_move_and_the_page_of_the_map_follows(browser: Any, tmp_path: Path, is_phone: bool) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) * [5, 1] + 40
    path = tmp_path / "my map & more.html"
    opened = TrainingPage(path)
    opened.tell(stage="stage 0 (x), epoch 3 of 9", losses=[["stage 0, bank", [3.0, 2.0, 1.5]]])
    opened.show(encode_frame(first, 0))
    opened.open(build_explorer([("training", first)], title="cells", trust=False, clusters=False))
    size = {"width": 390, "height": 844} if is_phone else {"width": 1200, "height": 800}
    context = browser.new_context(viewport=size, has_touch=is_phone, is_mobile=is_phone)
    seen = Seen(context.new_page()).open(path)
    page = seen.page
    page.locator("#training-badge", has_text="epoch 3 of 9").wait_for()
    assert page.locator("#losses figure").count() == 1
    assert page.title() == "● cells"
    page.wait_for_selector("#points[data-frame='0']")
    page.wait_for_timeout(1000)
    before = seen.screen(0)
    opened.show(encode_frame(second, 1))
    page.wait_for_selector("#points[data-frame='1']")
    passed = {tuple(seen.screen(0)) for _ in range(20) if not page.wait_for_timeout(40)}
    assert len(passed) > 3  # it moves, and does not jump
    page.wait_for_timeout(3000)
    assert tuple(seen.screen(0)) != tuple(before)
    expected = second[:, 0].argmax()
    assert max(range(300), key=lambda i: seen.screen(i)[0]) == expected
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert seen.said == []
    opened.finish(build_explorer([("one", first), ("two", second)], title="cells", trust=False, clusters=False))
    page.locator("#training-badge").wait_for(state="detached", timeout=20_000)
    page.wait_for_selector("html[data-complete]")
    assert page.title() == "cells"
    assert page.locator("#stages").is_visible()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    asked = len(seen.asked)
    page.wait_for_timeout(1500)
    assert len(seen.asked) == asked  # it follows nothing any more
    context.close()


@pytest.mark.slow
def test_in_a_browser_a_page_without_its_script_says_so(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    opened = TrainingPage(path)
    opened.open(build_explorer([("training", np.eye(30)[:, :2])], title="cells"))
    opened._end()
    context = browser.new_context()
    opened.script.unlink()
    seen = Seen(context.new_page()).open(path)
    seen.page.locator("#training-badge", has_text="the script beside this page is missing").wait_for()
    write_page(path, build_explorer([("map", np.eye(30)[:, :2])], title="cells"), force=True)
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_in_a_browser_an_unfinished_map_says_why(browser: Any, tmp_path: Path, width: int) -> None:
    path = tmp_path / "map.html"
    reason = UnfinishedTraining(
        "stopped by Ctrl-C", "The reason.", "stage 0 (x), epoch 3 of 9", [["stage 0, bank", [2.0, 1.0]]]
    )
    made = build_explorer([("map", np.eye(30)[:, :2])], title="cells")
    write_page(path, replace(made, unfinished=reason))
    context = browser.new_context(viewport={"width": width, "height": 800})
    seen = Seen(context.new_page()).open(path)
    badge = seen.page.locator("#training-badge", has_text="stopped by Ctrl-C · stage 0 (x), epoch 3 of 9").bounding_box()
    assert max(seen.screen(i)[1] for i in range(30)) < badge["y"]  # no point is below it
    sentence = seen.page.locator("#training-stage", has_text="The reason.").bounding_box()
    assert sentence["y"] + sentence["height"] < 800
    assert seen.page.locator("#losses figure").count() == 1
    assert seen.said == []
    context.close()
