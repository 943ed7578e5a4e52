"""The k nearest neighbours of every row among all rows: exact on the device, approximate on a CPU where that is faster."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dre.neighbors.distances import Distances
from dre.neighbors.exact import nearest_rows, nearest_to

METHODS = ("auto", "exact", "approximate")

# Measured on 2 cores (benchmarks/results/neighbors.json): up to n²·(d + 200) of this the exact search is faster than training
# an index; finding the smallest in a row of distances costs as much as 200 dimensions.
EXACT_UP_TO = 8e10
SELECTING = 200
INSTALL = "pip install 'deep-recursive-embedding[faiss]'"
RECALL_AIM = 0.95
RECALL_SAMPLE = 512


class Neighbors(NamedTuple):
    """Others only (never the row itself), nearest first."""

    indices: Tensor  # (n, k) long
    distances: Tensor  # (n, k) float
    method: str = "given"
    recall: float = 1.0  # of an approximate search, measured against the exact one on a sample of rows


def nearest(features: Tensor, k: int, method: str = "auto") -> Neighbors:
    """The k nearest other rows of each row of ``features`` (n, d).

    >>> nearest(torch.tensor([[0.0], [1.0], [3.0]]), k=1).indices.ravel().tolist()
    [1, 0, 1]
    """
    n = len(features)
    if not 1 <= k < n:
        raise ValueError(f"k={k} neighbours asked of {n} rows; k must be from 1 to {n - 1}")
    if method not in METHODS:
        raise ValueError(f"method={method!r}; known: {', '.join(METHODS)}")
    if method == "auto":
        method = select_method(features)
        if method == "approximate" and not _has_faiss():
            warnings.warn(f"the neighbours of {n} rows are sought exactly, which is slow on a CPU: {INSTALL}", stacklevel=2)
            method = "exact"
    if method == "approximate":
        return _approximate(features, k)
    distances = Distances(features, short=features.device.type == "cuda")
    indices, squared = nearest_rows(distances, k)
    kind = features.dtype if features.is_floating_point() else torch.float32
    return Neighbors(indices, (squared.sqrt() * distances.unit).to(kind), "exact")


def select_method(features: Tensor) -> str:
    """The faster method for these rows on their device, "exact" or "approximate"."""
    n, dim = features.shape
    small = float(n) * n * (dim + SELECTING) <= EXACT_UP_TO
    return "exact" if small or features.device.type != "cpu" else "approximate"


def _has_faiss() -> bool:
    return importlib.util.find_spec("faiss") is not None


def _approximate(features: Tensor, k: int) -> Neighbors:
    """An inverted-file index that probes more cells until a sample of rows finds enough of its true neighbours."""
    try:
        import faiss
    except ImportError as problem:
        raise ImportError(f"approximate neighbours need faiss: {INSTALL}, or ask for method='exact'") from problem
    n, dim = features.shape
    data = features.detach().cpu().contiguous().float()
    cells = max(1, min(int(4 * n**0.5), n // 40))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dim), dim, cells, faiss.METRIC_L2)
    index.cp.seed = 0  # the same cells, and so the same graph, every time
    index.train(data.numpy())
    index.add(data.numpy())
    sample = torch.linspace(0, n - 1, min(RECALL_SAMPLE, n)).long()
    all_rows = Distances(data)
    reach = nearest_to(all_rows, data[sample], k, sample).squared[:, -1:].sqrt() * all_rows.unit
    probes, recall = max(1, cells // 64), 0.0
    while True:
        index.nprobe = min(probes, cells)
        # by distance: among duplicates any of them will do
        recall = float((_search(index, data, sample, k)[1] <= reach * (1 + 1e-4)).double().mean())
        if recall >= RECALL_AIM or index.nprobe == cells:
            break
        probes *= 2
    indices, distances = _search(index, data, torch.arange(n), k)
    return Neighbors(indices.to(features.device), distances.to(features.device), "approximate", recall)


def _search(index: Any, data: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    squared, found = index.search(data[queries].numpy(), k + 1)
    squared, found = torch.from_numpy(squared), torch.from_numpy(found)
    # The row itself is among its own results unless k + 1 duplicates of it are; a missing result has index -1.
    squared = squared.masked_fill((found == queries[:, None]) | (found < 0), torch.inf)
    order = squared.argsort(dim=1, stable=True)[:, :k]
    found, squared = found.gather(1, order), squared.gather(1, order)
    missing = squared.isinf()
    if missing.any():
        rows = missing.any(1).nonzero().ravel()
        all_rows = Distances(data)
        found[rows], again = nearest_to(all_rows, data[queries[rows]], k, queries[rows])
        squared[rows] = (again * all_rows.unit**2).to(squared.dtype)
    return found, squared.clamp_min(0).sqrt()
