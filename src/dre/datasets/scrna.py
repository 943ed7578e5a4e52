"""Single cells: counts of genes to rows that can be compared, and the sets that are published as HDF5 files."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from dre.datasets.dataset import Array, Dataset, Part
from dre.datasets.files import INSTALL, File, Folder, corrupt, read
from dre.datasets.split import SEED, split, split_ids

COMPONENTS = 50
PER = 10_000
ABOUT = """{what}: {cells:,} cells, the {genes:,} genes that vary most, as in the public repository ttgump/scDCC, folder data/
(Tian et al. 2021). Rows: {rows}. 75/25 split, stratified, random_state 0.
Labels: the class; their names are not given. The repository states no licence."""
REDUCED = f"counts per {PER:,}, log(1 + x), PCA to {COMPONENTS} fitted on the training part (random_state 0)"


@dataclass(frozen=True)
class Cells:
    """A set of cells: X (cells, genes), the counts, and Y (cells,), the classes, in one HDF5 file."""

    name: str
    title: str
    what: str
    file: File
    shape: tuple[int, int]

    def load(self, folder: Folder, *, raw: bool) -> Dataset:
        counts, labels = self.read(folder)
        if raw:
            train, test = split(counts, {"class": labels})
        else:
            train, test = reduced(logged(counts), labels)
        rows = "raw counts" if raw else REDUCED
        about = ABOUT.format(what=self.what, cells=counts.shape[0], genes=counts.shape[1], rows=rows)
        return Dataset(self.name, self.title, train, test, about)

    def read(self, folder: Folder = None) -> tuple[Array, Array]:
        """The counts float32 (cells, genes) and the classes, as they are in the file."""
        try:
            import h5py
        except ImportError as problem:
            raise ImportError(f"the dataset {self.name!r} needs h5py: {INSTALL}") from problem
        content = read(self.file, folder)
        try:
            with h5py.File(io.BytesIO(content)) as file:
                counts, labels = np.asarray(file["X"], dtype=np.float32), np.asarray(file["Y"]).astype(np.int64)
        except (OSError, KeyError) as problem:
            raise corrupt(self.file.name, f"it can't be read ({problem})", self.file.url) from problem
        if counts.shape != self.shape or len(labels) != len(counts):
            found = f"it has X {counts.shape} and Y {labels.shape}, expected {self.shape} and {self.shape[:1]}"
            raise corrupt(self.file.name, found, self.file.url)
        return counts, labels


def logged(counts: Array, per: float = PER) -> Array:
    """log(1 + counts per so many of the cell), float32; counts is not changed.

    >>> logged(np.array([[1.0, 1.0], [0.0, 0.0]]), per=2 * (np.e - 1))
    array([[1., 1.],
           [0., 0.]], dtype=float32)
    """
    totals = counts.sum(axis=1, keepdims=True, dtype=np.float64)
    rows: Array = np.log1p(counts * (per / np.maximum(totals, 1))).astype(np.float32)
    return rows


def reduced(rows: Array, labels: Array, components: int = COMPONENTS) -> tuple[Part, Part]:
    """The training part and the test part, both in the principal components of the training part."""
    train, test = split_ids(labels)
    vectors = principal_components(rows[train], rows[test], components)
    return Part.of(vectors["train"], {"class": labels[train]}), Part.of(vectors["test"], {"class": labels[test]})


def principal_components(train: Array, test: Array, components: int) -> dict[str, Array]:
    from sklearn.decomposition import PCA

    most = min(train.shape)
    if components > most:
        raise ValueError(f"components={components}: {train.shape[0]} training cells with {train.shape[1]} genes have {most}")
    pca = PCA(components, random_state=SEED)
    return {"train": pca.fit_transform(train).astype(np.float32), "test": pca.transform(test).astype(np.float32)}
