""".h5ad: AnnData in HDF5, read without the library that writes it."""

from __future__ import annotations

from pathlib import Path

from dre.io.readers.anndata import open_anndata
from dre.io.readers.hdf5 import opened, pieces
from dre.io.readers.source import Format, Source, reading


def open_h5ad(path: Path, part: str | None = None) -> Source:
    with reading(path):
        return open_anndata(path, opened(path), part, pieces)


FORMAT = Format((".h5ad",), open_h5ad, has_parts=True)
