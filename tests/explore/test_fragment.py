"""What is shown stands in the fragment of the address; opening the address shows it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from known_page import Seen, visit

pytestmark = pytest.mark.slow  # seconds per test


def state(seen: Seen, *expected: str) -> dict[str, str]:
    """The state in the address, once the expected parts are in it."""
    for part in expected:
        seen.page.wait_for_function("(part) => location.hash.includes(part)", arg=part)
    return {name: values[0] for name, values in parse_qs(urlsplit(seen.page.url).fragment, keep_blank_values=True).items()}


def test_a_page_that_was_just_opened_has_no_fragment(in_shop: Seen) -> None:
    in_shop.page.wait_for_timeout(600)
    assert state(in_shop) == {}


def test_the_address_restores_theme_color_scale_view_pin_and_density(browser: Any, shop_file: Path) -> None:
    with visit(browser, shop_file) as seen:
        seen.page.locator("#theme").click()
        seen.page.locator("#color").select_option(label="price")
        seen.page.locator("#scale").select_option("quantile")
        seen.page.keyboard.press("+")
        seen.page.keyboard.press("ArrowLeft")
        seen.pin(12)
        seen.page.keyboard.press("d")
        kept, spots = state(seen, "theme=", "view=", "density="), [seen.screen(row) for row in (0, 5)]
        fragment = "#" + urlsplit(seen.page.url).fragment
    assert kept["theme"] == "dark"
    assert (kept["color"], kept["scale"], kept["pinned"], kept["density"]) == ("price", "quantile", "12", "1")
    with visit(browser, shop_file, fragment=fragment) as again:
        assert [again.screen(row) for row in (0, 5)] == [pytest.approx(spot, abs=1) for spot in spots]
        assert again.page.locator("html.dark").count() == 1
        assert again.page.locator("#scale").input_value() == "quantile"
        assert again.page.locator("#pinned header b").inner_text() == "item 12"
        assert again.page.locator("#density").get_attribute("aria-pressed") == "true"
        again.page.wait_for_timeout(600)
        assert state(again) == kept


def test_stage_and_the_map_beside_are_restored(browser: Any, page_file: Path) -> None:
    with visit(browser, page_file) as seen:
        seen.page.keyboard.press("[")
        seen.page.wait_for_selector('#points[data-stage="0"]')
        seen.page.locator("#beside").select_option("0,1")
        seen.page.wait_for_selector(".map + .map")
        kept = state(seen, "stage=", "beside=")
    assert (kept["stage"], kept["beside"]) == ("0", "0,1")
    with visit(browser, page_file, fragment="#stage=0&beside=0,1") as again:
        assert again.page.locator("#points").get_attribute("data-stage") == "0"
        assert again.page.locator(".map").count() == 2
        assert again.page.locator("#beside").input_value() == "0,1"


def test_a_changed_address_is_followed(in_shop: Seen) -> None:
    in_shop.page.evaluate("location.hash = '#color=stock&theme=dark&pinned=7'")
    in_shop.page.wait_for_selector("#pinned:not([hidden])")
    assert in_shop.page.locator("html.dark").count() == 1
    assert in_shop.page.evaluate("color.selectedOptions[0].text") == "stock"
    assert in_shop.page.locator("#pinned .label").is_visible()


@pytest.mark.parametrize(
    "fragment", ["#pinned=99999&stage=9&color=nothing&scale=cube&view=a,b,c&beside=7,7&theme=blue", "#pinned=-3&view=", "#%"]
)
def test_nonsense_in_the_address_is_ignored(browser: Any, shop_file: Path, fragment: str) -> None:
    with visit(browser, shop_file, fragment=fragment) as seen:
        assert seen.said == []
        assert seen.page.evaluate("explorer.pinned()") == -1
