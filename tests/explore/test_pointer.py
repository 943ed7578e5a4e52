"""Mouse, touch and wheel on the map; the map stays on the screen and fits it again after a resize."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import Seen
from made_maps import Fingers, classes_of, drag, groups, rest, shown, write_map

pytestmark = pytest.mark.slow  # seconds per test


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    embedding, codes = groups(240, 3)
    return write_map(tmp_path_factory.mktemp("made") / "made.html", {"map": embedding}, [classes_of(codes)], color="class")


def spots(seen: Seen, rows: range = range(0, 240, 7)) -> np.ndarray:
    return np.array([seen.screen(row) for row in rows])


def lone(seen: Seen) -> int:
    """A row whose point stands apart from all others."""
    places = spots(seen, range(240))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) + np.eye(240) * 1e6
    return int(apart.min(axis=1).argmax())


def pinned(seen: Seen) -> int:
    return int(seen.page.evaluate("explorer.pinned()"))


def area(seen: Seen) -> np.ndarray:
    return np.array(seen.page.evaluate("[points.clientWidth, points.clientHeight]"))


def test_hover_shows_a_click_pins_and_a_click_beside_it_unpins(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        row = lone(seen)
        seen.page.mouse.move(*np.add(seen.screen(row), 3))
        assert seen.page.locator("#card").is_visible()
        assert pinned(seen) == -1
        seen.page.mouse.down()
        seen.page.mouse.up()
        assert pinned(seen) == row
        seen.page.mouse.click(*(area(seen) - 5).tolist())
        assert pinned(seen) == -1


def test_a_drag_neither_pins_nor_unpins(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        row = lone(seen)
        drag(seen, seen.screen(row), (40, 20))
        assert pinned(seen) == -1
        seen.page.mouse.click(*seen.screen(row))
        drag(seen, (30, 700), (40, 20))
        assert pinned(seen) == row


def test_a_double_click_zooms_in_where_it_is(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        before = np.array(seen.screen(0))
        far = np.linalg.norm(spots(seen) - before, axis=1)
        seen.page.mouse.dblclick(*before)
        assert np.linalg.norm(spots(seen) - seen.screen(0), axis=1) == pytest.approx(2 * far, abs=0.1)
        assert np.abs(np.array(seen.screen(0)) - before).max() < 1.5


def test_panning_can_not_lose_the_map(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        for by in ((900, 0), (900, 0), (0, 700), (0, 700), (900, 700)):
            drag(seen, (20, 60) if min(by) >= 0 else (800, 700), by)
        places = spots(seen, range(240))
        low, high = places.min(axis=0), places.max(axis=0)
        assert (low < area(seen)).all()
        assert (high > 0).all()
        for _ in range(30):
            seen.page.mouse.wheel(0, 400)
        assert ((spots(seen) > 0) & (spots(seen) < area(seen))).all()
        seen.page.locator("#reset").click()
        assert ((spots(seen) > 0) & (spots(seen) < area(seen))).all()


def test_the_whole_map_stays_whole_after_a_resize(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        for width, height in ((900, 500), (1500, 1000), (420, 800)):
            seen.page.set_viewport_size({"width": width, "height": height})
            rest(seen)
            places = spots(seen, range(240))
            assert ((places > 0) & (places < area(seen))).all()
            assert (np.ptp(places, axis=0) / area(seen)).max() > 0.7


def test_a_part_keeps_its_center_and_relative_zoom_after_a_resize(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        rest(seen)
        home = np.ptp(spots(seen), axis=0)[0]
        seen.page.mouse.dblclick(300, 300)
        seen.page.mouse.dblclick(300, 300)
        middle = spots(seen) - area(seen) / 2
        seen.page.set_viewport_size({"width": 1000, "height": 600})
        rest(seen)
        after = spots(seen) - area(seen) / 2
        factor = np.ptp(after, axis=0)[0] / np.ptp(middle, axis=0)[0]
        assert after == pytest.approx(middle * factor, abs=0.5)
        seen.page.locator("#reset").click()
        assert factor == pytest.approx(np.ptp(spots(seen), axis=0)[0] / home, rel=0.01)


def test_one_finger_pans_and_two_zoom_and_pan(browser: Any, made: Path) -> None:
    with shown(browser, made, phone=True) as seen:
        fingers = Fingers(seen)
        before = spots(seen)
        fingers.down((150, 250))
        for step in (10, 20, 30, 40):
            fingers.move((150 + step, 250 + step / 2))
        fingers.up()
        assert spots(seen) == pytest.approx(np.add(before, [40, 20]), abs=0.5)
        assert pinned(seen) == -1
        before = spots(seen)
        fingers.down((150, 250), (250, 250))
        for step in (10, 20, 30, 40, 50):
            fingers.move((150 - step, 250 + step), (250 + step, 250 + step))
        fingers.up()
        after = spots(seen)
        assert np.ptp(after, axis=0) == pytest.approx(2 * np.ptp(before, axis=0), rel=0.02)
        assert after == pytest.approx((before - [200, 250]) * 2 + [200, 300], abs=2)
        assert pinned(seen) == -1


def test_a_tap_near_a_point_pins_it(browser: Any, made: Path) -> None:
    with shown(browser, made, phone=True) as seen:
        row = lone(seen)
        seen.page.touchscreen.tap(*np.add(seen.screen(row), (9, 9)))  # thumbs are less exact than a mouse
        assert pinned(seen) == row


def test_a_finger_draws_a_lasso(browser: Any, made: Path) -> None:
    with shown(browser, made, phone=True) as seen:
        fingers = Fingers(seen)
        seen.page.locator("#lasso").tap()
        rows = range(0, 240, 3)  # a class
        places = spots(seen, rows)
        (left, top), (right, bottom) = places.min(axis=0) - 6, places.max(axis=0) + 6
        path = [(left, top), (right, top), (right, bottom), (left, bottom)]
        before = spots(seen)
        fingers.down(path[0])
        for corner in path[1:]:
            fingers.move(corner)
        fingers.up()
        assert seen.page.evaluate("explorer.selected()") == list(rows)
        assert spots(seen) == pytest.approx(before)


def test_a_pinch_ends_a_lasso(browser: Any, made: Path) -> None:
    with shown(browser, made, phone=True) as seen:
        fingers = Fingers(seen)
        seen.page.locator("#lasso").tap()
        before = spots(seen)
        fingers.down((100, 200))
        fingers.move((120, 240))
        fingers.down((120, 240), (250, 240))
        fingers.move((60, 240), (310, 240))
        fingers.up()
        assert seen.page.evaluate("explorer.selected()") == []
        assert np.ptp(spots(seen), axis=0)[0] > 1.5 * np.ptp(before, axis=0)[0]
