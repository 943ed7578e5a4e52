"""Pages of made points, and what a browser has drawn of them."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from known_page import Seen
from PIL import Image

from dre.explore import write_page
from dre.explore.columns import Column, make_column
from dre.explore.page import Explorer, ShownMap, StageView

Array = np.ndarray[Any, Any]
RECORD = """
    window.contexts = [];
    window.texts = [];
    const getContext = HTMLCanvasElement.prototype.getContext, fillText = CanvasRenderingContext2D.prototype.fillText;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        const context = getContext.call(this, kind, ...rest);
        if (kind === "webgl2" && context) window.contexts.push(context);
        return context;
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
        window.texts.push([text, x, y, this.measureText(text).width]);
        fillText.call(this, text, x, y, ...rest);
    };
"""


def write_map(path: Path, maps: dict[str, Array], columns: Sequence[Column] = (), *, color: str | None = None) -> Path:
    shown = [ShownMap(title, [StageView(title, embedding.astype(np.float32))]) for title, embedding in maps.items()]
    write_page(path, Explorer("Made map", shown, columns=list(columns), color=color))
    return path


def groups(n: int, classes: int, *, components: int = 2, seed: int = 0) -> tuple[Array, Array]:
    """Points in groups that are apart, and the class of each."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % classes
    side = int(np.ceil(np.sqrt(classes)))
    centers = np.zeros((classes, components))
    centers[:, 0], centers[:, 1] = (np.arange(classes) % side) * 12.0, (np.arange(classes) // side) * 12.0
    centers += rng.normal(size=(classes, components)) * 1.5
    return centers[codes] + rng.normal(size=(n, components)), codes


def classes_of(codes: Array) -> Column:
    return make_column("class", np.array([f"class {code:03d}" for code in codes], dtype=object))


@contextmanager
def shown(
    browser: Any,
    path: Path,
    fragment: str = "",
    *,
    phone: bool = False,
    ratio: float = 1,
    theme: str = "light",
) -> Iterator[Seen]:
    """A page whose WebGL contexts and drawn texts are recorded."""
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 800}
    context = browser.new_context(
        viewport=size, has_touch=phone, is_mobile=phone, device_scale_factor=ratio, color_scheme=theme, accept_downloads=True
    )
    page = context.new_page()
    page.add_init_script(RECORD)
    yield Seen(page).open(path, fragment)
    context.close()


def rest(seen: Seen) -> None:
    """Wait until a movement has ended and all points are drawn."""
    seen.settled()
    seen.page.wait_for_timeout(250)
    seen.settled()


def pixels(seen: Seen, selector: str = "#points") -> Array:
    """The pixels of a canvas: height × width × 4."""
    picture = seen.page.evaluate("(selector) => document.querySelector(selector).toDataURL()", selector)
    return np.array(Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2]))).convert("RGBA"), dtype=np.int32)


def count_colored(image: Array) -> int:
    """Pixels that are not background."""
    return int((np.abs(image[..., :3] - image[0, -1, :3]).max(axis=2) > 24).sum())


def names_drawn(seen: Seen) -> list[tuple[str, float, float, float]]:
    """Names, centers and widths of the class names in the latest frame."""
    seen.page.evaluate("window.texts.length = 0")
    seen.page.locator("#show-names").uncheck()
    seen.settled()
    seen.page.evaluate("window.texts.length = 0")
    seen.page.locator("#show-names").check()
    rest(seen)
    count = int(seen.page.locator("#first-map").get_attribute("data-names"))
    return [tuple(each) for each in seen.page.evaluate("window.texts")[-count:]] if count else []


def drag(seen: Seen, start: Sequence[float], by: Sequence[float], *, button: str = "left", steps: int = 6) -> None:
    seen.page.mouse.move(*start)
    seen.page.mouse.down(button=button)
    seen.page.mouse.move(start[0] + by[0], start[1] + by[1], steps=steps)
    seen.page.mouse.up(button=button)


class Fingers:
    """Fingers on the screen, each at its spot."""

    def __init__(self, seen: Seen) -> None:
        self.session = seen.page.context.new_cdp_session(seen.page)

    def _send(self, kind: str, spots: Sequence[Sequence[float]]) -> None:
        points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(spots)]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def down(self, *spots: Sequence[float]) -> None:
        self._send("touchStart", spots)

    def move(self, *spots: Sequence[float]) -> None:
        self._send("touchMove", spots)

    def up(self) -> None:
        self._send("touchEnd", [])
