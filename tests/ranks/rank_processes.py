"""Starts the processes of several ranks, each of which calls a function of ``rank_programs.py``."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent


class Outcome(NamedTuple):
    """What one rank returned, and what it printed."""

    result: Any
    stdout: str
    stderr: str
    code: int
    seconds: float


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def run_ranks(program: str, *arguments: Any, size: int = 2, timeout: float = 300) -> list[Outcome]:
    """Call ``rank_programs.program(*arguments)`` in so many processes that belong together."""
    port, began = str(free_port()), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        calls = Path(folder, "call")
        calls.write_bytes(pickle.dumps((program, arguments)))
        processes = []
        for rank in range(size):
            own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
            address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
            environment = {**os.environ, **{name: str(value) for name, value in (own | address).items()}}
            command = [sys.executable, str(HERE / "rank_programs.py"), str(calls), str(Path(folder, str(rank)))]
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            processes.append(subprocess.Popen(command, env=environment, **pipes))
        outcomes = []
        for rank, process in enumerate(processes):
            try:
                stdout, stderr = process.communicate(timeout=max(1, timeout - (time.monotonic() - began)))
            except subprocess.TimeoutExpired:
                for each in processes:
                    each.kill()
                raise
            found = Path(folder, str(rank))
            result = pickle.loads(found.read_bytes()) if found.exists() else None
            outcomes.append(Outcome(result, stdout, stderr, process.returncode, time.monotonic() - began))
        return outcomes
