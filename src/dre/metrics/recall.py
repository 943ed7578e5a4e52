"""Recall of neighbours: how many of the nearest in X are among the nearest in the map, for every number of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.metrics.neighborhoods import Near
from dre.metrics.points import HIGH, LOW, Device, check_k, two_spaces
from dre.metrics.study import Study

Array = np.ndarray[Any, Any]


def neighbor_recall(X: Any, Y: Any, *, k: int = 100, device: Device = "auto") -> Array:
    """The mean share of the 1, 2, …, k nearest of a row in X that are among as many nearest in the map Y: k values.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 5))
    >>> neighbor_recall(X, X, k=3).tolist()
    [1.0, 1.0, 1.0]

    recall(m) = 1/(nm) Σᵢ |N_X(i, m) ∩ N_Y(i, m)| for m = 1…k. At random it is m/(n-1). ``dre.plot.recall`` draws it.
    """
    study = Study(two_spaces(X, Y, device), "recall")
    k = check_k(k, study.n)
    high, low = study.find(Near(HIGH, k), Near(LOW, k))
    return np.asarray(shared(high.indices, low.indices).cpu().numpy())


def neighbor_agreement(A: Any, B: Any, *, k: int = 15, device: Device = "auto") -> float:
    """How far two maps of the same rows agree on who is near whom: the mean share of the k nearest that they have in common.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(100, 2))
    >>> neighbor_agreement(A, 3 * A[:, ::-1] + 1)
    1.0

    1/(nk) Σᵢ |N_A(i, k) ∩ N_B(i, k)|: 1 when all agree, k/(n-1) at random.
    """
    study = Study(two_spaces(A, B, device, names=("A", "B")), "agreement")
    k = check_k(k, study.n)
    first, second = study.find(Near(HIGH, k), Near(LOW, k))
    return float(shared(first.indices, second.indices)[-1])


def shared(a: Tensor, b: Tensor, chunk_length: int = 4096) -> Tensor:
    """(k,) the mean share of the first m of each row of a (n, k) that are among the first m of b, for m = 1…k.

    A neighbour at place p in a and q in b is shared from m = max(p, q) on.
    """
    n, k = a.shape
    first = torch.zeros(k, dtype=torch.long, device=a.device)
    for some, others in zip(a.split(chunk_length), b.split(chunk_length), strict=True):
        order = others.argsort(dim=1)
        place = torch.searchsorted(others.gather(1, order), some).clamp_max(k - 1)
        q = order.gather(1, place)
        found = others.gather(1, q) == some
        p = torch.arange(k, device=a.device).expand_as(q)
        first += torch.maximum(p, q)[found].bincount(minlength=k)
    return first.cumsum(0).double() / (n * torch.arange(1, k + 1, device=a.device))
