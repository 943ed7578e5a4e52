"""Pipes, sockets and devices are refused at once, wherever a file is expected."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dre import DRE
from dre.io.readers import SourceError, open_source
from dre.io.readers.labels import read_labels

pytestmark = pytest.mark.skipif(os.name != "posix", reason="such files are those of POSIX systems")
KINDS = {"pipe": "a pipe", "socket": "a socket", "zero": "a device", "terminal": "a device"}


def make(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(folder)  # the names of sockets are short
    if kind == "pipe":
        os.mkfifo(name)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
    else:
        Path(name).symlink_to("/dev/zero" if kind == "zero" else "/dev/tty")


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.npy", "x.npz", "x.h5", "x.parquet", "x.json", "x.png", "x"])
def test_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str) -> None:
    make(kind, tmp_path, monkeypatch, name)
    with pytest.raises(SourceError, match=rf"^{name} is {KINDS[kind]}, not a file: save its content to a file, and pass that$"):
        open_source(name)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", ["y.csv", "y.txt", "y.json", "y.npy"])
def test_no_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str) -> None:
    make(kind, tmp_path, monkeypatch, name)
    with pytest.raises(ValueError, match=rf"{name} is {KINDS[kind]}, not a file"):
        read_labels(Path(name), 3)


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    make(kind, tmp_path, monkeypatch, "m.safetensors")
    with pytest.raises(FileNotFoundError, match=r"m\.safetensors.*pipe or a device"):
        DRE.load("m.safetensors")


def test_the_output_of_another_program_is_refused_with_the_remedy() -> None:
    program = (
        "import sys; from dre.io.readers import open_source\ntry: open_source(sys.argv[1])\nexcept ValueError as e: print(e)"
    )
    for name in ("/dev/stdin", "/dev/fd/0"):
        start = time.monotonic()
        command = [sys.executable, "-c", program, name]
        done = subprocess.run(command, input="a,b\n1,2\n", capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == f"{name} is a pipe, not a file: save its content to a file, and pass that\n"
        assert time.monotonic() - start < 60


def test_a_dash_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=r"^- is standard input, not a file: save its content to a file, and pass that$"):
        open_source("-")
