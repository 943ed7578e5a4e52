"""Digits for the baselines: images of five classes, some to fit and some to hold out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_digits


class Digits(NamedTuple):
    rows: np.ndarray  # (200, 8, 8) uint8
    labels: np.ndarray
    new: np.ndarray  # (100, 8, 8) uint8
    new_labels: np.ndarray


@pytest.fixture(scope="session")
def digits() -> Digits:
    every = load_digits(n_class=5)
    images, labels = every.images[:300].astype(np.uint8), every.target[:300]
    return Digits(images[:200], labels[:200], images[200:], labels[200:])
