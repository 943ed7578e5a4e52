"""Light and dark: as the system says unless one is chosen, and legible in both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from known_page import Seen, visit

pytestmark = pytest.mark.slow  # seconds per test

LEGIBLE = 4.5  # contrast of text, by the WCAG

CONTRASTS = """() => {
    const shade = (color) => {
        const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        paint.fillStyle = color;
        paint.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((value) => {
            const part = value / 255;
            return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (each) => {
        for (let at = each; at; at = at.parentElement) {
            const color = getComputedStyle(at).backgroundColor;
            if (!/rgba\\(.*, 0\\)|transparent/.test(color)) return color;
        }
        return "white";
    };
    const holdsText = (each) => [...each.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    return [...document.querySelectorAll("aside *, #pinned *, #table *, #tools *")]
        .filter((each) => each.checkVisibility() && holdsText(each) && each.closest("svg, option") === null)
        .filter((each) => !each.closest('[aria-pressed="false"]')) // classes that were not picked recede
        .map((each) => {
            const [a, b] = [shade(getComputedStyle(each).color), shade(ground(each))].sort((x, y) => y - x);
            return [(a + 0.05) / (b + 0.05), each.outerHTML.slice(0, 80)];
        });
}"""


def test_the_theme_follows_the_system_until_one_is_chosen(browser: Any, shop_file: Path) -> None:
    with visit(browser, shop_file, theme="dark") as seen:
        assert seen.page.locator("html.dark").count() == 1
        seen.page.emulate_media(color_scheme="light")
        seen.page.wait_for_selector("html:not(.dark)")
        seen.page.locator("#theme").click()
        assert seen.page.locator("html.dark").count() == 1
        seen.page.emulate_media(color_scheme="dark")
        seen.page.emulate_media(color_scheme="light")
        seen.settled()
        assert seen.page.locator("html.dark").count() == 1


def test_the_card_changes_its_colors_with_the_theme(in_shop: Seen) -> None:
    in_shop.page.locator("#color").select_option(label="trust")
    in_shop.pin(12)
    shade = "getComputedStyle(document.querySelector('#pinned .label .dot')).backgroundColor"
    before = in_shop.page.evaluate(shade)
    in_shop.page.locator("#theme").click()
    assert in_shop.page.evaluate(shade) != before


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_are_legible(browser: Any, shop_file: Path, theme: str) -> None:
    with visit(browser, shop_file, theme=theme) as seen:
        seen.unfold("rating")
        seen.page.locator("#search").fill("item")
        seen.page.locator("#show-table").click()
        seen.pin(12)
        contrasts = seen.page.evaluate(CONTRASTS)
        assert len(contrasts) > 80
        assert [text for contrast, text in contrasts if contrast < LEGIBLE] == []
