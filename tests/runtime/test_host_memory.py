"""Free memory: the smallest of what the system, the control groups and the process's own limit leave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dre.runtime.host_memory as host_memory
from dre.runtime import available_bytes

GIB = 2**30


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system with 8 GiB available, no limits, and files that a test can write."""
    for name in ("MEMINFO", "GROUPS"):
        monkeypatch.setattr(host_memory, name, tmp_path / name)
    monkeypatch.setattr(host_memory, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(host_memory, "_address_space", lambda: None)
    (tmp_path / "MEMINFO").write_text(f"MemTotal: 1 kB\nMemAvailable: {8 * 2**20} kB\n")
    return tmp_path


def group(folder: Path, files: tuple[str, str], limit: str, used: int, cache: int = 0, stat: str = "inactive_file") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / files[0]).write_text(f"{limit}\n")
    (folder / files[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{stat} {cache}\n")


VERSION_1, VERSION_2 = ("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current")


def test_without_limits_it_is_what_the_system_says(system: Path) -> None:
    assert available_bytes() == 8 * GIB
    (system / "MEMINFO").unlink()
    assert available_bytes() is None


def test_a_control_group_of_version_2_limits_it_and_so_do_those_above(system: Path) -> None:
    (system / "GROUPS").write_text("0::/job/step\n")
    group(system / "cgroup/job/step", VERSION_2, "max", GIB)
    assert available_bytes() == 8 * GIB
    group(system / "cgroup/job", VERSION_2, str(4 * GIB), 2 * GIB, GIB)
    assert available_bytes() == 3 * GIB  # the cache of files is given back
    group(system / "cgroup", VERSION_2, str(2 * GIB), GIB)
    assert available_bytes() == GIB
    group(system / "cgroup/job/step", VERSION_2, str(GIB), 2 * GIB)
    assert available_bytes() == 0


def test_a_control_group_of_version_1_limits_it(system: Path) -> None:
    (system / "GROUPS").write_text("5:cpu:/other\n4:memory:/box\n0::/\n")
    group(system / "cgroup/memory/box", VERSION_1, str(2**63 - 4096), GIB)
    assert available_bytes() == 8 * GIB
    group(system / "cgroup/memory/box", VERSION_1, str(3 * GIB), GIB, GIB // 2, "total_inactive_file")
    assert available_bytes() == 5 * GIB // 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the size of the address space")
def test_the_limit_of_the_process_counts() -> None:
    program = (
        "import resource; from dre.runtime.host_memory import free_bytes, _address_space\n"
        "assert _address_space() is None\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)); print(free_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 0 <= int(done.stdout) < 2**30
