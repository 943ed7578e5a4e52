"""The page in a real browser: drawing, hovering, search, lasso, stages, colors and its security policy."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import HOSTILE, N, Seen, known

CODES = np.arange(N) % 3


def test_the_page_loads_without_a_complaint_and_asks_nobody_for_anything(seen: Seen) -> None:
    seen.settled()
    assert seen.said == []
    assert [url for url in seen.asked if not url.startswith("data:")] == [seen.page.url]


def test_its_policy_lets_nothing_in(seen: Seen) -> None:
    """Even a script that got into the page could not run, nor fetch."""
    refused = seen.page.evaluate(
        """async () => {
            const refused = [];
            document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
            const script = document.createElement("script");
            script.textContent = "window.taken = true";
            document.body.append(script);
            await fetch("https://example.com/").catch(() => {});
            await new Promise((done) => setTimeout(done, 50));
            return [window.taken === undefined, ...refused.sort()];
        }"""
    )
    assert refused == [True, "connect-src", "script-src-elem"]


def test_points_are_drawn_in_the_colors_of_their_classes(seen: Seen) -> None:
    seen.settled()
    colors = [
        seen.page.evaluate(
            """([x, y]) => {
                const canvas = document.getElementById("points"), ratio = canvas.width / canvas.clientWidth;
                return [...canvas.getContext("2d").getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data];
            }""",
            seen.screen(row),
        )
        for row in (0, 1, 2)
    ]
    legend = seen.page.evaluate(
        """[...document.querySelectorAll("#legend button")].map((each) =>
            [each.querySelector(".name").textContent, getComputedStyle(each.querySelector(".dot")).backgroundColor])"""
    )
    by_name = {name: [int(part) for part in color[4:-1].split(",")] for name, color in legend}
    for color, name in zip(colors, ("plain", HOSTILE, "other"), strict=True):
        assert np.abs(np.subtract(color[:3], by_name[name])).max() < 60  # others may lie half over it
        assert min(by_name, key=lambda each: np.abs(np.subtract(color[:3], by_name[each])).sum()) == name


def test_hover_shows_the_row_under_the_pointer_and_its_image(seen: Seen) -> None:
    for row in (5, 100, 202):
        seen.page.mouse.move(*seen.screen(row))
        card = seen.page.locator("#card")
        assert card.is_visible()
        assert card.locator("b").inner_text() == f"item {row}"
        assert card.locator(".label").inner_text() == ["plain", HOSTILE, "other"][row % 3]
        values = dict(zip(card.locator("dt").all_inner_texts(), card.locator("dd").all_inner_texts(), strict=True))
        assert float(values["size"]) == pytest.approx(row / (N - 1), abs=1e-3)
    seen.page.mouse.move(3, 3)
    assert card.is_hidden()


def test_a_tap_on_a_touch_screen_shows_the_row(browser: Any, page_file: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    seen = Seen(context.new_page()).open(page_file)
    seen.page.touchscreen.tap(*seen.screen(7))
    seen.settled()
    assert seen.page.locator("#pinned b").inner_text() == "item 7"
    seen.page.touchscreen.tap(350, 110)
    seen.settled()
    assert seen.page.locator("#pinned").is_hidden()
    context.close()


def test_the_image_of_the_card_is_that_of_the_row(seen: Seen) -> None:
    for row, gray in ((0, 40), (1, 140), (2, 240)):
        seen.page.mouse.move(*seen.screen(row))
        box = seen.page.locator("#card .image").bounding_box()
        seen.page.wait_for_timeout(50)
        shot = seen.page.screenshot(clip={**{side: box[side] + 10 for side in ("x", "y")}, "width": 40, "height": 40})
        image = pytest.importorskip("PIL.Image").open(io.BytesIO(shot)).convert("L")
        assert np.asarray(image).mean() == pytest.approx(gray, abs=12)


def test_a_hostile_label_stays_text(seen: Seen) -> None:
    seen.page.mouse.move(*seen.screen(N - 1))
    assert seen.page.locator("#card b").inner_text() == HOSTILE
    assert seen.page.locator("#title").inner_text() == f"Title {HOSTILE}"
    assert seen.page.title() == f"Title {HOSTILE}"
    assert seen.page.locator("main img, aside img").count() == 0
    scripts = seen.page.evaluate("[...document.scripts].filter((each) => !each.type).length")
    assert scripts == 1
    assert seen.said == []


def test_the_slider_moves_the_points_and_tells_the_scores_of_each_stage(seen: Seen) -> None:
    after = np.array([seen.screen(row) for row in range(6)])
    assert seen.page.locator("#stage-title").inner_text() == "after"
    scores = seen.page.locator("#scores").inner_text()
    assert "trustworthiness" in scores
    assert "1-NN, kind" in scores
    seen.page.locator("#slider").focus()
    seen.page.keyboard.press("ArrowLeft")
    seen.page.wait_for_selector('#points[data-stage="0"]')
    before = np.array([seen.screen(row) for row in range(6)])
    assert np.linalg.norm(after - before, axis=1).min() > 50
    assert seen.page.locator("#stage-title").inner_text() == "before"
    seen.page.keyboard.press("ArrowRight")
    seen.page.wait_for_selector('#points[data-stage="1"]')
    assert np.array([seen.screen(row) for row in range(6)]) == pytest.approx(after)


def test_between_two_stages_points_are_on_their_way(seen: Seen) -> None:
    after = np.array(seen.screen(0))
    seen.page.evaluate(
        """() => {
            const slider = document.getElementById("slider");
            slider.value = "0.5";
            slider.dispatchEvent(new Event("input"));
        }"""
    )
    halfway = np.array(seen.screen(0))
    seen.page.evaluate("explorer.goToStage(0)")
    seen.page.wait_for_selector('#points[data-stage="0"]')
    assert halfway == pytest.approx((after + np.array(seen.screen(0))) / 2, abs=0.5)


def drag(seen: Seen, corners: list[tuple[float, float]], *, key: str | None = None) -> None:
    if key:
        seen.page.keyboard.down(key)
    seen.page.mouse.move(*corners[0])
    seen.page.mouse.down()
    for corner in [*corners[1:], corners[0]]:
        seen.page.mouse.move(*corner, steps=4)
    seen.page.mouse.up()
    if key:
        seen.page.keyboard.up(key)


def around(seen: Seen, rows: np.ndarray, margin: float = 12) -> list[tuple[float, float]]:
    spots = np.array([seen.screen(int(row)) for row in rows])
    (left, top), (right, bottom) = spots.min(0) - margin, spots.max(0) + margin
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def test_the_lasso_selects_lists_and_exports(seen: Seen) -> None:
    rows = np.flatnonzero(CODES == 1)
    drag(seen, around(seen, rows), key="Shift")
    assert seen.page.evaluate("explorer.selected()") == rows.tolist()
    assert seen.page.locator("#count").inner_text() == "100 of 300 points"
    assert seen.page.locator(".chip").all_inner_texts() == ["lasso: 100 points\n×"]
    seen.settled()
    assert seen.page.locator("#selected-rows button").first.get_attribute("aria-label") == f"item 1 · {HOSTILE}"
    with seen.page.expect_download() as downloading:
        seen.page.locator("#export").click()
    with open(downloading.value.path(), encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [int(line["row"]) for line in table] == rows.tolist()
    assert {line["kind"] for line in table} == {HOSTILE}
    assert [line["name"] for line in table] == [known()["names"][row] for row in rows]
    assert [float(line["size"]) for line in table] == pytest.approx(known()["metadata"]["size"][rows], rel=1e-14)
    assert [int(line["number"]) for line in table] == known()["metadata"]["number"][rows].tolist()
    coordinates = np.array([[line["dre1"], line["dre2"]] for line in table]).astype(np.float32)
    assert np.array_equal(coordinates, known()["stages"][-1][1][rows])
    seen.page.keyboard.press("Escape")
    assert seen.page.evaluate("explorer.selected()") == []


def test_the_lasso_is_a_tool_too_and_a_control_key_adds_to_the_selection(seen: Seen) -> None:
    seen.page.locator("#lasso").click()
    drag(seen, around(seen, np.flatnonzero(CODES == 0)))
    drag(seen, around(seen, np.flatnonzero(CODES == 2)), key="Control")
    assert seen.page.evaluate("explorer.selected()") == np.flatnonzero(CODES != 1).tolist()


def test_drag_moves_and_the_wheel_zooms_where_the_pointer_is(seen: Seen) -> None:
    x, y = seen.screen(0)
    seen.page.mouse.move(400, 300)
    seen.page.mouse.down()
    seen.page.mouse.move(460, 340, steps=3)
    seen.page.mouse.up()
    assert seen.screen(0) == pytest.approx((x + 60, y + 40))
    x, y = seen.screen(0)
    other = seen.screen(1)
    seen.page.mouse.move(x, y)
    seen.page.mouse.wheel(0, -400)
    seen.settled()
    assert seen.screen(0) == pytest.approx((x, y), abs=1.5)  # a pointer stands on a whole pixel
    assert np.linalg.norm(np.subtract(seen.screen(1), seen.screen(0))) > np.linalg.norm(np.subtract(other, (x, y)))


def search_status(seen: Seen) -> str:
    return str(seen.page.locator("#search-status").inner_text())


def test_search_finds_names_classes_and_rows(seen: Seen) -> None:
    box = seen.page.locator("#search")
    for text, told in (("other", "100 found"), ("item 29", "10 found"), ("ROW 7", "1 found"), ("nowhere", "nothing found")):
        box.fill(text)
        assert search_status(seen).startswith(told), text
    box.fill("row 7")
    box.press("Enter")
    seen.page.wait_for_selector("#pinned:not([hidden])")
    assert seen.page.locator("#pinned b").inner_text() == "item 7"
    assert (
        np.abs(np.subtract(seen.screen(7), seen.page.evaluate("[points.clientWidth / 2, points.clientHeight / 2]"))).max() < 2
    )


def test_any_column_colors_the_points(seen: Seen) -> None:
    options = seen.page.locator("#color option").all_inner_texts()
    assert options == ["kind", "size", "number", "trust", "single color"]
    before = seen.page.evaluate("points.toDataURL()")
    for option in options[1:]:
        seen.page.locator("#color").select_option(label=option)
        seen.settled()
        after = seen.page.evaluate("points.toDataURL()")
        assert after != before
        before = after


def test_a_class_that_is_clicked_stands_out_alone(seen: Seen) -> None:
    button = seen.page.locator("#legend button", has_text="plain")
    button.click()
    pressed = seen.page.locator('#legend button[aria-pressed="true"] .name').all_inner_texts()
    assert pressed == ["plain"]
    seen.page.mouse.move(*seen.screen(2))  # of another class: it can't be pointed at now
    assert seen.page.locator("#card").is_hidden()
    button.click()
    assert seen.page.locator('#legend button[aria-pressed="true"]').count() == 3


def test_dark_is_dark(seen: Seen) -> None:
    ground = "points.getContext('2d').getImageData(1, 1, 1, 1).data[0]"
    assert seen.page.evaluate(ground) == 255
    seen.page.locator("#theme").click()
    seen.settled()
    assert seen.page.evaluate(ground) < 40
