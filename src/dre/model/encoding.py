"""Recipes and constructor arguments as JSON: plain values as they are, the others as ``{"kind": text}``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import nn

from dre.augment import Augment, parse_augment
from dre.batches import BATCHES, Batches
from dre.encoder import ENCODERS, Encoder
from dre.encoder.backbone import Backbone
from dre.model.file_error import ModelFileError
from dre.optimizer import OPTIMIZERS, Optimizer
from dre.plan.recipe import Recipe
from dre.plan.schedule import Schedule
from dre.runtime import PRECISIONS

_TEXTS: dict[str, tuple[type, Callable[[str], Any]]] = {
    "schedule": (Schedule, Schedule.parse),
    "encoder": (Encoder, ENCODERS.parse),
    "batches": (Batches, BATCHES.parse),
    "optimizer": (Optimizer, OPTIMIZERS.parse),
    "augment": (Augment, parse_augment),
}
_CONTAINERS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "tuple": lambda items, read: tuple(map(read, items)),
    "list": lambda items, read: list(map(read, items)),
    "dict": lambda items, read: {name: read(item) for name, item in items.items()},
}
_OF_PARTS: dict[str, type[Any]] = {"recipe": Recipe, "backbone": Backbone}  # whose fields are encoded one by one
_PARTS: dict[str, tuple[type, ...]] = {  # of a recipe
    "schedule": (Schedule,),
    "encoder": (Encoder, nn.Module),
    "batches": (Batches,),
    "optimizer": (Optimizer,),
    "augment": (Augment, type(None)),
}


def encode(value: Any) -> Any:
    """Return JSON for a constructor argument or a recipe; objects without a notation, as a user's module, are only named."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, torch.device):
        value = str(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        value = value.tolist()
    if isinstance(value, Mapping):
        return {"dict": {str(name): encode(item) for name, item in value.items()}}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [encode(item) for item in value]}
    for kind, (cls, _) in _TEXTS.items():
        if isinstance(value, cls) and getattr(value, "has_text", True):
            return {kind: str(value)}
    for kind, of in _OF_PARTS.items():
        if isinstance(value, of):
            return {kind: {field.name: encode(getattr(value, field.name)) for field in fields(value)}}
    return {"module" if isinstance(value, nn.Module) else "unsaved": f"{type(value).__module__}.{type(value).__qualname__}"}


def decode(value: Any, encoder: nn.Module | None = None) -> Any:
    """Return the object again; ``encoder`` stands in for a user's module."""
    if not isinstance(value, (dict, list)):
        return value
    if isinstance(value, list) or len(value) != 1:
        raise ModelFileError("is damaged: its configuration has a value of an unknown kind")
    ((kind, content),) = value.items()
    if kind in _CONTAINERS and isinstance(content, list if kind != "dict" else dict):
        return _CONTAINERS[kind](content, lambda item: decode(item, encoder))
    if kind in _TEXTS and isinstance(content, str):
        return _TEXTS[kind][1](content)
    if kind in _OF_PARTS and isinstance(content, dict):
        return _checked(_OF_PARTS[kind](**{name: decode(item, encoder) for name, item in content.items()}))
    if kind == "module":
        if encoder is None:
            raise ModelFileError(
                f"has an encoder that is a module of your own, {content}: pass it, DRE.load(path, encoder=...)"
            )
        return encoder
    if kind == "unsaved":
        return None  # for example a random state: not needed to use the model
    raise ModelFileError(f"is damaged: its configuration has a value of an unknown kind, {kind!r}")


def decode_recipe(value: Any, encoder: nn.Module | None = None) -> Recipe:
    """Return a recipe again."""
    recipe = decode(value, encoder)
    if not isinstance(recipe, Recipe):
        raise ModelFileError(f"is damaged: its recipe is a {type(recipe).__name__}")
    return recipe


def _checked(recipe: Any) -> Any:
    """Return what was decoded, if the parts of a recipe are what they should be."""
    if not isinstance(recipe, Recipe):
        return recipe
    for name, kinds in _PARTS.items():
        if not isinstance(getattr(recipe, name), kinds):
            raise ModelFileError(f"is damaged: the {name} of its recipe is a {type(getattr(recipe, name)).__name__}")
    if recipe.precision not in PRECISIONS:
        raise ModelFileError(f"is damaged: the precision of its recipe is {recipe.precision!r}")
    return recipe
