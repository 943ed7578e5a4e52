"""Known points for a page, and the page as a browser shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

HOSTILE = "<img src=x onerror=\"document.title='taken'\"></script><script>document.title='taken'</script>"
N = 300


def known() -> dict[str, Any]:
    """Three classes, one of them with a hostile name, in three corners; in the first stage the corners differ."""
    rng = np.random.default_rng(0)
    codes = np.arange(N) % 3
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 7.0]])
    last = corners[codes] + rng.normal(size=(N, 2)) * 0.4
    first = corners[(codes + 1) % 3] * [1, 0.5] + rng.normal(size=(N, 2)) * 0.4
    images = np.zeros((N, 6, 6), np.uint8)
    images[codes == 0], images[codes == 1], images[codes == 2] = 40, 140, 240
    return {
        "stages": [("before", first.astype(np.float32)), ("after", last.astype(np.float32))],
        "rows": images,
        "metadata": {
            "kind": np.array(["plain", HOSTILE, "other"])[codes],
            "size": np.linspace(0, 1, N),
            "number": 20_260_000 - np.arange(N),
        },
        "names": np.array([f"item {i}" for i in range(N - 1)] + [HOSTILE]),
    }


def shop() -> dict[str, Any]:
    """A table as people have them: 30 groups, a skewed number, missing values, dates, times, addresses and long texts."""
    rng = np.random.default_rng(1)
    codes = np.arange(N) % 30
    rows = (rng.normal(size=(30, 8)) * 3)[codes] + rng.normal(size=(N, 8))
    days, seconds = rng.integers(0, 1800, N), rng.integers(0, 3 * 86400, N)
    openings = ("=1+1", "-5", "+x", "@cmd", 'plain, "quoted"')
    links = [f"https://example.org/items/{i}?a=1&b=<c>" for i in range(N)]
    links[1] = "javascript:alert(1)"
    return {
        "stages": [("map", (rows[:, :2] * [1.0, 0.7]).astype(np.float32))],
        "rows": rows.astype(np.float32),
        "metadata": {
            "group": np.array([f"group {code}" for code in codes], dtype=object),
            "price": np.exp(rng.normal(3.0, 1.5, N)),
            "rating": np.where(np.arange(N) % 20 == 0, np.nan, np.round(rng.normal(3.5, 0.5, N), 3)),
            "stock": rng.integers(0, 500, N),
            "added": np.datetime64("2019-03-01") + days.astype("timedelta64[D]"),
            "seen": np.datetime64("2024-03-01T00:00:00") + seconds.astype("timedelta64[s]"),
            "link": np.array(links, dtype=object),
            "note": np.array(
                [f"{openings[i % 5]} {'long text ' * (i % 7) * 40}{i}" if i % 5 != 1 else str(-i) for i in range(N)],
                dtype=object,
            ),
        },
        "names": np.array([f"item {i}" for i in range(N)]),
    }


class Seen:
    """A page in the browser, with its console messages and requests."""

    def __init__(self, page: Any) -> None:
        self.page, self.said, self.asked = page, [], []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda problem: self.said.append(str(problem)))
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path: Path, fragment: str = "") -> Seen:
        self.page.goto(path.as_uri() + fragment)
        self.page.wait_for_selector("html[data-complete]")
        return self

    def screen(self, row: int) -> tuple[float, float]:
        x, y = self.page.evaluate(f"explorer.screen({row})")
        return x, y

    def texts(self, selector: str) -> list[str]:
        return list(self.page.locator(selector).all_inner_texts())

    def highlighted(self) -> list[int] | None:
        """The rows that pass all filters; None without a filter."""
        rows: list[int] | None = self.page.evaluate("explorer.highlighted()")
        return rows

    def pin(self, row: int) -> None:
        """Click or tap on a point."""
        self.settled()
        spot = self.screen(row)
        if self.page.evaluate("matchMedia('(pointer: coarse)').matches"):
            self.page.touchscreen.tap(*spot)
        else:
            self.page.mouse.click(*spot)
        self.settled()

    def unfold(self, column: str) -> Any:
        """Unfold a column of the panel; return its element."""
        entry = self.page.locator("#columns details").filter(
            has=self.page.locator("summary .name", has_text=re.compile(f"^{column}$"))
        )
        entry.locator("summary").click()
        return entry

    def settled(self) -> None:
        """Wait until pending frames are drawn."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@contextmanager
def visit(browser: Any, path: Path, *, phone: bool = False, theme: str = "light", fragment: str = "") -> Iterator[Seen]:
    """A page on a screen of 1280 × 800 pixels, or on a phone."""
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 800}
    context = browser.new_context(viewport=size, has_touch=phone, is_mobile=phone, color_scheme=theme, accept_downloads=True)
    yield Seen(context.new_page()).open(path, fragment)
    context.close()
