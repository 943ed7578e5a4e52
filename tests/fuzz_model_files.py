"""Fuzz model files: damage them and edit them as an attacker would, open them, and count what happens.

``python tests/fuzz_model_files.py 5000`` opens that many mutants in a process of its own, with limits of time and memory,
prints a table of the outcomes, and fails if one is not allowed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from dre import DRE, ModelFileError
from dre.data.preparation import Prepared
from dre.data.range_error import RangeError
from model_file_mutants import mutate

SECONDS = 5.0
MEMORY = 2**30
FORMAT_1 = Path(__file__).parent / "model" / "format-1.safetensors"
ALLOWED = ("refused", "same model", "other model")  # the last only if it was signed, or has the format 1
OUTCOMES = (*ALLOWED, "silent", "not finite", "other error", "over 5 s", "over 1 GiB")


@dataclass(frozen=True)
class Base:
    """A file to mutate, rows for it, and what it gives unchanged."""

    name: str
    path: Path
    X: np.ndarray
    expected: bytes


def bases(folder: Path) -> list[Base]:
    """Save models that differ in what their files hold."""
    rng = np.random.default_rng(0)
    vectors, images = rng.normal(size=(40, 6)) * [1, 1, 1, 1, 1, 50], rng.normal(size=(40, 6, 5))
    kinds: dict[str, tuple[dict[str, Any], Any]] = {
        "mlp": ({"encoder": "mlp(8, depth=2)"}, vectors),
        "names": ({"encoder": "mlp(4, depth=1, n_pcs=3)", "standardize": True}, pd.DataFrame(vectors, columns=list("abcdef"))),
        "table": ({"encoder": "mlp(4, depth=1)", "missing": "mean"}, _mixed(vectors)),
        "images": ({"encoder": "patch-mlp(4, depth=1, filters=3, n_pcs=5)", "metric": "cosine"}, images),
    }
    made = []
    for name, (parameters, X) in kinds.items():
        schedule = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"
        model = DRE(schedule=schedule, random_state=0, device="cpu", **parameters).fit(X)
        if name == "names":
            model.fill_values_ = {"a": 0.5}
        model.save(folder / name)
        rows = model.prepare(X) if name == "table" else np.asarray(X)
        made.append(Base(name, folder / name, rows, description(DRE.load(folder / name), rows)))
    path = folder / "format 1"
    path.write_bytes(FORMAT_1.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*made, Base("format 1", path, vectors, description(DRE.load(path), vectors))]


def _mixed(vectors: np.ndarray) -> Any:
    """A table with numbers, a boolean, categories and gaps."""
    frame = pd.DataFrame(vectors[:, :2], columns=["size", "mass"]).assign(
        kind=["a", "b", "c", None] * 10, old=[True, False] * 20
    )
    return frame.mask(vectors[:, :4] > 1.5)


def _given(model: DRE, X: np.ndarray) -> Any:
    """Rows as the model takes them: those of a table are prepared."""
    return X if model.preparation_ is None else Prepared(X, model.preparation_, are_rows=True)


def _prepares(model: DRE) -> bool:
    """Whether a row of a table gets as many finite numbers as the network reads, or is refused."""
    found = model.preparation_
    if found is None:
        return True
    row = {each.name: [each.categories[0] if each.categories else 1] for each in found.encodings}
    try:
        rows = model.prepare(pd.DataFrame(row))
    except ValueError:  # of values that float64 can't hold
        return True
    return bool(np.isfinite(rows).all()) and rows.shape == (1, *model.row_shape_)


def description(model: DRE, X: np.ndarray) -> bytes:
    """Everything that a loaded model tells and computes, to be compared."""
    known = [i for i, weights in enumerate(model.stages_) if weights is not None]
    told = (
        model.get_params(),
        model.recipe_,
        model.history_,
        getattr(model, "feature_names_in_", ()),
        len(model.stages_),
        known,
    )
    prepared = None if model.preparation_ is None else model.preparation_.state()
    told = (*told, getattr(model, "fill_values_", {}), type(model), model.row_shape_, model._map.scaling.metric, prepared)
    return repr(told).encode() + b"".join(_embed(model, X, stage) for stage in known)


def _embed(model: DRE, X: np.ndarray, stage: int) -> bytes:
    try:
        return model.transform(_given(model, X), stage=stage).tobytes()
    except RangeError:  # a scaling by which these rows are far out
        return b"refused"


# Outcomes.


def outcome(base: Base, path: Path, *, signed: bool) -> str:
    """Open a file and compare the model with that of the unchanged file."""
    before, start = _peak(), time.perf_counter()
    try:
        found = _open(base, path, signed=signed)
    except Exception as problem:
        found = f"other error: {problem!r}"[:300]
    if _peak() - before > MEMORY:
        return "over 1 GiB"
    return "over 5 s" if time.perf_counter() - start > SECONDS else found


def _open(base: Base, path: Path, *, signed: bool) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = DRE.load(path)
        except ModelFileError as problem:
            if _ran_out_of_memory(problem):
                return "over 1 GiB"
            return "refused" if str(path) in str(problem) else f"other error: the file is not named: {problem}"
        if model.row_shape_ == base.X.shape[1:] and description(model, base.X) == base.expected:
            return "same model"
        if not signed and base.name != "format 1":
            return "silent"
        return "other model" if _is_consistent(model) else "not finite"


def _is_consistent(model: DRE) -> bool:
    """Whether rows like those of its training get finite coordinates, in every stage."""
    scaling, rng = model._map.scaling, np.random.default_rng(0)
    X = scaling.mean.numpy() + float(scaling.scale) * rng.normal(size=(8, *model.row_shape_))
    if scaling.column_mean is not None:
        X = scaling.column_mean.numpy() + X * scaling.column_std.numpy()
    known = [i for i, weights in enumerate(model.stages_) if weights is not None]
    maps = [model.transform(_given(model, X), stage=stage) for stage in known]
    return _prepares(model) and all(Y.shape == (8, model._map.n_components) and bool(np.isfinite(Y).all()) for Y in maps)


def _ran_out_of_memory(problem: BaseException | None) -> bool:
    while problem is not None:
        if isinstance(problem, MemoryError) or "allocate memory" in str(problem):
            return True
        problem = problem.__cause__
    return False


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fuzz(made: list[Base], seeds: range, path: Path) -> list[tuple[str, str, str, int]]:
    """Open mutants in this process; return base, mutation, outcome and seed of each."""
    found = []
    for seed in seeds:
        base = made[seed % len(made)]
        kind, signed = mutate(base.path, seed, path)
        how = ", signed" if signed else f", {base.name}" if base.name == "format 1" else ""
        found.append((base.name, kind + how, outcome(base, path, signed=signed), seed))
    return found


def _serve(connection: Connection, made: list[Base], path: Path) -> None:
    """Open the mutants whose seeds arrive, with at most as much more memory as is allowed."""
    torch.set_num_threads(1)
    fuzz(made, range(len(made)), path)  # everything that is imported on first use
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2 * MEMORY, used + 2 * MEMORY))
    connection.send(None)
    while True:
        seed = connection.recv()
        connection.send(fuzz(made, range(seed, seed + 1), path)[0])


def fuzz_apart(made: list[Base], seeds: range, folder: Path) -> list[tuple[str, str, str, int]]:
    """Open mutants in another process, which is ended and started anew when one takes too long or ends it."""
    context = multiprocessing.get_context("spawn")
    found: list[tuple[str, str, str, int]] = []
    ours, process = None, None
    for seed in seeds:
        if process is None or ours is None:
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, made, folder / "mutant"), daemon=True)
            process.start()
            theirs.close()
            ours.recv()
        ours.send(seed)
        base = made[seed % len(made)].name
        try:
            result = ours.recv() if ours.poll(3 * SECONDS) else (base, "?", "over 5 s", seed)
        except EOFError:
            result = (base, "?", "other error: the process ended", seed)
        found.append(result)
        if result[2] not in ALLOWED:
            print(f"seed {seed}, {result[0]}, {result[1]}: {result[2]}", file=sys.stderr, flush=True)
            process.kill()
            process = None
    if process is not None:
        process.kill()
    return found


def table(found: list[tuple[str, str, str, int]]) -> str:
    """Outcomes by mutation, as a table."""
    counts = Counter((kind, result.partition(":")[0]) for _, kind, result, _ in found)
    totals = Counter({("all", name): sum(counts[kind, name] for kind, other in counts if other == name) for name in OUTCOMES})
    lines = [f"{kind:26}" + "".join(f"{(counts | totals)[kind, name]:13,}" for name in OUTCOMES) for kind in _kinds(found)]
    return "\n".join([f"{'mutation':26}" + "".join(f"{name:>13}" for name in OUTCOMES), *lines])


def _kinds(found: list[tuple[str, str, str, int]]) -> list[str]:
    return [*sorted({kind for _, kind, _, _ in found}), "all"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=5000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--record", action="store_true", help="write the outcomes to benchmarks/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = bases(Path(folder))
        found = fuzz_apart(made, range(options.first, options.first + options.count), Path(folder))
    print(table(found))
    if options.record:
        from record import record

        counts = Counter(result.partition(":")[0] for _, _, result, _ in found)
        about = "model files that are damaged, or edited and given a new digest, opened within 5 s and 1 GiB"
        outcomes = {name: counts[name] for name in OUTCOMES}
        record("reliability-model-files", {"about": about, "cases": len(found), "outcomes": outcomes}, seed=options.first)
    return 0 if all(result in ALLOWED for _, _, result, _ in found) else 1


if __name__ == "__main__":
    sys.exit(main())
