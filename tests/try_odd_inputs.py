"""Try odd inputs: fit and transform them, and count what happens.

``python tests/try_odd_inputs.py 10000`` prints a table of outcomes by kind of input, and fails if one is not allowed. With
``--record`` it writes the counts to benchmarks/results.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import warnings
from collections import Counter
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
import torch

from dre import DRE
from odd_inputs import Case, Stream, cases

ALLOWED = ("mapped", "refused")
OUTCOMES = (*ALLOWED, "silently wrong", "no remedy", "other error")
REMEDY = re.compile(
    r"(?i)\b(pass|reshape|convert|encode|drop|fill|divide|use|rename|leave|required|reduce|lower|check|expected|pad|create)\b"
)
ROUNDING = 1e-12  # of float64, a few thousand times
TOLERANCE = 1e-4  # of the extent of the map: products of rows in other positions are rounded differently


def outcome(case: Case) -> str:
    """Fit a case and embed its rows in another order; return what happened."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        X = case.X
        before = fingerprint(X)
        found = _outcome(case, X)
        return found if fingerprint(X) == before else "silently wrong: the input was changed"


def _outcome(case: Case, X: Any) -> str:
    try:
        model = DRE(device="cpu", verbose=False, **copy.deepcopy(case.parameters)).fit(X)
    except (ValueError, TypeError) as problem:
        return "refused" if REMEDY.search(str(problem)) else f"no remedy: {problem}"
    except Exception as problem:
        return f"other error: {problem!r}"
    if case.must_refuse or case.values is None:
        return "silently wrong: it was to be refused"
    try:
        return _wrong(case, model, X) or "mapped"
    except Exception as problem:
        return f"other error: transform: {problem!r}"


def _wrong(case: Case, model: DRE, X: Any) -> str:
    """Say what is wrong with a map, or nothing."""
    values, Y = case.values, model.embedding_
    assert values is not None
    if Y.shape != (len(values), model.n_components) or Y.dtype != np.float32:
        return f"silently wrong: the map is {Y.dtype} {Y.shape}"
    if not np.isfinite(Y).all():
        return "silently wrong: the map is not finite"
    order = np.random.default_rng(0).permutation(len(values))
    scaling = model._map.scaling
    offset = float((scaling.mean / scaling.scale).abs().max())  # whose last bits are the first ones of the scaled rows
    near = max(1.0, float(np.abs(Y).max())) * (TOLERANCE + ROUNDING * offset)
    for name, mine, expected in (
        ("transform", model.transform(X), Y),
        ("permuted", model.transform(case.convert(values[order])), Y[order]),
        ("one row", model.transform(case.convert(values[-1:])), Y[-1:]),
    ):
        if mine.shape != expected.shape or not np.abs(mine - expected).max() <= near:
            return f"silently wrong: {name} differs by {np.abs(mine - expected).max():.3g}"
    return ""


def fingerprint(X: Any) -> object:
    """Everything that a fit could have changed of an input."""
    if isinstance(X, np.ndarray):
        return X.tobytes() if X.dtype.kind != "O" else repr(X.tolist()), X.strides, X.flags.writeable
    if sp.issparse(X):
        parts = [name for name in ("data", "indices", "indptr", "row", "col") if hasattr(X, name)]
        return X.format, X.shape, [np.asarray(getattr(X, name)).tobytes() for name in parts if X.format != "lil"]
    if isinstance(X, torch.Tensor):
        plain = not X.is_meta and X.layout == torch.strided
        return X.shape, X.requires_grad, X.detach().double().numpy().tobytes() if plain else None
    if isinstance(X, Stream):
        return fingerprint(X.X)
    if isinstance(X, pd.DataFrame):
        return repr(X.to_dict("split")), repr(X.dtypes)
    if isinstance(X, pl.DataFrame):
        return repr(X.to_dict(as_series=False))
    return repr(X) if isinstance(X, list | dict | str | None.__class__) else type(X)


def try_cases(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Try so many cases; return kind, outcome and description of each."""
    found: list[tuple[str, str, str]] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(cases())
    def collect(case: Case) -> None:
        result = outcome(case)
        found.append((case.kind, result, describe(case) if result not in ALLOWED else ""))

    collect()
    return found


def describe(case: Case) -> str:
    """Name the input and the parameters, to make the case again."""
    values = "" if case.values is None else f"{case.values.dtype} {case.values.shape}, from {float(np.min(case.values)):.3g}"
    return f"{values}, {getattr(case.convert, '__name__', case.convert)}, {case.parameters}"


def table(found: list[tuple[str, str, str]]) -> str:
    """Outcomes by kind of input, as a table."""
    counts = Counter((kind, result.partition(":")[0]) for kind, result, _ in found)
    lines = []
    for kind in [*sorted({kind for kind, _, _ in found}), "all"]:
        row = [sum(count for (k, name), count in counts.items() if kind in (k, "all") and name == each) for each in OUTCOMES]
        lines.append(f"{kind:20}" + "".join(f"{count:16,}" for count in row))
    return "\n".join([f"{'input':20}" + "".join(f"{name:>16}" for name in OUTCOMES), *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write the counts to benchmarks/results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = try_cases(options.count, options.seed)
    for kind, result, about in found:
        if result not in ALLOWED:
            print(f"{kind}: {result} ({about})", file=sys.stderr)
    print(table(found))
    if options.record:
        from record import record

        counts = Counter(result.partition(":")[0] for _, result, _ in found)
        about = "fit and transform of odd inputs: dtypes, shapes, magnitudes, layouts, sparse formats, tables, tensors, streams"
        outcomes = {name: counts[name] for name in OUTCOMES}
        record("reliability-odd-inputs", {"about": about, "cases": len(found), "outcomes": outcomes}, seed=options.seed)
    return 0 if all(result in ALLOWED for _, result, _ in found) else 1


if __name__ == "__main__":
    sys.exit(main())
