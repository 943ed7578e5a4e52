"""Runs the command as a user calls it, in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dre.cli import main

Run = Callable[..., int]


@pytest.fixture
def dre(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRE_DEBUG", raising=False)

    def run(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["dre", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run
