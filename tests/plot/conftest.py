"""Draw without a screen, and close all figures after each test."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def without_a_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")
