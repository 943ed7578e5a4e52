"""Held-out scores of a map, in the paper's protocol where it says so. Large sets are scored on the device that is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dre.neighbors import nearest

Array = np.ndarray[Any, Any]
K = 7  # neighbours in every score, as in the paper
CHUNK = 1000


def held_out_1nn(train: Array, train_labels: Array, test: Array, test_labels: Array) -> float:
    """Accuracy on the embedded test rows of the nearest embedded training row's label."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    known = torch.as_tensor(train, device=device).double()
    found = [torch.cdist(part, known).argmin(1).cpu() for part in torch.as_tensor(test, device=device).double().split(CHUNK)]
    return float((train_labels[torch.cat(found).numpy()] == test_labels).mean())


def neighborhood_hit(map_: Array, labels: Array, *, counting_itself: bool) -> float:
    """Share of a point's 7 neighbours that have its label; the paper counts the point itself among the 7."""
    k = K - 1 if counting_itself else K
    found = nearest(torch.as_tensor(map_).double(), k).indices.numpy()
    hits = (labels[found] == labels[:, None]).sum(1) + counting_itself
    return float(hits.mean() / K)


def trustworthiness(X: Array, map_: Array) -> float:
    """1 - 2/(nk(2n-3k-1)) Σi Σj (r(i, j) - k), over the neighbours j in the map that are not among the k nearest in X."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.as_tensor(X.reshape(len(X), -1), device=device).double()
    near = nearest(torch.as_tensor(map_, device=device).double(), K).indices
    n, penalty = len(x), 0.0
    for rows in torch.arange(n, device=device).split(CHUNK):
        distances = torch.cdist(x[rows], x)
        distances[torch.arange(len(rows), device=device), rows] = -1.0
        for j in near[rows].T:  # a rank is a count: how many are nearer
            rank = (distances < distances.gather(1, j[:, None])).sum(1)
            penalty += float((rank - K).clamp_min(0).sum())
    return 1 - 2 * penalty / (n * K * (2 * n - 3 * K - 1))
