"""Pages with a model, what a visitor brings to them, and programs that a browser runs."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from known_page import Seen

from dre import DRE
from dre.explore import build_explorer, write_page
from dre.model.row_program import RowProgram

Array = np.ndarray[Any, Any]
NAMES = ["length", "width", "weight", "age"]
HOSTILE_CELL = "<img src=x onerror=\"document.title='taken'\">"
RUN = """async ({ program, constants, rows }) => {
    const types = { float32: Float32Array, float64: Float64Array, int32: Int32Array, uint8: Uint8Array };
    const decode = ([type, text]) => new types[type](Uint8Array.from(atob(text), (each) => each.charCodeAt(0)).buffer);
    const held = Object.fromEntries(Object.entries(constants).map(([name, each]) => [name, decode(each)])), state = {};
    const load = { kind: "load", program, constants: held, rows: new Float64Array(0), expected: [], tolerance: Infinity };
    await explorer.engine.runJob(state, load, () => {});
    const placed = await explorer.engine.runJob(state, { kind: "numbers", numbers: decode(rows) }, () => {});
    return { coordinates: Array.from(placed.coordinates), refused: placed.refused };
}"""


def packed(values: Array) -> list[str]:
    return [values.dtype.name, base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()]


def run_in(seen: Seen, program: RowProgram, rows: Array) -> Array:
    """The coordinates that the page computes with a program of our own."""
    steps = [vars(step) for step in program.steps]
    given = {
        "program": {"size": program.size, "steps": steps, "output": program.output, "scaled": None},
        "constants": {name: packed(values) for name, values in program.constants.items()},
        "rows": packed(np.asarray(rows, np.float64)),
    }
    found = seen.page.evaluate(RUN, given)
    assert found["refused"] == 0
    return np.array(found["coordinates"]).reshape(len(rows), -1)


def table(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Three groups of rows with columns in different units."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    values = np.array([[5, 1, 200, 30], [9, 4, 500, 60], [2, 8, 900, 10]])[codes] + rng.normal(size=(n, 4)) * [0.5, 0.3, 30, 3]
    return pd.DataFrame(values, columns=NAMES).assign(kind=np.array(["a", "b", "c"])[codes])


def small_model(rows: Any, **options: Any) -> DRE:
    return DRE(schedule="x: fuzzy(10) -> ce * 30", encoder="mlp(16)", random_state=0, verbose=False, **options).fit(rows)


def write_model_page(path: Path, model: DRE, rows: Any, **options: Any) -> Path:
    given = {"trust": False, "neighbors": False, "clusters": False, **options}
    page = build_explorer([("map", model.transform(rows))], title="A map", rows=np.asarray(rows), model=model, **given)
    write_page(path, page)
    return path


def bring(seen: Seen, *files: tuple[str, bytes]) -> str:
    """Choose files, wait until they are placed, and return what the page says."""
    given = [
        {"name": name, "mimeType": "image/png" if name.endswith("png") else "text/csv", "buffer": data} for name, data in files
    ]
    return _after(seen, lambda: seen.page.set_input_files("#new-input", given))


def paste(seen: Seen, text: str) -> str:
    script = """(text) => {
        const clipboardData = new DataTransfer();
        clipboardData.setData("text/plain", text);
        document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }"""
    return _after(seen, lambda: seen.page.evaluate(script, text))


def drop(seen: Seen, name: str, text: str, *, onto: str = "#points") -> str:
    script = """([name, text, onto]) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([text], name, { type: "text/csv" }));
        const map = document.querySelector(onto);
        const about = { dataTransfer, bubbles: true, cancelable: true };
        for (const kind of ["dragover", "drop"]) map.dispatchEvent(new DragEvent(kind, about));
    }"""
    return _after(seen, lambda: seen.page.evaluate(script, [name, text, onto]))


def _after(seen: Seen, action: Any) -> str:
    done = int(seen.page.locator("#new-rows").get_attribute("data-brought") or 0) + 1
    action()
    seen.page.wait_for_selector(f'#new-rows[data-brought="{done}"]', state="attached", timeout=60_000)
    return str(seen.page.locator("#new-status").inner_text())


def placed(seen: Seen) -> Array:
    """The coordinates of all new rows, (rows, components)."""
    return np.array(seen.page.evaluate("explorer.newRows().original")).T


def lines(seen: Seen) -> list[int]:
    return list(seen.page.evaluate("explorer.newRows().lines"))


def as_csv(frame: pd.DataFrame, **options: Any) -> bytes:
    text: str = frame.to_csv(index=False, **options)
    return text.encode()


def saved_rows(seen: Seen) -> list[dict[str, str]]:
    with seen.page.expect_download() as waiting:
        seen.page.locator("#new-save").click()
    return list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_bytes().decode())))
