"""Trustworthiness of a sample of rows: how a stage is judged without labels."""

from __future__ import annotations

import torch
from torch import Tensor

from dre.data.rows import chunk_length
from dre.data.subsample import evenly_spaced_ids
from dre.runtime.threads import map_in_threads

NEIGHBORS = 7
REFERENCES = 20_000  # rows among which neighbors are looked for
SAMPLE = 1_000  # of them whose neighbors are looked at


def sample_trust(features: Tensor, embedding: Tensor, *, k: int = NEIGHBORS) -> float:
    """Trustworthiness of an embedding (n, c) by the distances between features (n, d), on evenly spaced rows.

    It is 1 if the k nearest rows in the map are the k nearest by their features, and falls with the ranks of other ones.

    >>> line = torch.arange(30.0)[:, None]
    >>> sample_trust(line, -2 * line)
    1.0
    """
    rows = torch.from_numpy(evenly_spaced_ids(len(features), REFERENCES)).to(features.device)
    features, embedding = features[rows].float(), embedding[rows].float()
    n = len(rows)
    k = min(k, max(1, (n - 1) // 2))
    sample = torch.from_numpy(evenly_spaced_ids(n, SAMPLE)).to(features.device)

    def intruders(ids: Tensor) -> float:
        """Sum of (rank - k)₊ over the nearest rows in the map of some rows."""
        own = torch.arange(len(ids), device=ids.device)
        # By differences, since products would round too much; cdist is slow at few components on a GPU.
        apart = torch.stack([(mine[ids, None] - mine).square_() for mine in embedding.T]).sum(0)
        apart[own, ids] = torch.inf
        near = apart.topk(k, largest=False).indices
        distances = torch.cdist(features[ids], features)
        distances[own, ids] = torch.inf
        ranks = 1 + torch.stack([(distances < distances[own, j][:, None]).sum(1) for j in near.T], 1)
        return float((ranks - k).clamp_min(0).sum())

    parts = sample.split(max(1, chunk_length((n,)) // 8))
    total = sum(map_in_threads(intruders, parts) if features.device.type == "cpu" else map(intruders, parts))
    return 1 - 2 * total / (len(sample) * k * max(1, 2 * n - 3 * k - 1))
