"""A result as JSON, with what made it: the command, the versions, the machine."""

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

LIBRARIES = ("torch", "numpy", "scikit-learn", "faiss-cpu", "umap-learn", "openTSNE", "pynndescent", "zadu")


def provenance() -> dict[str, Any]:
    return {
        "command": " ".join([Path(sys.argv[0]).name.removesuffix(".py"), *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "machine": machine(),
    }


def write(path: Path, content: Any) -> None:
    """All of it or nothing: a run that is killed leaves no half-written file, and two at once do not mix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_without_nan(content), indent=1, allow_nan=False) + "\n"
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _without_nan(content: Any) -> Any:
    """JSON has no word for what is not a number: null."""
    if isinstance(content, dict):
        return {name: _without_nan(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def machine() -> dict[str, Any]:
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
