"""A result as JSON, with what made it: the command, the versions, the machine, the seeds."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import dre

RESULTS = Path(__file__).parent / "results"
LIBRARIES = ("torch", "numpy", "scikit-learn", "faiss-cpu", "umap-learn", "zadu")


def record(name: str, results: Any, **about: Any) -> None:
    """Write ``results/NAME.json`` (or into the folder that ``DRE_RESULTS`` names)."""
    content = {
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "machine": _machine(),
        **about,
        "results": results,
    }
    folder = Path(os.environ.get("DRE_RESULTS", RESULTS))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def _versions() -> dict[str, str]:
    found = {"dre": dre.__version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, Any]:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpus": os.cpu_count(), "gpu": gpu, "system": f"{platform.system()} {platform.machine()}"}
