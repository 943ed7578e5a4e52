"""Embedding Atlas, a separate viewer for millions of points: hands a map over to it, if it is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
COMMAND = "embedding-atlas"
INSTALL = f"{COMMAND} is not installed: pip install {COMMAND}, possibly in a separate environment"
X, Y = "dre1", "dre2"


def atlas_command() -> str:
    """Path of the installed command."""
    found = shutil.which(COMMAND)
    if found is None:
        raise ImportError(INSTALL)
    return found


def write_table(path: Path, embedding: Array, metadata: Mapping[str, Array], names: Array | None) -> None:
    """Write coordinates, names and metadata as the .parquet file that the atlas reads."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as problem:
        raise ImportError(
            "Embedding Atlas reads .parquet files, which need pyarrow: pip install 'deep-recursive-embedding[files]'"
        ) from problem
    columns: dict[str, Any] = {f"dre{i + 1}": axis for i, axis in enumerate(embedding.T)}
    columns |= {"name": names.tolist()} if names is not None else {}
    columns |= {name: values if values.dtype.kind in "biuf" else values.tolist() for name, values in metadata.items()}
    parquet.write_table(pyarrow.table(columns), path)


def show(command: str, table: Path) -> None:
    """Serve the map until interrupted."""
    subprocess.run([command, str(table), "--x", X, "--y", Y], check=True)
