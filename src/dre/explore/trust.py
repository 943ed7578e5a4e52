"""How far each point's neighbours in a map can be trusted, for as many points as a page can hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.subsample import evenly_spaced_ids

Array = np.ndarray[Any, Any]
WHOLE = 10_000  # points up to which all are compared with all
OTHERS = 5_000  # with which each is compared where there are more
NEIGHBORS = 7
BLOCK = 1024  # points at a time


def trust_of_points(rows: Array, places: Array) -> Array:
    """Trustworthiness of every point, float32 (n,); of many points, among ``OTHERS`` of them from end to end.

    Among a sample a point has the same share of neighbours, further away: what is measured is the same map, seen more coarsely.
    """
    if len(rows) <= WHOLE:
        from dre.metrics import trustworthiness

        return np.asarray(trustworthiness(rows, places, k=NEIGHBORS, per_point=True), dtype=np.float32)
    chosen = torch.from_numpy(evenly_spaced_ids(len(rows), OTHERS))
    # centred: far from the origin, distances by products would lose their last digits
    x, y = (torch.from_numpy((each - each.mean(0, dtype=np.float64)).astype(np.float32)) for each in (rows, places))
    others_x, others_y = x[chosen], y[chosen]
    found = [_trust(x[block], y[block], others_x, others_y, chosen[None] == block[:, None]) for block in _blocks(len(x))]
    return torch.cat(found).numpy()


def _trust(x: Tensor, y: Tensor, others_x: Tensor, others_y: Tensor, itself: Tensor) -> Tensor:
    """1 − what the k nearest in the map are beyond the k-th rank among the rows, out of the most that it could be."""
    m, k = others_x.shape[0], NEIGHBORS
    near = torch.cdist(y, others_y).masked_fill_(itself, torch.inf).topk(k, largest=False).indices
    far = torch.cdist(x, others_x).masked_fill_(itself, torch.inf)
    ordered = far.sort(dim=1).values
    ranks = torch.searchsorted(ordered, far.gather(1, near).contiguous()) + 1
    worst = k * (2 * m - 3 * k - 1) / 2
    return 1 - (ranks - k).clamp_min(0).sum(1) / worst


def _blocks(n: int) -> Iterator[Tensor]:
    from tqdm.auto import tqdm

    from dre.observe.progress import is_interactive

    starts = range(0, n, BLOCK)
    for start in tqdm(starts, desc="trust", unit=" blocks", leave=False, delay=1, disable=not is_interactive()):
        yield torch.arange(start, min(n, start + BLOCK))
