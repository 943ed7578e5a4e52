"""Digits: the 1,797 handwritten digits that ship with scikit-learn, 8 × 8 pixels of 0 to 16; they need no file."""

from __future__ import annotations

import numpy as np

from dre.datasets.dataset import Dataset
from dre.datasets.files import Folder
from dre.datasets.split import split

ABOUT = """Digits (Alpaydin, Kaynak 1998; the test set of the UCI repository's, as it ships with scikit-learn): 1,797
handwritten digits, 8 × 8 pixels of 0 to 16; no preprocessing. 75/25 split, stratified, random_state 0. Labels: the digit.
CC BY 4.0."""


def load(folder: Folder = None, *, images: bool = False) -> Dataset:
    """Vectors float32 (n, 64), or images (n, 8, 8); ``folder`` is not needed.

    >>> load()
    Digits
        train: 1,347 rows of 64; digit: 10
        test: 450 rows of 64; digit: 10
    ...
    """
    from sklearn.datasets import load_digits

    rows, digits = load_digits(return_X_y=True)
    rows = rows.astype(np.float32)
    train, test = split(rows.reshape(-1, 8, 8) if images else rows, {"digit": digits.astype(np.int64)})
    return Dataset("digits", "Digits", train, test, ABOUT)
