"""Warns of images whose values have another range than those that a model was fitted to, as 0…255 after a fit to 0…1."""

from __future__ import annotations

import math
import warnings

from torch import Tensor

from dre.data.rows import Rows, chunk_length, read_checked
from dre.data.scaling import Scaling
from dre.runtime.caller import level_of_caller

LOOKED_AT, LOOKED_AT_VALUES = 64, 2**20  # first rows, and values in them: to read all twice would cost as much as a pass
FACTOR = 30  # standard deviations: the mean square of a fit is 1 of them, so that at most one of its rows in 900 is so far


def warn_of_range(rows: Rows, scaling: Scaling) -> None:
    """Warn if the first images lie far outside the range of the fit, or all are hardly more than its black."""
    if len(scaling.shape) < 2 or scaling.metric != "euclidean" or scaling.column_mean is not None:
        return
    x = read_checked(rows, 0, min(LOOKED_AT, rows.shape[0], chunk_length(scaling.shape, LOOKED_AT_VALUES))).cpu().double()
    mean, scale = scaling.mean.cpu(), float(scaling.scale)
    usual = math.hypot(_root_mean_square(mean), scale)  # value of the fit
    is_far = _root_mean_square((x - mean) / scale) > FACTOR
    is_small = 0 < max(map(_root_mean_square, x)) < usual / FACTOR
    if is_far or is_small:
        warnings.warn(
            f"the images have values of up to {float(x.abs().max()):g}, those of the fit were {usual:.3g} in root mean square. "
            "Scale them as in the fit, or the map means nothing: ToTensor, for example, divides by 255.",
            stacklevel=level_of_caller(),
        )


def _root_mean_square(x: Tensor) -> float:
    return float(x.square().mean().sqrt())
