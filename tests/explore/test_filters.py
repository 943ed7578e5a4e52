"""Filters together: search in every kind of column, ranges, classes and the lasso, shown as chips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import N, Seen, shop, visit

META = shop()["metadata"]
CODES = np.arange(N) % 30


def where(mask: Any) -> list[int]:
    return np.flatnonzero(mask).tolist()


def brush(seen: Seen, entry: Any, start: float, end: float) -> None:
    """Drag over a histogram from one share of its width to another."""
    entry.locator(".range").scroll_into_view_if_needed()
    box = entry.locator(".plot").bounding_box()
    x, y = box["x"], box["y"] + box["height"] / 2
    seen.page.mouse.move(x + start * box["width"], y)
    seen.page.mouse.down()
    seen.page.mouse.move(x + end * box["width"], y, steps=6)
    seen.page.mouse.up()
    seen.settled()


def ends(entry: Any) -> list[str]:
    return [field.input_value() for field in entry.locator(".range input").all()]


SEARCHES = [
    ("group 12", where(CODES == 12)),
    ("GROUP: group 12", where(CODES == 12)),
    ("item 299", [299]),
    ("example.org/items/123", [123]),
    ("row 41", [41]),
    ("2020", where((META["added"].astype("datetime64[Y]") == np.datetime64("2020")) | (META["stock"] == 2020))),
    ("2021-03", where(META["added"].astype("datetime64[M]") == np.datetime64("2021-03"))),
    ("added: 2021-03", where(META["added"].astype("datetime64[M]") == np.datetime64("2021-03"))),
    (f"rating: {META['rating'][7]}", where(META["rating"] == META["rating"][7])),
    (f"stock: {META['stock'][9]}", where(META["stock"] == META["stock"][9])),
    ("nowhere at all", []),
    ("nocolumn: group 12", []),
]


def test_search_finds_texts_dates_and_numbers_in_all_columns_or_in_one(in_shop: Seen) -> None:
    for query, rows in SEARCHES:
        in_shop.page.locator("#search").fill(query)
        found = in_shop.highlighted()
        assert found is not None
        assert set(rows) <= set(found), query
        if ":" in query or not query[0].isdigit():  # a year may also stand within an address
            assert found == rows, query
        told = in_shop.page.locator("#search-status").inner_text()
        assert told.startswith(f"{len(found)} found" if found else "nothing found"), query


def test_a_search_in_a_column_that_is_not_there_says_so(in_shop: Seen) -> None:
    for query, told in (("Celltype : group 3", "nothing found; there is no column “Celltype”"), ("nowhere", "nothing found")):
        in_shop.page.locator("#search").fill(query)
        assert in_shop.page.locator("#search-status").inner_text() == told
    in_shop.page.locator("#search").fill("https://example.org/items/123?")  # a text with a colon
    assert in_shop.highlighted() == [123]
    assert "column" not in in_shop.page.locator("#search-status").inner_text()


@pytest.mark.parametrize("phone", [False, True])
def test_the_first_heading_stays_in_sight(browser: Any, page_file: Path, phone: bool) -> None:
    with visit(browser, page_file, phone=phone) as seen:
        for filtered in (False, True):
            if filtered:
                seen.page.evaluate("document.querySelector('#legend .classes button').click()")
                assert seen.page.locator(".chip").count() == 1
            seen.settled()
            head, top = seen.page.locator("#stages h2").bounding_box(), seen.page.locator("#sections").bounding_box()
            assert head["y"] >= top["y"]


def test_a_histogram_that_opens_is_in_sight(in_shop: Seen) -> None:
    panel = in_shop.page.locator("#sections").bounding_box()
    in_shop.page.set_viewport_size({"width": 1280, "height": 500})
    for column in ("price", "trust"):
        summary = in_shop.page.locator("#columns summary", has_text=column)
        summary.evaluate("(each) => { each.scrollIntoView({ block: 'end' }); each.click(); }")
        in_shop.settled()
        in_shop.page.wait_for_timeout(100)
        box = summary.locator("xpath=..").locator(".range").bounding_box()
        assert panel["y"] <= box["y"]
        assert box["y"] + box["height"] <= 500


def test_a_number_is_found_as_it_is_displayed(in_shop: Seen) -> None:
    shown = f"{META['price'][5]:.4g}"
    in_shop.page.locator("#search").fill(f"price: {shown}")
    found = in_shop.highlighted()
    assert found
    assert 5 in found
    assert all(f"{META['price'][row]:.4g}".startswith(shown) for row in found)


def test_filters_add_up_and_each_chip_removes_its_own(in_shop: Seen) -> None:
    page = in_shop.page
    page.locator("#search").fill("item 1")
    page.locator("#legend .classes button").first.click()
    fields = in_shop.unfold("stock").locator(".range input")
    fields.nth(1).fill("250")
    fields.nth(1).press("Tab")
    code = int(page.locator("#legend .classes .name").first.inner_text().split()[1])
    named = np.array(["item 1" in name for name in shop()["names"]])
    assert in_shop.highlighted() == where(named & (code == CODES) & (META["stock"] <= 250))
    assert in_shop.texts(".chip span") == ["“item 1”", f"group: group {code}", "stock ≤ 250"]
    page.locator(".chip .close").nth(1).click()
    assert in_shop.highlighted() == where(named & (META["stock"] <= 250))
    assert page.locator('#legend .classes button[aria-pressed="false"]').count() == 0
    page.keyboard.press("Escape")  # the last one first
    assert in_shop.texts(".chip span") == ["“item 1”"]
    page.keyboard.press("Escape")
    assert in_shop.highlighted() is None
    assert page.locator("#search").input_value() == ""
    assert page.locator("#count").inner_text() == f"{N} points"


def test_clear_all_clears_all(in_shop: Seen) -> None:
    in_shop.page.locator("#search").fill("item")
    in_shop.page.locator("#legend .classes button").nth(3).click()
    in_shop.page.locator("#clear-all").click()
    assert in_shop.highlighted() is None
    assert in_shop.page.locator("#chips").is_hidden()


def test_a_drag_over_a_histogram_chooses_a_range_and_a_click_clears_it(in_shop: Seen) -> None:
    entry = in_shop.unfold("stock")
    brush(in_shop, entry, 0.25, 0.5)
    low, high = (float(each) for each in ends(entry))
    assert (low, high) == pytest.approx((125, 250), abs=8)
    assert in_shop.highlighted() == where((META["stock"] >= low) & (META["stock"] <= high))
    brush(in_shop, entry, 0.5, 0.75)  # the upper end alone
    assert float(ends(entry)[0]) == low
    assert float(ends(entry)[1]) == pytest.approx(375, abs=8)
    brush(in_shop, entry, 0.5, 0.4)  # all of it, to the left
    assert float(ends(entry)[0]) == pytest.approx(75, abs=10)
    box = entry.locator(".plot").bounding_box()
    in_shop.page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 10)
    assert in_shop.highlighted() is None


def test_a_histogram_stays_in_place_when_chips_come_and_go(in_shop: Seen) -> None:
    entry = in_shop.unfold("stock")
    entry.locator(".range").scroll_into_view_if_needed()
    before = entry.locator(".plot").bounding_box()
    brush(in_shop, entry, 0.25, 0.5)
    assert in_shop.page.locator(".chip").count() == 1
    assert entry.locator(".plot").bounding_box() == pytest.approx(before, abs=1)


def test_a_skewed_number_has_a_logarithmic_histogram(in_shop: Seen) -> None:
    entry = in_shop.unfold("price")
    brush(in_shop, entry, 0.0, 0.5)
    logs = np.log(META["price"])
    assert np.log(float(ends(entry)[1])) == pytest.approx((logs.min() + logs.max()) / 2, abs=0.1)
    assert [float(label) for label in in_shop.texts("#columns details[open] .axis span")][:2] in ([0.1, 1], [1, 10])


def test_dates_have_an_axis_of_dates_and_fields_for_dates(in_shop: Seen) -> None:
    entry = in_shop.unfold("added")
    entry.locator(".axis span").nth(2).wait_for()
    labels = entry.locator(".axis span").all_inner_texts()
    assert len(labels) >= 3
    assert all(label in map(str, range(2019, 2025)) for label in labels)
    entry.locator("input").first.fill("2020-01-01")
    entry.locator("input").nth(1).fill("2020-12-31")
    entry.locator("input").nth(1).press("Tab")
    in_2020 = META["added"].astype("datetime64[Y]") == np.datetime64("2020")
    assert in_shop.highlighted() == where(in_2020)
    assert in_shop.texts(".chip span") == ["added: 2020-01-01 – 2020-12-31"]


def test_times_within_days_can_be_bounded_to_the_second(in_shop: Seen) -> None:
    entry = in_shop.unfold("seen")
    edge = META["seen"][11]
    entry.locator("input").first.fill(str(edge.astype("datetime64[s]")))
    entry.locator("input").first.press("Tab")
    assert in_shop.highlighted() == where(META["seen"] >= edge)


def test_rows_without_a_value_can_be_found(in_shop: Seen) -> None:
    entry = in_shop.unfold("rating")
    entry.locator("button.link").click()
    assert in_shop.highlighted() == where(np.isnan(META["rating"]))
    entry.locator("button.link").click()
    assert in_shop.highlighted() is None


def test_a_histogram_shows_how_the_other_filters_divide_it(in_shop: Seen) -> None:
    entry = in_shop.unfold("stock")
    everything = entry.locator(".strong").get_attribute("d")
    assert entry.locator(".pale").get_attribute("d") == everything
    in_shop.page.locator("#search").fill("group 12")
    in_shop.settled()
    assert entry.locator(".strong").get_attribute("d") != everything
    assert entry.locator(".pale").get_attribute("d") == everything


def test_the_legend_sorts_finds_counts_and_adds_classes(in_shop: Seen) -> None:
    page, names = in_shop.page, "#legend .classes .name"
    page.locator("#legend select").select_option("by name")
    assert in_shop.texts(names) == [f"group {code}" for code in range(30)]
    page.locator("#legend input").fill("group 2")
    assert in_shop.texts(names) == ["group 2", *(f"group {code}" for code in range(20, 30))]
    page.locator("#legend .classes button").first.click()
    page.locator("#legend .classes button").nth(1).click(modifiers=["Shift"])
    assert in_shop.highlighted() == where(np.isin(CODES, (2, 20)))
    page.locator("#search").fill("row 2")
    assert in_shop.texts("#legend .classes .count")[:2] == ["1", "0"]


def test_the_map_zooms_to_what_the_filters_leave(in_shop: Seen) -> None:
    assert in_shop.page.locator("#zoom-to").is_hidden()
    in_shop.page.locator("#search").fill("group: group 4")
    in_shop.page.locator("#zoom-to").click()
    spots = np.array([in_shop.screen(row) for row in where(CODES == 4)])
    area = in_shop.page.locator("#map").bounding_box()
    assert (spots > 0).all()
    assert (spots < [area["width"], area["height"]]).all()
    assert max(np.ptp(spots, axis=0) / [area["width"], area["height"]]) > 0.8


def test_a_legend_of_classes_stays_in_its_own_box(in_shop: Seen) -> None:
    tall, full = in_shop.page.evaluate(
        "(() => { const each = document.querySelector('#legend .classes'); return [each.clientHeight, each.scrollHeight]; })()"
    )
    assert tall < 260 < full


def test_numbers_are_colored_on_the_chosen_scale_with_ticks(in_shop: Seen) -> None:
    in_shop.page.locator("#color").select_option(label="price")
    assert in_shop.page.locator("#scale").input_value() == "log"  # prices are skewed
    found = {}
    for scale in ("linear", "log", "quantile"):
        in_shop.page.locator("#scale").select_option(scale)
        labels = in_shop.page.locator("#legend .axis span")
        ticks = [float(label.replace("K", "e3")) for label in labels.all_inner_texts()]
        places = labels.evaluate_all("(all) => all.map((each) => parseFloat(each.style.left) / 100)")
        assert len(ticks) >= 2
        assert ticks == sorted(ticks)
        found[scale] = np.array(places), np.array(ticks)
    places, ticks = found["linear"]
    assert np.diff(places) / np.diff(ticks) == pytest.approx(places[1:] / ticks[1:], rel=0.05)  # from almost zero on
    places, ticks = found["log"]
    steps = np.diff(places) / np.diff(np.log(ticks))
    assert steps == pytest.approx(steps[0], rel=1e-3)
    assert found["quantile"][1] == pytest.approx(np.quantile(META["price"], [0, 0.25, 0.5, 0.75, 1]), rel=0.05)


def test_dates_in_the_legend_are_dates(in_shop: Seen) -> None:
    in_shop.page.locator("#color").select_option(label="added")
    assert all(label in map(str, range(2019, 2025)) for label in in_shop.texts("#legend .axis span"))


def test_texts_are_not_offered_as_colors(in_shop: Seen) -> None:
    options = in_shop.texts("#color option")
    assert "group" in options
    assert "link" not in options
    assert "note" not in options


def test_a_range_can_be_brushed_by_touch(browser: Any, shop_file: Path) -> None:
    with visit(browser, shop_file, phone=True) as seen:
        entry = seen.unfold("stock")
        entry.scroll_into_view_if_needed()
        box = entry.locator(".plot").bounding_box()
        touch = seen.page.context.new_cdp_session(seen.page)
        for kind, share in (("touchStart", 0.2), ("touchMove", 0.3), ("touchMove", 0.6), ("touchEnd", None)):
            points = [] if share is None else [{"x": box["x"] + share * box["width"], "y": box["y"] + 20}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            seen.settled()
        low, high = (float(each) for each in ends(entry))
        assert (low, high) == pytest.approx((100, 300), abs=25)
        assert seen.highlighted() == where((META["stock"] >= low) & (META["stock"] <= high))
