"""Two maps beside each other, and a map of three components that turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import Seen
from made_maps import Fingers, classes_of, drag, groups, pixels, rest, shown, write_map

pytestmark = pytest.mark.slow  # seconds per test

N = 240
QUARTER = np.pi / 2 / 0.008  # pixels of a drag that turn the map by 90 degrees


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    embedding, codes = groups(N, 3)
    other = embedding.copy()
    other[:, 0] *= 0.5
    maps = {"ours": embedding, "theirs": other}
    return write_map(tmp_path_factory.mktemp("two") / "two.html", maps, [classes_of(codes)], color="class")


@pytest.fixture(scope="module")
def solid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    embedding, codes = groups(N, 3, components=3)
    return write_map(tmp_path_factory.mktemp("solid") / "solid.html", {"map": embedding}, [classes_of(codes)], color="class")


@pytest.fixture
def beside(browser: Any, two: Path) -> Iterator[Seen]:
    with shown(browser, two, "#beside=1,0") as seen:
        rest(seen)
        yield seen


def spots(seen: Seen, map_number: int = 0) -> np.ndarray:
    return np.array(seen.page.evaluate(f"Array.from({{length: {N}}}, (_, i) => explorer.screen(i, {map_number}))"))


def boxes(seen: Seen) -> list[dict[str, float]]:
    return [each.bounding_box() for each in seen.page.locator(".map").all()]


def test_two_maps_stand_beside_each_other_with_captions(beside: Seen) -> None:
    first, second = boxes(beside)
    assert first["width"] == pytest.approx(second["width"], abs=2)
    assert second["x"] == pytest.approx(first["x"] + first["width"], abs=2)
    assert beside.texts(".caption") == ["ours", "theirs"]
    for number, box in enumerate((first, second)):
        places = spots(beside, number)
        assert ((places > [box["x"], box["y"]]) & (places < [box["x"] + box["width"], box["y"] + box["height"]])).all()


def test_on_a_phone_one_map_stands_above_the_other(browser: Any, two: Path) -> None:
    with shown(browser, two, "#beside=1,0", phone=True) as seen:
        rest(seen)
        first, second = boxes(seen)
        assert second["y"] == pytest.approx(first["y"] + first["height"], abs=2)
        assert first["width"] == second["width"] == 390


@pytest.mark.parametrize("phone", [False, True])
def test_a_page_of_two_maps_opens_with_both_unless_the_address_says_otherwise(browser: Any, two: Path, phone: bool) -> None:
    with shown(browser, two, phone=phone) as seen:
        assert seen.texts(".caption") == ["ours", "theirs"]
        assert seen.page.locator("#beside").input_value() == "1,0"
        seen.page.wait_for_timeout(600)
        assert seen.page.evaluate("location.hash") == ""
        seen.page.locator("#beside").select_option("")
        seen.page.wait_for_function("() => location.hash === '#beside=nothing'")
    with shown(browser, two, "#beside=nothing", phone=phone) as again:
        assert again.page.locator(".map").count() == 1
        assert again.page.locator("#beside").input_value() == ""


@pytest.mark.parametrize(("wide", "tall"), [(1280, 800), (1100, 800), (800, 700), (390, 844)])
def test_the_tools_stay_on_the_first_of_two_maps(browser: Any, solid: Path, wide: int, tall: int) -> None:
    with shown(browser, solid, "#beside=0,0", phone=wide < 720) as seen:
        seen.page.set_viewport_size({"width": wide, "height": tall})
        rest(seen)
        (first, _), tools = boxes(seen), seen.page.locator("#tools").bounding_box()
        last = seen.page.locator("#density").bounding_box()
        assert last["x"] + last["width"] <= first["x"] + first["width"]
        assert last["x"] + last["width"] <= tools["x"] + tools["width"] + 1
        if wide < 720:
            assert tools["y"] + tools["height"] <= first["y"]  # the maps are low


def test_each_map_has_its_own_view(beside: Seen) -> None:
    before = [spots(beside, number) for number in (0, 1)]
    drag(beside, (700, 400), (50, 30))
    assert spots(beside, 0) == pytest.approx(before[0])
    assert spots(beside, 1) == pytest.approx(before[1] + [50, 30], abs=0.5)
    beside.page.mouse.move(200, 400)
    beside.page.mouse.wheel(0, -300)
    assert np.ptp(spots(beside, 0), axis=0)[0] > 1.2 * np.ptp(before[0], axis=0)[0]
    assert np.ptp(spots(beside, 1), axis=0) == pytest.approx(np.ptp(before[1], axis=0), rel=0.01)


def test_a_selection_in_one_map_is_one_in_both(beside: Seen) -> None:
    rows = np.arange(0, N, 3)
    places = spots(beside, 1)[rows]
    (left, top), (right, bottom) = places.min(axis=0) - 8, places.max(axis=0) + 8
    beside.page.keyboard.down("Shift")
    beside.page.mouse.move(left, top)
    beside.page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom)):
        beside.page.mouse.move(x, y, steps=3)
    beside.page.mouse.up()
    beside.page.keyboard.up("Shift")
    assert beside.page.evaluate("explorer.selected()") == rows.tolist()
    rest(beside)
    first = pixels(beside, "#first-map .points")
    x, y = (int(each) for each in spots(beside, 0)[1])
    assert np.ptp(first[y, x, :3]) < 25  # of another class: dimmed


def test_a_point_that_is_hovered_or_pinned_has_a_ring_on_both_maps(beside: Seen) -> None:
    def around(number: int) -> int:
        """Pixels drawn over the points near row 0, of a map without names."""
        ink = pixels(beside, f".map:nth-child({number + 1}) .overlay")
        x, y = spots(beside, number)[0] - [boxes(beside)[number]["x"], boxes(beside)[number]["y"]]
        return int((ink[int(y) - 14 : int(y) + 14, int(x) - 14 : int(x) + 14, 3] > 100).sum())

    beside.page.locator("#show-names").uncheck()
    beside.page.mouse.move(5, 790)
    rest(beside)
    assert [around(0), around(1)] == [0, 0]
    beside.page.mouse.move(*spots(beside, 1)[0].tolist())
    beside.settled()
    hovered = [around(0), around(1)]
    assert min(hovered) > 40
    beside.page.mouse.down()
    beside.page.mouse.up()
    beside.page.mouse.move(5, 790)
    rest(beside)
    assert beside.page.evaluate("explorer.pinned()") == 0
    assert min(around(0), around(1)) > 40


def test_the_second_map_can_be_removed(beside: Seen) -> None:
    wide = boxes(beside)[0]["width"]
    beside.page.locator("#beside").select_option("")
    rest(beside)
    [only] = boxes(beside)
    assert only["width"] > 1.9 * wide
    assert beside.page.locator(".caption").is_hidden()
    assert beside.said == []


def test_another_map_beside_is_shown_whole(beside: Seen) -> None:
    drag(beside, (700, 400), (250, 30))
    beside.page.locator("#beside").select_option("0,0")
    rest(beside)
    assert beside.texts(".caption") == ["ours", "ours"]
    first, second = boxes(beside)
    assert spots(beside, 1) == pytest.approx(np.add(spots(beside, 0), [second["x"] - first["x"], 0]), abs=2)


def test_two_components_do_not_turn(browser: Any, two: Path) -> None:
    with shown(browser, two) as seen:
        assert seen.page.locator("#turn").is_hidden()


def test_a_drag_turns_a_map_of_three_components(browser: Any, solid: Path) -> None:
    with shown(browser, solid) as seen:
        assert seen.page.locator("#turn").get_attribute("aria-pressed") == "true"
        first = spots(seen)
        drag(seen, (200, 500), (QUARTER, 0))
        side = spots(seen)
        assert side[:, 1] == pytest.approx(first[:, 1], abs=1)  # about the vertical axis
        assert np.abs(side[:, 0] - first[:, 0]).max() > 50
        drag(seen, (200, 500), (QUARTER, 0))
        mirrored = spots(seen)
        middle = (mirrored[:, 0] + first[:, 0]) / 2
        assert np.ptp(middle) < 3  # 180 degrees mirror the horizontal axis
        drag(seen, (200, 500), (0, 60))
        assert np.abs(spots(seen)[:, 1] - mirrored[:, 1]).max() > 20
        seen.page.locator("#reset").click()
        assert spots(seen) == pytest.approx(first, abs=1)


def test_arrow_keys_turn_with_the_turn_tool_and_pan_with_the_other(browser: Any, solid: Path) -> None:
    with shown(browser, solid) as seen:
        before = spots(seen)
        seen.page.keyboard.press("ArrowRight")
        turned = spots(seen)
        assert np.ptp((turned - before)[:, 0]) > 20
        assert turned[:, 1] == pytest.approx(before[:, 1], abs=1)
        seen.page.keyboard.press("p")
        seen.page.keyboard.press("ArrowRight")
        assert np.ptp(spots(seen) - turned, axis=0) == pytest.approx([0, 0], abs=0.5)
        assert np.abs(spots(seen) - turned).max() > 20


def test_the_right_button_pans_while_the_left_turns_and_the_other_way_round(browser: Any, solid: Path) -> None:
    with shown(browser, solid) as seen:
        before = spots(seen)
        drag(seen, (200, 500), (40, 25), button="right")
        assert spots(seen) == pytest.approx(np.add(before, [40, 25]), abs=0.5)
        seen.page.locator("#pan").click()
        before = spots(seen)
        drag(seen, (200, 500), (30, 20))
        assert spots(seen) == pytest.approx(np.add(before, [30, 20]), abs=0.5)
        drag(seen, (200, 500), (100, 0), button="right")
        assert np.ptp((spots(seen) - before)[:, 0]) > 20


def test_points_that_were_turned_can_be_pointed_at_and_near_ones_lie_on_top(browser: Any, tmp_path: Path) -> None:
    """Two stacks of points along the third axis, whose first and last points have classes of their own."""
    depth = np.linspace(-1, 1, 100)
    stack = np.column_stack([np.zeros(100), np.zeros(100), depth])
    embedding = np.vstack([stack, np.add(stack, [4, 0, 0])])
    codes = np.where(np.tile(depth, 2) > 0.5, 0, 1)
    path = write_map(tmp_path / "stacks.html", {"map": embedding}, [classes_of(codes)], color="class")
    with shown(browser, path) as seen:
        seen.page.locator("#show-names").uncheck()
        rest(seen)

        def front() -> np.ndarray:
            x, y = (round(each) for each in seen.screen(50))
            return pixels(seen)[y, x, :3]

        near = front()
        drag(seen, (200, 600), (2 * QUARTER, 0))
        rest(seen)
        assert np.abs(front() - near).sum() > 100  # the other end is in front now
        drag(seen, (200, 600), (QUARTER / 2, 0))
        rest(seen)
        seen.page.mouse.move(*seen.screen(120))
        assert seen.page.locator("#card b").first.inner_text() == "row 120"


def test_a_finger_turns_and_two_fingers_zoom(browser: Any, solid: Path) -> None:
    with shown(browser, solid, phone=True) as seen:
        fingers = Fingers(seen)
        before = spots(seen)
        fingers.down((100, 250))
        fingers.move((160, 250))
        fingers.move((220, 250))
        fingers.up()
        turned = spots(seen)
        assert np.ptp((turned - before)[:, 0]) > 20
        fingers.down((150, 250), (250, 250))
        fingers.move((100, 250), (300, 250))
        fingers.up()
        assert np.ptp(spots(seen), axis=0) == pytest.approx(2 * np.ptp(turned, axis=0), rel=0.02)
