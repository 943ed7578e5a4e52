"""Known points for a page, and the page as a browser shows it."""

from __future__ import annotations

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


class Seen:
    """A page in the browser, with its console messages and requests."""

    def __init__(self, page: Any) -> None:
        self.page, self.said, self.asked = page, [], []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda problem: self.said.append(str(problem)))
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path: Path) -> Seen:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#points[data-ready]")
        return self

    def screen(self, row: int) -> tuple[float, float]:
        x, y = self.page.evaluate(f"explorer.screen({row})")
        return x, y

    def settled(self) -> None:
        """Wait until pending frames are drawn."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
