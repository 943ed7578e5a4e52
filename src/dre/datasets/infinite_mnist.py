"""InfiMNIST: ranges of the endless stream of deformed digits, and parts of it to learn from and to test."""

from __future__ import annotations

import numpy as np
import torch

from dre.datasets import mnist
from dre.datasets.dataset import Array, Dataset, Part
from dre.datasets.files import Folder
from dre.datasets.stream import PEAK, WIDTH, InfiMNIST

FIRST_TRAIN, FIRST_TEST = 70_000, 10_000_000  # of the two parts: training images never reach the test images
BASES = {
    "shared": "Training and test images deform the same 60,000 digits.",
    "disjoint": "Training images deform the first 50,000 of the 60,000 digits, test images the last 10,000.",
    "overlapping": "The test images are the beginning of the stream, and the training images the first of them.",
    "originals": "No image is deformed: training images are MNIST's test set, test images its training set.",
}
FIRST_ORIGINAL, ROUND, TO_LEARN_FROM = 10_000, 60_000, 50_000
ABOUT = (
    "MNIST's training digits without end, each time deformed by smooth random fields and moved by up to a pixel: the stream of "
    "Loosli, Canu and Bottou (2007), of which MNIST8M is the beginning. The published fields are not available; these are "
    f"noise smoothed over {WIDTH:g} pixels, of at most {PEAK:g} pixels, from a fixed seed. "
)


def infimnist(start: int, stop: int, *, folder: Folder = None, device: str | torch.device = "auto") -> InfiMNIST:
    """Images ``start`` to ``stop`` of the stream: 0–9,999 are MNIST's test set, 10,000–69,999 its training set.

    >>> rows = infimnist(70_000, 10**9)  # doctest: +SKIP
    >>> rows[:60_000].images(0, 5).shape, rows[:5].labels  # doctest: +SKIP
    (torch.Size([5, 28, 28]), array([5, 0, 4, 1, 9], dtype=uint8))

    MNIST is read each time: to go through the stream, take one long range and slice it.
    """
    if not 0 <= start <= stop:
        raise ValueError(f"infimnist({start}, {stop}): expected 0 <= start <= stop, the first image and the one after the last")
    return InfiMNIST.of(range(start, stop), folder=folder, device=device)


def load(
    folder: Folder = None,
    *,
    train: int = 100_000,
    test: int = 1_000_000,
    bases: str = "shared",
    device: str | torch.device = "auto",
) -> Dataset:
    """The stream from 70,000 on to learn from, and from 10,000,000 on to test; both are ``Rows``.

    ``bases="disjoint"`` deforms other digits in the test part than in the training part. It still goes through ``test`` images
    of the stream, and keeps about a sixth, from the 20,000th on. ``"overlapping"`` and ``"originals"`` are what published
    results fit: the stream from its beginning for both, and the digits before any deformation.
    """
    if bases not in BASES:
        raise ValueError(f"bases={bases!r}; known: {', '.join(BASES)}")
    if train < 1 or test < 1:
        raise ValueError(f"train={train}, test={test}: ask for at least one image of each")
    learned, tested = _INDICES[bases](train, test)
    rows = InfiMNIST.of(learned, folder=folder, device=device)
    parts = (Part.of(part, {"digit": part.labels}) for part in (rows, rows.at(tested)))
    return Dataset("infimnist", "InfiMNIST", next(parts), next(parts), f"{ABOUT}{BASES[bases]}\nMade from {mnist.ABOUT}")


Indices = range | Array


def _shared(train: int, test: int) -> tuple[Indices, Indices]:
    return _apart(range(FIRST_TRAIN, FIRST_TRAIN + train)), range(FIRST_TEST, FIRST_TEST + test)


def _disjoint(train: int, test: int) -> tuple[Indices, Indices]:
    tested = _of_last_digits(test)
    if not len(tested):
        raise ValueError(f"test={test}: none of these deforms one of the last 10,000 digits; ask for more than 20,000")
    return _apart(_of_first_digits(train)), tested


def _overlapping(train: int, test: int) -> tuple[Indices, Indices]:
    return range(train), range(test)


def _originals(train: int, test: int) -> tuple[Indices, Indices]:
    if train > FIRST_ORIGINAL or test > ROUND:
        raise ValueError(
            f"train={train}, test={test}: there are {FIRST_ORIGINAL:,} and {ROUND:,} digits before any deformation"
        )
    return range(train), range(FIRST_ORIGINAL, FIRST_ORIGINAL + test)


_INDICES = {"shared": _shared, "disjoint": _disjoint, "overlapping": _overlapping, "originals": _originals}


def _apart(learned: Indices) -> Indices:
    if learned[-1] >= FIRST_TEST:
        raise ValueError(f"train={len(learned)} reaches into the test images, which begin at {FIRST_TEST:,}: ask for fewer")
    return learned


def _of_first_digits(n: int) -> Array:
    """The first n indices that deform one of the first 50,000 training digits: those of each round but its last 10,000."""
    rounds, position = np.divmod(np.arange(n), TO_LEARN_FROM)
    return FIRST_TRAIN + rounds * ROUND + position


def _of_last_digits(n: int) -> Array:
    """The indices among the first n of the test range that deform one of the other training digits."""
    i = np.arange(FIRST_TEST, FIRST_TEST + n)
    return i[(i - FIRST_TRAIN) % ROUND >= TO_LEARN_FROM]
