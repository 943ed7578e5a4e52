"""Size of the explorer's page and its speed in a browser: all 70,000 images of Fashion-MNIST, in software rendering.

    python benchmarks/explorer.py --data FOLDER
    python benchmarks/explorer.py --data FOLDER --draw docs          also the pictures of the README

FOLDER holds the four files of Fashion-MNIST as published. Needs Chromium on the path and playwright. The map is fitted
first, with two recursions.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from dre import DRE
from dre.explore import Explorer, build_explorer, write_page
from dre.io.readers import Source, open_source
from record import record

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WINDOW = {"width": 1280, "height": 800}
# Each move of a drag, to the end of the frame that shows it.
PAN = """async () => {
    const canvas = document.getElementById("points"), took = [];
    const send = (kind, x, y) => canvas.dispatchEvent(
        new PointerEvent(kind, { clientX: x, clientY: y, pointerId: 1, button: 0, buttons: 1, bubbles: true }));
    canvas.setPointerCapture = () => {};
    send("pointerdown", 400, 400);
    for (let i = 1; i <= 60; i++) {
        const began = performance.now();
        send("pointermove", 400 + 4 * i, 400 + 2 * i);
        await new Promise((shown) => requestAnimationFrame(() => setTimeout(shown, 0)));
        took.push(performance.now() - began);
    }
    send("pointerup", 640, 520);
    return took;
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draw", type=Path, metavar="FOLDER", help="where the pictures go")
    arguments = parser.parse_args()
    source = open_source("fashion-mnist:all", folder=arguments.data)
    model = DRE(recursions=2, random_state=0, verbose=True).fit(source.rows)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, images in (("with images", True), ("without images", False)):
            path = Path(folder, "page.html")
            write_page(path, build(model, source, images=images))
            results[name] = {"points": len(source.rows), "megabytes": round(path.stat().st_size / 1e6, 2), **time_page(path)}
            print(name, results[name], flush=True)
            if images and arguments.draw:
                draw(path, arguments.draw)
    record("explorer", results, stages=len(model.stages_), window=WINDOW)


def build(model: DRE, source: Source, *, images: bool) -> Explorer:
    stages = [(f"stage {i}: {stage}", model.transform(source.rows, stage=i)) for i, stage in enumerate(model.schedule_)]
    return build_explorer(stages, title="Fashion-MNIST", rows=source.rows, metadata=source.metadata, images=images)


def time_page(path: Path) -> dict[str, float]:
    with open_browser() as page:
        began = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("#points[data-frames]", timeout=60_000)  # wait for the first frame
        seconds = time.perf_counter() - began
        pan, slide = (median(page.evaluate(script)) for script in (PAN, SLIDE))
    return {"open_seconds": round(seconds, 2), "pan_frame_ms": round(pan, 1), "stage_step_ms": round(slide, 1)}


@contextmanager
def open_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]
        browser.close()


def draw(path: Path, folder: Path) -> None:
    """Draw the page with a hovered row, and with the distortion of the map."""
    with open_browser() as page:
        page.goto(path.as_uri())
        page.wait_for_selector("#points[data-frames]")
        page.mouse.move(*page.evaluate("explorer.screen(0)"))
        page.screenshot(path=folder / "explorer.png")
        page.mouse.move(5, 790)
        page.locator("#theme").click()
        page.locator("#color").select_option(label="trust")
        page.wait_for_timeout(500)
        page.screenshot(path=folder / "explorer-trust.png")


if __name__ == "__main__":
    main()
