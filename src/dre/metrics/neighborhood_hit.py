"""Label agreement of neighbors in the embedding: 1-NN accuracy and neighborhood hit."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from dre.metrics.inputs import (
    LOW,
    Device,
    as_points,
    check_choice,
    check_k,
    complete_labels,
    embedding_space,
    encode_labels,
    encode_levels,
)
from dre.metrics.pairwise_pass import PAPER, PROTOCOLS, EvalConfig, Metric, PairwiseStatistics, Reference, Score
from dre.metrics.ranks import KNeighbors
from dre.neighbors.distances import Distances
from dre.neighbors.exact import nearest_to

Array = np.ndarray[Any, Any]


def nearest_neighbor(Y: Any, labels: Any, *, reference: tuple[Any, Any] | None = None, device: Device = "auto") -> float:
    """Compute the 1-NN accuracy: the share of points whose nearest neighbor has the same label.

    1-NN = 1/n Σᵢ [labelᵢ = label of the point nearest to i]. Of two equally near points, the one with the lower index counts.

    Parameters
    ----------
    Y : array-like of shape (n, d')
        Embedding.
    labels : array-like of shape (n,)
    reference : tuple of (array-like of shape (m, d'), array-like of shape (m,)), default=None
        Points of the same embedding and their labels, among which neighbors are sought. With the training rows this is the
        accuracy on held-out rows. None leaves one out among the points of Y.
    device : str or torch.device, default="auto"

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> nearest_neighbor(Y, ["a", "a", "b", "b"])
    1.0
    >>> nearest_neighbor([[0.4], [10.7]], ["a", "a"], reference=(Y, ["a", "a", "b", "b"]))
    0.5
    """
    pairwise = PairwiseStatistics(embedding_space(Y, device), "1-NN")
    levels = {"labels": encode_labels(labels, pairwise.n)}
    if reference is None and pairwise.n < 2:
        raise ValueError(f"{pairwise.n} row has no neighbors; pass reference=(Y, labels) of other rows")
    known = None if reference is None else read_reference(reference, labels, pairwise.spaces[LOW])
    return NEAREST_NEIGHBOR.value(EvalConfig(pairwise.n, levels=levels, reference=known), pairwise)


def neighborhood_hit(
    Y: Any, labels: Any, *, k: int = 7, protocol: str = "standard", per_point: bool = False, device: Device = "auto"
) -> float | Array:
    """Compute the mean share of a point's k nearest neighbors that have its label.

    NH = 1/(nk) Σᵢ |{j among the k nearest neighbors of i : labelⱼ = labelᵢ}|.

    Parameters
    ----------
    Y : array-like of shape (n, d')
        Embedding.
    labels : array-like of shape (n,)
    k : int, default=7
        Number of neighbors, below n/2.
    protocol : {"standard", "paper"}, default="standard"
        ``"paper"`` counts the point itself among its k neighbors, as the paper's tables do, which raises the value.
    per_point : bool, default=False
        Return the n shares instead of their mean.
    device : str or torch.device, default="auto"

    Returns
    -------
    float, or ndarray of shape (n,) with ``per_point=True``

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [2.1], [10.0], [11.0], [12.1]])
    >>> neighborhood_hit(Y, ["a", "a", "a", "b", "b", "b"], k=2)
    1.0
    """
    check_choice("protocol", protocol, PROTOCOLS)
    pairwise = PairwiseStatistics(embedding_space(Y, device), "neighborhood hit")
    levels = {"labels": encode_labels(labels, pairwise.n)}
    config = EvalConfig(pairwise.n, check_k(k, pairwise.n), protocol, levels=levels)
    return NEIGHBORHOOD_HIT.per_point(config, pairwise) if per_point else NEIGHBORHOOD_HIT.value(config, pairwise)


def neighborhood_hit_by_level(
    Y: Any, labels: Any, *, k: int = 7, protocol: str = "standard", device: Device = "auto"
) -> dict[str, float]:
    """Compute the neighborhood hit at several levels of labels, such as clusters and the classes they belong to.

    Where the finer level misses and the coarser one hits, neighbors belong to related clusters: the embedding keeps the
    structure above the clusters.

    Parameters
    ----------
    Y, k, protocol, device
        As for ``neighborhood_hit``.
    labels : dict of str to array-like of shape (n,), or DataFrame
        Labels by the name of their level.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [2.1], [3.3], [10.0], [11.0], [12.1], [13.3]])
    >>> neighborhood_hit_by_level(Y, {"cluster": list("aabbccdd"), "class": list("xxxxyyyy")}, k=2)
    {'cluster': 0.5, 'class': 1.0}
    """
    check_choice("protocol", protocol, PROTOCOLS)
    pairwise = PairwiseStatistics(embedding_space(Y, device), "neighborhood hit")
    config = EvalConfig(pairwise.n, check_k(k, pairwise.n), protocol, levels=encode_levels(labels, pairwise.n))
    return dict(_hit_by_level(config, pairwise).value)


def read_reference(reference: Any, labels: Any, points: Tensor) -> Reference:
    """Validate ``reference`` and encode its labels together with those of the evaluated points."""
    if not isinstance(reference, tuple | list) or len(reference) != 2:
        raise ValueError("reference must be a pair (Y, labels) of points and their labels")
    known = as_points(reference[0], "reference Y", points.device)
    if known.shape[1] != points.shape[1]:
        raise ValueError(
            f"Y has {points.shape[1]} columns and the reference Y {known.shape[1]}; both must be in the same embedding"
        )
    own = complete_labels(labels, len(points))
    theirs = complete_labels(reference[1], len(known), "reference labels")
    codes = encode_labels(np.concatenate([own, theirs]), len(own) + len(theirs))
    return Reference(known, codes[len(own) :], codes[: len(own)])


def _nearest_neighbor(config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
    if config.reference is None:
        nearest = pairwise.compute(KNeighbors(LOW, config.k))[0].indices[:, 0].cpu()
        hits, remark = config.labels[nearest] == config.labels, "leave-one-out"
    else:
        points, labels, query_labels = config.reference
        nearest = nearest_to(Distances(points), pairwise.spaces[LOW], 1).indices[:, 0].cpu()
        hits, remark = labels[nearest] == query_labels, "nearest reference row"
    return Score(float(hits.double().mean()), hits.double(), remark)


def _shares(config: EvalConfig, pairwise: PairwiseStatistics, labels: Tensor) -> Tensor:
    """Return (n,) shares of neighbors with the same label; the paper counts the point itself as the first of k."""
    neighbors, itself = pairwise.compute(KNeighbors(LOW, config.k))[0].indices, config.protocol == PAPER
    labels = labels.to(neighbors.device)
    others = neighbors[:, : config.k - 1] if itself else neighbors
    hits: Tensor = (labels[others] == labels[:, None]).sum(1).double()
    return (hits + itself) / config.k


def _hit(config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
    shares = _shares(config, pairwise, config.labels)
    return Score(float(shares.mean()), shares, _remark(config))


def _hit_by_level(config: EvalConfig, pairwise: PairwiseStatistics) -> Score:
    hits = {name: float(_shares(config, pairwise, labels).mean()) for name, labels in config.levels.items()}
    return Score(hits, remark=_remark(config))


def _remark(config: EvalConfig) -> str:
    return "counts itself" if config.protocol == PAPER else ""


NEAREST_NEIGHBOR = Metric(
    "nearest_neighbor",
    statistics=lambda config: (KNeighbors(LOW, config.k),) if config.reference is None else (),
    score=_nearest_neighbor,
    applies=lambda config: bool(config.levels),
)
NEIGHBORHOOD_HIT = Metric(
    "neighborhood_hit",
    statistics=lambda config: (KNeighbors(LOW, config.k),),
    score=_hit,
    applies=lambda config: bool(config.levels),
)
NEIGHBORHOOD_HIT_BY_LEVEL = Metric(
    "neighborhood_hit_by_level",
    statistics=lambda config: (KNeighbors(LOW, config.k),),
    score=_hit_by_level,
    applies=lambda config: len(config.levels) > 1,
)
