"""The model inside an explorer page: bytes, deviation from transform, and rows a second in a browser, for every encoder.

    python benchmarks/page_model.py --data FOLDER
    python benchmarks/page_model.py --data FOLDER --onnxruntime-web FOLDER       also the bytes of that package
    python benchmarks/page_model.py --data FOLDER --draw docs                    also the picture of the docs
    python benchmarks/page_model.py --quick                                      the encoders of vectors, which are not recorded

FOLDER holds the four files of Fashion-MNIST as published. The other folder is that of the unpacked package: npm pack
onnxruntime-web. Needs Chromium on the path and playwright. New rows are brought as a CSV file, so that reading it counts.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_iris

from dre import DRE
from dre.explore import build_explorer, write_page
from dre.explore.page import ENGINE, NEW_ROWS
from dre.io.readers import open_source
from record import record

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FITTED, SCHEDULE = 2_000, "x: fuzzy(15) -> ce * 2"
TABLES = ("mlp(128, depth=6)", "mlp(128, depth=6, n_pcs=32)", "model-a")
IMAGES = ("patch-mlp(128)", "model-b(norm=true)", "strided")
BROUGHT = {"mlp": 20_000, "patch-mlp": 2_000, "model-a": 2_000, "model-b": 500, "strided": 500}
RUNTIME = ("ort-wasm-simd-threaded.wasm", "ort-wasm-simd-threaded.mjs", "ort.wasm.min.mjs")  # files of one backend, on a CPU


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--onnxruntime-web", type=Path, dest="runtime", metavar="FOLDER", help="the unpacked package")
    parser.add_argument("--draw", type=Path, metavar="FOLDER", help="where the picture goes")
    parser.add_argument("--quick", action="store_true", help="the encoders of vectors, which are not recorded")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.quick:
        parser.error("--data FOLDER is needed for the encoders of images")
    warnings.simplefilter("ignore")
    cases = [(encoder, load_digits().data) for encoder in TABLES]
    if not arguments.quick:
        rows = np.asarray(open_source("fashion-mnist:test", folder=arguments.data).rows)
        cases += [(encoder, rows) for encoder in IMAGES]
    results = [measure(encoder, rows) for encoder, rows in cases]
    if arguments.draw:
        draw(arguments.draw / "explorer-new-rows.png")
    if not arguments.quick:
        record("page-model", results, script_bytes=script_bytes(), onnxruntime_web=about_runtime(arguments.runtime))


def measure(encoder: str, rows: np.ndarray) -> dict[str, Any]:
    """Bytes of pages, and what Chromium makes of new rows."""
    fitted = rows[:FITTED]
    model = DRE(schedule=SCHEDULE, encoder=encoder, random_state=0, verbose=False).fit(fitted)
    new = rows[np.arange(BROUGHT[encoder.partition("(")[0]]) % len(rows)].reshape(-1, int(np.prod(rows.shape[1:])))
    with tempfile.TemporaryDirectory() as folder:
        sizes = {}
        for name, given in {"without": None, "with": model}.items():
            path = Path(folder, f"{name}.html")
            page = build_explorer(
                [("map", model.transform(fitted))], title="t", rows=fitted, model=given,
                trust=False, neighbors=False, clusters=False, images=False,
            )  # fmt: skip
            write_page(path, page)
            sizes[name] = path.stat().st_size
        table = Path(folder, "new.csv")
        pd.DataFrame(new).to_csv(table, index=False, header=False)
        with open_page(path) as shown:
            bring(shown, table, 1)  # a first time, in which the program is loaded
            seconds = bring(shown, table, 2)
            found = np.array(shown.evaluate("explorer.newRows().original")).T[: len(new)]
    expected = model.transform(new.reshape(-1, *rows.shape[1:]))
    apart = float((np.abs(found - expected) / np.maximum(1, np.abs(expected))).max())
    weights = sum(each.numel() for each in model.encoder_.state_dict().values())
    result = {
        "encoder": encoder, "shape": list(rows.shape[1:]), "weights": weights, "rows": len(new), "page_bytes": sizes["without"],
        "model_bytes": sizes["with"] - sizes["without"], "deviation": apart, "rows_per_second": round(len(new) / seconds, 1),
    }  # fmt: skip
    print(result, flush=True)
    return result


def bring(shown: Any, path: Path, times: int) -> float:
    began = time.perf_counter()
    shown.set_input_files("#new-input", path)
    shown.wait_for_selector(f'#new-rows[data-brought="{times}"]', state="attached", timeout=600_000)
    return time.perf_counter() - began


@contextmanager
def open_page(path: Path, size: tuple[int, int] = (1280, 800)) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-complete]")
        yield page
        browser.close()


def draw(picture: Path) -> None:
    """New irises on a map of the others, one of them pinned."""
    data = load_iris(as_frame=True)
    frame = data.frame.rename(columns=lambda name: name.replace(" (cm)", ""))
    frame["species"] = [data.target_names[code] for code in frame.pop("target")]
    features, held = list(frame.columns[:4]), frame.index % 12 == 5
    model = DRE(random_state=0, verbose=False).fit(frame.loc[~held, features])
    rows = frame.loc[~held, features]
    page = build_explorer(
        [("map", model.transform(rows))], title="Irises", rows=rows.to_numpy(), feature_names=features, model=model,
        metadata={"species": frame.loc[~held, "species"].to_numpy()},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        write_page(Path(folder, "map.html"), page)
        frame[held].assign(name=[f"iris {i}" for i in frame.index[held]]).to_csv(Path(folder, "new-irises.csv"), index=False)
        with open_page(Path(folder, "map.html"), (1100, 680)) as shown:
            bring(shown, Path(folder, "new-irises.csv"), 1)
            shown.locator("#new-list button").nth(11).click()
            shown.wait_for_timeout(400)
            shown.screenshot(path=picture)


def script_bytes() -> dict[str, int]:
    """Of the file that computes steps, and of all scripts that only pages with a model have."""
    folder = files("dre.explore").joinpath("page")
    sizes = {name: len(folder.joinpath(f"{name}.js").read_bytes()) for name in (*ENGINE, *NEW_ROWS)}
    return {"program": sizes["program"], "all": sum(sizes.values())}


def about_runtime(folder: Path | None) -> dict[str, Any] | None:
    """The version of onnxruntime-web, and the bytes of the files that a page needs of it."""
    if folder is None:
        return None
    sizes = {name: (folder / "dist" / name).stat().st_size for name in RUNTIME}
    return {"version": json.loads((folder / "package.json").read_text())["version"], "bytes": sizes}


if __name__ == "__main__":
    main()
