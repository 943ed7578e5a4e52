"""The recipe that is run: the named one for these data and this device, with what the user said in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from torch import nn

from dre.affinity import Affinity
from dre.augment import Augment
from dre.batches import Auto, Batches
from dre.encoder import Encoder
from dre.loss import Loss, Sum
from dre.notation import unknown
from dre.optimizer import Optimizer
from dre.plan.recipe import DataSpec, Recipe
from dre.plan.recipes import RECIPES
from dre.plan.schedule import Schedule, Stage

INSIDE = 1000  # rows of a batch in which neighbours are sought, where a recipe's own batches would follow a graph


@dataclass(frozen=True)
class Overrides:
    """What the user said, each taking the place of the recipe's own; None leaves it."""

    schedule: Schedule | None = None
    encoder: Encoder | nn.Module | None = None
    perplexity: float | None = None
    n_neighbors: int | None = None
    min_dist: float | None = None
    recursions: int | None = None
    batches: Batches | int | None = None
    optimizer: Optimizer | float | None = None  # a number is a learning rate
    augment: Augment | None = None


def apply_overrides(recipe: str | Recipe, facts: DataSpec, said: Overrides) -> Recipe:
    """The recipe that is run: the named one for these data and this device, with what the user said in its place."""
    if isinstance(recipe, str):
        if recipe not in RECIPES:
            raise ValueError(unknown("recipe", recipe, list(RECIPES)))
        if said.schedule is not None and said.recursions is not None:
            raise ValueError("recursions and schedule were both given: a schedule already says how many recursions there are")
        recipe = RECIPES[recipe](facts, said.recursions)
    elif said.recursions is not None:
        raise ValueError("recursions was given beside a Recipe object: its schedule already says how many there are")
    schedule = _adjust(said.schedule or recipe.schedule, said)
    planned = recipe.batches
    if planned.along_graph and said.schedule is not None and any(stage.affinity.scope == "batch" for stage in schedule):
        planned = Auto(INSIDE)
    batches = planned.resized(said.batches) if isinstance(said.batches, int) else said.batches or planned
    optimizer = recipe.optimizer if said.optimizer is None else said.optimizer
    if not isinstance(optimizer, Optimizer):
        optimizer = replace(recipe.optimizer, lr=optimizer)
    if said.schedule is None:  # a stage with a rate of its own keeps its proportion to the others
        share = optimizer.lr / recipe.optimizer.lr
        schedule = Schedule(*(replace(s, lr=None if s.lr is None else s.lr * share) for s in schedule))
    encoder = recipe.encoder if said.encoder is None else said.encoder
    if said.schedule is None and said.encoder is not None:
        schedule = Schedule(_reread(schedule[0], recipe.encoder, encoder), *schedule.stages[1:])
    augment = recipe.augment if said.augment is None else said.augment
    return replace(recipe, schedule=schedule, encoder=encoder, batches=batches, optimizer=optimizer, augment=augment)


def _reread(stage: Stage, planned: Encoder | nn.Module, to_array: Encoder | nn.Module) -> Stage:
    """A first stage that read what the planned encoder computes, reading what the one that takes its place does."""
    if stage.source == "x" or not isinstance(planned, Encoder) or stage.source != planned.first_source:
        return stage
    return replace(stage, source=to_array.first_source if isinstance(to_array, Encoder) else "x")


def _adjust(schedule: Schedule, said: Overrides) -> Schedule:
    """The schedule with the user's perplexity, n_neighbors and min_dist in every affinity and loss that has one."""
    stages = list(schedule)
    for name in ("perplexity", "n_neighbors", "min_dist"):
        value = getattr(said, name)
        if value is None:
            continue
        if not any(_has(stage, name) for stage in stages):
            raise ValueError(
                f"{name}={value} was given, but no stage has a {name} (gaussian has a perplexity, fuzzy n_neighbors, ce a "
                f"min_dist):\n{schedule}\nPass another recipe, or a schedule."
            )
        stages = [replace(s, affinity=_with(s.affinity, name, value), loss=_with_in_terms(s.loss, name, value)) for s in stages]
    return Schedule(*stages)


Plan = TypeVar("Plan", Affinity, Loss)


def _with(plan: Plan, name: str, value: float) -> Plan:
    return replace(plan, **{name: value}) if hasattr(plan, name) else plan  # type: ignore[type-var]


def _with_in_terms(loss: Loss, name: str, value: float) -> Loss:
    if isinstance(loss, Sum):
        return Sum(tuple((weight, _with(term, name, value)) for weight, term in loss.terms))
    return _with(loss, name, value)


def _has(stage: Stage, name: str) -> bool:
    terms = [term for _, term in stage.loss.terms] if isinstance(stage.loss, Sum) else [stage.loss]
    return any(hasattr(plan, name) for plan in (stage.affinity, *terms))
