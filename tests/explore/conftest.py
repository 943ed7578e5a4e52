"""A page with known points, and a browser that opens it: Debian's Chromium, or another on the path."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from known_page import HOSTILE, Seen, known, shop, visit

from dre.explore import build_explorer, write_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "map.html"
    given = known()
    write_page(path, build_explorer(given.pop("stages"), title=f"Title {HOSTILE}", **given))
    return path


@pytest.fixture(scope="session")
def shop_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "shop.html"
    given = shop()
    write_page(path, build_explorer(given.pop("stages"), title="A shop", **given))
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        reason = f"no browser is installed: one of {', '.join(BROWSERS)} is needed"
        if os.environ.get("DRE_NEEDS_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def seen(browser: Any, page_file: Path) -> Iterator[Seen]:
    context = browser.new_context(viewport={"width": 1200, "height": 800}, accept_downloads=True)
    yield Seen(context.new_page()).open(page_file)
    context.close()


@pytest.fixture
def in_shop(browser: Any, shop_file: Path) -> Iterator[Seen]:
    with visit(browser, shop_file) as seen:
        yield seen


@pytest.fixture
def on_phone(browser: Any, shop_file: Path) -> Iterator[Seen]:
    with visit(browser, shop_file, phone=True) as seen:
        yield seen
