"""The cache: downloads and results are made once, by one process at a time, and damaged results are computed again."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_ins import Network, kept

from dre.datasets.files import RemoteFile, cached_arrays, file_lock, read_file

GOOD = b"as published"
FILE = RemoteFile("a.bin", "letters", "https://example.org/a.bin", "sha256:" + hashlib.sha256(GOOD).hexdigest())
WORKERS = 4


@pytest.fixture
def slow(network: Network, monkeypatch: pytest.MonkeyPatch) -> Network:
    """A network that takes its time, so that all ask before the first is answered."""
    get = network.get

    def later(*given: Any, **named: Any) -> None:
        time.sleep(0.1)
        get(*given, **named)

    monkeypatch.setattr(network, "get", later)
    network.pages[FILE.url] = GOOD
    return network


def together(n: int) -> list[bytes]:
    """What n threads read that begin at once."""
    ready = threading.Barrier(n)

    def ask(_: int) -> bytes:
        ready.wait()
        return read_file(FILE)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(ask, range(n)))


def test_several_threads_download_a_file_once(slow: Network, tmp_path: Path) -> None:
    assert together(WORKERS) == [GOOD] * WORKERS
    assert slow.asked == [FILE.url]
    assert kept(tmp_path / "cache" / "letters") == ["a.bin"]


def test_without_locks_a_file_is_downloaded_several_times_and_always_complete(
    slow: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "filelock", None)
    assert together(WORKERS) == [GOOD] * WORKERS
    assert slow.asked == [FILE.url] * WORKERS
    assert kept(tmp_path / "cache" / "letters") == ["a.bin"]


def test_a_failed_download_releases_the_lock(slow: Network) -> None:
    page = slow.pages.pop(FILE.url)
    with pytest.raises(FileNotFoundError):
        read_file(FILE)
    slow.pages[FILE.url] = page
    assert read_file(FILE) == GOOD


COMPUTE = """
import sys, time
from pathlib import Path
import numpy as np
from dre.datasets.files import cached_arrays

def compute():
    with Path(sys.argv[1]).open("ab") as log:
        log.write(b"computed ")
    time.sleep(0.5)
    return {"a": np.arange(3)}

print(cached_arrays("thing", {"content": "x"}, compute)["a"].tolist())
"""


def test_one_of_several_processes_computes_a_result(network: Network, tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMPUTE, str(tmp_path / "log")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") for _ in range(WORKERS)]
    assert [process.communicate(timeout=60)[0].strip() for process in running] == ["[0, 1, 2]"] * WORKERS
    assert (tmp_path / "log").read_bytes() == b"computed "
    assert len(kept(tmp_path / "cache" / "computed")) == 1


HOLD = """
import sys, time
from pathlib import Path
from dre.datasets.files import file_lock

with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_lock_ends_with_its_process_and_others_wait_until_then(tmp_path: Path) -> None:
    target, taken = tmp_path / "a.bin", threading.Event()

    def take() -> None:
        with file_lock(target):
            taken.set()

    with subprocess.Popen([sys.executable, "-c", HOLD, str(target)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == b"held"
        waiting = threading.Thread(target=take)
        waiting.start()
        assert not taken.wait(0.2)
        holder.kill()
    waiting.join(timeout=10)
    assert taken.is_set()


def test_different_targets_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with file_lock(tmp_path / "a"), file_lock(tmp_path / "b"):
        assert kept(tmp_path) == []


def test_an_unwritable_folder_blocks_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with file_lock(tmp_path / "file" / "a"), file_lock(tmp_path / "file" / "a"):
        pass


class Compute:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, np.ndarray]:
        self.times += 1
        return {"a": np.arange(1000, dtype=np.float32), "b": np.eye(3)}


def ask(compute: Compute, **settings: object) -> dict[str, np.ndarray]:
    found = cached_arrays("thing", {"content": "x", **settings}, compute)
    assert set(found) == {"a", "b"}
    np.testing.assert_array_equal(found["a"], np.arange(1000, dtype=np.float32))
    assert found["a"].dtype == np.float32
    return found


@pytest.mark.usefixtures("network")
def test_a_result_is_computed_once_per_setting(tmp_path: Path) -> None:
    compute = Compute()
    for _ in range(3):
        ask(compute)
    assert compute.times == 1
    ask(compute, content="y")
    ask(compute, components=2)
    assert compute.times == 3
    assert len(kept(tmp_path / "cache" / "computed")) == 3


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "other"])
def test_a_damaged_result_is_computed_again_and_stored(tmp_path: Path, damage: str) -> None:
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


@pytest.mark.usefixtures("network")
def test_without_a_cache_a_result_is_computed_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRE_CACHE")
    monkeypatch.setitem(sys.modules, "pooch", None)
    compute = Compute()
    ask(compute)
    ask(compute)
    assert compute.times == 2
