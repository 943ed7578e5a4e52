"""Loading by name, the splits, and the digits that need no file."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dre.datasets
from dre.datasets import (
    NAMES,
    Dataset,
    DatasetNotFoundError,
    DatasetSplit,
    imdb,
    load,
    mnist,
    scrna,
    tasic2018,
)
from dre.datasets.dataset import stratified_split


def test_every_name_has_a_loader_that_takes_a_folder() -> None:
    assert NAMES == ("digits", "mnist", "fashion-mnist", "imdb", "tasic2018", "pbmc", "cbmc", "infimnist")
    for name in set(NAMES) - {"digits"}:
        with pytest.raises(DatasetNotFoundError, match="/nowhere/at/all"):
            load(name, folder="/nowhere/at/all")
    assert load("digits", folder="/nowhere/at/all").name == "digits"  # which needs none


def test_everything_is_fetched_over_an_encrypted_line() -> None:
    files = [*mnist.MNIST_FILES, *mnist.FASHION_MNIST_FILES, imdb.ARCHIVE, scrna.PBMC.file, scrna.CBMC.file]
    files += [*tasic2018.REGIONS.values(), tasic2018.LABELS, *tasic2018.MAPS.values()]
    assert {file.url for file in files if not file.url.startswith("https://")} == set()


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match="Did you mean 'fashion-mnist'"):
        load("fashion_mnist")


def test_an_unknown_option_suggests_the_nearest() -> None:
    with pytest.raises(TypeError, match="Did you mean 'images'"):
        load("digits", image=True)


def test_the_generator_is_a_function_of_the_package_and_other_names_are_errors() -> None:
    from dre.datasets import infimnist

    assert callable(infimnist)
    assert infimnist.__module__ == "dre.datasets.infinite_mnist"
    with pytest.raises(AttributeError, match="nothing"):
        dre.datasets.nothing  # noqa: B018


def test_importing_the_package_imports_no_library_that_only_one_dataset_needs() -> None:
    program = "import sys, dre.datasets; print(sorted({'torch', 'sklearn', 'h5py', 'pooch', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_split_has_one_label_per_row_at_every_level() -> None:
    rows, labels = np.zeros((3, 2)), np.array([1, 2, 2])
    part = DatasetSplit.from_levels(rows, {"fine": labels, "coarse": np.zeros(3)})
    assert part.labels is labels
    assert list(part.levels) == ["fine", "coarse"]
    with pytest.raises(ValueError, match="coarse: 2 labels for 3 rows"):
        DatasetSplit.from_levels(rows, {"fine": labels, "coarse": np.zeros(2)})
    with pytest.raises(ValueError, match="labels: 2 labels for 3 rows"):
        DatasetSplit(rows, labels[:2], {})


def test_a_dataset_shows_its_sizes_and_what_it_is_instead_of_its_numbers() -> None:
    part = DatasetSplit.from_levels(np.zeros((1200, 2, 2)), {"digit": np.arange(1200) % 3})
    shown = repr(Dataset("name", "Title", part, part, "About  it\nall."))
    assert shown.splitlines() == [
        "Title",
        "    train: 1,200 rows of 2 × 2; digit: 3",
        "    test: 1,200 rows of 2 × 2; digit: 3",
        "About it all.",
    ]


def test_the_split_is_that_of_scikit_learn_and_keeps_rows_with_all_their_labels() -> None:
    rows = np.arange(80).reshape(40, 2)
    fine, coarse = np.repeat(np.arange(4), 10), np.repeat(["a", "b"], 20)
    train, test = stratified_split(rows, {"fine": fine, "coarse": coarse})
    expected = train_test_split(rows, fine, test_size=0.25, stratify=fine, random_state=0)
    for found, wanted in zip((train.rows, test.rows, train.labels, test.labels), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    for part in (train, test):
        np.testing.assert_array_equal(part.levels["fine"], fine[part.rows[:, 0] // 2])
        np.testing.assert_array_equal(part.levels["coarse"], coarse[part.rows[:, 0] // 2])
    assert sorted(np.bincount(test.labels)) == [2, 2, 3, 3]


def test_digits_are_all_there_once_as_vectors_or_images() -> None:
    vectors, images = load("digits"), load("digits", images=True)
    X, y = load_digits(return_X_y=True)
    everything = np.concatenate([vectors.train.rows, vectors.test.rows])
    assert everything.dtype == np.float32
    assert (len(vectors.train.rows), len(vectors.test.rows)) == (1347, 450)
    labels = np.concatenate([vectors.train.labels, vectors.test.labels])
    found = sorted(zip(map(bytes, everything.astype(np.uint8)), labels, strict=True))
    assert found == sorted(zip(map(bytes, X.astype(np.uint8)), y, strict=True))
    np.testing.assert_array_equal(images.test.rows.reshape(-1, 64), vectors.test.rows)
    assert images.test.rows.shape == (450, 8, 8)
    np.testing.assert_array_equal(images.test.labels, vectors.test.labels)
