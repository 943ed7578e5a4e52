"""MNIST: 70,000 handwritten digits, 28 × 28 pixels of 0 to 255."""

from __future__ import annotations

from dre.datasets.dataset import Dataset
from dre.datasets.files import Folder
from dre.datasets.idx import four_files, two_parts

FILES = four_files(
    "mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ),
)
ABOUT = """MNIST (LeCun, Cortes, Burges 1998): handwritten digits, 60,000 to train and 10,000 to test, 28 × 28 pixels of 0 to
255, as published; no preprocessing. Labels: the digit. Commonly given as CC BY-SA 3.0."""


def load(folder: Folder = None) -> Dataset:
    """Images uint8 (60000, 28, 28) and (10000, 28, 28), labels 0 to 9."""
    train, test = two_parts(FILES, folder, "digit")
    return Dataset("mnist", "MNIST", train, test, ABOUT)
