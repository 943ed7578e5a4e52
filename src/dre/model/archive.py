"""One safetensors file per model, with the configuration as JSON in its header. Nothing in it can run code."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from dre.atomic import atomic_write
from dre.augment import Augment, parse_augment
from dre.batches import BATCHES, Batches
from dre.data.image_layout import model_shape
from dre.data.scaling import Scaling
from dre.encoder import ENCODERS, Encoder
from dre.model.fitted import FittedMap
from dre.notation import NotationError
from dre.optimizer import OPTIMIZERS, Optimizer
from dre.plan.recipe import Recipe
from dre.plan.schedule import Schedule
from dre.runtime import IsolatedRNG
from dre.training.run import Weights

FORMAT = 2  # its digest covers the configuration as well as the weights
HEADER = "dre"
WRITABLE = "Choose a folder that exists and can be written to."


class ModelFileError(ValueError):
    """The file is not a model of this package, or it is damaged."""


def save_map(path: str | os.PathLike[str], fitted: FittedMap, about: dict[str, Any], *, stages: bool = True) -> None:
    """Write a learned map.

    Parameters
    ----------
    path : path-like
    fitted : FittedMap
    about : dict
        What the caller wants to store with it, as JSON.
    stages : bool
        Whether to keep the weights at the end of earlier stages.
    """
    last = {name: value.detach().cpu() for name, value in fitted.encoder.state_dict().items()}
    kept = [weights if stages else None for weights in fitted.stages[:-1]]
    unchanged = _unchanged(last, [weights for weights in kept if weights is not None])
    tensors = {f"weights.{name}": value for name, value in last.items()}
    for i, weights in enumerate(kept):
        tensors |= {f"stages.{i}.{name}": value for name, value in (weights or {}).items() if name not in unchanged}
    tensors |= {f"scaling.{name}": value.cpu() for name, value in fitted.scaling.state_dict().items()}
    configuration = {
        "format": FORMAT,
        "about": about,
        "recipe": encode(fitted.recipe),
        "metric": fitted.scaling.metric,
        "n_components": fitted.n_components,
        "earlier_stages": [weights is not None for weights in kept],
        "unchanged": unchanged,
        "history": fitted.history,
    }
    # clones: safetensors refuses tensors that share memory, as tied weights do
    tensors = {name: value.contiguous().clone() for name, value in tensors.items()}
    _write(Path(path), tensors, {**configuration, "sha256": _digest(configuration, tensors)})


def load_map(path: str | os.PathLike[str], encoder: nn.Module | None = None) -> tuple[FittedMap, dict[str, Any]]:
    """Read a learned map, on the CPU, and what was stored about it; ``encoder`` stands for a module of the user's own."""
    tensors, configuration = _read(path)
    with as_model_file_error(path):
        recipe: Recipe = decode(configuration["recipe"], encoder)
        if encoder is not None and isinstance(recipe.encoder, Encoder):
            raise ModelFileError(f"{path} has an encoder of its own, {recipe.encoder}: load it without encoder=")
        scaling = _scaling(_under("scaling.", tensors), configuration["metric"])
        n_components = int(configuration["n_components"])
        last = _under("weights.", tensors)
        network = _filled(recipe.encoder, model_shape(scaling.shape), n_components, last)
        shared = {name: last[name] for name in configuration["unchanged"]}
        kept = configuration["earlier_stages"]
        stages = [shared | _under(f"stages.{i}.", tensors) if saved else None for i, saved in enumerate(kept)]
        stages.append(last)
        if any(stage is not None and _shapes(stage) != _shapes(network.state_dict()) for stage in stages):
            raise ModelFileError(f"{path} is damaged: the weights of a stage are incomplete")
        fitted = FittedMap(network.eval(), recipe, scaling, n_components, stages, configuration["history"])
        return fitted, configuration["about"]


@contextmanager
def as_model_file_error(path: str | os.PathLike[str]) -> Iterator[None]:
    """Re-raise decoding errors as ModelFileError, naming the file."""
    try:
        yield
    except ModelFileError:
        raise
    except NotationError as problem:
        raise ModelFileError(
            f"{path} names something that is not known here; import the module that defines it before loading. {problem}"
        ) from problem
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as problem:
        raise ModelFileError(f"{path} is damaged, or its weights do not fit the encoder: {problem!r}") from problem


def _scaling(tensors: dict[str, Tensor], metric: str) -> Scaling:
    columns = (tensors["column_mean"], tensors["column_std"]) if "column_mean" in tensors else None
    return Scaling(tensors["mean"], float(tensors["scale"]), metric=metric, columns=columns)


def _filled(plan: Encoder | nn.Module, shape: tuple[int, ...], n_components: int, weights: dict[str, Tensor]) -> nn.Module:
    if isinstance(plan, Encoder):
        with IsolatedRNG(0, torch.device("cpu"))():
            network = plan.build(shape, n_components)
    else:
        network = copy.deepcopy(plan)
    network.load_state_dict(weights, assign=True)
    return network


def _unchanged(last: Weights, earlier: list[Weights]) -> list[str]:
    """Name the weights that training left unchanged, such as a large front: they are written once, not for every stage."""
    return [name for name, value in last.items() if earlier and all(torch.equal(weights[name], value) for weights in earlier)]


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _shapes(weights: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in weights.items()}


def _write(path: Path, tensors: dict[str, Tensor], configuration: dict[str, Any]) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"can't write the model to {path}: there is no folder {path.parent}. {WRITABLE}")
    try:
        with atomic_write(path) as part:
            save_file(tensors, part, {HEADER: json.dumps(configuration)})
    except (OSError, SafetensorError) as problem:
        raise OSError(f"can't write the model to {path}: {problem}. {WRITABLE}") from problem


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no model file at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            configuration = json.loads((file.metadata() or {})[HEADER])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except KeyError as problem:
        raise ModelFileError(f"{path} is a safetensors file, but not one that dre saved") from problem
    except (SafetensorError, json.JSONDecodeError, OSError) as problem:
        raise ModelFileError(f"{path} is not a model that dre saved, or it is damaged: {problem}") from problem
    found = configuration.get("format") if isinstance(configuration, dict) else None
    if found != FORMAT:
        raise ModelFileError(f"{path} has the format {found}, this dre reads {FORMAT}: use the version that wrote it")
    claimed = configuration.pop("sha256", None)
    if claimed != _digest(configuration, tensors):
        raise ModelFileError(f"{path} is damaged: it is not what was saved. Use another copy of the file.")
    return tensors, configuration


def _digest(configuration: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """Digest of the configuration, and of every tensor's name, dtype, shape and bytes."""
    digest = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


# Objects as JSON: plain values as they are, the others as {"kind": text}.

_TEXTS: dict[str, tuple[type, Callable[[str], Any]]] = {
    "schedule": (Schedule, Schedule.parse),
    "encoder": (Encoder, ENCODERS.parse),
    "batches": (Batches, BATCHES.parse),
    "optimizer": (Optimizer, OPTIMIZERS.parse),
    "augment": (Augment, parse_augment),
}


def encode(value: Any) -> Any:
    """Return JSON for a constructor argument or a recipe; objects without a notation, as a user's module, are only named."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [encode(item) for item in value]}
    for kind, (cls, _) in _TEXTS.items():
        if isinstance(value, cls) and getattr(value, "has_text", True):
            return {kind: str(value)}
    if isinstance(value, Recipe):
        return {"recipe": {field.name: encode(getattr(value, field.name)) for field in fields(value)}}
    return {"module" if isinstance(value, nn.Module) else "unsaved": f"{type(value).__module__}.{type(value).__qualname__}"}


def decode(value: Any, encoder: nn.Module | None = None) -> Any:
    """Return the object again; ``encoder`` stands in for a user's module."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(decode(item, encoder) for item in content)
    if kind in _TEXTS:
        return _TEXTS[kind][1](content)
    if kind == "recipe":
        return Recipe(**{name: decode(item, encoder) for name, item in content.items()})
    if kind == "module":
        if encoder is None:
            raise ModelFileError(
                f"this model's encoder is a module of your own, {content}: pass it, DRE.load(path, encoder=...)"
            )
        return encoder
    return None  # for example a random state: not needed to use the model
