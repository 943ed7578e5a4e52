"""Single-cell RNA data, PBMC and CBMC: gene counts normalized, logged and reduced by PCA."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from dre.datasets.dataset import SEED, Array, Dataset, DatasetSplit, stratified_ids, stratified_split
from dre.datasets.files import INSTALL, Folder, RemoteFile, corrupt, read_file

COMPONENTS = 50
TARGET_SUM = 10_000
REPOSITORY = "https://raw.githubusercontent.com/ttgump/scDCC/84f29c345b2b6b0d61131f733fb6180fa0b6e56e/data/"
DESCRIPTION = """{content}: {cells:,} cells, the {genes:,} most variable genes, from the public repository ttgump/scDCC,
folder data/ (Tian et al. 2021). Rows: {rows}. 75/25 split, stratified, random_state 0.
Labels: the class; the repository does not name the classes, and states no license."""
REDUCED = f"counts per {TARGET_SUM:,}, log(1 + x), PCA to {COMPONENTS} fitted on the training rows (random_state 0)"


@dataclass(frozen=True)
class CellCounts:
    """An HDF5 file with the counts X (cells, genes) and the classes Y (cells,)."""

    name: str
    title: str
    content: str
    file: RemoteFile
    shape: tuple[int, int]

    def read(self, folder: Folder = None) -> tuple[Array, Array]:
        """Read the counts, float32 (cells, genes), and the classes."""
        try:
            import h5py
        except ImportError as problem:
            raise ImportError(f"the dataset {self.name!r} needs h5py: {INSTALL}") from problem
        content = read_file(self.file, folder)
        try:
            with h5py.File(io.BytesIO(content)) as file:
                counts, labels = np.asarray(file["X"], dtype=np.float32), np.asarray(file["Y"]).astype(np.int64)
        except (OSError, KeyError) as problem:
            raise corrupt(self.file.name, f"it cannot be read ({problem})", self.file.url) from problem
        if counts.shape != self.shape or len(labels) != len(counts):
            found = f"it has X {counts.shape} and Y {labels.shape}, expected {self.shape} and {self.shape[:1]}"
            raise corrupt(self.file.name, found, self.file.url)
        return counts, labels


PBMC = CellCounts(
    "pbmc",
    "PBMC, 4,271 cells",
    "PBMC 4k (10x Genomics), mononuclear cells of human blood",
    RemoteFile(
        "10X_PBMC_top2000.h5",
        "scrna",
        f"{REPOSITORY}Small_Datasets/10X_PBMC_top2000.h5",
        "sha256:ec78ead405dfa988d6156c12068b49c0782ca58f5ed52c938d8ba8e8377eb16e",
    ),
    (4271, 2000),
)
CBMC = CellCounts(
    "cbmc",
    "CBMC, 8,617 cells",
    "CITE-seq of cord blood mononuclear cells (Stoeckius et al. 2017), the genes without the proteins",
    RemoteFile(
        "CITE_CBMC_counts_top2000.h5",
        "scrna",
        f"{REPOSITORY}CITE_PBMC/CITE_CBMC_counts_top2000.h5",
        "sha256:68f36cd64729b1ee853fe5f760dbc0a9238d52a18a8a076742883379cce98e9f",
    ),
    (8617, 2000),
)


def load_pbmc(folder: Folder = None, *, raw: bool = False) -> Dataset:
    """Load PBMC: 4,271 cells of human blood in 8 classes, a small dataset.

    Parameters
    ----------
    folder : path, default=None
        See `dre.datasets.load`.
    raw : bool, default=False
        Whether to return the counts (n, 2000) instead of the first 50 principal components (n, 50).

    Returns
    -------
    dataset : Dataset
    """
    return _load_cells(PBMC, folder, raw=raw)


def load_cbmc(folder: Folder = None, *, raw: bool = False) -> Dataset:
    """Load CBMC: 8,617 cells of cord blood in 15 classes, some of them rare.

    Parameters
    ----------
    folder, raw
        See `load_pbmc`.

    Returns
    -------
    dataset : Dataset
    """
    return _load_cells(CBMC, folder, raw=raw)


def _load_cells(source: CellCounts, folder: Folder, *, raw: bool) -> Dataset:
    counts, labels = source.read(folder)
    if raw:
        train, test = stratified_split(counts, {"class": labels})
    else:
        rows, (train_ids, test_ids) = log_normalize(counts), stratified_ids(labels)
        components = fit_pca(rows[train_ids], rows[test_ids], COMPONENTS)
        train = DatasetSplit.from_levels(components["train"], {"class": labels[train_ids]})
        test = DatasetSplit.from_levels(components["test"], {"class": labels[test_ids]})
    cells, genes = counts.shape
    description = DESCRIPTION.format(content=source.content, cells=cells, genes=genes, rows="raw counts" if raw else REDUCED)
    return Dataset(source.name, source.title, train, test, description)


def log_normalize(counts: Array, target_sum: float = TARGET_SUM) -> Array:
    """Scale the counts of each cell to ``target_sum`` and take log(1 + x).

    Parameters
    ----------
    counts : array of shape (cells, genes)
    target_sum : float, default=10_000

    Returns
    -------
    rows : array of shape (cells, genes), float32

    Examples
    --------
    >>> log_normalize(np.array([[1.0, 1.0], [0.0, 0.0]]), target_sum=2 * (np.e - 1))
    array([[1., 1.],
           [0., 0.]], dtype=float32)
    """
    totals = counts.sum(axis=1, keepdims=True, dtype=np.float64)
    rows: Array = np.log1p(counts * (target_sum / np.maximum(totals, 1))).astype(np.float32)
    return rows


def fit_pca(train: Array, test: Array, n_components: int) -> dict[str, Array]:
    """Reduce training and test rows by a PCA of the training rows.

    Parameters
    ----------
    train, test : arrays of shape (n, d) and (m, d)
    n_components : int

    Returns
    -------
    reduced : dict
        ``"train"`` and ``"test"``, float32 with ``n_components`` columns.

    Examples
    --------
    >>> fit_pca(np.eye(6, 4), np.eye(2, 4), 3)["test"].shape
    (2, 3)
    """
    from sklearn.decomposition import PCA

    most = min(train.shape)
    if n_components > most:
        raise ValueError(
            f"n_components={n_components}: {train.shape[0]} training rows with {train.shape[1]} columns have at most {most}"
        )
    pca = PCA(n_components, random_state=SEED)
    return {"train": pca.fit_transform(train).astype(np.float32), "test": pca.transform(test).astype(np.float32)}
