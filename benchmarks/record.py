"""Write the results of the scripts in this folder to results/NAME.json, or to the folder $DRE_RESULTS."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dre.compare.record import provenance, write_json

RESULTS = Path(__file__).parent / "results"
FOLDERS = ("--data", "--out", "--vectors", "--onnxruntime-web")  # options whose paths mean nothing on other machines


def result_file(name: str) -> Path:
    """Return the file of the results called NAME."""
    return Path(os.environ.get("DRE_RESULTS", RESULTS)) / f"{name}.json"


def record(name: str | Path, results: Any, **about: Any) -> None:
    """Write results with their command, versions and machine to the file of that name, or to a path."""
    command = {"command": " ".join(["python", *_without_folders(sys.argv)])}
    path = name if isinstance(name, Path) else result_file(name)
    write_json(path, {**provenance(), **command, **about, "results": results})


def _without_folders(words: list[str]) -> list[str]:
    """Replace the paths after these options."""
    return ["FOLDER" if before in FOLDERS else word for before, word in zip(["", *words], words, strict=False)]
