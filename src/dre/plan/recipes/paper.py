"""The paper as published, except for the precision: on a GPU with bfloat16 the encoder computes in it."""

from __future__ import annotations

from dre.affinity import Affinity
from dre.affinity.fuzzy import Fuzzy
from dre.affinity.gaussian import Gaussian
from dre.batches import Fixed
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.loss import Loss
from dre.loss.ce import CE
from dre.loss.kl import KL
from dre.optimizer import Optimizer
from dre.plan.recipe import DataSpec, Recipe
from dre.plan.schedule import Schedule, Stage, recursive

HIDDEN = ("h1", "h2", "h3")
PAPER_OPTIMIZER = Optimizer(1e-3, eps=1e-7, policy="constant")


def _paper(data: DataSpec, stages: list[Stage]) -> Recipe:
    encoder = ModelB() if data.images else ModelA()
    return Recipe(Schedule(*stages), encoder, Fixed(2500), PAPER_OPTIMIZER)


def _paper_stages(affinity: Affinity, loss: Loss, recursions: int | None) -> list[Stage]:
    count = len(HIDDEN) if recursions is None else recursions
    return recursive(Stage("x", affinity, loss, 100), Stage("h1", affinity, loss, 50), HIDDEN, count)


def paper_tsne(data: DataSpec, recursions: int | None) -> Recipe:
    """DR t-SNE: 100 epochs on x, 50 on each of h1, h2, h3; P inside fixed batches of 2500."""
    return _paper(data, _paper_stages(Gaussian(30, scope="batch"), KL(), recursions))


def paper_umap(data: DataSpec, recursions: int | None) -> Recipe:
    """The recursions with UMAP's loss alone."""
    return _paper(data, _paper_stages(Fuzzy(15, scope="batch"), CE(min_dist=0.001), recursions))


def paper(data: DataSpec, recursions: int | None) -> Recipe:
    """DRE: DR t-SNE, then 100 epochs with UMAP's loss on the last source at a tenth of the learning rate."""
    stages = _paper_stages(Gaussian(30, scope="batch"), KL(), recursions)
    return _paper(data, [*stages, Stage(stages[-1].source, Fuzzy(15, scope="batch"), CE(min_dist=0.001), 100, lr=1e-4)])
