"""The page on a phone: the map above the panel, nothing wider than the screen, targets for a thumb."""

from __future__ import annotations

import numpy as np
from known_page import Seen

TARGET = 44  # pixels


def too_small(seen: Seen) -> list[str]:
    """Visible controls that are lower than a thumb needs."""
    small: list[str] = seen.page.evaluate(
        """(least) => [...document.querySelectorAll("button, select, input, summary")]
            .map((each) => [each, each.getBoundingClientRect().height])
            .filter(([each, tall]) => each.checkVisibility() && each.type !== "checkbox" && tall < least - 0.5)
            .map(([each, tall]) => `${each.outerHTML.slice(0, 90)} ${tall}`)""",
        TARGET,
    )
    return small


def wide(seen: Seen) -> float:
    return float(seen.page.evaluate("document.documentElement.scrollWidth"))


def test_nothing_is_wider_than_the_screen_and_controls_fit_a_thumb(on_phone: Seen) -> None:
    page = on_phone.page
    assert wide(on_phone) == 390
    assert page.locator("#map").bounding_box()["y"] == 0
    assert page.locator("#panel").bounding_box()["y"] > 400
    for column in ("group", "stock", "added"):
        on_phone.unfold(column)
    page.locator("#search").fill("item 1")
    assert too_small(on_phone) == []
    page.locator("#show-table").tap()
    on_phone.settled()
    assert too_small(on_phone) == []
    page.locator("#close-table").tap()
    on_phone.pin((on_phone.highlighted() or [])[0])
    assert too_small(on_phone) == []
    assert wide(on_phone) == 390


def test_a_tap_pins_a_sheet_that_leaves_the_map_and_can_be_closed(on_phone: Seen) -> None:
    on_phone.pin(12)
    row = on_phone.page.evaluate("explorer.pinned()")
    assert row >= 0
    sheet, area = on_phone.page.locator("#pinned").bounding_box(), on_phone.page.locator("#map").bounding_box()
    assert sheet["y"] > area["y"] + 0.4 * area["height"]
    assert sheet["width"] == 390
    assert 0 < on_phone.screen(row)[1] < sheet["y"]
    on_phone.page.locator("#pinned .close").tap()
    assert on_phone.page.locator("#pinned").is_hidden()


def test_the_panel_collapses_and_the_map_grows(on_phone: Seen) -> None:
    before = on_phone.page.locator("#map").bounding_box()["height"]
    spots = np.array([on_phone.screen(row) for row in range(0, 300, 10)])
    on_phone.page.locator("#collapse").tap()
    on_phone.settled()
    after = on_phone.page.locator("#map").bounding_box()["height"]
    assert after > before + 200
    assert on_phone.page.locator("#collapse").get_attribute("aria-expanded") == "false"
    grown = np.array([on_phone.screen(row) for row in range(0, 300, 10)])
    assert np.ptp(grown[:, 1]) >= np.ptp(spots[:, 1]) - 1  # the map is fitted anew
    on_phone.page.locator("#collapse").tap()
    on_phone.settled()
    assert on_phone.page.locator("#map").bounding_box()["height"] == before


def test_a_tap_in_the_legend_adds_a_class(on_phone: Seen) -> None:
    buttons = on_phone.page.locator("#legend .classes button")
    buttons.nth(0).tap()
    buttons.nth(1).tap()
    assert len(on_phone.highlighted() or []) == 20
    buttons.nth(0).tap()
    assert len(on_phone.highlighted() or []) == 10
