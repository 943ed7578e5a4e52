"""What Python puts into a page, the page reads back: coordinates, columns of every kind, neighbors and titles."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import Seen, visit

from dre.explore import build_explorer, write_page

N = 300
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(N, 6)).astype(np.float32)
MAP = (ROWS[:, :3] * 1e3 + 12345).astype(np.float32)  # far from the origin
META: dict[str, Any] = {
    "title": np.array([f"Title {i}" for i in range(N)]),
    "kind": np.array(["a", "b", ""])[np.arange(N) % 3],
    "float64": RNG.normal(size=N) * 1e-7,
    "float32": RNG.normal(size=N).astype(np.float32),
    "price": (RNG.uniform(0, 1e5, size=N) * 100).round() / 100,
    "gaps": np.where(np.arange(N) % 7 == 0, np.nan, np.arange(N) * 3.0),
    "large": 2**40 + np.arange(N),
    "day": np.datetime64("1969-12-01") + np.arange(N).astype("timedelta64[D]"),
    "second": np.datetime64("2026-01-01T00:00:01") + (np.arange(N) * 4321).astype("timedelta64[s]"),
}


@pytest.fixture(scope="module")
def page() -> Any:
    names = [f"id-{i}" for i in range(N)]
    return build_explorer(
        [("map", MAP)], title="all kinds", rows=ROWS, metadata=META, names=names, names_title="film", color="kind"
    )


@pytest.fixture(scope="module")
def seen(browser: Any, page: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    path = tmp_path_factory.mktemp("decoding") / "page.html"
    write_page(path, page)
    with visit(browser, path) as opened:
        yield opened


@pytest.fixture(scope="module")
def table(seen: Seen) -> dict[str, list[str]]:
    with seen.page.expect_download() as downloading:
        seen.page.locator("#export").click()
    with Path(downloading.value.path()).open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return {name: [line[name] for line in lines] for name in lines[0]}


def test_coordinates_are_exact(table: dict[str, list[str]]) -> None:
    found = np.column_stack([np.array(table[f"dre{i + 1}"], dtype=np.float64) for i in range(3)])
    assert found.astype(np.float32).tobytes() == MAP.tobytes()


@pytest.mark.parametrize("name", ["float64", "float32", "price", "gaps", "large"])
def test_numbers_are_exact(table: dict[str, list[str]], name: str) -> None:
    found = np.array([float(each or "nan") for each in table[name]])
    assert np.array_equal(found.astype(META[name].dtype), META[name], equal_nan=name == "gaps")


def test_dates_and_texts_are_themselves(table: dict[str, list[str]]) -> None:
    assert table["day"] == META["day"].astype(str).tolist()
    assert table["second"] == META["second"].astype(str).tolist()
    assert table["title"] == META["title"].tolist()
    assert table["kind"] == META["kind"].tolist()
    assert table["film"] == [f"id-{i}" for i in range(N)]


def test_a_title_heads_the_card_of_a_row_that_has_a_name_too(seen: Seen, page: Any) -> None:
    seen.pin(7)
    row = seen.page.evaluate("explorer.pinned()")
    assert seen.page.locator("#pinned b").first.inner_text() == f"Title {row}"
    values = dict(zip(seen.texts("#pinned dt"), seen.texts("#pinned dd"), strict=True))
    assert values["film"] == f"id-{row}"
    assert "title" not in values
    assert seen.page.evaluate("explorer.neighbors().data") == page.neighbors.ids[row].tolist()
    assert seen.said == []
