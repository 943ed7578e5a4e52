"""What stands in for the network in tests of datasets; and the published files themselves, where there are some."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Network:
    """What the network would give: nothing, until a test puts something there."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []

    def get(self, downloader: Any, url: str, output_file: str, pooch: Any, check_only: bool = False) -> None:
        self.asked.append(url)
        Path(output_file).write_bytes(b"half")
        if url not in self.pages:
            raise ConnectionError("no network")
        Path(output_file).write_bytes(self.pages[url])


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    """Stands in for the network, with no data folder named and an empty cache."""
    pooch = pytest.importorskip("pooch", reason="pooch is not installed: the extra datasets")
    network = Network()
    monkeypatch.delenv("DRE_DATA", raising=False)
    monkeypatch.setenv("DRE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", lambda *given, **named: network.get(*given, **named))
    return network


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the published files."""
    folder = Path(os.environ.get("DRE_DATA", ""))
    if not os.environ.get("DRE_DATA") or not folder.is_dir():
        pytest.skip("the published files are not here: set DRE_DATA to a folder that has them")
    monkeypatch.setenv("DRE_CACHE", str(tmp_path / "cache"))
    return folder


def held(folder: Path) -> dict[str, tuple[int, int]]:
    """All that is in a folder, to see that nothing was written there."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


def kept(folder: Path) -> list[str]:
    """The names of what is in a folder but for the locks, which stay there empty."""
    assert all(path.stat().st_size == 0 for path in folder.glob(".*.lock"))
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")
