"""Turns: several processes or threads that want the same get it, made once where the system has locks."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from stand_ins import Network, kept

from dre.datasets.files import File, read
from dre.datasets.turns import turn

GOOD = b"as published"
FILE = File("a.bin", "letters", "https://example.org/a.bin", "sha256:" + hashlib.sha256(GOOD).hexdigest())
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
        return read(FILE)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(ask, range(n)))


def test_a_file_that_several_want_is_downloaded_once(slow: Network, tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    assert together(WORKERS) == [GOOD] * WORKERS
    assert slow.asked == [FILE.url]
    assert kept(tmp_path / "cache" / "letters") == ["a.bin"]


def test_without_locks_it_is_downloaded_several_times_and_always_whole(
    slow: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert together(WORKERS) == [GOOD] * WORKERS
    assert slow.asked == [FILE.url] * WORKERS
    assert kept(tmp_path / "cache" / "letters") == ["a.bin"]


def test_a_download_that_failed_leaves_the_turn_to_the_next(slow: Network) -> None:
    page = slow.pages.pop(FILE.url)
    with pytest.raises(FileNotFoundError):
        read(FILE)
    slow.pages[FILE.url] = page
    assert read(FILE) == GOOD


COMPUTE = """
import sys, time
from pathlib import Path
import numpy as np
from dre.datasets.remembered import remembered

def compute():
    with Path(sys.argv[1]).open("ab") as log:
        log.write(b"computed ")
    time.sleep(0.5)
    return {"a": np.arange(3)}

print(remembered("thing", {"content": "x"}, compute)["a"].tolist())
"""


def test_what_several_processes_want_is_computed_by_one_of_them(network: Network, tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    command = [sys.executable, "-c", COMPUTE, str(tmp_path / "log")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") for _ in range(WORKERS)]
    assert [process.communicate(timeout=60)[0].strip() for process in running] == ["[0, 1, 2]"] * WORKERS
    assert (tmp_path / "log").read_bytes() == b"computed "
    assert len(kept(tmp_path / "cache" / "computed")) == 1


HOLD = """
import sys, time
from pathlib import Path
from dre.datasets.turns import turn

with turn(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_turn_ends_with_the_process_that_has_it_and_others_wait_until_then(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    target, taken = tmp_path / "a.bin", threading.Event()

    def take() -> None:
        with turn(target):
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
    with turn(tmp_path / "a"), turn(tmp_path / "b"):
        assert kept(tmp_path) == []


def test_a_folder_that_can_not_be_written_to_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with turn(tmp_path / "file" / "a"), turn(tmp_path / "file" / "a"):
        pass
