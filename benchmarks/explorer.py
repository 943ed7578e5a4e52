"""Size of the explorer's page and its speed in a browser: 70,000 images, 100,000 points with neighbors, a million points.

    python benchmarks/explorer.py --data FOLDER
    python benchmarks/explorer.py --data FOLDER --draw docs          also the pictures of the docs
    python benchmarks/explorer.py --data FOLDER --gpu                with the graphics card, if the browser finds one
    python benchmarks/explorer.py --data FOLDER --quick              small pages, which are not recorded

FOLDER holds the four files of Fashion-MNIST as published. Needs Chromium on the path and playwright. The map of the images is
fitted first, with two recursions; the other maps are made up. Every page is measured as drawn by WebGL2 and on a canvas.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from dre import DRE
from dre.explore import Explorer, build_explorer, write_page
from dre.io.readers import Source, open_source
from record import record

FLAGS = ["--no-sandbox", "--no-first-run", "--disable-background-networking"]
SOFTWARE, HARDWARE = ["--disable-gpu"], ["--ignore-gpu-blocklist", "--enable-gpu"]
RENDERERS = ("webgl2", "canvas")
WINDOW = {"width": 1280, "height": 800}
SIZES = {"images": 70_000, "neighbors": 100_000, "many": 1_000_000}
QUICK = {"images": 2_000, "neighbors": 3_000, "many": 20_000}
CLASSES, COLUMNS = 20, 16  # of the made rows
# The time since the page was asked for until the frame that shows the points, and until everything else is decoded.
WATCH = """
    window.marks = {};
    const seen = () => {
        if (!marks.paint && document.querySelector("#points[data-frames]"))
            requestAnimationFrame(() => { marks.paint ??= performance.now() / 1000; });
        if (!marks.complete && document.documentElement.dataset.complete) marks.complete = performance.now() / 1000;
        if (!marks.complete) setTimeout(seen, 4);
    };
    document.addEventListener("readystatechange", seen, { once: true });
"""
# Drags for two seconds, as quickly as frames come; counts the frames and the points in them.
DRAG = """async () => {
    const canvas = document.getElementById("points"), drawn = [], frame = () => new Promise(requestAnimationFrame);
    const send = (kind, x, y) => canvas.dispatchEvent(
        new PointerEvent(kind, { clientX: x, clientY: y, pointerId: 1, button: 0, buttons: 1, bubbles: true }));
    Element.prototype.setPointerCapture = () => {};
    send("pointerdown", 400, 400);
    for (let i = 0; i < 10; i++) { send("pointermove", 400 + i, 400); await frame(); }
    const frames = Number(canvas.dataset.frames), began = performance.now();
    for (let i = 1; performance.now() < began + 2000; i++) {
        send("pointermove", 400 + 80 * Math.sin(i / 9), 400 + 40 * Math.cos(i / 7));
        await frame();
        drawn.push(Number(canvas.dataset.drawn));
    }
    const seconds = (performance.now() - began) / 1000, shown = Number(canvas.dataset.frames) - frames;
    send("pointerup", 400, 400);
    return { fps: shown / seconds, points: drawn.sort((a, b) => a - b)[drawn.length >> 1] };
}"""
# From one stage to the next, to the end of the movement.
SLIDE = """async () => {
    const took = [], last = Number(document.getElementById("slider").max);
    for (let i = 0; i < 10; i++) {
        const began = performance.now();
        await explorer.goToStage(i % 2 ? last : last - 1);
        await new Promise((shown) => requestAnimationFrame(() => setTimeout(shown, 0)));
        took.push(performance.now() - began);
    }
    return took;
}"""
GRAPHICS = """() => {
    const gl = document.createElement("canvas").getContext("webgl2");
    const known = gl && gl.getExtension("WEBGL_debug_renderer_info");
    return known ? gl.getParameter(known.UNMASKED_RENDERER_WEBGL) : null;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draw", type=Path, metavar="FOLDER", help="where the pictures go")
    parser.add_argument("--gpu", action="store_true", help="let the browser use the graphics card")
    parser.add_argument("--quick", action="store_true", help="small pages, which are not recorded")
    arguments = parser.parse_args()
    flags, sizes = FLAGS + (HARDWARE if arguments.gpu else SOFTWARE), QUICK if arguments.quick else SIZES
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, page in pages(sizes, arguments.data, quick=arguments.quick):
            path = Path(folder, f"{len(results)}.html")
            write_page(path, page)
            results[name] = {"points": len(page.maps[0].embedding), "megabytes": round(path.stat().st_size / 1e6, 2)}
            for renderer in RENDERERS:
                results[name] |= time_page(path, renderer, flags)
            print(name, results[name], flush=True)
            if arguments.draw and page.thumbnails is not None:
                draw(path, arguments.draw, flags)
        with open_page(path, flags) as shown:
            graphics = shown.evaluate(GRAPHICS)
    if not arguments.quick:
        record("explorer", results, window=WINDOW, graphics=graphics)


def pages(sizes: dict[str, int], folder: Path, *, quick: bool) -> Iterator[tuple[str, Explorer]]:
    """The pages with their names, made one after the other."""
    source = open_source("fashion-mnist:all", folder=folder)
    rows = np.asarray(source.rows)[: sizes["images"]]
    labels = {name: values[: sizes["images"]] for name, values in source.metadata.items()}
    model = DRE("fast" if quick else "auto", recursions=2, random_state=0, verbose=True).fit(rows)
    yield "with images", fashion(model, Source(rows, metadata=labels))
    yield "with neighbors", made(sizes["neighbors"], with_rows=True)
    yield "alone", made(sizes["many"], with_rows=False)


def fashion(model: DRE, source: Source) -> Explorer:
    stages = [(f"stage {i}: {stage}", model.transform(source.rows, stage=i)) for i, stage in enumerate(model.schedule_)]
    return build_explorer(stages, title="Fashion-MNIST", rows=source.rows, metadata=source.metadata)


def made(n: int, *, with_rows: bool) -> Explorer:
    """A page of Gaussian clusters with classes, numbers and dates: as a map of rows, or the map alone."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, CLASSES, size=n)
    rows = (rng.normal(size=(CLASSES, COLUMNS)) * 4)[codes] + rng.normal(size=(n, COLUMNS))
    days = np.datetime64("2020-01-01") + rng.integers(0, 2000, size=n).astype("timedelta64[D]")
    metadata = {"class": np.array([f"class {i}" for i in range(CLASSES)])[codes], "value": rows[:, 0].round(3), "day": days}
    given = rows.astype(np.float32) if with_rows else None
    return build_explorer([("map", rows[:, :2].astype(np.float32))], title="clusters", rows=given, metadata=metadata)


def time_page(path: Path, renderer: str, flags: list[str]) -> dict[str, float]:
    """Open a page and drag its map, with one of the two ways of drawing."""
    with open_page(path, flags, renderer) as page:
        page.wait_for_selector("html[data-complete]", state="attached", timeout=120_000)
        page.wait_for_timeout(50)  # until the mark is set
        if (used := page.get_attribute("#points", "data-renderer")) != renderer:
            raise SystemExit(f"{path.name} is drawn by {used}, not by {renderer}: the browser has no WebGL2")
        marks, dragged = page.evaluate("window.marks"), page.evaluate(DRAG)
        found = {"first_paint_seconds": marks["paint"], "complete_seconds": marks["complete"], "fps": dragged["fps"]}
        if page.evaluate("Number(document.getElementById('slider').max)"):
            found["stage_step_ms"] = median(page.evaluate(SLIDE))
    rounded = {f"{renderer}_{name}": round(value, 2) for name, value in found.items()}
    return {**rounded, f"{renderer}_points_while_dragging": dragged["points"]}


@contextmanager
def open_page(path: Path, flags: list[str], renderer: str = "canvas") -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]
        page.add_init_script(WATCH)
        page.goto(f"{path.as_uri()}#render={renderer}")
        page.wait_for_selector("#points[data-frames]", timeout=120_000)
        yield page
        browser.close()


def draw(path: Path, folder: Path, flags: list[str]) -> None:
    """Draw the page with a pinned row and its neighbors, and with the distortion of the map."""
    with open_page(path, flags) as page:
        page.wait_for_selector("html[data-complete]", state="attached", timeout=120_000)
        page.wait_for_timeout(50)  # until the mark is set
        page.mouse.click(*page.evaluate("explorer.screen(0)"))
        page.wait_for_timeout(500)
        page.screenshot(path=folder / "explorer.png")
        page.keyboard.press("Escape")
        page.locator("#theme").click()
        page.locator("#color").select_option(label="trust")
        page.wait_for_timeout(500)
        page.screenshot(path=folder / "explorer-trust.png")


if __name__ == "__main__":
    main()
