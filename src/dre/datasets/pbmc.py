"""PBMC: 4,271 cells of human blood in 8 classes; small data, on which a learned map has a hard time."""

from __future__ import annotations

from dre.datasets.dataset import Dataset
from dre.datasets.files import File, Folder
from dre.datasets.scrna import Cells

CELLS = Cells(
    "pbmc",
    "PBMC, 4,271 cells",
    "PBMC 4k (10x Genomics), mononuclear cells of human blood",
    File(
        "10X_PBMC_top2000.h5",
        "scrna",
        "https://raw.githubusercontent.com/ttgump/scDCC/84f29c345b2b6b0d61131f733fb6180fa0b6e56e/data/Small_Datasets/"
        "10X_PBMC_top2000.h5",
        "sha256:ec78ead405dfa988d6156c12068b49c0782ca58f5ed52c938d8ba8e8377eb16e",
    ),
    (4271, 2000),
)


def load(folder: Folder = None, *, raw: bool = False) -> Dataset:
    """Vectors float32 (n, 50), the first 50 principal components; ``raw`` gives the counts (n, 2000) instead."""
    return CELLS.load(folder, raw=raw)
