"""A further call of ``partial_fit``: new rows find their place in a map, and those before them stay where they are.

The map remembers a random sample of the rows before. Their coordinates do not move while those of the new rows are optimized
among them, and the network then follows both: it learns new places and does not forget the old ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dre.affinity import clamping_silently
from dre.data.device_array import to_host
from dre.data.rows import is_rows, read_all
from dre.data.subsample import to_array
from dre.model.fitted import Array, FittedMap
from dre.model.fitting import FitResult, MapFit, fit_map
from dre.model.input_distances import InputDistances
from dre.observe import Observer
from dre.plan.recipe import Recipe
from dre.plan.schedule import Schedule, Stage
from dre.runtime import Runtime
from dre.training.run import NOT_PASSED

REMEMBERED = 5_000  # rows of those before: about as many as repel a row in the free steps
FREE = 350  # steps of the coordinates of the new rows, where the recipe has none for so few rows


class Memory(NamedTuple):
    """A random sample of all rows that a map has seen, as they were before scaling."""

    rows: Any  # (m, ...), dense or sparse
    keys: Array  # (m,), random: the rows with the smallest keys of all are kept
    seen: int
    seed: int

    @classmethod
    def of(cls, X: Any, seed: int) -> Self:
        """Remember rows of a first call.

        >>> Memory.of(np.zeros((8_000, 3)), seed=0).rows.shape
        (5000, 3)
        """
        keys = _new_keys(seed, 0, X.shape[0])
        kept = _kept(keys)  # of a stream, these alone are read
        rows = to_array(X, kept).astype(np.float32, copy=False) if is_rows(X) else to_memory(X)[kept]
        return cls(rows, keys[kept], X.shape[0], seed)

    def add(self, rows: Any) -> Self:
        """Return a memory of these rows too. Each row seen is as likely to be in it, however many calls there are."""
        keys = np.concatenate([self.keys, _new_keys(self.seed, self.seen, rows.shape[0])])
        kept = _kept(keys)
        return type(self)(concatenate_rows(self.rows, rows)[kept], keys[kept], self.seen + rows.shape[0], self.seed)

    @property
    def next_seed(self) -> int:
        """The seed of the next call."""
        return int(np.random.default_rng([self.seed, self.seen, 1]).integers(2**31))


def _new_keys(seed: int, seen: int, n: int) -> Array:
    return np.random.default_rng([seed, seen]).random(n)


def _kept(keys: Array) -> Array:
    return np.sort(np.argsort(keys, kind="stable")[:REMEMBERED])


def to_memory(X: Any) -> Any:
    """Return checked rows as an array in host memory, or as a sparse matrix by rows."""
    if is_rows(X):
        return read_all(X)
    return X.tocsr() if scipy.sparse.issparse(X) else np.asarray(to_host(X, "X"))


def concatenate_rows(before: Any, after: Any) -> Any:
    """Put rows one after the other; sparse if one part is."""
    if scipy.sparse.issparse(before) or scipy.sparse.issparse(after):
        return scipy.sparse.vstack([before, after], format="csr")
    return np.concatenate([before, after])


def plan_further(planned: Recipe, fitted: FittedMap) -> Recipe:
    """Return the recipe of a further call: that for so many rows, with the network of the map and the loss that shaped it."""
    first, shaped_by = planned.schedule[0], fitted.recipe.schedule[max(0, len(fitted.stages) - 1)].loss
    if first.affinity.scope != "graph" or not shaped_by.reads_bank:
        raise ValueError(
            f"partial_fit compares new rows with those before, and can't go on from a map that was made by '{shaped_by}' with "
            f"neighbors in the {first.affinity.scope}: use the recipe 'auto' or 'fast', or a schedule with kl and a graph"
        )
    stage = Stage(
        fitted.recipe.schedule[0].source,
        first.affinity,
        shaped_by,
        0,
        free=first.free or FREE,
        free_with=first.free_with,
        follow=first.all_epochs,
    )
    return replace(planned, schedule=Schedule(stage), encoder=fitted.recipe.encoder)


def fit_further(
    fitted: FittedMap,
    new: Any,
    memory: Memory,
    planned: Recipe,
    distances: InputDistances,
    *,
    observers: Iterable[Observer],
) -> FitResult:
    """Go on with a map on new rows.

    Parameters
    ----------
    fitted : FittedMap
        It is left as it was.
    new : rows, as ``to_memory`` returns them
    memory : Memory
    planned : Recipe
        For as many rows as are remembered and new.
    distances : InputDistances
        Between the remembered rows, followed by the new ones.
    observers : iterable of callables

    Returns
    -------
    FitResult
        With the embedding of the new rows.
    """
    m, n = memory.rows.shape[0], distances.X.shape[0]
    with clamping_silently():
        recipe = plan_further(planned, fitted).clamp_to(n)
    recipe, neighbors, landmarks = distances.follow(
        recipe, distances.X, fitted.scaling, fitted.device, is_chosen=False, quiet=True
    )
    kept: Tensor = fitted.coordinates(memory.rows)
    free = torch.full((new.shape[0], fitted.n_components), torch.nan, device=kept.device)
    fitted.check_shape(new.shape)
    result = fit_map(
        MapFit(
            distances.X,
            fitted.scaling,
            recipe,
            n_components=fitted.n_components,
            runtime=Runtime.on(fitted.device, recipe.precision),
            seed=memory.next_seed,
            neighbors=neighbors,
            landmarks=landmarks,
            metric=distances.metric,
            ids=np.concatenate([np.full(m, NOT_PASSED), np.arange(new.shape[0])]),
            preparation=fitted.preparation,
            encoder=fitted.encoder,
            anchors=torch.cat([kept, free]),
        ),
        observers,
    )
    return result._replace(embedding=result.embedding[m:])
