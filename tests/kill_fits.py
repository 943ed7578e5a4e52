"""Kill fits at many moments, resume them from their checkpoints, and compare the maps with those of fits that were left alone.

``python tests/kill_fits.py 25`` kills that many processes with SIGKILL, at moments that a seed chooses, prints a table of the
outcomes, and fails if a map differs in a bit. Each fit runs in a process of its own, forked from one that has only imported
the package.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dre.atomic
import dre.model.checkpoint
import dre.model.fitting
import dre.neighbors.exact
from dre import DRE
from dre.training.events import CoordinatesMoved, Event, StageEnded, StepEnded

SEED = 0
LIMIT = 120.0  # seconds of one process
SAME, BEGAN_ANEW = "same bits", "same bits, from the start"
ALLOWED = (SAME, BEGAN_ANEW)
OUTCOMES = (*ALLOWED, "other bits", "not killed", "error", "files left")

PHASES = (
    "x: gaussian(10) -> kl * 4 from pca free 20 with 0.3*shepard follow 3 against bank; "
    "x+h1: gaussian(10) -> kl(alpha=0.5) * 3 free 8 follow 2 against bank optional; "
    "h1: gaussian(10) -> kl * 4 refresh 2"
)
FITS: dict[str, dict[str, Any]] = {
    "three stages": {
        "schedule": PHASES,
        "encoder": "mlp(16, depth=2)",
        "augment": "local-noise(0.3)",
        "batch_size": 64,
        "optimizer": "adam(0.01, whiten=true)",
    },
    "paper": {
        "recipe": "paper",
        "encoder": "mlp(16, depth=2)",
        "batch_size": 64,
        "schedule": "x: gaussian(10, scope=batch) -> kl * 3; h1: fuzzy(10, scope=batch) -> ce * 2",
    },
    "default": {},
}


def rows() -> np.ndarray:
    """Clusters of points."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(8, 12)) * 4)[np.arange(520) % 8] + rng.normal(size=(520, 12))


@dataclass(frozen=True)
class Moment:
    """When a fit is killed: at the so-manieth time that something happens."""

    kind: str
    count: int
    fit: str
    minutes: float  # between checkpoints
    again: int = 0  # events after which the resumed fit is killed too; 0: it is not

    def __str__(self) -> str:
        again = f", and again after {self.again} events" if self.again else ""
        return f"{self.fit}, {self.kind} {self.count}, a checkpoint every {60 * self.minutes:g} s{again}"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Kills this process at the so-manieth call."""

    def __init__(self, count: int) -> None:
        self._left = count

    def __call__(self) -> bool:
        """Whether this call is the last one."""
        self._left -= 1
        return self._left == 0


def at_event(kind: type, stage: int | None, countdown: Countdown) -> Callable[[Event], None]:
    """Return an observer that kills at an event of this kind, in this stage."""

    def observer(event: Event) -> None:
        if isinstance(event, kind) and stage in (None, event.run.stage) and countdown():
            die()

    return observer


def before(owner: Any, name: str, countdown: Countdown, prepare: Callable[..., None] | None = None) -> None:
    """Kill when a function is called, after ``prepare`` was called with its arguments."""
    original = getattr(owner, name)

    def replaced(*arguments: Any, **options: Any) -> Any:
        if countdown():
            if prepare is not None:
                prepare(original, *arguments, **options)
            die()
        return original(*arguments, **options)

    setattr(owner, name, replaced)


def _write_half(original: Callable[..., None], tensors: Any, path: Path, header: Any) -> None:
    original(tensors, path, header)
    with open(path, "r+b") as file:
        file.truncate(Path(path).stat().st_size // 2)


def _carry_out(original: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    original(*arguments, **options)


ANY_EVENT = "event"
KINDS: dict[str, tuple[int, Callable[[Countdown], Any]]] = {  # largest count, and how it is arranged
    "step of the first stage": (50, lambda left: at_event(StepEnded, 0, left)),
    "step of a recursion": (30, lambda left: at_event(StepEnded, 1, left)),
    "step of the last stage": (20, lambda left: at_event(StepEnded, 2, left)),
    "free step": (24, lambda left: at_event(CoordinatesMoved, None, left)),
    "end of a stage": (2, lambda left: at_event(StageEnded, None, left)),
    "neighbor search": (4, partial(before, dre.neighbors.exact.KNearest, "update")),
    "half of a checkpoint": (8, partial(before, dre.model.checkpoint, "save_file", prepare=_write_half)),
    "before the rename": (8, partial(before, dre.atomic.os, "replace")),
    "after the rename": (8, partial(before, dre.atomic.os, "replace", prepare=_carry_out)),
    "removal of an old checkpoint": (5, partial(before, dre.model.checkpoint.Path, "unlink")),
    "embedding of the rows": (1, partial(before, dre.model.fitting, "embed")),
}


ARRANGED = {**{kind: arrange for kind, (_, arrange) in KINDS.items()}, ANY_EVENT: lambda left: at_event(object, None, left)}


def moments(count: int, seed: int = SEED) -> list[Moment]:
    """Choose moments, each kind in its turn."""
    rng, kinds = random.Random(seed), list(KINDS)
    chosen = []
    for i in range(count):
        kind = kinds[i % len(kinds)]
        writes = kind in ("half of a checkpoint", "before the rename", "after the rename", "removal of an old checkpoint")
        # only one of the fits has free steps, a search and three stages for certain
        fit = rng.choice(list(FITS)) if writes or "embedding" in kind else "three stages"
        minutes = 0.0 if writes else rng.choice([0.0, 0.0005, 5.0])
        chosen.append(Moment(kind, rng.randint(1, KINDS[kind][0]), fit, minutes, rng.choice([0, 1, 2, 3, 30])))
    return chosen


# Processes.


def fit(name: str, folder: Path | None, moment: Moment | None = None) -> str:
    """Fit in this process, and describe the bits of the map."""
    torch.set_num_threads(1)
    observers = []
    if moment is not None:
        made = ARRANGED[moment.kind](Countdown(moment.count))
        observers = [made] if made is not None else []
    options: dict[str, Any] = {} if folder is None else {"checkpoint": folder, "resume": True}
    if moment is not None:
        options["checkpoint_minutes"] = moment.minutes
    model = DRE(**FITS[name], random_state=0, device="cpu").fit(rows(), observers=observers, **options)
    weights = [value.numpy() for stage in model.stages_ for value in (stage or {}).values()]
    found = sha256(b"".join(each.tobytes() for each in [model.embedding_, *weights]))
    losses = [(record["stage"], record["epoch"], record["loss"], record["rows"]) for record in model.history_]
    return f"{found.hexdigest()} {sha256(json.dumps(losses).encode()).hexdigest()}"


def in_a_process(work: Callable[[], str]) -> tuple[int, str]:
    """Call in a forked process; return its exit code, negative if a signal ended it, and what it returned."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def call() -> None:
        try:
            theirs.send(work())
        except BaseException:
            theirs.send(traceback.format_exc())
            os._exit(1)

    process = context.Process(target=call)
    process.start()
    theirs.close()
    try:
        text = ours.recv() if ours.poll(LIMIT) else "no answer"
    except EOFError:
        text = ""
    process.join(1)
    process.kill()
    process.join()
    return process.exitcode or 0, text


def outcome(moment: Moment, expected: str, folder: Path) -> str:
    """Kill a fit at a moment, resume it, and compare."""
    code, text = in_a_process(lambda: fit(moment.fit, folder, moment))
    if code != -signal.SIGKILL:
        return "not killed" if code == 0 else f"error: {text}"
    held = list(folder.glob("checkpoint-*")) if folder.exists() else []
    if moment.again:
        soon = Moment(ANY_EVENT, moment.again, moment.fit, 0.0)
        code, text = in_a_process(lambda: fit(moment.fit, folder, soon))
        if code not in (0, -signal.SIGKILL):  # it may have ended before
            return f"error: {text}"
    code, text = in_a_process(lambda: fit(moment.fit, folder))
    if code != 0:
        return f"error: {text}"
    if text != expected:
        return "other bits"
    names = sorted(path.name for path in folder.iterdir())
    if len(names) > 2 or not all(name.startswith("checkpoint-") for name in names):
        return f"files left: {names}"
    return SAME if held else BEGAN_ANEW


def kill_all(chosen: list[Moment], folder: Path) -> list[tuple[Moment, str]]:
    """Try all moments; return their outcomes."""
    expected = {}
    for name in dict.fromkeys(moment.fit for moment in chosen):
        code, expected[name] = in_a_process(partial(fit, name, None))
        if code != 0:
            raise RuntimeError(expected[name])
    found = []
    for i, moment in enumerate(chosen):
        found.append((moment, outcome(moment, expected[moment.fit], folder / str(i))))
        if found[-1][1] not in ALLOWED:
            print(f"{moment}: {found[-1][1]}", file=sys.stderr, flush=True)
    return found


def table(found: list[tuple[Moment, str]]) -> str:
    """Outcomes by kind of moment, as a table."""
    counts = Counter((moment.kind, result.partition(":")[0]) for moment, result in found)
    kinds = [kind for kind in KINDS if any(moment.kind == kind for moment, _ in found)]
    head = f"{'killed at':32}" + "".join(f"{name:>28}" for name in OUTCOMES)
    return "\n".join([head, *(f"{kind:32}" + "".join(f"{counts[kind, name]:28}" for name in OUTCOMES) for kind in kinds)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=25)
    parser.add_argument("--record", action="store_true", help="write the outcomes to benchmarks/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = kill_all(moments(options.count), Path(folder))
    print(table(found))
    if options.record:
        from record import record

        counts = Counter(result.partition(":")[0] for _, result in found)
        about = "fits killed by SIGKILL, most of them twice, and resumed: in steps, recursions, searches, writes, renames"
        outcomes = {name: counts[name] for name in OUTCOMES}
        record("reliability-kills", {"about": about, "cases": len(found), "outcomes": outcomes}, seed=SEED)
    return 0 if all(result in ALLOWED for _, result in found) else 1


if __name__ == "__main__":
    sys.exit(main())
