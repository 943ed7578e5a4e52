"""Images of another range than those of a fit get a warning; ordinary ones never do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dre.data.image_range import warn_of_range
from dre.data.rows import HostRows
from dre.data.scaling import Scaling

DIGITS = load_digits().images / 16
SPARSE = (np.random.default_rng(0).random((200, 12, 12)) > 0.999).astype(float)  # a few bright pixels, as of stars


@pytest.mark.parametrize("fitted", [DIGITS, 1 - DIGITS, SPARSE], ids=["dark", "bright", "sparse"])
def test_images_of_0_to_255_and_of_0_to_1_are_told_apart(fitted) -> None:
    for fit, new in ((fitted, 255 * fitted), (255 * fitted, fitted)):
        with pytest.warns(UserWarning, match=r"images have values of up to .*Scale them as in the fit"):
            warn_of_range(HostRows(new), Scaling.fit(fit))


@pytest.mark.parametrize("factor", [1, 255])
def test_ordinary_new_images_get_no_warning(factor) -> None:
    scaling = Scaling.fit(factor * DIGITS[:900])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for new in (DIGITS, 1 - DIGITS, DIGITS / 4, np.ones_like(DIGITS), np.zeros_like(DIGITS), *DIGITS[900:, None]):
            warn_of_range(HostRows(factor * new), scaling)
        sparse = Scaling.fit(factor * SPARSE)
        for image in SPARSE:
            warn_of_range(HostRows(factor * image[None]), sparse)


def test_what_has_no_common_range_is_not_compared() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors = DIGITS.reshape(len(DIGITS), -1)
        warn_of_range(HostRows(255 * vectors), Scaling.fit(vectors))
        warn_of_range(HostRows(255 * DIGITS), Scaling.fit(DIGITS, metric="cosine"))
