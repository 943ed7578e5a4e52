"""Millions of points: handed over to Embedding Atlas, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
COMMAND = "embedding-atlas"
INSTALL = f"{COMMAND} is not installed: pip install {COMMAND}, in an environment of its own if you like; or leave out --atlas"
X, Y = "dre1", "dre2"


def atlas_command() -> str:
    found = shutil.which(COMMAND)
    if found is None:
        raise ImportError(INSTALL)
    return found


def write_table(path: Path, places: Array, metadata: dict[str, Array], names: Array | None) -> None:
    """Places and what is known of the rows as .parquet, which the atlas reads."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as problem:
        raise ImportError("--atlas needs pyarrow: pip install 'deep-recursive-embedding[files]'") from problem
    columns: dict[str, Any] = {X: places[:, 0], Y: places[:, 1]}
    columns |= {"name": names.tolist()} if names is not None else {}
    columns |= {name: values if values.dtype.kind in "biuf" else values.tolist() for name, values in metadata.items()}
    parquet.write_table(pyarrow.table(columns), path)


def show(command: str, table: Path) -> None:
    """Serves the map until it is interrupted."""
    subprocess.run([command, str(table), "--x", X, "--y", Y], check=True)
