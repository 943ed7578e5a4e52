"""One safetensors file per model, with the configuration as JSON in its header. Nothing in it can run code."""

from __future__ import annotations

import copy
import json
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.func import functional_call

from dre.atomic import WriteError, atomic_write
from dre.data.image_layout import model_shape
from dre.data.preparation import from_file, to_file
from dre.data.scaling import Scaling
from dre.encoder import Encoder
from dre.encoder.backbone import Backbone
from dre.model.configuration import Configuration
from dre.model.digest import digest, digest_format_1
from dre.model.encoding import decode_recipe, encode
from dre.model.file_error import ModelFileError, as_model_file_error
from dre.model.fitted import FittedMap
from dre.model.format_1 import upgrade
from dre.model.limits import (
    MAX_HEADER,
    MAX_TENSORS,
    TensorSpec,
    check_length,
    check_plain,
    encoder_specs,
    is_built_in,
    specs,
)
from dre.model.probe import probe_rows
from dre.plan.recipe import Recipe
from dre.runtime import IsolatedRNG
from dre.runtime.torch_state import plain_torch
from dre.training.run import Weights

FORMAT = 2  # its digest covers the configuration as well as the weights; format 1 has that of the weights alone
PREPARED = 3  # format of a file with a preparation, without which older versions would misread the rows
HEADER = "dre"
TABLE_ENTRY = 150  # bytes of the header for one tensor, beside its name
MAX_COORDINATE = 1e30  # of the rows on which a network is tried: beyond it others overflow
WRITABLE = "Choose a folder that exists and can be written to."
ANOTHER_COPY = "Use another copy of the file."


def save_map(path: str | os.PathLike[str], fitted: FittedMap, about: dict[str, Any], *, stages: bool = True) -> None:
    """Write a learned map.

    Parameters
    ----------
    path : path-like
    fitted : FittedMap
    about : dict
        What the caller wants to store with it, as JSON: class, parameters, feature_names_in, fill_values.
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
    if fitted.preparation is not None:
        content, learned = to_file(fitted.preparation)
        configuration |= {"format": PREPARED, "preparation": content}
        tensors |= {f"preparation.{name}": value.cpu() for name, value in learned.items()}
    # clones: safetensors refuses tensors that share memory, as tied weights do
    tensors = {name: value.contiguous().clone() for name, value in tensors.items()}
    _write(Path(path), tensors, {**configuration, "sha256": digest(configuration, tensors)})


def load_map(path: str | os.PathLike[str], encoder: nn.Module | None = None) -> tuple[FittedMap, dict[str, Any]]:
    """Read a learned map, on the CPU, and what was stored about it; ``encoder`` stands for a module of the user's own."""
    if not os.path.isfile(path):
        kind = "it is no file, but a folder, a pipe or a device" if os.path.exists(path) else "check the path"
        raise FileNotFoundError(f"there is no model file at {path}: {kind}")
    with as_model_file_error(path), plain_torch():
        content, tensors = _read(path)
        configuration = Configuration.parse(content)
        recipe = decode_recipe(configuration.recipe, encoder)
        if encoder is not None and isinstance(recipe.encoder, Encoder) and recipe.encoder.has_text:
            raise ModelFileError(f"has an encoder of its own, {recipe.encoder}: load it without encoder=")
        scaling = _scaling(_under("scaling.", tensors), configuration.metric)
        learned = _under("preparation.", tensors)
        preparation = None if configuration.preparation is None else from_file(configuration.preparation, learned)
        configuration.check(len(recipe.schedule), scaling.shape, preparation)
        network, stages = _network(recipe, model_shape(scaling.shape), configuration, tensors)
        if is_built_in(recipe.encoder):
            _probe(scaling, network, stages)
        fitted = FittedMap(network, recipe, scaling, configuration.n_components, stages, configuration.history)
        fitted.preparation = preparation
        return fitted, configuration.about


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return configuration and tensors, as they were saved: the digest is that of the file."""
    check_length(path)
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(HEADER)
            if text is None:
                raise ModelFileError("is a safetensors file, but not one that dre saved")
            names = file.keys()
            if len(names) > MAX_TENSORS:
                raise ModelFileError(f"has {len(names):,} tensors, the limit is {MAX_TENSORS:,}")
            # clones: safetensors maps the file into memory, where a later change of the file would change the model
            tensors = {name: file.get_tensor(name).clone() for name in names}
    except (SafetensorError, OSError) as problem:
        raise ModelFileError(f"is not a model that dre saved, or it is damaged: {problem}") from problem
    content = json.loads(text)
    check_plain(content)
    found = content.get("format") if isinstance(content, dict) else None
    if type(found) is not int or found not in (1, FORMAT, PREPARED):
        raise ModelFileError(f"has the format {found}, this dre reads 1 to {PREPARED}: use the version that wrote it")
    claimed = content.pop("sha256", None)
    if claimed != (digest_format_1(tensors) if found == 1 else digest(content, tensors)):
        raise ModelFileError(f"is damaged: it is not what was saved. {ANOTHER_COPY}")
    if found != 1:
        return content, tensors
    warnings.warn(
        f"{path} has the format 1, in which damage to the configuration is not noticed. Load and save it again to protect it.",
        stacklevel=4,
    )
    return upgrade(content, tensors)


def _scaling(tensors: dict[str, Tensor], metric: str) -> Scaling:
    columns = ["column_mean", "column_std"] if "column_mean" in tensors else []
    if tensors.keys() != {"mean", "scale", *columns}:
        raise ModelFileError(f"is damaged: its scaling consists of {', '.join(tensors) or 'nothing'}")
    shape = tuple(tensors["mean"].shape)
    if not shape or 0 in shape:
        raise ModelFileError(f"is damaged: its rows have the shape {shape}")
    for name, value in tensors.items():
        if specs({name: value})[name] != TensorSpec(torch.double, () if name == "scale" else shape):
            raise ModelFileError(f"is damaged: {name} of its scaling is {specs({name: value})[name]}")
        if not value.isfinite().all() or (name in ("scale", "column_std") and not (value > 0).all()):
            raise ModelFileError(f"is damaged: {name} of its scaling must be finite, scale and column_std also positive")
    return Scaling(
        tensors["mean"],
        float(tensors["scale"]),
        metric=metric,
        columns=(tensors[columns[0]], tensors[columns[1]]) if columns else None,
    )


def _network(
    recipe: Recipe, shape: tuple[int, ...], configuration: Configuration, tensors: dict[str, Tensor]
) -> tuple[nn.Module, list[Weights | None]]:
    """Return the network with its last weights, and the weights of each stage.

    Names, dtypes and shapes in the file are compared with those of the network before there is memory for it.
    """
    plan, n_components = recipe.encoder, configuration.n_components
    last = _under("weights.", tensors)
    needed = _needed(plan, shape, n_components, last)
    shared = {name: last[name] for name in configuration.unchanged}
    kept = [_under(f"stages.{i}.", tensors) if saved else None for i, saved in enumerate(configuration.earlier_stages)]
    beside = [] if configuration.preparation is None else [_under("preparation.", tensors)]
    used = sum(len(part) for part in (last, _under("scaling.", tensors), *beside, *kept) if part is not None)
    if used < len(tensors) or any(name in shared for part in kept for name in part or {}):
        raise ModelFileError("is damaged: it has tensors that do not belong to it")
    stages: list[Weights | None] = [*(None if part is None else shared | part for part in kept), last]
    for weights in stages:
        if weights is not None:
            if needed.get("scale") == TensorSpec(torch.float32, ()):
                weights.setdefault("scale", torch.ones(()))  # files from before there was one
            _check_weights(weights, needed, plan)
    network = _build(plan, shape, n_components).eval()
    network.load_state_dict(last, assign=True)
    return network, stages


def _needed(
    plan: Encoder | nn.Module, shape: tuple[int, ...], n_components: int, last: Weights
) -> dict[str, TensorSpec | None]:
    """Return dtypes and shapes of the weights of the network. A user's encoder need not work without memory."""
    if not isinstance(plan, Encoder):
        return specs(plan.state_dict())
    if isinstance(plan, Backbone):  # its module may need memory to be built, its head none
        _check_head(plan, shape, n_components, last)
    if not plan.has_text:  # it holds a module
        return specs(_build(plan, shape, n_components).state_dict())
    try:
        return encoder_specs(plan, shape, n_components, len(last))
    except Exception as problem:
        if is_built_in(plan) or isinstance(problem, ModelFileError):
            raise
        return specs(_build(plan, shape, n_components).state_dict())


def _check_head(plan: Backbone, shape: tuple[int, ...], n_components: int, last: Weights) -> None:
    """Raise a ModelFileError if the weights in the file are not those of the head, before there is memory for it."""
    head = plan.with_head(None).head
    assert head is not None
    assert not isinstance(head, str)
    held = {name: value for name, value in last.items() if not name.startswith("features.")}
    needed = encoder_specs(head, (plan.count_features(shape),), n_components, len(held))
    _check_weights({"scale": torch.ones(())} | held, needed, plan)


def _build(plan: Encoder | nn.Module, shape: tuple[int, ...], n_components: int) -> nn.Module:
    if not isinstance(plan, Encoder):
        return copy.deepcopy(plan)
    with IsolatedRNG(0, torch.device("cpu"))():
        return plan.build(shape, n_components)


def _check_weights(weights: Weights, needed: dict[str, TensorSpec | None], plan: Encoder | nn.Module) -> None:
    title = plan if isinstance(plan, Encoder) else type(plan).__name__
    held = specs(weights)
    for name in [*needed, *held]:
        if name not in needed or name not in held or needed[name] not in (None, held[name]):
            raise ModelFileError(
                f"is damaged, or its weights do not fit the encoder {title}: {name} is {held.get(name, 'absent')} in the file, "
                f"{needed.get(name, 'absent')} in the encoder"
            )
        if not weights[name].isfinite().all():
            raise ModelFileError(f"is damaged: {name} is not finite")


def _probe(scaling: Scaling, network: nn.Module, stages: list[Weights | None]) -> None:
    """Raise a ModelFileError if rows like those of the training have no finite coordinates, in any stage."""
    rows = scaling(probe_rows(scaling))
    for weights in stages:
        with torch.no_grad():
            if weights is not None and not (functional_call(network, weights, rows).abs() < MAX_COORDINATE).all():
                raise ModelFileError("is damaged: its network gives coordinates that are not finite, or nearly so")


def _unchanged(last: Weights, earlier: list[Weights]) -> list[str]:
    """Name the weights that training left unchanged, such as a large front: they are written once, not for every stage."""
    return [name for name, value in last.items() if earlier and all(torch.equal(weights[name], value) for weights in earlier)]


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _write(path: Path, tensors: dict[str, Tensor], configuration: dict[str, Any]) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"can't write the model to {path}: there is no folder {path.parent}. {WRITABLE}")
    check_plain(configuration)
    text = json.dumps(configuration)
    size = len(json.dumps(text)) + sum(len(json.dumps(name)) + TABLE_ENTRY for name in tensors)
    if size > MAX_HEADER or len(tensors) > MAX_TENSORS:
        raise ValueError(
            f"can't write the model to {path}: {len(tensors):,} tensors and {size:,} bytes of configuration are more than "
            f"{MAX_TENSORS:,} and {MAX_HEADER:,}. Save it with stages=False, or shorten the names of its features."
        )
    try:
        with atomic_write(path) as part:
            save_file(tensors, part, {HEADER: text})
    except WriteError:
        raise
    except (OSError, SafetensorError) as problem:
        raise OSError(f"can't write the model to {path}: {problem}. {WRITABLE}") from problem
