"""Where the results of the scripts beside this file go: results/NAME.json, or the folder that DRE_RESULTS names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dre.bench.record import provenance, write

RESULTS = Path(__file__).parent / "results"


def record(name: str, results: Any, **about: Any) -> None:
    command = {"command": " ".join(["python", *sys.argv])}
    folder = Path(os.environ.get("DRE_RESULTS", RESULTS))
    write(folder / f"{name}.json", {**provenance(), **command, **about, "results": results})
