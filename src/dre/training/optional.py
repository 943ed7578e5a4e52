"""Optional stages: skipped where they promise nothing, and undone if they cost trust. No labels are read."""

from __future__ import annotations

import torch
from torch import Tensor

from dre.affinity.bank import Bank
from dre.affinity.target import Graph, Target
from dre.loss import Loss, Step
from dre.training.events import StageEnded, StageSkipped, StageUndone
from dre.training.run import Run
from dre.training.targets import find_landmarks
from dre.training.trust import sample_trust

TRUST_LOSS = 0.005  # of the trustworthiness: an optional stage that costs more is undone. Two seeds differ by less


def loss_for_next_stage(run: Run) -> float | None:
    """Loss of the map on the neighborhoods of the stage that has ended, by the loss of the next one if that is optional."""
    stages = list(run.recipe.schedule)[run.stage + 1 :]
    target = run.target.graph if isinstance(run.target, Bank) else run.target
    if not stages or not stages[0].optional:
        return None
    return loss_of_map(run, target, stages[0].loss)


def loss_of_map(run: Run, target: Target | None, loss: Loss) -> float | None:
    """Loss of the present map on the neighborhoods of a target; None if it is not known for all rows at once."""
    if not isinstance(target, Graph) or not loss.reads_bank:
        return None
    find_landmarks(run, loss)
    y = run.learner.embedding()
    if len(target.indices) == len(y):
        return run.ranks.mean(_loss_against_all(run, target, loss, y))
    of_all = run.ranks.to_first(y)  # the first rank holds the graph of the rows of all ranks
    return run.ranks.broadcast(None if of_all is None else _loss_against_all(run, target, loss, of_all))  # type: ignore[no-any-return]


def _loss_against_all(run: Run, graph: Graph, loss: Loss, y: Tensor) -> float:
    block = Bank(graph, y, run.landmarks).block(torch.arange(len(y), device=y.device))
    with torch.no_grad():
        return float(loss(Step.of(y.float(), block)))


def skip(run: Run, target: Target) -> StageSkipped | None:
    """End the fit if the map draws the neighborhoods of the stage that is about to begin no better than those before.

    A hidden layer has learned something of the map if it agrees with the map more than its own source did. Where it agrees
    less, a recursion would only forget what the input says.
    """
    before, now = run.map_loss, loss_of_map(run, target, run.current_stage.loss)
    if before is None or now is None or now < before:
        return None
    _end(run)
    return StageSkipped(run, (before, now))


def judge(run: Run) -> StageEnded | StageUndone:
    """Keep the stage that has just ended, or put back the weights from before it and end the fit."""
    weights = run.weights()
    embedding = run.learner.embedding()
    run.encoder.load_state_dict(run.start_weights)
    features = run.learner.features(run.learner.first_source)  # what the network read before the stage, also of a backbone
    after = run.ranks.mean(sample_trust(features, embedding))
    before = run.ranks.mean(sample_trust(features, run.learner.embedding()))
    if after < before - TRUST_LOSS:
        _end(run)
        return StageUndone(run, (before, after))
    run.encoder.load_state_dict(weights)
    return StageEnded(run, weights, (before, after))


def _end(run: Run) -> None:
    run.resume_at = (len(run.recipe.schedule), 0)
    run.end_fit()
