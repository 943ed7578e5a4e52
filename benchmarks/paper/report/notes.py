"""What a reader of the paper's tables should know, from the file beside this one."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Remarks:
    slips: tuple[str, ...]
    protocol: tuple[str, ...]


def remarks() -> Remarks:
    told = tomllib.loads((Path(__file__).parent / "notes.toml").read_text(encoding="utf-8"))
    return Remarks(tuple(told["slips"]), tuple(told["protocol"]))
