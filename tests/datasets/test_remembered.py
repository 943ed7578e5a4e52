"""Results kept in the cache: once computed, unless the settings changed or the file did."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from stand_ins import Network, kept

from dre.datasets.remembered import remembered

pytestmark = pytest.mark.usefixtures("network")


class Compute:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, np.ndarray]:
        self.times += 1
        return {"a": np.arange(1000, dtype=np.float32), "b": np.eye(3)}


def ask(compute: Compute, **settings: object) -> dict[str, np.ndarray]:
    found = remembered("thing", {"content": "x", **settings}, compute)
    assert set(found) == {"a", "b"}
    np.testing.assert_array_equal(found["a"], np.arange(1000, dtype=np.float32))
    assert found["a"].dtype == np.float32
    return found


def test_it_is_computed_once_per_setting(tmp_path: Path) -> None:
    compute = Compute()
    for _ in range(3):
        ask(compute)
    assert compute.times == 1
    ask(compute, content="y")
    ask(compute, components=2)
    assert compute.times == 3
    assert len(kept(tmp_path / "cache" / "computed")) == 3


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "other"])
def test_a_damaged_file_is_computed_anew_and_mended(tmp_path: Path, damage: str) -> None:
    compute = Compute()
    ask(compute)
    (path,) = (tmp_path / "cache" / "computed").glob("*.npz")
    content = path.read_bytes()
    middle = content[:2000] + bytes([content[2000] ^ 1]) + content[2001:]
    path.write_bytes({"truncated": content[:-100], "changed": middle, "empty": b"", "other": b"text"}[damage])
    ask(compute)
    ask(compute)
    assert compute.times == 2


def test_a_cache_that_cannot_be_written_costs_a_warning_and_time(network: Network, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be", encoding="utf-8")
    compute = Compute()
    for _ in range(2):
        with pytest.warns(UserWarning, match="DRE_CACHE"):
            ask(compute)
    assert compute.times == 2


def test_without_a_cache_it_is_computed_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRE_CACHE")
    monkeypatch.setitem(sys.modules, "pooch", None)
    compute = Compute()
    ask(compute)
    ask(compute)
    assert compute.times == 2
