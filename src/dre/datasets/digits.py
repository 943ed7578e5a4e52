"""Digits: the 1,797 handwritten digits of scikit-learn, 8 × 8 pixels of 0 to 16; they need no file."""

from __future__ import annotations

import numpy as np

from dre.datasets.dataset import Dataset, stratified_split
from dre.datasets.files import Folder

DESCRIPTION = """Digits (Alpaydin, Kaynak 1998; the test set of the UCI repository, as shipped with scikit-learn): 1,797
handwritten digits, 8 × 8 pixels of 0 to 16; no preprocessing. 75/25 split, stratified, random_state 0. Labels: the digit.
CC BY 4.0."""


def load_digits(folder: Folder = None, *, images: bool = False) -> Dataset:
    """Load the digits as vectors float32 (n, 64), or as images.

    Parameters
    ----------
    folder : path, default=None
        Ignored: the digits come with scikit-learn.
    images : bool, default=False
        Whether to return images (n, 8, 8).

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> load_digits()
    Digits
        train: 1,347 rows of 64; digit: 10
        test: 450 rows of 64; digit: 10
    ...
    """
    from sklearn import datasets

    rows, digits = datasets.load_digits(return_X_y=True)
    rows = rows.astype(np.float32)
    train, test = stratified_split(rows.reshape(-1, 8, 8) if images else rows, {"digit": digits.astype(np.int64)})
    return Dataset("digits", "Digits", train, test, DESCRIPTION)
