"""Write the results of the scripts in this folder to results/NAME.json, or to the folder $DRE_RESULTS."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dre.compare.record import provenance, write_json

RESULTS = Path(__file__).parent / "results"


def record(name: str, results: Any, **about: Any) -> None:
    """Write results with their command, versions and machine."""
    command = {"command": " ".join(["python", *_without_folders(sys.argv)])}
    folder = Path(os.environ.get("DRE_RESULTS", RESULTS))
    write_json(folder / f"{name}.json", {**provenance(), **command, **about, "results": results})


def _without_folders(words: list[str]) -> list[str]:
    """Replace the path after --data, which means nothing on other machines."""
    return ["FOLDER" if before == "--data" else word for before, word in zip(["", *words], words, strict=False)]
