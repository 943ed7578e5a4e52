"""Where the results of the scripts beside this file go: results/NAME.json, or the folder that DRE_RESULTS names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dre.compare.record import provenance, write

RESULTS = Path(__file__).parent / "results"


def record(name: str, results: Any, **about: Any) -> None:
    command = {"command": " ".join(["python", *_without_folders(sys.argv)])}
    folder = Path(os.environ.get("DRE_RESULTS", RESULTS))
    write(folder / f"{name}.json", {**provenance(), **command, **about, "results": results})


def _without_folders(words: list[str]) -> list[str]:
    """Where the data lay on the machine says nothing to others."""
    return ["FOLDER" if before == "--data" else word for before, word in zip(["", *words], words, strict=False)]
