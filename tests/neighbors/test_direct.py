"""Direct distances: the kernel and the torch code give the same, whatever the type of the rows."""

from __future__ import annotations

import pytest
import torch

from dre.neighbors import distances
from dre.neighbors.distances import Distances


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [1, 3, 70])
def test_the_kernel_agrees_with_torch(monkeypatch, dtype, dim):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(50, dim, generator=generator, dtype=dtype)
    ids = torch.randint(50, (50, 7), generator=generator)
    found = Distances(rows).direct(rows, ids)
    assert found.dtype == torch.double
    monkeypatch.setattr(distances, "has_numba", lambda: False)
    torch.testing.assert_close(found, Distances(rows).direct(rows, ids), rtol=1e-12, atol=0)
