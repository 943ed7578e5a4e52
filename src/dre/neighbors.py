"""The k nearest neighbours of every row among all rows: exact on the device, approximate on a CPU where that is faster."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dre.runtime import full_precision

CHUNK_ELEMENTS = {"cuda": 2**29, "cpu": 2**25}  # distances held at once: 2 GiB on a GPU, 128 MiB on a CPU
SPARE = 8  # extra candidates, so that rounding in the matrix product can't push a true neighbour out
DUPLICATE = 1e-13  # of the squared norms: what the product leaves over of two equal rows
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
        method = chosen_method(features)
        if method == "approximate" and not _has_faiss():
            warnings.warn(f"the neighbours of {n} rows are sought exactly, which is slow on a CPU: {INSTALL}", stacklevel=2)
            method = "exact"
    if method == "approximate":
        return _approximate(features, k)
    return Neighbors(*_exact(features, torch.arange(n, device=features.device), k), "exact")


def chosen_method(features: Tensor) -> str:
    """The faster method for these rows on their device, "exact" or "approximate"."""
    n, dim = features.shape
    small = float(n) * n * (dim + SELECTING) <= EXACT_UP_TO
    return "exact" if small or features.device.type != "cpu" else "approximate"


def pairwise_distances(a: Tensor, b: Tensor) -> Tensor:
    """(len(a), len(b)) Euclidean distances through a matrix product, in float64: in float32 it loses close pairs."""
    origin = b.double().mean(0)
    a, b = a.double() - origin, b.double() - origin
    norms = a.square().sum(1)[:, None] + b.square().sum(1)[None, :]
    squared = norms - 2 * (a @ b.T)
    return squared.masked_fill_(squared <= DUPLICATE * norms, 0.0).sqrt_()


def _exact(features: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    n, dim = features.shape
    budget = CHUNK_ELEMENTS.get(features.device.type, CHUNK_ELEMENTS["cpu"])
    wide = min(n - 1, k + SPARE)
    chunk = max(1, budget // max(n, wide * dim))
    centred = features - features.mean(0)  # the product loses the less, the nearer the rows lie to the origin
    norms = centred.square().sum(1)
    parts = []
    for rows in queries.split(chunk):
        with full_precision():
            score = torch.addmm(norms[None, :], centred[rows], centred.T, alpha=-2)  # |b|² - 2ab ranks as |a - b|² does
        score[torch.arange(len(rows), device=rows.device), rows] = torch.inf
        scores, candidates = score.topk(wide, largest=False, sorted=False)
        exact, order = _direct_distances(features, rows, candidates).sort(dim=1, stable=True)
        exact = exact[:, :k]
        # All others score above the candidates. One of them can still be a neighbour where rounding is larger than the spare;
        # its errors add up like a random walk over the values of a row.
        rounding = 8 * dim**0.5 * torch.finfo(features.dtype).eps * (norms[rows].sqrt() + exact[:, -1]).square()
        doubt = exact[:, -1].square() > scores.amax(1) + norms[rows] - rounding
        parts.append((candidates.gather(1, order[:, :k]), exact, doubt))
    found, distances, doubt = (torch.cat(part) for part in zip(*parts, strict=True))
    if wide < n - 1 and features.dtype != torch.double and bool(doubt.any()):
        found[doubt], again = _exact(features.double(), queries[doubt], k)
        distances[doubt] = again.to(distances.dtype)
    return found, distances


def _direct_distances(features: Tensor, rows: Tensor, others: Tensor) -> Tensor:
    """|xi - xj| from the differences themselves: the matrix product loses close pairs far from the origin."""
    return (features[rows][:, None, :] - features[others]).square_().sum(2).sqrt_()


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
    reach = _exact(data, sample, k)[1][:, -1:]
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
        found[rows], distances = _exact(data, queries[rows], k)
        squared[rows] = distances.square()
    return found, squared.clamp_min(0).sqrt()
