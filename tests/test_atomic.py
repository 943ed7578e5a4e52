"""Files that are complete or absent: after a kill, through links, beside other processes, and without permission."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dre.atomic
from dre.atomic import WriteError, atomic_write

NOBODY = 65534
HANGING = """
import sys, time
from pathlib import Path
from dre.atomic import atomic_write
with atomic_write(Path(sys.argv[1])) as part:
    part.write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


@contextmanager
def writing(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in the middle of a write."""
    process = subprocess.Popen([sys.executable, "-c", HANGING, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def write(path: Path, text: str) -> None:
    with atomic_write(path) as part:
        part.write_text(text)


@pytest.mark.skipif(os.name != "posix", reason="folders of killed processes are found by locks of POSIX systems")
@pytest.mark.parametrize("name", ["map.csv", "other.csv"])
def test_what_a_killed_process_left_is_removed_by_the_next_write_to_its_folder(tmp_path: Path, name: str) -> None:
    with writing(tmp_path / "map.csv") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (left,) = tmp_path.iterdir()
    assert left.is_dir()
    write(tmp_path / name, "whole")
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "whole"


def test_a_process_that_still_writes_keeps_its_folder(tmp_path: Path) -> None:
    with writing(tmp_path / "map.csv"):
        (its,) = tmp_path.iterdir()
        write(tmp_path / "map.csv", "mine")
        assert (its / "map.csv").read_text() == "half"
    write(tmp_path / "map.csv", "mine again")
    assert [each.name for each in tmp_path.iterdir()] == ["map.csv"]


def test_two_writes_of_one_process_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "map.csv") as first:
        first.write_text("first")
        write(tmp_path / "map.csv", "second")
        assert (tmp_path / "map.csv").read_text() == "second"
    assert (tmp_path / "map.csv").read_text() == "first"
    assert [each.name for each in tmp_path.iterdir()] == ["map.csv"]


def test_what_another_computer_or_a_user_made_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "another")
    name = dre.atomic._new_folder(tmp_path / "map.csv")[0].name
    monkeypatch.undo()
    for other in (".map.csv.folder", ".map.csv.abcdefgh", ".git"):
        (tmp_path / other).mkdir()
    write(tmp_path / "map.csv", "mine")
    assert {each.name for each in tmp_path.iterdir()} == {"map.csv", name, ".map.csv.folder", ".map.csv.abcdefgh", ".git"}


def test_a_file_is_on_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def recorded_sync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "replace", lambda *paths: (steps.append("rename"), replace(*paths)))
    write(tmp_path / "map.csv", "mine")
    assert steps == ["file", "rename", "folder"]


@pytest.mark.parametrize("exists", [True, False])
def test_the_target_of_a_link_is_written_and_the_link_stays(tmp_path: Path, exists: bool) -> None:
    disk, here = tmp_path / "disk", tmp_path / "here"
    disk.mkdir()
    here.mkdir()
    if exists:
        (disk / "target.bin").write_text("before")
    (here / "middle.csv").symlink_to("../disk/target.bin")  # relative to the link
    (here / "map.csv").symlink_to(here / "middle.csv")
    with atomic_write(here / "map.csv") as part:
        assert part.name == "map.csv"  # whose suffix chooses the format
        part.write_text("mine")
        assert (disk / "target.bin").exists() == exists
    assert (here / "map.csv").is_symlink()
    assert (here / "middle.csv").is_symlink()
    assert (disk / "target.bin").read_text() == (here / "map.csv").read_text() == "mine"
    assert [each.name for each in disk.iterdir()] == ["target.bin"]


def test_a_link_to_itself_or_into_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "lost.csv").symlink_to("nowhere/target.csv")
    for name in ("loop.csv", "lost.csv"):
        with pytest.raises(WriteError, match=rf"{'loop' if name == 'loop.csv' else 'target'}\.csv .*choose"):
            write(tmp_path / name, "mine")
        assert (tmp_path / name).is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / ("é" * 125 + ".csv"), "mine")
    assert len(list(tmp_path.iterdir())) == 1


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from dre.atomic import WriteError, atomic_write
from dre.io.writers import OutputSpec, check_writable, open_sink
from dre.model.archive import _write
folder = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
for name in ("new.csv", "there.csv"):
    try:
        check_writable(folder / name, force=True)
    except ValueError as problem:
        print("checked:", problem)
    try:
        with atomic_write(folder / name):
            print("opened")
    except WriteError as problem:
        print("refused:", problem)
try:
    _write(folder / "model.safetensors", {}, {})
except OSError as problem:
    print("model:", problem)
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions of folders are those of POSIX systems")
def test_a_read_only_folder_is_refused_and_stays_as_it_was() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders can't be entered by other users
        folder = Path(name, "read-only")
        folder.mkdir()
        (folder / "there.csv").write_text("before")
        os.chmod(name, 0o755)
        os.chmod(folder, 0o555)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(UNPRIVILEGED), str(folder), str(NOBODY)],
            capture_output=True,
            text=True,
            check=True,
        )
        lines = done.stdout.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["checked", "refused", "checked", "refused", "model"]
        assert all(str(folder) in line and "choose" in line for line in lines)
        assert "permission denied" in lines[1]
        assert [(each.name, each.read_text()) for each in folder.iterdir()] == [("there.csv", "before")]
        os.chmod(folder, 0o755)
