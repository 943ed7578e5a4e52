"""Deep Recursive Embedding: high-dimensional data to a map, with a network that learns the map."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dre.affinity.fuzzy import Fuzzy as Fuzzy
    from dre.affinity.gaussian import Gaussian as Gaussian
    from dre.archive import ModelFileError as ModelFileError
    from dre.augment.affine import Affine as Affine
    from dre.augment.colour import Colour as Colour
    from dre.augment.crop import Crop as Crop
    from dre.augment.dropout import Dropout as Dropout
    from dre.augment.elastic import Elastic as Elastic
    from dre.augment.flip import Flip as Flip
    from dre.augment.noise import Noise as Noise
    from dre.batches import Auto as Auto
    from dre.batches import Edges as Edges
    from dre.batches import Fixed as Fixed
    from dre.batches import Redrawn as Redrawn
    from dre.batches import Seeds as Seeds
    from dre.deep import DeepTSNE as DeepTSNE
    from dre.deep import DeepUMAP as DeepUMAP
    from dre.encoder.filtered import Filtered as Filtered
    from dre.encoder.mlp import MLP as MLP
    from dre.encoder.model_a import ModelA as ModelA
    from dre.encoder.model_b import ModelB as ModelB
    from dre.encoder.strided import Strided as Strided
    from dre.estimator import DRE as DRE
    from dre.loss.ce import CE as CE
    from dre.loss.kl import KL as KL
    from dre.observe.early_stop import EarlyStop as EarlyStop
    from dre.optimiser import Optimiser as Optimiser
    from dre.recipe import Recipe as Recipe
    from dre.schedule import Schedule as Schedule
    from dre.schedule import Stage as Stage
    from dre.train import DivergedError as DivergedError

# Where each public name lives. Names are imported when they are first used: `import dre` alone costs nothing.
_PLACES = {
    "Affine": "dre.augment.affine",
    "Auto": "dre.batches",
    "CE": "dre.loss.ce",
    "Colour": "dre.augment.colour",
    "Crop": "dre.augment.crop",
    "DRE": "dre.estimator",
    "DeepTSNE": "dre.deep",
    "DeepUMAP": "dre.deep",
    "DivergedError": "dre.train",
    "Dropout": "dre.augment.dropout",
    "EarlyStop": "dre.observe.early_stop",
    "Edges": "dre.batches",
    "Elastic": "dre.augment.elastic",
    "Filtered": "dre.encoder.filtered",
    "Fixed": "dre.batches",
    "Flip": "dre.augment.flip",
    "Fuzzy": "dre.affinity.fuzzy",
    "Gaussian": "dre.affinity.gaussian",
    "KL": "dre.loss.kl",
    "MLP": "dre.encoder.mlp",
    "ModelA": "dre.encoder.model_a",
    "ModelB": "dre.encoder.model_b",
    "ModelFileError": "dre.archive",
    "Noise": "dre.augment.noise",
    "Optimiser": "dre.optimiser",
    "Recipe": "dre.recipe",
    "Redrawn": "dre.batches",
    "Schedule": "dre.schedule",
    "Seeds": "dre.batches",
    "Stage": "dre.schedule",
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
