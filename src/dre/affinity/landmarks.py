"""Landmarks: some rows, and how far all rows lie from them in the input. They tell the global structure."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dre.data.rows import Rows, chunk_length
from dre.data.subsample import evenly_spaced_ids
from dre.runtime.ranks import ALONE, Ranks

LANDMARKS = 64  # rows: some for each part of the data; more of them improve no map


class Landmarks(NamedTuple):
    """Evenly spaced rows, and the distances of all rows to them."""

    ids: Tensor  # (m,)
    distances: Tensor  # (n, m), in units of their standard deviation, with the mean 0

    @classmethod
    def of(cls, rows: Rows, device: torch.device, count: int = LANDMARKS, ranks: Ranks = ALONE) -> Landmarks:
        """Measure Euclidean distances in one pass over the rows, wherever they are; of the rows of all ranks."""
        n = rows.shape[0]
        ids = torch.from_numpy(evenly_spaced_ids(n * ranks.size, count)).to(device)
        own = ids // n == ranks.rank
        chosen = torch.zeros(len(ids), *rows.shape[1:], device=device)
        chosen[own] = rows.take(ids[own] % n).to(device).float()
        chosen = ranks.add(chosen).flatten(1)
        distances = torch.empty(n, len(ids), device=device)
        step = chunk_length(rows.shape[1:])
        for start in range(0, n, step):
            stop = min(n, start + step)
            distances[start:stop] = torch.cdist(rows.read(start, stop).to(device).flatten(1).float(), chosen)
        return cls.standardized(ids, ranks.gather(distances))

    @classmethod
    def standardized(cls, ids: Tensor, distances: Tensor) -> Landmarks:
        """Return distances (n, m) to the rows ``ids`` with the mean 0 and in units of their standard deviation, in place."""
        spread, mean = torch.std_mean(distances, correction=0)
        return cls(ids, distances.sub_(mean).div_(spread.clamp_min(torch.finfo(torch.float32).tiny)))
