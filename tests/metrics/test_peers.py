"""The metrics agree with those of ZADU, where it has them, on data without ties."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dre.metrics import evaluate

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from zadu.measures import (
        neighborhood_hit,
        spearman_rho,
        stress,
        trustworthiness_continuity,
    )

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 12)) + 3 * RNG.integers(4, size=400)[:, None]
Y = X[:, :2] + 0.3 * RNG.normal(size=(400, 2))
LABELS = RNG.integers(4, size=400)


@pytest.mark.parametrize("k", [1, 7, 40])
def test_the_six_equal_those_of_zadu(k: int) -> None:
    ours = evaluate(X, Y, LABELS, k=k)
    theirs = {
        **trustworthiness_continuity.measure(X, Y, k=k),
        **neighborhood_hit.measure(Y, LABELS, k=k),
        "normalized_stress": stress.measure(X, Y)["stress"],
        "shepard_goodness": spearman_rho.measure(X, Y)["spearman_rho"],
    }
    assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-9)


def test_the_points_have_the_same_trustworthiness_and_continuity() -> None:
    ours = evaluate(X, Y).per_point
    _, theirs = trustworthiness_continuity.measure(X, Y, k=7, return_local=True)
    for name in ("trustworthiness", "continuity"):
        assert np.allclose(ours[name], theirs[f"local_{name}"], atol=1e-12)
