"""The kernel and the torch code find the same bandwidths, also of odd rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dre.affinity import gaussian
from dre.affinity.gaussian import Gaussian

RNG = np.random.default_rng(0)
ODD_ROWS = {
    "duplicates": np.zeros(90),
    "all at one distance": np.ones(90),
    "one duplicate": np.r_[0, np.ones(89)],
    "some infinitely far": np.r_[np.linspace(1, 2, 40), np.full(50, np.inf)],
    "tiny": np.linspace(0, 1e-12, 90),
    "huge": np.linspace(1e8, 1e9, 90),
    "one far": np.r_[np.full(89, 1e-3), 1e6],
    "many scales": np.logspace(-8, 8, 90),
}


def both(monkeypatch, distances, perplexity):
    with_numba = Gaussian(perplexity).conditional(distances)
    monkeypatch.setattr(gaussian, "has_numba", lambda: False)
    return with_numba, Gaussian(perplexity).conditional(distances)


@pytest.mark.parametrize("perplexity", [2, 5.5, 30])
def test_both_ways_agree(monkeypatch, perplexity):
    distances = torch.from_numpy(np.sort(RNG.gamma(2, size=(200, 90)), axis=1))
    kernel, bisection = both(monkeypatch, distances, perplexity)
    torch.testing.assert_close(kernel, bisection, atol=5e-6, rtol=1e-4)
    entropy = -(kernel * kernel.clamp_min(1e-300).log()).sum(1)
    assert (entropy.exp() - perplexity).abs().max() < 1e-3 * perplexity
    assert math.isclose(float(kernel.sum()), 200, rel_tol=1e-12)


@pytest.mark.parametrize("row", ODD_ROWS.values(), ids=ODD_ROWS)
def test_both_ways_agree_on_odd_rows(monkeypatch, row):
    kernel, bisection = both(monkeypatch, torch.from_numpy(row)[None], 30)
    assert kernel.isfinite().all()
    torch.testing.assert_close(kernel, bisection, atol=1e-5, rtol=1e-3)
