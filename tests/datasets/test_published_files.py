"""The published files themselves, where they are: their checksums, sizes and labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stand_ins import held

from dre.datasets import imdb, load, tasic2018
from dre.metrics import neighborhood_hit


def here(folder: Path, *parts: str) -> Path:
    if not (folder.joinpath(*parts)).exists():
        pytest.skip(f"{folder.joinpath(*parts)} is not here")
    return folder


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_images(real: Path, name: str) -> None:
    before = held(here(real, name))
    dataset = load(name, folder=real)
    assert dataset.train.rows.shape == (60_000, 28, 28)
    assert dataset.test.rows.shape == (10_000, 28, 28)
    assert dataset.train.rows.dtype == np.uint8
    assert (dataset.train.rows.min(), dataset.train.rows.max()) == (0, 255)
    of_each = {"mnist": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949], "fashion-mnist": [6000] * 10}
    assert list(np.bincount(dataset.train.labels)) == of_each[name]
    assert held(real) == before


def test_reviews(real: Path) -> None:
    train, test = imdb.load_reviews(here(real, "imdb"))
    assert (len(set(train.texts)), len(set(test.texts))) == (24_904, 24_801)
    assert train.texts[0].startswith("Bromwell High is a cartoon comedy.")
    for part in (train, test):
        assert list(np.bincount(part.sentiment)) == [12_500, 12_500]
        assert set(part.stars) == {1, 2, 3, 4, 7, 8, 9, 10}
    assert (train.stars[0], train.sentiment[0]) == (9, 1)


@pytest.mark.slow
def test_vectors_of_reviews(real: Path) -> None:
    from sklearn.neighbors import KNeighborsClassifier

    before = held(here(real, "imdb"))
    dataset, again = load("imdb", folder=real), load("imdb", folder=real, unit_length=True)
    assert dataset.train.rows.shape == dataset.test.rows.shape == (25_000, 500)
    assert dataset.train.rows.dtype == np.float32
    assert np.isfinite(dataset.train.rows).all()
    some = np.random.default_rng(0).permutation(25_000)[:2000]
    right = [
        KNeighborsClassifier(7).fit(part.train.rows, part.train.labels).score(part.test.rows[some], part.test.labels[some])
        for part in (dataset, again)
    ]
    assert right[0] > 0.66
    assert right[1] > 0.74
    assert held(real) == before


@pytest.mark.parametrize(("name", "sizes", "classes"), [("pbmc", (3203, 1068), 8), ("cbmc", (6462, 2155), 15)])
def test_cells(real: Path, name: str, sizes: tuple[int, int], classes: int) -> None:
    pytest.importorskip("h5py", reason="h5py is not installed: the extra datasets")
    dataset = load(name, folder=here(real, "scrna"))
    assert (dataset.train.rows.shape, dataset.test.rows.shape) == ((sizes[0], 50), (sizes[1], 50))
    for part in (dataset.train, dataset.test):
        assert len(np.unique(part.labels)) == classes
    raw = load(name, folder=real, raw=True)
    assert raw.train.rows.shape == (sizes[0], 2000)
    assert (raw.train.rows == np.round(raw.train.rows)).all()
    assert (raw.train.rows >= 0).all()


def test_labels_of_the_cortex(real: Path) -> None:
    found = tasic2018.load_labels(here(real, "tasic2018"))
    names, sizes = np.unique(found.levels["class"], return_counts=True)
    assert dict(zip(names.tolist(), sizes.tolist(), strict=True)) == {
        "Endothelial": 336,
        "GABAergic": 10_534,
        "Glutamatergic": 11_905,
        "Non-Neuronal": 1047,
    }
    assert len(np.unique(found.levels["cluster"])) == len(found.colors["cluster"]) == tasic2018.CLUSTERS
    assert len(found.samples) == len(set(found.samples)) == tasic2018.CELLS
    columns = {"tasic-ttypes.npy": "cluster", "tasic-colors.npy": "cluster", "color_class.npy": "class"}
    for file, level in columns.items():  # the same labels, published a second time as arrays
        published = np.load(here(real, "tasic2018", file) / "tasic2018" / file)
        mine = found.levels[level]
        if "color" in file:
            mine = np.array([found.colors[level][name] for name in mine])
        np.testing.assert_array_equal(np.char.strip(published), mine)


def test_published_maps_of_the_cortex(real: Path) -> None:
    found = tasic2018.reference_maps(here(real, "tasic2018"))
    assert list(found.maps) == ["tsne-p30", "umap-n15", "phate-n5", "LE-n100", "mds"]
    for embedding in found.maps.values():
        assert embedding.shape == (tasic2018.CELLS, 2)
        assert np.isfinite(embedding).all()
    embedding, labels = (
        found.maps["tsne-p30"][::8],
        found.labels.levels,
    )  # every eighth is enough to see that rows and labels fit
    assert neighborhood_hit(embedding, labels["class"][::8]) > 0.99
    assert neighborhood_hit(embedding, labels["cluster"][::8]) > 0.75
