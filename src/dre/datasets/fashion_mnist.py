"""Fashion-MNIST: 70,000 pictures of garments in MNIST's format, harder to tell apart than digits."""

from __future__ import annotations

from dre.datasets.dataset import Dataset
from dre.datasets.files import Folder
from dre.datasets.idx import four_files, two_parts

FILES = four_files(
    "fashion-mnist",
    "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
    (
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "9018921c3c673c538a1fc5bad174d6f9",
        "8181f5470baa50b63fa0f6fddb340f0a",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ),
)
GARMENTS = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
ABOUT = f"""Fashion-MNIST (Xiao, Rasul, Vollgraf 2017): garments, 60,000 to train and 10,000 to test, 28 × 28 pixels of 0
to 255, as published; no preprocessing. Labels: {", ".join(f"{i} {name}" for i, name in enumerate(GARMENTS))}.
MIT licence, (c) 2017 Zalando SE."""


def load(folder: Folder = None) -> Dataset:
    """Images uint8 (60000, 28, 28) and (10000, 28, 28), labels 0 to 9, with their names."""
    train, test = two_parts(FILES, folder, "garment")
    return Dataset("fashion-mnist", "Fashion-MNIST", train, test, ABOUT, label_names=GARMENTS)
