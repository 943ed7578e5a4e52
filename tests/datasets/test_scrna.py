"""PBMC and CBMC: the form of their files, the normalization, and the PCA of the training rows."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from stand_ins import Network, held

from dre.datasets import CorruptFileError, DatasetNotFoundError, load, scrna
from dre.datasets.scrna import CellCounts, fit_pca, log_normalize

h5py = pytest.importorskip("h5py", reason="h5py is not installed: the extra datasets")
SOURCES = {"pbmc": "PBMC", "cbmc": "CBMC"}
SHAPE = (120, 70)


def hdf5(counts: np.ndarray, labels: np.ndarray) -> bytes:
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        file["X"], file["Y"] = counts, labels
    return content.getvalue()


def expected(cells: CellCounts, content: bytes) -> CellCounts:
    return dataclasses.replace(
        cells,
        shape=SHAPE,
        file=dataclasses.replace(cells.file, checksum=f"sha256:{hashlib.sha256(content).hexdigest()}"),
    )


@pytest.fixture(params=SOURCES)
def small(
    request: pytest.FixtureRequest, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Path, np.ndarray, np.ndarray]:
    """A small file in the published form: name, folder, counts and labels (which are floats in one of the two)."""
    random, source = np.random.default_rng(0), getattr(scrna, SOURCES[request.param])
    labels = random.integers(1, 4, SHAPE[0])
    counts = random.poisson(1 + labels[:, None] * random.random(SHAPE[1])).astype(np.float32)
    content = hdf5(counts, labels.astype(float))
    path = tmp_path / "data" / "scrna" / source.file.name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    monkeypatch.setattr(scrna, SOURCES[request.param], expected(source, content))
    return request.param, tmp_path / "data", counts, labels


def test_rows_are_logs_of_shares_in_the_components_of_the_training_part(
    small: tuple[str, Path, np.ndarray, np.ndarray],
) -> None:
    name, folder, counts, labels = small
    before = held(folder)
    dataset = load(name, folder=folder)
    logs = np.log1p(counts / counts.sum(1, keepdims=True) * 10_000)
    train, test, train_labels, test_labels = train_test_split(logs, labels, test_size=0.25, stratify=labels, random_state=0)
    pca = PCA(50, random_state=0).fit(train)
    np.testing.assert_allclose(dataset.train.rows, pca.transform(train), atol=1e-3)
    np.testing.assert_allclose(dataset.test.rows, pca.transform(test), atol=1e-3)
    np.testing.assert_array_equal(dataset.train.labels, train_labels)
    np.testing.assert_array_equal(dataset.test.labels, test_labels)
    assert dataset.train.rows.dtype == np.float32
    assert dataset.train.labels.dtype == np.int64
    assert list(dataset.train.levels) == ["class"]
    assert held(folder) == before


def test_raw_gives_the_counts_of_the_same_cells(small: tuple[str, Path, np.ndarray, np.ndarray]) -> None:
    name, folder, counts, labels = small
    raw = load(name, folder=folder, raw=True)
    _, test, _, test_labels = train_test_split(counts, labels, test_size=0.25, stratify=labels, random_state=0)
    np.testing.assert_array_equal(raw.test.rows, test)
    np.testing.assert_array_equal(raw.test.labels, test_labels)
    assert "raw counts" in raw.description


def test_a_corrupt_file_is_found_out(small: tuple[str, Path, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    name, folder, counts, labels = small
    cells = getattr(scrna, SOURCES[name])
    path = folder / "scrna" / cells.file.name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match="sha256"):
        load(name, folder=folder)
    for content in (b"no HDF5", hdf5(counts[:5], labels), hdf5(counts, labels[:5])):  # though the checksum be right
        path.write_bytes(content)
        monkeypatch.setattr(scrna, SOURCES[name], expected(cells, content))
        with pytest.raises(CorruptFileError, match=path.name):
            load(name, folder=folder)


def test_a_missing_file_is_asked_for_where_it_is_published(
    network: Network, small: tuple[str, Path, np.ndarray, np.ndarray]
) -> None:
    name, folder, *_ = small
    file = getattr(scrna, SOURCES[name]).file
    (folder / "scrna" / file.name).unlink()
    with pytest.raises(DatasetNotFoundError, match=file.name):
        load(name, folder=folder)
    assert network.asked == [file.url]
    assert file.url.endswith(file.name)


def test_without_h5py_the_error_says_how_to_install_it(
    small: tuple[str, Path, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"h5py: pip install 'deep-recursive-embedding\[datasets\]'"):
        load(small[0], folder=small[1])


def test_the_log_changes_no_argument_and_bears_an_empty_cell() -> None:
    counts = np.array([[1, 3], [0, 0]], dtype=np.float32)
    kept = counts.copy()
    np.testing.assert_allclose(log_normalize(counts, target_sum=8), np.log1p([[2, 6], [0, 0]]), rtol=1e-6)
    np.testing.assert_array_equal(counts, kept)


def test_more_components_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="6 training rows with 9 columns have at most 6"):
        fit_pca(np.eye(6, 9), np.eye(2, 9), 7)
