"""The k nearest neighbors of every row under a metric: searched exactly, or approximately on a CPU."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dre.data.metric import row_metric, transform_rows
from dre.data.rows import Rows, chunk_length, is_rows, read_all, read_checked
from dre.neighbors.distances import Distances
from dre.neighbors.exact import nearest_rows, nearest_to
from dre.neighbors.other_metrics import nearest_by_metric
from dre.progress.activity import activity
from dre.runtime.float64 import float64_device, near_float64
from dre.runtime.gpu_memory import in_smaller_pieces
from dre.runtime.threads import map_in_threads

METHODS = ("auto", "exact", "approximate")

# Measured on 2 cores (benchmarks/results/neighbors.json): up to this value of n²·(d + 200) the exact search is faster than
# training an index. Selecting the smallest distances of a row costs as much as 200 dimensions.
EXACT_UP_TO = 8e10
SELECTING = 200
INSTALL = "pip install 'deep-recursive-embedding[faiss]'"
RECALL_AIM = 0.95
RECALL_SAMPLE = 512
# Rows that the first probes visit. Of a million rows, 1/64 is more than most data need; the recall tells if it is enough.
FIRST_PART, FIRST_CANDIDATES = 1 / 64, 1_500
FEWEST_CANDIDATES = 4  # as a multiple of k: rows that find fewer than k cost an exact search
ROWS_OF_CELL = 80  # that train it, at most: all rows up to 100,000
QUERIES = 1024  # that a thread searches at a time


class Neighbors(NamedTuple):
    """The nearest other rows of every row, nearest first; a row is never its own neighbor."""

    indices: Tensor  # (n, k) long
    distances: Tensor  # (n, k) float
    method: str = "precomputed"
    recall: float = 1.0  # of an approximate search, measured against the exact one on a sample of rows


@dataclass
class SharedCells:
    """Cells of an approximate search that many random parts of the same rows share: the first part trains them."""

    centers: Tensor | None = None  # (cells, d)
    probes: int = 0  # that were enough in the parts before


def nearest(
    rows: Any,
    k: int,
    *,
    metric: Any = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    method: str = "auto",
    shared: SharedCells | None = None,
) -> Neighbors:
    """Find the k nearest other rows of every row.

    Parameters
    ----------
    rows : Tensor of shape (n, d), or Rows
        ``Rows`` are read in chunks and flattened. A metric without a transform also takes an array or a sparse matrix, and
        ``"precomputed"`` the matrix (n, n) of distances.
    k : int
        From 1 to n - 1.
    metric : str or callable, default="euclidean"
        A name of ``dre.data.metric.METRICS``, or a function of two vectors that returns their distance.
    metric_kwds : dict, optional
        Keywords of the metric, such as ``{"p": 3}`` for ``"minkowski"``.
    method : {"auto", "exact", "approximate"}, default="auto"
        ``"approximate"`` needs faiss, or pynndescent for metrics without a transform, which are searched on the CPU. ``"auto"``
        uses them for large data on a CPU.
    shared : SharedCells, optional
        For random parts of the same rows: one object, passed with every part. An approximate search then trains its cells once,
        and probes no more of them than its recall needs.

    Returns
    -------
    Neighbors
        Indices and distances under the metric, each (n, k), the method, and the recall of an approximate search.

    Examples
    --------
    >>> nearest(torch.tensor([[0.0], [1.0], [3.0]]), k=1).indices.ravel().tolist()
    [1, 0, 1]
    >>> nearest(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), k=1, metric="cosine").distances.ravel().tolist()
    [0.0, 0.0, 1.0]
    """
    n = rows.shape[0]
    if not 1 <= k < n:
        raise ValueError(f"k={k} neighbors of {n} rows: k must be from 1 to {n - 1}")
    if method not in METHODS:
        raise ValueError(f"method={method!r}; known: {', '.join(METHODS)}")
    measured = row_metric(metric, metric_kwds)
    if not measured.has_transform:
        found = Neighbors(*nearest_by_metric(_on_host(rows), k, measured, method))
        device = rows.device if isinstance(rows, Tensor) else torch.device("cpu")
        return found._replace(indices=found.indices.to(device), distances=found.distances.to(float64_device(device)))
    metric = measured.name
    features = _to_features(rows, metric)
    device, features = features.device, near_float64(features)
    if method == "auto":
        method = select_method(features)
        if method == "approximate" and not _has_faiss():
            warnings.warn(f"searching the neighbors of {n} rows exactly, which is slow on a CPU: {INSTALL}", stacklevel=2)
            method = "exact"
    found = _approximate(features, k, shared) if method == "approximate" else _exact(features, k)
    distances = found.distances
    if metric != "euclidean":  # between transformed rows d² = 2 · (1 - similarity)
        distances = distances.square() / 2
    dtype = features.dtype if method == "exact" and features.is_floating_point() else torch.float32
    return found._replace(indices=found.indices.to(device), distances=distances.to(dtype).to(device))


def select_method(features: Tensor) -> str:
    """The faster method for features (n, d) on their device, "exact" or "approximate"."""
    n, dim = features.shape
    small = float(n) * n * (dim + SELECTING) <= EXACT_UP_TO
    return "exact" if small or features.device.type != "cpu" else "approximate"


def _on_host(rows: Any) -> Any:
    """Rows as an array or a sparse matrix in the memory of the host."""
    if isinstance(rows, Tensor):
        return rows.detach().cpu().numpy()
    return read_all(rows) if is_rows(rows) else rows


def _to_features(rows: Tensor | Rows, metric: str) -> Tensor:
    """Rows as one tensor (n, d) whose Euclidean distances order pairs as the metric does."""
    if isinstance(rows, Tensor) and metric == "euclidean":
        return rows
    n, step = rows.shape[0], chunk_length(rows.shape[1:])
    features: Tensor | None = None
    for start in range(0, n, step):
        stop = min(n, start + step)
        x = (rows[start:stop] if isinstance(rows, Tensor) else read_checked(rows, start, stop)).flatten(1)
        if metric != "euclidean":
            x = transform_rows(x if x.is_floating_point() else near_float64(x).double(), metric)
        if features is None:
            features = torch.empty(n, x.shape[1], dtype=x.dtype, device=x.device)
        features[start:stop] = x
    assert features is not None  # n > k >= 1
    return features


@in_smaller_pieces("the search for neighbors")
def _exact(features: Tensor, k: int) -> Neighbors:
    distances = Distances(features, tf32=features.device.type == "cuda")
    indices, squared = nearest_rows(distances, k)
    return Neighbors(indices, squared.sqrt() * distances.unit, "exact")


def _has_faiss() -> bool:
    return importlib.util.find_spec("faiss") is not None


def _approximate(features: Tensor, k: int, shared: SharedCells | None = None) -> Neighbors:
    """An inverted-file index that probes more cells until a sample of rows finds enough of its true neighbors."""
    n = len(features)
    data = features.detach().cpu().contiguous().float()
    index = _index(data, shared)
    cells = index.nlist
    sample = torch.linspace(0, n - 1, min(RECALL_SAMPLE, n)).long()
    all_rows = Distances(data)
    farthest = nearest_to(all_rows, data[sample], k, sample).squared[:, -1:].sqrt() * all_rows.unit
    probes, recall = first_probes(n, k, cells), 0.0
    if shared is not None:
        probes = shared.probes or _probes_to_visit(FEWEST_CANDIDATES * k, n, cells)
    while True:
        index.nprobe = min(probes, cells)
        # Recall by distance, not by id: among duplicates any one counts as found.
        recall = float((_search(index, data, sample, k)[1] <= farthest * (1 + 1e-4)).double().mean())
        if recall >= RECALL_AIM or index.nprobe == cells:
            break
        probes *= 2
    if shared is not None:
        shared.probes = probes
    indices, distances = _search(index, data, torch.arange(n), k)
    return Neighbors(indices.to(features.device), distances.to(features.device), "approximate", recall)


def first_probes(n: int, k: int, cells: int) -> int:
    """Cells that are visited at first, of so many with n rows in all.

    >>> first_probes(60_000, 90, 979), first_probes(1_000_000, 90, 4_000)
    (15, 6)
    """
    fewest, first = (_probes_to_visit(rows, n, cells) for rows in (FEWEST_CANDIDATES * k, FIRST_CANDIDATES))
    return max(1, fewest, min(int(FIRST_PART * cells), first))


def _probes_to_visit(candidates: int, n: int, cells: int) -> int:
    return -(-candidates * cells // n)


def _index(data: Tensor, shared: SharedCells | None) -> Any:
    """An index of the rows; its cells are trained on them unless they are known."""
    try:
        import faiss
    except ImportError as problem:
        raise ImportError(f"approximate neighbors need faiss: {INSTALL}, or pass method='exact'") from problem
    n, dim = data.shape
    centers = None if shared is None else shared.centers
    cells = max(1, min(int(4 * n**0.5), n // 40)) if centers is None else len(centers)
    quantizer = faiss.IndexFlatL2(dim)
    index = faiss.IndexIVFFlat(quantizer, dim, cells, faiss.METRIC_L2)
    index.cp.seed = 0  # the same cells, and so the same graph, every time
    index.cp.max_points_per_centroid = ROWS_OF_CELL
    faiss.omp_set_num_threads(1)  # its threads wait for each other as torch's do; searches are shared among ours
    with activity("training the index of neighbors"):
        if centers is not None:
            quantizer.add(centers.numpy())
        index.train(data.numpy())  # nothing is left to do if the centers are there
        index.add(data.numpy())
    if shared is not None and centers is None:
        shared.centers = torch.from_numpy(quantizer.reconstruct_n(0, cells))
    return index


def _search(index: Any, data: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest others of the rows ``queries``; rows for which the index finds fewer are searched exactly."""
    parts = []
    with activity("finding neighbors", len(queries)) as searching:
        for part in map_in_threads(partial(_ask, index, data, k), queries.split(QUERIES)):
            parts.append(part)
            searching.advance(len(part[0]))
    squared, found = (torch.cat(each) for each in zip(*parts, strict=True))
    # A row finds itself unless it has k + 1 duplicates; a missing result has the index -1.
    squared = squared.masked_fill((found == queries[:, None]) | (found < 0), torch.inf)
    order = squared.argsort(dim=1, stable=True)[:, :k]
    found, squared = found.gather(1, order), squared.gather(1, order)
    missing = squared.isinf()
    if missing.any():
        rows = missing.any(1).nonzero().ravel()
        all_rows = Distances(data)
        found[rows], exact = nearest_to(all_rows, data[queries[rows]], k, queries[rows])
        squared[rows] = (exact * all_rows.unit**2).to(squared.dtype)
    return found, squared.clamp_min(0).sqrt()


def _ask(index: Any, data: Tensor, k: int, queries: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distances and ids of the k + 1 rows that the index finds for each query."""
    import faiss

    faiss.omp_set_num_threads(1)  # a setting of each thread
    squared, found = index.search(data[queries].numpy(), k + 1)
    return torch.from_numpy(squared), torch.from_numpy(found)
