"""The page without a pointer: keys, focus, and what screen readers are told."""

from __future__ import annotations

import numpy as np
from known_page import N, Seen, shop


def spread(seen: Seen) -> float:
    return float(np.linalg.norm(np.subtract(seen.screen(0), seen.screen(1))))


def test_arrows_move_the_map_plus_and_minus_zoom_and_zero_resets(in_shop: Seen) -> None:
    in_shop.page.locator("#points").focus()
    home, wide = in_shop.screen(0), spread(in_shop)
    in_shop.page.keyboard.press("ArrowRight")
    assert in_shop.screen(0)[0] < home[0]
    in_shop.page.keyboard.press("ArrowDown")
    assert in_shop.screen(0)[1] < home[1]
    in_shop.page.keyboard.press("+")
    assert spread(in_shop) > wide * 1.3
    in_shop.page.keyboard.press("0")
    in_shop.settled()
    assert np.allclose(in_shop.screen(0), home, atol=1)
    in_shop.page.keyboard.press("-")
    assert spread(in_shop) < wide * 0.8


def test_keys_choose_tools_search_density_and_table(in_shop: Seen) -> None:
    page = in_shop.page
    for key, button in (("l", "#lasso"), ("p", "#pan"), ("d", "#density"), ("t", "#show-table")):
        page.keyboard.press(key)
        assert page.locator(button).get_attribute("aria-pressed") == "true", key
    page.keyboard.press("/")
    page.keyboard.type("item 7")
    assert in_shop.texts(".chip span") == ["“item 7”"]
    page.keyboard.press("Escape")  # leaves the field, and the search
    assert page.evaluate("document.activeElement === document.body")
    assert page.locator("#search").input_value() == ""
    assert in_shop.highlighted() is None


def test_a_letter_in_a_field_is_a_letter(in_shop: Seen) -> None:
    in_shop.page.locator("#search").focus()
    in_shop.page.keyboard.type("td")
    assert in_shop.page.locator("#search").input_value() == "td"
    assert in_shop.page.locator("#table").is_hidden()


def test_enter_pins_the_point_at_the_center_and_keys_walk_along_its_neighbors(in_shop: Seen) -> None:
    page = in_shop.page
    page.locator("#points").focus()
    page.keyboard.press("Enter")
    first = page.evaluate("explorer.pinned()")
    center = page.evaluate("[points.clientWidth / 2, points.clientHeight / 2]")
    distances = np.linalg.norm(np.array([in_shop.screen(row) for row in range(N)]) - center, axis=1)
    assert distances[first] == distances.min()
    near = page.evaluate("explorer.neighbors().data")
    walked = []
    for _ in range(3):
        page.keyboard.press("n")
        walked.append(page.evaluate("explorer.pinned()"))
    assert walked == near[:3]
    for _ in range(3):
        page.keyboard.press("b")
    assert page.evaluate("explorer.pinned()") == first
    page.keyboard.press("Escape")
    assert page.evaluate("explorer.pinned()") == -1


def test_escape_closes_the_card_before_it_clears_a_filter(in_shop: Seen) -> None:
    in_shop.page.locator("#legend .classes button").first.click()
    row = (in_shop.highlighted() or [])[0]
    in_shop.pin(row)
    in_shop.page.keyboard.press("Escape")
    assert in_shop.page.locator("#pinned").is_hidden()
    assert in_shop.highlighted() is not None
    in_shop.page.keyboard.press("Escape")
    assert in_shop.highlighted() is None


def test_brackets_go_through_the_stages(seen: Seen) -> None:
    seen.page.keyboard.press("[")
    seen.page.wait_for_selector('#points[data-stage="0"]')
    seen.page.keyboard.press("]")
    seen.page.wait_for_selector('#points[data-stage="1"]')
    seen.page.locator("#points").focus()
    seen.page.keyboard.press("PageUp")
    seen.page.wait_for_selector('#points[data-stage="0"]')


def test_a_question_mark_shows_the_keys(in_shop: Seen) -> None:
    in_shop.page.keyboard.press("?")
    help_ = in_shop.page.locator("#help")
    assert help_.is_visible()
    assert "neighbor" in help_.inner_text()
    in_shop.page.keyboard.press("Escape")
    assert help_.is_hidden()


def test_the_map_is_told_in_words(in_shop: Seen) -> None:
    page = in_shop.page
    described = page.locator("#points").get_attribute("aria-describedby")
    words = page.locator(f"#{described}")
    assert words.text_content().startswith(f"Map of {N} points.")
    assert "Colored by group: group 0 10" in words.text_content()
    page.locator("#search").fill("group: group 12")
    in_shop.settled()
    assert "10 highlighted by “group: group 12”" in words.text_content()
    assert page.locator("#status").text_content() == f"10 of {N} points highlighted"
    page.locator("#color").select_option(label="stock")
    assert "Colored by stock, from" in words.text_content()
    in_shop.pin(12)
    assert page.locator("#status").text_content().startswith(f"Pinned item 12 · {shop()['metadata']['stock'][12]}")


def test_tab_reaches_every_control_and_the_focus_is_seen(in_shop: Seen) -> None:
    in_shop.unfold("stock")
    in_shop.page.keyboard.press("t")
    in_shop.pin(12)
    in_shop.page.evaluate("document.activeElement.blur()")
    reached, outlined = set(), True
    for _ in range(200):
        in_shop.page.keyboard.press("Tab")
        name, width = in_shop.page.evaluate(
            """(() => {
                const each = document.activeElement;
                const group = each.closest("#pinned, #table, #legend, #columns, #tools, #display");
                return [each.id || (group ? `in ${group.id}` : each.tagName), parseFloat(getComputedStyle(each).outlineWidth)];
            })()"""
        )
        reached.add(name)
        outlined = outlined and (name == "BODY" or width >= 1)
    wanted = "points pan lasso reset density theme collapse help-button search color"
    wanted += " show-table export png svg point-size table-scroller"
    assert set(wanted.split()) <= reached
    assert {"in pinned", "in table", "in legend", "in columns"} <= reached
    assert outlined


def test_controls_have_names(in_shop: Seen) -> None:
    in_shop.unfold("stock")
    in_shop.unfold("added")
    nameless = in_shop.page.evaluate(
        """[...document.querySelectorAll("button, select, input, canvas[tabindex]")]
            .filter((each) => !each.closest("[hidden]") && !each.getAttribute("aria-label"))
            .filter((each) => !each.textContent.trim() && !(each.labels && each.labels.length))
            .map((each) => each.outerHTML)"""
    )
    assert nameless == []


def test_the_focus_stays_near_where_it_was(in_shop: Seen) -> None:
    page = in_shop.page
    focused = "document.activeElement.getAttribute('aria-label') || document.activeElement.title"
    page.locator("#search").fill("item")
    page.locator("#legend .classes button").first.click()
    page.locator(".chip .close").last.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == "Remove the filter “item”"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "points"
    page.keyboard.press("t")
    assert page.evaluate("document.activeElement.id") == "table-scroller"
    page.locator("#table-head button").nth(3).focus()
    page.keyboard.press("Enter")
    in_shop.settled()
    assert page.evaluate(focused) == "Sort by price"
    page.locator("#points").focus()
    page.keyboard.press("Enter")
    page.locator("#pinned .close").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "points"
