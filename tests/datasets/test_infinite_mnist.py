"""InfiMNIST: which images of the stream are learned from and which are tested, and what real digits become."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from dre.datasets import load, mnist
from dre.datasets.infinite_mnist import BASES, BaseDigits, InfiMNIST, infimnist

HERE = os.environ.get("DRE_DATA")
needs_mnist = pytest.mark.skipif(not HERE or not (Path(HERE) / "mnist").is_dir(), reason="MNIST is not here: set DRE_DATA")


@pytest.fixture
def numbered_mnist(monkeypatch) -> None:
    """As many images as MNIST has, each with nothing but its number in its first pixels: enough to see which are taken."""
    images, number = np.zeros((70_000, 28, 28), np.uint8), np.arange(70_000)
    images[:, 0, :3] = np.stack([number >> 16, number >> 8 & 255, number & 255], axis=1)
    digits = BaseDigits(images, number % 10, tests=10_000)
    monkeypatch.setattr(BaseDigits, "from_mnist", lambda folder=None: digits)


def numbers(images: torch.Tensor) -> list[int]:
    """What is written in images that are not deformed."""
    return (images[:, 0, :3].int() @ torch.tensor([2**16, 2**8, 1], dtype=torch.int32)).tolist()


def sources(rows: InfiMNIST) -> np.ndarray:
    return (np.asarray(rows.indices) - 10_000) % 60_000


@pytest.mark.usefixtures("numbered_mnist")
def test_the_two_parts_are_the_published_ranges():
    data = load("infimnist", n_train=300_000, n_test=1_000_000, device="cpu")
    assert (data.train.rows.indices, data.test.rows.indices) == (range(70_000, 370_000), range(10_000_000, 11_000_000))
    assert data.train.rows.shape == (300_000, 28, 28)
    assert np.array_equal(data.train.labels[:60_000], np.arange(60_000) % 10)
    assert list(data.test.levels) == ["digit"]


@pytest.mark.usefixtures("numbered_mnist")
def test_disjoint_bases_share_no_digit():
    data = load("infimnist", n_train=120_000, n_test=200_000, bases="disjoint", device="cpu")
    learned, tested = data.train.rows, data.test.rows
    assert len(learned) == 120_000
    assert sources(learned).max() == 49_999
    assert np.array_equal(
        learned.indices[:120_000], np.array([i for i in range(70_000, 250_000) if (i - 10_000) % 60_000 < 50_000][:120_000])
    )
    kept = [i for i in range(10_000_000, 10_200_000) if (i - 10_000) % 60_000 >= 50_000]
    assert tested.indices.tolist() == kept
    assert not set(sources(learned)) & set(sources(tested))


@pytest.mark.usefixtures("numbered_mnist")
def test_overlapping_parts_are_both_the_beginning_of_the_stream():
    data = load("infimnist", n_train=5, n_test=70_005, bases="overlapping", device="cpu")
    learned, tested = data.train.rows, data.test.rows
    assert (learned.indices, tested.indices) == (range(5), range(70_005))
    assert numbers(learned.images(0, 5)) == numbers(tested.images(0, 5)) == [0, 1, 2, 3, 4]
    assert numbers(tested.images(69_998, 70_000)) == [69_998, 69_999]  # the last that are not deformed
    assert np.array_equal(data.test.labels, np.concatenate([np.arange(70_000), np.arange(10_000, 10_005)]) % 10)


@pytest.mark.usefixtures("numbered_mnist")
def test_originals_are_not_deformed_and_share_no_digit():
    data = load("infimnist", n_train=10_000, n_test=60_000, bases="originals", device="cpu")
    assert numbers(data.train.rows.images(0, 10_000)) == list(range(10_000))
    assert numbers(data.test.rows.images(0, 60_000)) == list(range(10_000, 70_000))
    assert np.array_equal(data.test.labels, np.arange(10_000, 70_000) % 10)
    fewer = load("infimnist", n_train=3, n_test=2, bases="originals", device="cpu")
    assert (fewer.train.rows.indices, fewer.test.rows.indices) == (range(3), range(10_000, 10_002))


@pytest.mark.usefixtures("numbered_mnist")
@pytest.mark.parametrize("bases", BASES)
def test_what_was_deformed_is_said(bases):
    description = load("infimnist", n_train=10, n_test=30_000, bases=bases, device="cpu").description
    assert [text in description for text in BASES.values()] == [each == bases for each in BASES]


@pytest.mark.usefixtures("numbered_mnist")
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"bases": "same"}, "known: shared, disjoint, overlapping, originals"),
        ({"n_train": 0}, "at least one image"),
        ({"n_test": 0}, "at least one image"),
        ({"n_train": 9_930_001}, "reaches the test images"),
        ({"bases": "disjoint", "n_test": 20_000}, "more than 20,000"),
        ({"bases": "originals", "n_train": 10_001}, "10,000 and 60,000 digits before any deformation"),
        ({"bases": "originals", "n_test": 60_001}, "10,000 and 60,000 digits before any deformation"),
    ],
)
def test_parts_that_can_not_be_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        load("infimnist", **{"n_train": 10, "n_test": 10, "device": "cpu"} | options)


@pytest.mark.parametrize(("start", "stop"), [(10, 5), (-5, 5), (-5, -5)])
def test_a_range_that_goes_nowhere_is_refused_before_mnist_is_read(start, stop, monkeypatch):
    monkeypatch.setattr(BaseDigits, "from_mnist", lambda folder=None: pytest.fail("MNIST was read"))
    with pytest.raises(ValueError, match=rf"infimnist\({start}, {stop}\): expected 0 <= start <= stop"):
        infimnist(start, stop)


@pytest.mark.usefixtures("numbered_mnist")
def test_a_range_has_the_images_from_the_first_up_to_the_last():
    assert numbers(infimnist(5, 8, device="cpu").images(0, 3)) == [5, 6, 7]
    assert len(infimnist(5, 5, device="cpu")) == 0


@needs_mnist
def test_the_stream_of_the_real_digits_begins_with_them():
    rows = infimnist(0, 10**8, folder=HERE, device="cpu")
    data = load("mnist", folder=HERE)
    assert np.array_equal(rows.images(9_990, 10_010).numpy(), np.concatenate([data.test.rows[-10:], data.train.rows[:10]]))
    assert np.array_equal(rows[70_000:80_000].labels, data.train.labels[:10_000])


@needs_mnist
def test_a_real_digit_is_still_the_digit_that_it_was():
    """Apart from the move, the nearest of 2,000 digits is the one that was deformed, or one that is written alike."""
    originals = infimnist(10_000, 12_000, folder=HERE, device="cpu")
    made = originals.at(10_000 + 60_000 * 100 + np.arange(300)).read(0, 300)
    moved = torch.stack([made.roll((down, right), (1, 2)) for down in (-1, 0, 1) for right in (-1, 0, 1)])
    distances = torch.cdist(moved.flatten(2), originals.read(0, 2000).flatten(1)).amin(0)  # (300, 2000)
    nearest = distances.argmin(1)
    assert (nearest == torch.arange(300)).float().mean() > 0.8
    assert np.mean(originals.labels[nearest] == originals.labels[:300]) > 0.99


@needs_mnist
def test_originals_are_the_two_sets_of_mnist_the_other_way_round():
    originals = load("infimnist", folder=HERE, n_train=10_000, n_test=60_000, bases="originals", device="cpu")
    published = mnist.load_mnist(HERE)
    np.testing.assert_array_equal(originals.train.rows.images(0, 100), published.test.rows[:100])
    np.testing.assert_array_equal(originals.test.rows.images(59_900, 60_000), published.train.rows[-100:])
    np.testing.assert_array_equal(originals.train.labels, published.test.labels)
    np.testing.assert_array_equal(originals.test.labels, published.train.labels)
