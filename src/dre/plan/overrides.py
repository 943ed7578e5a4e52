"""The user's overrides, as parameters of the estimator or options of the command line, and how they change a recipe."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from dre.affinity import Affinity
from dre.affinity.fuzzy import Fuzzy
from dre.affinity.gaussian import Gaussian
from dre.affinity.graph_memory import graph_bytes
from dre.augment import Augment, CallableAugment, Noise, parse_augment
from dre.batches import BATCHES, Auto, Batches
from dre.data.validation import check_number, parse_param
from dre.encoder import ENCODERS, Encoder
from dre.encoder.backbone import Backbone
from dre.encoder.mlp import MLP
from dre.encoder.patch_mlp import PatchMLP
from dre.loss import Loss, Sum
from dre.notation import unknown
from dre.optimizer import OPTIMIZERS, Optimizer
from dre.plan.recipe import DataSpec, Recipe
from dre.plan.recipes import RECIPES
from dre.plan.recipes.default import rows_to_fit, why_direct
from dre.plan.schedule import Schedule, Stage

IN_BATCH_SIZE = 1000  # of batches that replace those along a graph where a schedule has its neighbors inside the batch


@dataclass(frozen=True)
class Overrides:
    """What the user passed; None keeps the recipe's own value."""

    schedule: Schedule | None = None
    encoder: Encoder | nn.Module | None = None
    perplexity: float | None = None
    n_neighbors: int | None = None
    min_dist: float | None = None
    recursions: int | None = None
    batches: Batches | int | None = None  # a number changes the size alone
    learning_rate: float | None = None
    optimizer: Optimizer | None = None
    augment: Augment | None = None


def parse_overrides(
    *,
    schedule: str | Schedule | None = None,
    encoder: str | Encoder | nn.Module | None = None,
    perplexity: float | None = None,
    n_neighbors: int | None = None,
    min_dist: float | None = None,
    recursions: int | None = None,
    batch_size: int | str | Batches | None = None,
    learning_rate: float | None = None,
    optimizer: str | Optimizer | None = None,
    augment: str | Augment | Callable[[Tensor], Tensor] | None = None,
) -> Overrides:
    """Check the parameters of an estimator, and parse those that are texts."""
    return Overrides(
        schedule=parse_param("schedule", schedule, Schedule.parse, Schedule),
        encoder=parse_param("encoder", encoder, ENCODERS.parse, Encoder, nn.Module),
        perplexity=check_number("perplexity", perplexity),
        n_neighbors=check_number("n_neighbors", n_neighbors, integer=True),
        min_dist=check_number("min_dist", min_dist),
        recursions=check_number("recursions", recursions, integer=True),
        batches=_parse_batch_size(batch_size),
        learning_rate=_check_learning_rate(learning_rate),
        optimizer=parse_param("optimizer", optimizer, OPTIMIZERS.parse, Optimizer),
        augment=_parse_augment(augment),
    )


def _parse_batch_size(batch_size: Any) -> Batches | int | None:
    if isinstance(batch_size, Real | np.bool_) and (isinstance(batch_size, bool) or not isinstance(batch_size, Integral)):
        raise TypeError(
            f"batch_size={batch_size!r}: expected a whole number of rows, such as 256, or a text, such as 'edges(256)'"
        )
    parsed: Batches | int | None = parse_param("batch_size", batch_size, _parse_batches, Batches, int)
    if isinstance(parsed, int):
        Auto(parsed)  # checks it
    return parsed


def _parse_batches(text: str) -> Any:
    return int(text) if re.fullmatch(r"[+-]?\d+", text.strip()) else BATCHES.parse(text)


def _check_learning_rate(learning_rate: Any) -> Any:
    number = check_number("learning_rate", learning_rate)
    if number is not None and not 0 < float(number) < math.inf:
        raise ValueError(f"learning_rate={number!r}: must be a positive number, such as 0.002")
    return number


def _parse_augment(augment: str | Augment | Callable[[Tensor], Tensor] | None) -> Augment | None:
    if isinstance(augment, str) and augment == "none":
        return Noise(0)
    if callable(augment) and not isinstance(augment, (Augment, type)):
        return CallableAugment(augment)
    parsed: Augment | None = parse_param("augment", augment, parse_augment, Augment)
    return parsed


def apply_overrides(recipe: str | Recipe, data: DataSpec, overrides: Overrides) -> Recipe:
    """Return the recipe for these data and this device, with the user's overrides applied."""
    if isinstance(recipe, str):
        if recipe not in RECIPES:
            raise ValueError(unknown("recipe", recipe, list(RECIPES)))
        if overrides.schedule is not None and overrides.recursions is not None:
            raise ValueError("recursions and schedule were both given: a schedule already has its recursions")
        data = _data_of_head(data, overrides)
        recipe = RECIPES[recipe](replace(data, direct=_why_direct(overrides) is not None), overrides.recursions)
    elif overrides.recursions is not None:
        raise ValueError("recursions was given beside a Recipe object: its schedule already has its recursions")
    optimizer = _optimizer(recipe.optimizer, overrides)
    schedule = _adjust(overrides.schedule or recipe.schedule, overrides)
    if overrides.schedule is None:
        schedule = _follow(schedule, recipe, optimizer, overrides.encoder)
    return replace(
        recipe,
        schedule=schedule,
        encoder=_encoder(recipe.encoder, overrides),
        batches=_batches(recipe.batches, schedule, overrides),
        optimizer=optimizer,
        augment=recipe.augment if overrides.augment is None else overrides.augment,
    )


def _data_of_head(data: DataSpec, overrides: Overrides) -> DataSpec:
    """Return the data that a recipe is chosen for: behind a backbone they are its features."""
    if not isinstance(overrides.encoder, Backbone):
        return data
    return replace(data, shape=(overrides.encoder.count_features(data.shape),))


def _encoder(planned: Encoder | nn.Module, overrides: Overrides) -> Encoder | nn.Module:
    encoder = planned if overrides.encoder is None else overrides.encoder
    return encoder.with_head(planned) if isinstance(encoder, Backbone) else encoder


def explain(recipe: str | Recipe, data: DataSpec, overrides: Overrides) -> str | None:
    """Return why a default recipe solves its stages without free coordinates; None if it has them, or is no default."""
    if recipe not in ("auto", "fast"):
        return None
    if overrides.schedule is not None and any(stage.follow or stage.against == "bank" for stage in overrides.schedule):
        return None
    why = _why_direct(overrides) or why_direct(data)
    return None if why is None else f"The loss goes through the network from the start, inside each batch: {why}."


def default_sample(recipe: str | Recipe, data: DataSpec, overrides: Overrides) -> int | None:
    """Return how many rows a default recipe fits where they are not all; None for all.

    Only a recipe that optimizes coordinates has such a limit. What a user's schedule or encoder says is done with all rows.
    """
    if recipe not in ("auto", "fast") or overrides.schedule is not None or _why_direct(overrides) is not None:
        return None
    data = _data_of_head(data, overrides)
    rows = rows_to_fit(data)
    # where coordinates are not optimized in any case, the loss inside batches learns from all rows
    return rows if rows < data.n and why_direct(replace(data, n=rows)) is None else None


def describe_sample(sample: int, data: DataSpec) -> str:
    """Return a line that says why a sample is fitted, and how to fit all rows."""
    needed = graph_bytes(data.n, math.prod(data.shape), Gaussian(30).count_neighbors(data.n), data.device)
    free = "" if data.free is None else f" of {data.free / 2**30:.1f} GiB free"
    return (
        f"dre: {sample:,} of {data.n:,} rows, sampled at random, are fitted, and the network embeds the others. A graph of all "
        f"would need {needed / 2**30:.1f} GiB{free}. Pass sample={data.n} to fit all rows, with neighbors in random parts."
    )


def _why_direct(overrides: Overrides) -> str | None:
    """Return why the user's schedule or encoder rules free coordinates out; None if they do not."""
    if overrides.encoder is not None and not isinstance(overrides.encoder, (MLP, PatchMLP, Backbone)):
        return f"only mlp, patch-mlp and a frozen backbone follow coordinates quickly, not {_title(overrides.encoder)}"
    if overrides.schedule is not None and all(stage.against != "bank" for stage in overrides.schedule):
        return "so says the schedule"
    return None


def _title(encoder: Encoder | nn.Module) -> str:
    return str(encoder) if isinstance(encoder, Encoder) else type(encoder).__name__


def _optimizer(planned: Optimizer, overrides: Overrides) -> Optimizer:
    optimizer = overrides.optimizer or planned
    return optimizer if overrides.learning_rate is None else replace(optimizer, lr=overrides.learning_rate)


def _batches(planned: Batches, schedule: Schedule, overrides: Overrides) -> Batches:
    has_batch_scope = overrides.schedule is not None and any(stage.affinity.scope == "batch" for stage in schedule)
    if planned.follows_graph and has_batch_scope:
        planned = Auto(IN_BATCH_SIZE)
    return planned.resized(overrides.batches) if isinstance(overrides.batches, int) else overrides.batches or planned


def _follow(schedule: Schedule, recipe: Recipe, optimizer: Optimizer, encoder: Encoder | nn.Module | None) -> Schedule:
    """Adapt a recipe's own stages to another learning rate and another encoder."""
    share = optimizer.lr / recipe.optimizer.lr  # a stage with its own rate keeps its proportion to the others
    stages = [replace(stage, lr=None if stage.lr is None else stage.lr * share) for stage in schedule]
    if encoder is not None and isinstance(recipe.encoder, Encoder) and stages[0].source == recipe.encoder.first_source != "x":
        source = encoder.first_source if isinstance(encoder, Encoder) else "x"
        stages[0] = replace(stages[0], source=source)
    if isinstance(encoder, Backbone):  # whose neighbors are among features, never among pixels
        stages = [replace(stage, source="+".join(_FRONT.get(name, name) for name in stage.sources)) for stage in stages]
    return Schedule(*stages)


_FRONT = {"x": "features"}


def _adjust(schedule: Schedule, overrides: Overrides) -> Schedule:
    """Set the user's perplexity, n_neighbors and min_dist in every affinity and loss that has one."""
    overrides = _neighbors_as_perplexity(schedule, overrides)
    stages = list(schedule)
    for name in ("perplexity", "n_neighbors", "min_dist"):
        value = getattr(overrides, name)
        if value is None:
            continue
        if not any(_has(stage, name) for stage in stages):
            raise ValueError(f"{name}={value} was given, but no stage has a {name}:\n{schedule}\n{_REMEDIES[name]}")
        stages = [replace(s, affinity=_with(s.affinity, name, value), loss=_with_in_terms(s.loss, name, value)) for s in stages]
    return Schedule(*stages)


_REMEDIES = {
    "perplexity": "Pass n_neighbors for a fuzzy affinity, or a schedule with a gaussian one.",
    "n_neighbors": "Pass a schedule with a fuzzy or a gaussian affinity.",
    "min_dist": "Only UMAP's loss has one: use DeepUMAP(min_dist=...), recipe='paper', or a schedule with ce.",
}


def _neighbors_as_perplexity(schedule: Schedule, overrides: Overrides) -> Overrides:
    """Let n_neighbors set the perplexity where no affinity is fuzzy: both count the neighbors that matter."""
    if overrides.n_neighbors is None or any(isinstance(stage.affinity, Fuzzy) for stage in schedule):
        return overrides
    if not any(hasattr(stage.affinity, "perplexity") for stage in schedule):
        return overrides
    if overrides.perplexity is not None:
        raise ValueError(
            f"perplexity={overrides.perplexity} and n_neighbors={overrides.n_neighbors} were both given, and the schedule has "
            "gaussian affinities only, where both set the size of the neighborhoods: pass one of them"
        )
    if overrides.n_neighbors < 2:
        raise ValueError(f"n_neighbors={overrides.n_neighbors}: must be at least 2")
    return replace(overrides, perplexity=overrides.n_neighbors, n_neighbors=None)


Part = TypeVar("Part", Affinity, Loss)


def _with(part: Part, name: str, value: float) -> Part:
    return replace(part, **{name: value}) if hasattr(part, name) else part  # type: ignore[type-var]


def _with_in_terms(loss: Loss, name: str, value: float) -> Loss:
    if isinstance(loss, Sum):
        return Sum(tuple((weight, _with(term, name, value)) for weight, term in loss.terms))
    return _with(loss, name, value)


def _has(stage: Stage, name: str) -> bool:
    terms = [term for _, term in stage.loss.terms] if isinstance(stage.loss, Sum) else [stage.loss]
    return any(hasattr(part, name) for part in (stage.affinity, *terms))
