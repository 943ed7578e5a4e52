"""What a stage must match: the neighborhoods of its source, coordinates to follow, or the bank of all rows."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from dre.affinity.bank import Bank, OwnLinks
from dre.affinity.landmarks import Landmarks
from dre.affinity.target import Graph, InBatch, Links, Target
from dre.coordinates.free import START_STD, optimize
from dre.coordinates.start import principal_components
from dre.data.rows import chunk_length
from dre.encoder.forward import INPUT
from dre.encoder.network import Network
from dre.loss import Loss
from dre.loss.pair_sums import MAX_COMPONENTS
from dre.neighbors.search import Neighbors, nearest
from dre.plan.schedule import Stage
from dre.runtime.float64 import float64_device
from dre.training.events import CoordinatesMoved
from dre.training.graph_parts import make_graph
from dre.training.learner import FEATURES, joined_sources
from dre.training.run import Run

RADIUS_NEIGHBORS = 10
PCA_STD = 10.0  # of the first component, where a network follows the components themselves


def first_target(run: Run, stage: Stage, resume: dict[str, Any] | None) -> Target:
    """Compute the target at the start of a stage, or again that of the epoch where the run is resumed."""
    if resume is None or (is_refreshed(stage, resume["epoch"]) and resume["progress"] is None):
        return make_target(run, stage)
    run.encoder.load_state_dict(resume["target_weights"])
    target = make_target(run, stage)
    run.encoder.load_state_dict(resume["weights"])
    return target


def is_refreshed(stage: Stage, epoch: int) -> bool:
    """Whether the target is computed again at the start of this epoch."""
    return stage.refresh is not None and epoch > stage.follow and (epoch - stage.follow) % stage.refresh == 0


def make_target(run: Run, stage: Stage) -> Target:
    """Compute what the stage must match, by the current weights; the radius of the rows, if it is needed, on the way."""
    target = _make_target(run, stage)
    if run.learner.reads_radius and run.radius is None:
        run.radius = _radius(run, stage, target)
    return target


def _make_target(run: Run, stage: Stage) -> Target:
    run.target_weights = run.weights()
    if stage.affinity.scope != "graph":
        return InBatch(stage.affinity, run.learner.features(stage.source))
    return _shared_graph(run, stage) if is_shared(run, stage) else _own_graph(run, stage)


def is_shared(run: Run, stage: Stage) -> bool:
    """Whether the stage needs one graph of the rows of all ranks, which the first rank holds.

    Else each rank has a graph of its own rows: a random part of them all.
    """
    return run.ranks.is_connected and stage.needs_all_rows


def _shared_graph(run: Run, stage: Stage) -> Graph:
    features = _shared_features(run, stage.source)
    k = stage.affinity.count_neighbors(run.n_rows)
    return Graph.empty(k, run.runtime.device) if features is None else Graph.of(stage.affinity, nearest(features, k))


def _shared_features(run: Run, source: str) -> Tensor | None:
    """Features of the rows of all ranks, on the first rank; None on the others."""
    parts = [run.ranks.to_first(run.learner.features(part)) for part in source.split("+")]
    return joined_sources([part for part in parts if part is not None]) if run.ranks.is_first else None


def _own_graph(run: Run, stage: Stage) -> Graph:
    n, device = run.rows.shape[0], run.runtime.device
    if run.neighbors is not None and reads_input_graph(stage):
        k = stage.affinity.count_neighbors(n)
        indices, distances = run.neighbors.indices[:, :k].to(device), run.neighbors.distances[:, :k].to(float64_device(device))
        return Graph.of(stage.affinity, Neighbors(indices, distances, *run.neighbors[2:]))
    return make_graph(run, stage)


def reads_input_graph(stage: Stage) -> bool:
    return stage.affinity.scope == "graph" and stage.source in (INPUT, FEATURES)


def _radius(run: Run, stage: Stage, target: Target) -> Tensor:
    """Distance of each row to its tenth neighbor, or to the last where there are fewer, among what the trained part reads."""
    if is_shared(run, stage):
        features = _shared_features(run, run.learner.first_source)
        radius = None if features is None else _distance_to_tenth(features, stage, target)
        return run.ranks.from_first(radius, run.runtime.device)[run.first_row : run.first_row + run.rows.shape[0]]
    return _distance_to_tenth(run.learner.features(run.learner.first_source), stage, target)


def _distance_to_tenth(features: Tensor, stage: Stage, target: Target) -> Tensor:
    count, parts = min(RADIUS_NEIGHBORS, len(features) - 1), 1
    if isinstance(target, Graph) and stage.source in (INPUT, FEATURES):
        indices, parts = target.indices, target.search.parts  # nearest first
    else:
        indices = nearest(features, count).indices
    # The tenth neighbor among all rows is about as far as the fifth in a random half of them.
    rank = max(1, round(min(count, indices.shape[1]) / parts))
    tenth = indices[:, rank - 1].long()
    step = chunk_length(features.shape[1:])
    return torch.cat([(x - features[ids]).norm(dim=1) for x, ids in zip(features.split(step), tenth.split(step), strict=True)])


def _check_components(run: Run) -> None:
    """Raise a ValueError if the map has more dimensions than the sums over all rows that a GPU captures."""
    n_components = run.learner.n_components
    if run.runtime.captures and n_components > MAX_COMPONENTS:
        raise ValueError(
            f"n_components={n_components}: free coordinates and the bank of a GPU have up to {MAX_COMPONENTS} dimensions: "
            "pass device='cpu', or a schedule without them"
        )


def find_coordinates(run: Run, stage: Stage, target: Target) -> Generator[CoordinatesMoved, None, Tensor]:
    """Return the coordinates that the encoder will follow, and set the scale of its output if a map starts with them.

    Those of the rows of several ranks are found by the first one.
    """
    found: Tensor | None
    if stage.start == "pca":
        std = START_STD if stage.free else PCA_STD
        features, n_components = _shared_features(run, stage.source), run.learner.n_components
        found = None if features is None else principal_components(features, n_components, std)
    else:
        found = run.ranks.to_first(run.learner.embedding())
    held = None
    if run.anchors is not None and found is not None:
        held = run.anchors.isfinite().all(1)
        found = torch.where(held[:, None], run.anchors, found)
    if stage.free:
        _check_components(run)
        find_landmarks(run, stage.free_loss)
    if stage.free and found is not None:
        assert isinstance(target, Graph)
        bank = Bank(target, found, run.landmarks)
        run.moving = bank.columns
        for step in optimize(bank, stage.free_loss, stage.free, exaggerate=stage.start == "pca" or held is not None, held=held):
            yield CoordinatesMoved(run, step)
            if run.ending:
                break
        found, run.moving = bank.columns.T.contiguous(), None
    coordinates = run.ranks.from_first(found, run.runtime.device)
    if stage.start == "pca" and isinstance(run.encoder, Network):
        run.encoder.scale.fill_(coordinates.std(0, correction=0).mean().clamp_min(1e-3))
    return coordinates


def target_of_loss(run: Run, stage: Stage, target: Target, coordinates: Tensor | None) -> Target:
    """Return what the loss goes against: the target itself, or the bank of all rows, at these coordinates or the network's."""
    if stage.against != "bank":
        if not is_shared(run, stage):
            return target
        own = stage.affinity.clamp_to(run.rows.shape[0])  # the coordinates had the neighbors of more rows
        return _own_graph(run, replace(stage, affinity=own))
    assert isinstance(target, Graph)  # the stage has checked it
    _check_components(run)
    find_landmarks(run, stage.loss)
    if coordinates is None:
        coordinates = run.ranks.gather(run.learner.embedding())
    return Bank(target, coordinates, run.landmarks, _own_links(run, target) if is_shared(run, stage) else None)


def find_landmarks(run: Run, loss: Loss) -> None:
    """Measure the distances to landmarks, once, if the loss reads them."""
    if loss.reads_landmarks and run.landmarks is None:
        run.landmarks = Landmarks.of(run.learner.input_features, run.runtime.device, ranks=run.ranks)


def _own_links(run: Run, graph: Graph) -> OwnLinks:
    """The links of this rank's rows, from the graph that the first rank holds."""
    ranks, device, m = run.ranks, run.runtime.device, run.rows.shape[0]
    links = graph.links if ranks.is_first else None
    starts = others = weights = totals = None
    if links is not None:
        starts = [links.start[i * m : (i + 1) * m + 1] for i in range(ranks.size)]
        ends = [slice(int(start[0]), int(start[-1])) for start in starts]
        starts = [start - start[0] for start in starts]
        others, weights = [links.others[part] for part in ends], [links.weight[part] for part in ends]
        totals = torch.stack([links.weight.sum(), links.weight.xlogy(links.weight).sum()])
    own = ranks.scatter(starts, device)
    start = torch.zeros(run.n_rows + 1, dtype=own.dtype, device=device)
    start[run.first_row : run.first_row + m + 1] = own
    start[run.first_row + m + 1 :] = own[-1]
    links = Links(start, ranks.scatter(others, device), ranks.scatter(weights, device))
    total, entropy = ranks.from_first(totals, device)
    return OwnLinks(run.first_row, links, total, entropy, ranks.gather)
