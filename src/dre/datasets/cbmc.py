"""CBMC: 8,617 cells of cord blood in 15 classes, some of them rare."""

from __future__ import annotations

from dre.datasets.dataset import Dataset
from dre.datasets.files import File, Folder
from dre.datasets.scrna import Cells

CELLS = Cells(
    "cbmc",
    "CBMC, 8,617 cells",
    "CITE-seq of cord blood mononuclear cells (Stoeckius et al. 2017), the genes without the proteins",
    File(
        "CITE_CBMC_counts_top2000.h5",
        "scrna",
        "https://raw.githubusercontent.com/ttgump/scDCC/84f29c345b2b6b0d61131f733fb6180fa0b6e56e/data/CITE_PBMC/"
        "CITE_CBMC_counts_top2000.h5",
        "sha256:68f36cd64729b1ee853fe5f760dbc0a9238d52a18a8a076742883379cce98e9f",
    ),
    (8617, 2000),
)


def load(folder: Folder = None, *, raw: bool = False) -> Dataset:
    """Vectors float32 (n, 50), the first 50 principal components; ``raw`` gives the counts (n, 2000) instead."""
    return CELLS.load(folder, raw=raw)
