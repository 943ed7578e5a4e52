"""What a stage must match: the neighborhoods of its source, coordinates to follow, or the bank of all rows."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import torch
from torch import Tensor

from dre.affinity.bank import Bank
from dre.affinity.landmarks import Landmarks
from dre.affinity.target import Graph, InBatch, Target
from dre.coordinates.free import START_STD, optimize
from dre.coordinates.start import principal_components
from dre.data.rows import chunk_length
from dre.encoder.forward import INPUT
from dre.encoder.network import Network
from dre.loss import Loss
from dre.neighbors.search import Neighbors, nearest
from dre.plan.schedule import Stage
from dre.training.events import CoordinatesMoved
from dre.training.graph_parts import make_graph
from dre.training.learner import FEATURES
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
    n, device = run.rows.shape[0], run.runtime.device
    if run.neighbors is not None and reads_input_graph(stage):
        k = stage.affinity.count_neighbors(n)
        indices, distances = (part[:, :k].to(device) for part in run.neighbors[:2])
        return Graph.of(stage.affinity, Neighbors(indices, distances))
    return make_graph(run, stage)


def reads_input_graph(stage: Stage) -> bool:
    return stage.affinity.scope == "graph" and stage.source in (INPUT, FEATURES)


def _radius(run: Run, stage: Stage, target: Target) -> Tensor:
    """Distance of each row to its tenth neighbor, or to the last where there are fewer, among what the trained part reads."""
    features = run.learner.features(run.learner.first_source)
    if isinstance(target, Graph) and stage.source in (INPUT, FEATURES) and target.search.parts == 1:
        indices = target.indices  # nearest first
    else:
        indices = nearest(features, min(RADIUS_NEIGHBORS, len(features) - 1)).indices
    tenth = indices[:, min(RADIUS_NEIGHBORS, indices.shape[1]) - 1]
    step = chunk_length(features.shape[1:])
    return torch.cat([(x - features[ids]).norm(dim=1) for x, ids in zip(features.split(step), tenth.split(step), strict=True)])


def find_coordinates(run: Run, stage: Stage, target: Target) -> Generator[CoordinatesMoved, None, Tensor]:
    """Return the coordinates that the encoder will follow, and set the scale of its output if a map starts with them."""
    if stage.start == "pca":
        std = START_STD if stage.free else PCA_STD
        coordinates = principal_components(run.learner.features(stage.source), run.learner.n_components, std)
    else:
        coordinates = run.learner.embedding()
    if stage.free:
        assert isinstance(target, Graph)
        bank = make_bank(run, stage.free_loss, target, coordinates)
        for step in optimize(bank, stage.free_loss, stage.free, exaggerate=stage.start == "pca"):
            yield CoordinatesMoved(run, step)
            if run.ending:
                break
        coordinates = bank.columns.T.contiguous()
    if stage.start == "pca" and isinstance(run.encoder, Network):
        run.encoder.scale.fill_(coordinates.std(0, correction=0).mean().clamp_min(1e-3))
    return coordinates


def target_of_loss(run: Run, stage: Stage, target: Target, coordinates: Tensor | None) -> Target:
    """Return what the loss goes against: the target itself, or the bank of all rows, at these coordinates or the network's."""
    if stage.against != "bank":
        return target
    assert isinstance(target, Graph)  # the stage has checked it
    return make_bank(run, stage.loss, target, run.learner.embedding() if coordinates is None else coordinates)


def make_bank(run: Run, loss: Loss, graph: Graph, coordinates: Tensor) -> Bank:
    """Return the bank of all rows at these coordinates, with the landmarks if the loss reads them."""
    if not loss.reads_landmarks:
        return Bank(graph, coordinates)
    if run.landmarks is None:
        run.landmarks = Landmarks.of(run.rows, run.runtime.device)
    return Bank(graph, coordinates, run.landmarks)
