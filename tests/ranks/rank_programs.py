"""What a rank does in the tests: each function is called in every process, and returns something to compare."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import torch

from dre import DRE, OwnRows, RankError, alone
from dre.data.mixed_table import fit_table
from dre.data.preparation import Prepared
from dre.data.validation import check_seed
from dre.runtime.ranks import Ranks
from dre.training.events import StageBegan, StepEnded

RANK = int(os.environ["RANK"]) if "RANK" in os.environ else 0


def blobs(n: int = 400, columns: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four clusters, sorted by cluster."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(4, size=n))
    return (8 * rng.normal(size=(4, columns)))[labels] + rng.normal(size=(n, columns)), labels


def exchange() -> dict[str, Any]:
    """Every way of exchanging data."""
    ranks = Ranks.current()
    own, several = torch.full((2, 3), float(ranks.rank)), [torch.tensor([ranks.rank * 1.0]), torch.eye(2) * ranks.rank]
    ranks.average(several)
    to_first = ranks.to_first(own)
    parts = [torch.arange(i + 1) for i in range(ranks.size)] if ranks.is_first else None
    y = torch.tensor([[float(ranks.rank + 1)]], requires_grad=True)
    (ranks.gather_with_gradient(y) ** 2).sum().backward()
    problems = []
    for work in (lambda: ranks.on_first(_fail), lambda: ranks.agree({"rows": str(ranks.rank), "same": "same"})):
        try:
            work()
        except Exception as problem:
            problems.append(f"{type(problem).__name__}: {problem}")
    copied = torch.full((2,), 7.0 + ranks.rank)
    ranks.copy_first([copied])
    with alone():
        within = Ranks.current()
    return {
        "rank": (ranks.rank, ranks.size),
        "average": [each.tolist() for each in several],
        "sum": ranks.add(own).tolist(),
        "gather": ranks.gather(own).tolist(),
        "to_first": None if to_first is None else to_first.tolist(),
        "from_first": ranks.from_first(own if ranks.is_first else None, own.device).tolist(),
        "scatter": ranks.scatter(parts, own.device).tolist(),
        "share": ranks.broadcast(f"of {ranks.rank}"),
        "collect": ranks.collect(ranks.rank),
        "ending": [
            ranks.ending(None),
            ranks.ending("stage" if ranks.rank else None),
            ranks.ending(("stage", "fit")[ranks.rank]),
        ],
        "gradient": y.grad.tolist(),
        "problems": problems,
        "copied": copied.tolist(),
        "alone": (within.rank, within.size),
    }


def _fail() -> None:
    raise ValueError("only the first rank knows")


class Gradients:
    """Keeps the gradients of the first step, and the weights before it."""

    def __init__(self) -> None:
        self.found: list[torch.Tensor] | None = None

    def __call__(self, event: Any) -> None:
        if isinstance(event, StepEnded) and self.found is None:
            self.found = [weight.grad.clone() for weight in event.run.weights_to_train]


def gradient(schedule: str, encoder: str) -> dict[str, Any]:
    """The gradient of the first step, in which every row takes part."""
    X, _ = blobs()
    found = Gradients()
    model = DRE(
        schedule=schedule,
        encoder=encoder,
        batch_size=len(X),
        augment="none",
        optimizer="adam(0.001, policy=constant)",
        random_state=0,
    )
    model.fit(X, observers=[found])
    assert found.found is not None
    return {
        "gradient": torch.cat([each.ravel() for each in found.found]),
        "rows": Ranks.current().deal(len(X), seed()).numpy(),
    }


def seed() -> int:
    """The seed that a fit has with ``random_state=0``."""
    return check_seed(0)


def fit(parameters: dict[str, Any], n: int = 401) -> dict[str, Any]:
    """A fit of sorted rows: weights, embedding, history, and what was written."""
    X, labels = blobs(n)
    model = DRE(random_state=0, verbose=True, **parameters).fit(X)
    return {
        "weights": {name: value.numpy() for name, value in model.encoder_.state_dict().items()},
        "embedding": model.embedding_,
        "transform": model.transform(X),
        "loss": [record["loss"] for record in model.history_],
        "rows": [record["rows"] for record in model.history_],
        "labels": labels,
    }


def fit_and_save(path: str) -> bool:
    """Every rank asks to save."""
    X, _ = blobs(100)
    DRE("fast", random_state=0).fit(X).save(path)
    return Path(path).exists()


def fit_own() -> dict[str, Any]:
    """Each rank brings its own rows."""
    X, _ = blobs(300)
    own = X[RANK::2]
    model = DRE("fast", random_state=0).fit(OwnRows(own))
    return {"embedding": model.embedding_, "transform": model.transform(own), "mean": model._map.scaling.mean.numpy()}


def fit_own_tables() -> dict[str, Any]:
    """Each rank brings rows of a table, with categories that the other rank does not have."""
    X, labels = blobs(100)
    table = pandas.DataFrame({"size": X[:, 0], "width": X[:, 1], "kind": np.array(list("abcd"))[labels]})
    own = table[RANK * 50 : (RANK + 1) * 50].reset_index(drop=True)
    try:
        DRE("fast", random_state=0).fit(OwnRows(own))
        problem = "no error"
    except RankError as found:
        problem = str(found)
    preparation = fit_table(table)
    assert preparation is not None
    model = DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(8)", random_state=0)
    model.fit(OwnRows(Prepared(own, preparation)))
    return {"problem": problem, "transform": model.transform(table), "embedding": model.embedding_}


def differ(what: str) -> str:
    """Ranks that do not fit the same map."""
    X, _ = blobs(100)
    parameters: dict[str, Any] = {"random_state": 0}
    if what == "rows":
        X = X + RANK
    elif what == "shape":
        X = X[: 100 - RANK]
    elif what == "seed":
        parameters["random_state"] = RANK
    elif what == "parameters":
        parameters["perplexity"] = 10 + RANK
    elif what == "versions" and RANK:
        import dre

        dre.__version__ = "0.0.1"
    try:
        DRE("fast", **parameters).fit(X)
    except RankError as problem:
        return str(problem)
    return "no error"


def fail() -> str:
    """The rows of one rank have a gap."""
    X, _ = blobs(100)
    if RANK == 1:
        X[7, 2] = np.nan
    try:
        DRE("fast", random_state=0).fit(OwnRows(X))
    except ValueError as problem:
        return f"ValueError: {problem}"
    except RankError as problem:
        return str(problem)
    return "no error"


class Die:
    """Ends the process without a word after so many steps."""

    def __init__(self, steps: int, number: int = signal.SIGKILL) -> None:
        self.steps, self.number = steps, number

    def __call__(self, event: Any) -> None:
        if event.run.steps >= self.steps:
            os.kill(os.getpid(), self.number)


def die(rank: int, steps: int, folder: str | None = None, sample: int | None = None) -> str:
    """One rank is killed in the middle of a fit."""
    X, _ = blobs()
    observers = [Die(steps)] if rank == RANK else []
    try:
        DRE(random_state=0, sample=sample).fit(X, observers=observers, checkpoint=folder, checkpoint_minutes=0)
    except RankError as problem:
        return str(problem)
    return "no error"


def resume(folder: str, sample: int | None = None) -> dict[str, Any]:
    """A fit that goes on."""
    X, labels = blobs()
    model = DRE(random_state=0, sample=sample).fit(X, checkpoint=folder, resume=True)
    return {"embedding": model.embedding_, "labels": labels, "epochs": len(model.history_), "stages": len(model.stages_)}


def stop_early(schedule: str | None, steps: int) -> int:
    """The first rank alone asks to end the fit, after so many steps, or when a stage begins."""

    def end(event: Any) -> None:
        if RANK == 0 and event.run.steps >= steps and (steps or isinstance(event, StageBegan)):
            event.run.end_fit()

    X, _ = blobs()
    made = []

    def count(event: Any) -> None:
        made.append(event.run.steps)

    DRE(random_state=0, schedule=schedule).fit(X, observers=[end, count])
    return made[-1]


def main() -> None:
    calls, out = sys.argv[1:]
    name, arguments = pickle.loads(Path(calls).read_bytes())
    result = globals()[name](*arguments)
    Path(out).write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main()
