"""The card of a point: on hover, pinned by a click or a tap, with links and with its neighbors on the map and in the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import N, Seen, shop, visit

K = 10


def nearest(points: Any, row: int) -> list[int]:
    distances = ((points - points[row]).astype(np.float64) ** 2).sum(1)
    distances[row] = np.inf
    return np.argsort(distances)[:K].tolist()


def test_a_click_pins_the_card_and_a_click_beside_closes_it(in_shop: Seen) -> None:
    in_shop.pin(12)
    assert in_shop.page.evaluate("explorer.pinned()") == 12
    in_shop.page.mouse.move(3, 700)
    card = in_shop.page.locator("#pinned")
    assert card.is_visible()
    assert card.locator("header b").inner_text() == "item 12"
    assert card.locator(".label").inner_text() == "group 12"
    in_shop.page.mouse.click(3, 700)
    assert card.is_hidden()
    in_shop.pin(12)
    card.locator("header .close").click()
    assert card.is_hidden()
    assert in_shop.page.evaluate("explorer.pinned()") == -1


def test_the_pinned_card_shows_every_column_and_the_label_first(in_shop: Seen) -> None:
    in_shop.pin(30)
    columns = list(shop()["metadata"])
    assert in_shop.texts("#pinned .top .quiet") == ["group"]
    assert in_shop.texts("#pinned dt") == [*columns[1:], "trust"]
    values = dict(zip(in_shop.texts("#pinned dt"), in_shop.texts("#pinned dd"), strict=True))
    meta = shop()["metadata"]
    assert values["added"] == str(meta["added"][30])
    assert values["seen"] == str(meta["seen"][30]).replace("T", " ")
    assert float(values["price"]) == pytest.approx(meta["price"][30], rel=1e-3)


def test_web_addresses_are_links_that_leak_nothing_and_other_schemes_stay_text(in_shop: Seen) -> None:
    in_shop.pin(12)
    link = in_shop.page.locator("#pinned a")
    assert link.get_attribute("href") == shop()["metadata"]["link"][12]
    assert link.get_attribute("target") == "_blank"
    assert link.get_attribute("rel") == "noopener noreferrer"
    in_shop.pin(1)
    assert "javascript:alert(1)" in in_shop.texts("#pinned dd")
    assert in_shop.page.locator("#pinned a").count() == 0


@pytest.mark.parametrize("phone", [False, True])
def test_the_pinned_card_fits_the_screen_and_leaves_its_point_in_sight(browser: Any, shop_file: Path, phone: bool) -> None:
    with visit(browser, shop_file, phone=phone) as seen:
        for row in (6, 13, 27, 41):  # texts of thousands of characters
            seen.page.evaluate(f"location.hash = '#pinned={row}'")
            seen.page.wait_for_function("(row) => explorer.pinned() === row", arg=row)
            seen.settled()
            box, screen, (x, y) = seen.page.locator("#pinned").bounding_box(), seen.page.viewport_size, seen.screen(row)
            assert box["x"] >= 0
            assert box["y"] >= 0
            assert box["x"] + box["width"] <= screen["width"]
            assert box["y"] + box["height"] <= screen["height"]
            assert not (box["x"] < x < box["x"] + box["width"] and box["y"] < y < box["y"] + box["height"])
            last = seen.page.locator("#pinned .neighbors li button").last
            last.scroll_into_view_if_needed()  # the card scrolls
            inside = last.bounding_box()
            assert inside["y"] + inside["height"] <= box["y"] + box["height"] + 1


def test_neighbors_on_the_map_and_in_the_data_are_listed_and_counted(in_shop: Seen) -> None:
    given, row = shop(), 12
    in_shop.pin(row)
    shown = in_shop.page.evaluate("explorer.neighbors()")
    on_map, in_data = nearest(given["stages"][0][1], row), nearest(given["rows"], row)
    assert shown["map"] == on_map
    assert shown["data"] == in_data
    kept = len(set(on_map) & set(in_data))
    shared = [len(set(nearest(given["stages"][0][1], each)) & set(nearest(given["rows"], each))) for each in range(N)]
    told = [f"{kept} of {K} neighbors kept", f"{np.mean(shared):.1f} on average in this map"]
    assert in_shop.page.locator("#pinned .kept").inner_text().split("\n") == told
    headings = in_shop.texts("#pinned .neighbors h4")
    assert headings == ["In the data", "On the map"]
    lists = [column.locator(".name").all_inner_texts() for column in in_shop.page.locator("#pinned .two > div").all()]
    assert lists == [[f"item {each}" for each in ids] for ids in (in_data, on_map)]
    assert in_shop.page.locator("#pinned .shared").count() == 2 * kept


def test_a_click_on_a_neighbor_pins_it(in_shop: Seen) -> None:
    in_shop.pin(12)
    second = in_shop.page.evaluate("explorer.neighbors().data[1]")
    in_shop.page.locator("#pinned .two > div").first.locator("button").nth(1).click()
    assert in_shop.page.evaluate("explorer.pinned()") == second
    assert in_shop.page.locator("#pinned header b").inner_text() == f"item {second}"


def test_a_point_that_is_pinned_from_a_list_comes_into_view(in_shop: Seen) -> None:
    page = in_shop.page
    page.locator("#search").fill("row 12")
    page.locator("#search").press("Enter")
    in_shop.settled()
    far = max(
        page.evaluate("explorer.neighbors().data"),
        key=lambda row: np.abs(np.subtract(in_shop.screen(row), in_shop.screen(12))).sum(),
    )
    area = page.locator("#map").bounding_box()
    assert not (0 < in_shop.screen(far)[0] < area["width"] and 0 < in_shop.screen(far)[1] < area["height"])
    page.locator("#pinned .neighbors button", has_text=f"item {far}").first.click()
    assert page.evaluate("explorer.pinned()") == far
    x, y = in_shop.screen(far)
    assert 0 < x < area["width"]
    assert 0 < y < area["height"]


def test_a_point_and_its_neighbors_can_be_shown_alone(in_shop: Seen) -> None:
    in_shop.pin(12)
    near = in_shop.page.evaluate("explorer.neighbors()")
    in_shop.page.get_by_role("button", name="Show only these").click()
    assert in_shop.highlighted() == sorted({12, *near["map"], *near["data"]})
    assert in_shop.texts(".chip span") == ["neighbors of item 12"]


def test_another_stage_has_other_neighbors(seen: Seen) -> None:
    seen.pin(5)
    before = seen.page.evaluate("explorer.neighbors().map")
    seen.page.evaluate("explorer.goToStage(0)")
    seen.page.wait_for_selector('#points[data-stage="0"]')
    assert seen.page.evaluate("explorer.neighbors().map") != before
    assert seen.page.evaluate("explorer.pinned()") == 5


def test_the_card_follows_the_color_column(in_shop: Seen) -> None:
    in_shop.pin(12)
    in_shop.page.locator("#color").select_option(label="stock")
    assert in_shop.texts("#pinned .top .quiet") == ["stock"]
    assert in_shop.page.locator("#pinned .label").inner_text() == str(shop()["metadata"]["stock"][12])


def test_neighbors_with_images_are_images(seen: Seen) -> None:
    seen.pin(5)
    assert seen.page.locator("#pinned .neighbors .image").count() == 2 * K
    label = seen.page.locator("#pinned .neighbors li button").first.get_attribute("aria-label")
    assert label.startswith("item ")


def test_a_hover_while_a_card_is_pinned_shows_the_other_point(in_shop: Seen) -> None:
    in_shop.pin(12)
    box, (x, y) = in_shop.page.locator("#pinned").bounding_box(), in_shop.screen(12)
    spots = np.array([in_shop.screen(row) for row in range(N)])
    hidden = (spots[:, 0] > box["x"]) & (spots[:, 0] < box["x"] + box["width"])
    far = np.where(hidden, 0, np.abs(spots - (x, y)).sum(1)).argmax()
    in_shop.page.mouse.move(*spots[far])
    assert in_shop.page.locator("#card").is_visible()
    assert in_shop.page.locator("#pinned header b").inner_text() == "item 12"
