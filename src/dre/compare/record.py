"""Results as JSON with their provenance: the command, the date, the versions and the machine."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import dre
from dre.atomic import atomic_write

LIBRARIES = ("torch", "numpy", "scikit-learn", "faiss-cpu", "umap-learn", "openTSNE", "pacmap", "pynndescent", "zadu")


def provenance() -> dict[str, Any]:
    """Return the command, date, versions and machine of this process.

    >>> sorted(provenance())
    ['command', 'date', 'machine', 'versions']
    """
    return {
        "command": " ".join([Path(sys.argv[0]).name.removesuffix(".py"), *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "machine": machine(),
    }


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically, with NaN and infinity as null; folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_without_nan(content), indent=1, allow_nan=False) + "\n"
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")


def _without_nan(content: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, by None."""
    if isinstance(content, dict):
        return {name: _without_nan(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def machine() -> dict[str, Any]:
    """Return the number of CPUs, the GPU or None, and the system."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpus": os.cpu_count(), "gpu": gpu, "system": f"{platform.system()} {platform.machine()}"}


def _versions() -> dict[str, str]:
    found = {"dre": dre.__version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
