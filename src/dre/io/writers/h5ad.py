""".h5ad: a copy of the file that the cells come from, with their places in ``obsm["X_dre"]``, where scanpy looks for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dre.io.readers.source import INSTALL
from dre.io.writers.sink import Embedding, Filled, Format

KEY = "X_dre"


@contextmanager
def open_h5ad(path: Path, embedding: Embedding) -> Iterator[Filled]:
    if embedding.source is None or embedding.source.suffix.lower() != ".h5ad":
        raise ValueError(f"{path.name}: an .h5ad holds places beside the cells that they are of; write .npy, .csv or .parquet")
    try:
        import h5py
    except ImportError as problem:
        raise ImportError(f"{path.name} needs h5py: {INSTALL}") from problem
    shutil.copyfile(embedding.source, path)
    with h5py.File(path, "r+") as file:
        obsm = file.require_group("obsm")
        if KEY in obsm:
            del obsm[KEY]
        held = obsm.create_dataset(KEY, (embedding.rows, embedding.components), np.float32)
        held.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        yield Filled(held)


FORMAT = Format((".h5ad",), open_h5ad)
