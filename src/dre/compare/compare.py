"""The comparison on data of one's own: methods fitted to the same rows, and scored on the same held-out ones."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse
import torch

from dre.baselines import NAMES
from dre.compare.comparison import Compared
from dre.compare.measure import Result, measure
from dre.compare.plan import Data, Job, Method, Run
from dre.compare.plans import Plans
from dre.compare.record import provenance
from dre.data.validation import check_array, check_memory, check_number
from dre.datasets import Dataset, DatasetSplit
from dre.metrics.inputs import check_same_index, complete_labels
from dre.notation import unknown
from dre.plot.scatter import MAX_LABELS
from dre.runtime import resolve_device

Array = np.ndarray[Any, Any]
# Quick on a CPU, and what of it must be installed. All embed new rows: the table is of held-out ones.
USUAL = {"pca": None, "umap": "umap", "open-tsne": "openTSNE", "dre": None}
OURS = "yours"
LEAST = 15  # rows of either part: the scores look at 7 neighbours, and must be left with as many that are none


def usual_methods() -> list[str]:
    """Those of the usual ones that are installed."""
    return [name for name, library in USUAL.items() if library is None or find_spec(library) is not None]


def compare(
    X: Any,
    labels: Any = None,
    *,
    methods: Sequence[str] | None = None,
    test_size: float = 0.25,
    random_state: int = 0,
    device: str = "auto",
    say: Callable[[str], None] | None = None,
) -> Compared:
    """Fit every method to the same training rows of X, and score its map of the same held-out rows.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 9))
    >>> X[:50, 0] += 20
    >>> found = compare(X, ["left"] * 50 + ["right"] * 50, methods=["pca"])
    >>> found.rows()[0]["nearest_neighbor"] > 0.9
    True

    ``methods`` are names of ``dre.baselines``; by default the usual ones that are installed. Of those with recursions the map
    before the first is shown too. ``labels`` that are fractions with many values are colours, and not scored. A method that
    fails is named with the reason, and the others go on; it is an error only when all fail. ``say`` is told what is going on.
    """
    names = check_methods(usual_methods() if methods is None else methods)
    resolve_device(device)
    dataset = split(X, labels, test_size, random_state)
    plans = _plans(names)
    began = time.perf_counter()

    def tell(text: str) -> None:
        if say is not None:
            say(f"{time.perf_counter() - began:7.1f} s  {text}")

    results: dict[str, Result] = {}
    failed: dict[str, str] = {}
    for place, name in enumerate(names, start=1):
        tell(f"fitting {name} ({place} of {len(names)})")
        try:
            with _same_threads():
                result = measure(Job(OURS, name, random_state), plans, dataset, device=device)
        except Exception as problem:
            if os.environ.get("DRE_DEBUG"):
                raise
            failed[name] = _reason(problem)
            tell(f"{name} did not run: {failed[name]}")
        else:
            # it says how the benchmark would measure this cell, which it can't: it does not have the data
            results[name] = replace(result, record={**result.record, "command": provenance()["command"]})
    if not results:
        raise ValueError("\n    ".join(["no method ran:", *(f"{name}: {reason}" for name, reason in failed.items())]))
    tell("done")
    return Compared(dataset, results, failed)


def check_methods(names: Sequence[str]) -> list[str]:
    """Each once; one that is unknown is named with the nearest that is."""
    wanted = list(dict.fromkeys([names] if isinstance(names, str) else names))
    if not wanted:
        raise ValueError(f"no method to compare; known: {', '.join(NAMES)}")
    for name in wanted:
        if name not in NAMES:
            raise ValueError(unknown("method", name, list(NAMES)))
    return wanted


def split(X: Any, labels: Any, test_size: float, random_state: int) -> Dataset:
    """Training and test rows, every class in both in its proportion where that can be."""
    from sklearn.model_selection import train_test_split

    rows = check_array(X, "X")
    check_same_index(X=X, labels=labels)
    n = rows.shape[0]
    check_split(test_size, n)
    if scipy.sparse.issparse(rows):
        check_memory(rows, "X", rows.dtype)
        rows = rows.toarray()
    known = np.zeros(n, int) if labels is None else _one_per_row(labels, n)
    are_classes = labels is not None and not _is_a_scale(known)
    stratify = known if are_classes and _can_be_spread(known, test_size) else None
    halves = train_test_split(np.arange(n), test_size=test_size, random_state=random_state, stratify=stratify)
    parts = [DatasetSplit(rows[ids], known[ids], {"label": known[ids]} if are_classes else {}) for ids in halves]
    return Dataset(OURS, "your data", parts[0], parts[1], "")


def check_split(test_size: Any, n: int) -> None:
    """Whether so many rows can be divided so."""
    if test_size is None or not 0 < check_number("test_size", test_size) < 1:
        raise ValueError(f"test_size={test_size!r}: expected the share of rows to hold out, between 0 and 1, such as 0.25")
    held_out = math.ceil(test_size * n)  # as scikit-learn rounds
    if min(held_out, n - held_out) < LEAST:
        raise ValueError(
            f"X has {n} rows: test_size={test_size:g} leaves {n - held_out} to fit and {held_out} to score, and both must "
            f"be at least {LEAST}; pass more rows" + (", or test_size=0.5" if n >= 2 * LEAST else "")
        )


def _one_per_row(labels: Any, n: int) -> Array:
    shape = np.shape(labels)
    if len(shape) == 1 and shape[0] != n:
        raise ValueError(f"there are {shape[0]} labels, but X has {n} rows: pass one label per row")
    return complete_labels(labels, n, "labels")


def _is_a_scale(labels: Array) -> bool:
    """Fractions with many values, as the plot has it: colours, and no classes."""
    return labels.dtype.kind == "f" and len(np.unique(labels)) > MAX_LABELS


def _can_be_spread(labels: Array, test_size: float) -> bool:
    _, counts = np.unique(labels, return_counts=True)
    return bool(counts.min() >= 2 and len(counts) <= min(test_size, 1 - test_size) * len(labels))


@contextmanager
def _same_threads() -> Iterator[None]:
    """What umap-learn compiles sets how many threads all others of the process use, torch among them."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _plans(names: Sequence[str]) -> Plans:
    runs = {name: Run(name, name) for name in names}
    methods = {name: Method(name, name, name) for name in names}
    return Plans({OURS: Data(OURS, "your data", OURS, protocol="standard")}, runs, methods, (), (), ())


def _reason(problem: Exception) -> str:
    """The first line, after the kind of the error where that alone would say little."""
    text = next((line.strip() for line in str(problem).splitlines() if line.strip()), "")
    if text and isinstance(problem, ValueError | ImportError | NotImplementedError | OSError | RuntimeError):
        return text
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__
