"""Deep Recursive Embedding: high-dimensional data to a map, with a network that learns the map."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dre.affinity.fuzzy import Fuzzy as Fuzzy
    from dre.affinity.gaussian import Gaussian as Gaussian
    from dre.augment.color import Colour as Colour
    from dre.augment.noise import Dropout as Dropout
    from dre.augment.noise import Noise as Noise
    from dre.augment.warp import Affine as Affine
    from dre.augment.warp import Crop as Crop
    from dre.augment.warp import Elastic as Elastic
    from dre.augment.warp import Flip as Flip
    from dre.batches import Auto as Auto
    from dre.batches import Edges as Edges
    from dre.batches import Fixed as Fixed
    from dre.batches import Redrawn as Redrawn
    from dre.batches import Seeds as Seeds
    from dre.encoder.mlp import MLP as MLP
    from dre.encoder.model_a import ModelA as ModelA
    from dre.encoder.model_b import ModelB as ModelB
    from dre.encoder.patch_mlp import Filtered as Filtered
    from dre.encoder.strided import Strided as Strided
    from dre.loss.ce import CE as CE
    from dre.loss.kl import KL as KL
    from dre.model.archive import ModelFileError as ModelFileError
    from dre.model.estimator import DRE as DRE
    from dre.model.estimator import DeepTSNE as DeepTSNE
    from dre.model.estimator import DeepUMAP as DeepUMAP
    from dre.observe.stopping import EarlyStop as EarlyStop
    from dre.optimizer import Optimiser as Optimiser
    from dre.plan.recipe import Recipe as Recipe
    from dre.plan.schedule import Schedule as Schedule
    from dre.plan.schedule import Stage as Stage
    from dre.training.loop import DivergedError as DivergedError

# Where each public name lives. Names are imported when they are first used: `import dre` alone costs nothing.
_PLACES = {
    "Affine": "dre.augment.warp",
    "Auto": "dre.batches",
    "CE": "dre.loss.ce",
    "Colour": "dre.augment.color",
    "Crop": "dre.augment.warp",
    "DRE": "dre.model.estimator",
    "DeepTSNE": "dre.model.estimator",
    "DeepUMAP": "dre.model.estimator",
    "DivergedError": "dre.training.loop",
    "Dropout": "dre.augment.noise",
    "EarlyStop": "dre.observe.stopping",
    "Edges": "dre.batches",
    "Elastic": "dre.augment.warp",
    "Filtered": "dre.encoder.patch_mlp",
    "Fixed": "dre.batches",
    "Flip": "dre.augment.warp",
    "Fuzzy": "dre.affinity.fuzzy",
    "Gaussian": "dre.affinity.gaussian",
    "KL": "dre.loss.kl",
    "MLP": "dre.encoder.mlp",
    "ModelA": "dre.encoder.model_a",
    "ModelB": "dre.encoder.model_b",
    "ModelFileError": "dre.model.archive",
    "Noise": "dre.augment.noise",
    "Optimiser": "dre.optimizer",
    "Recipe": "dre.plan.recipe",
    "Redrawn": "dre.batches",
    "Schedule": "dre.plan.schedule",
    "Seeds": "dre.batches",
    "Stage": "dre.plan.schedule",
    "Strided": "dre.encoder.strided",
}
_MODULES = ("baselines", "datasets", "metrics", "plot")
__all__ = sorted(_PLACES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"dre.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'dre' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_PLACES, *_MODULES]
