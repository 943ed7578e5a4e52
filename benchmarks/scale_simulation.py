"""Steps of ranks, predicted from the step of one rank and from the exchange between two; measured with two, simulated to 256.

    python benchmarks/scale_simulation.py                   # results/scale-simulation.json: 2 CPU ranks through gloo
    python benchmarks/scale_simulation.py --device cuda     # results/scale-simulation-gpu.json: 2 ranks on one GPU through gloo
    python benchmarks/scale_simulation.py --quick           # fewer steps; nothing is recorded

The step of one rank is measured without an exchange: a process does what a rank of two does, with what it would send in place
of what it would receive. Two such processes run side by side, since ranks of one machine share its memory and its cache. They
then measure each exchange alone, and train together, several times in turn.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dre.data.scaling import Scaling
from dre.encoder import Encoder
from dre.model.fitted import to_model_rows
from dre.optimizer.whitening import EVERY, WIDEST
from dre.plan.recipe import Recipe
from dre.runtime import Runtime
from dre.runtime.ranks import AGREED, Ranks
from dre.training.events import EpochEnded, StepEnded
from dre.training.loop import train
from record import record
from ring_model import BYTES, LINKS, Link, Traffic, affine_fit, slowest_of

RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ROWS, COLUMNS, CLUSTERS = 20_000, 50, 12
WARMUP = 40  # steps: the first ones compile, and whitening looks at all of them
WINDOW = math.lcm(EVERY, AGREED)  # steps of which the mean has everything that comes once in a while
SIZES = [4**i for i in range(13)]  # numbers in a buffer
LARGEST_GATHER = 4**10
EXCHANGES = 200
PAUSED_EXCHANGES = 100  # with a pause before each
MULTIPLIED = 128  # rows and columns of a matrix
LOCAL = (125, 250, 500, 1000, 2000)  # rows of a rank's batch, in the steps of one rank
GLOBAL = 16_000  # rows of a batch that more and more ranks share
TOLERANCE = 0.2
ADAM, WHITENED = "adam(0.002)", "adam(0.01, beta2=0.99, warmup=0.1, whiten=true)"
Results = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A network, what its steps match, and the rows of a batch of both ranks."""

    name: str
    encoder: str
    schedule: str
    batch: int
    optimizer: str = ADAM
    repeats: int = 9  # long steps vary less, and need fewer

    def recipe(self, epochs: int) -> Recipe:
        parts: list[Any] = [self.schedule.format(epochs=epochs), self.encoder, f"shuffled({self.batch})", self.optimizer]
        return Recipe(*parts)


FOLLOW, BANK = "x: gaussian(30) -> kl * 0 from pca follow {epochs}", "x: gaussian(30) -> kl * {epochs} against bank"
BATCH, GATHERED = "x: gaussian(30) -> kl * {epochs}", "x: gaussian(30) -> kl * {epochs} against ranks"
CASES = {
    "cpu": (
        Case("following coordinates, whitened", "mlp(128, depth=6)", FOLLOW, 500, WHITENED),
        Case("against the bank, whitened", "mlp(128, depth=6)", BANK, 500, WHITENED),
        Case("inside each rank's batch", "mlp(256)", BATCH, 1000),
        Case("inside each rank's batch", "mlp(1024, depth=4)", BATCH, 1000, repeats=3),
        Case("inside each rank's batch, batch norm", "model-a(norm=true)", BATCH, 1000, repeats=3),
        Case("inside the gathered batch", "mlp(256)", GATHERED, 1000),
    ),
    "cuda": (
        Case("following coordinates", "mlp(1024, depth=4)", FOLLOW, 2000),
        Case("against the bank", "mlp(1024, depth=4)", BANK, 2000),
        Case("inside each rank's batch", "mlp(256)", BATCH, 2000),
        Case("inside each rank's batch", "mlp(2048, depth=4)", BATCH, 5000),
        Case("inside each rank's batch, batch norm", "model-a(norm=true)", BATCH, 5000),
        Case("inside the gathered batch", "mlp(256)", GATHERED, 2000),
    ),
}
SWEPT = {"cpu": ("mlp(256)", "mlp(1024, depth=4)"), "cuda": ("mlp(1024, depth=4)", "mlp(2048, depth=4)")}


class DryRanks(Ranks):
    """The first of several ranks, without the others: it receives what it sends."""

    @property
    def captures(self) -> bool:
        return False  # as with gloo

    def _sum(self, flat: Tensor) -> None:
        pass

    def gather(self, x: Tensor) -> Tensor:
        return x.repeat(self.size, *[1] * (x.dim() - 1))

    def to_first(self, x: Tensor) -> Tensor | None:
        return self.gather(x)

    def from_first(self, x: Tensor | None, device: torch.device) -> Tensor:
        assert x is not None
        return x.to(device)

    def scatter(self, parts: Any, device: torch.device) -> Tensor:
        return parts[0].to(device)  # type: ignore[no-any-return]

    def share(self, value: Any) -> Any:
        return value

    def collect(self, value: Any) -> list[Any]:
        return [value] * self.size


# What a process does


def steps_of(case: Case, ranks: Ranks, steps: int, device: torch.device) -> Results:
    """Train, and return the seconds between steps of the same epoch, and whether ranks asked each other in between."""
    share = ROWS // ranks.size
    rng = np.random.default_rng(ranks.rank)
    centers = 3 * np.random.default_rng(0).normal(size=(CLUSTERS, COLUMNS))
    X = (centers[rng.integers(CLUSTERS, size=share)] + rng.normal(size=(share, COLUMNS))).astype(np.float32)
    runtime = Runtime.on(device)
    rows = to_model_rows(X, Scaling.fit(X), device)
    recipe = case.recipe(epochs=math.ceil((steps + WARMUP) / (ROWS // case.batch - 1)))
    assert isinstance(recipe.encoder, Encoder)
    encoder = runtime.place(recipe.encoder.build(rows.shape[1:], 2))
    seconds: list[float] = []
    asked: list[bool] = []
    before, asks = None, False
    for event in train(encoder, rows, recipe, n_components=2, runtime=runtime, seed=0, ranks=ranks):
        if isinstance(event, EpochEnded):
            before = None
        if not isinstance(event, StepEnded):
            continue
        if device.type == "cuda":
            torch.cuda.synchronize()
        now = time.perf_counter()
        if before is not None and event.run.steps > WARMUP:
            seconds.append(now - before)
            asked.append(asks)
        before, asks = now, event.run.progress is not None and event.run.progress.steps % AGREED == 0
    weights = [each for each in encoder.parameters() if each.requires_grad]
    wide = [each.shape[1] for each in weights if each.dim() > 1 and each.shape[1] <= WIDEST]
    return {
        "seconds": seconds,
        "asked": sum(asked) / len(asked),
        "weights": sum(each.numel() for each in weights),
        "covariances": sum(inputs**2 for inputs in wide) if case.optimizer == WHITENED else 0,
        "neighbors": recipe.schedule[0].affinity.count_neighbors(share),
    }


def seconds_of_exchange(work: Callable[[], object], device: torch.device, pause: float = 0.0) -> float:
    """The mean of an exchange, as of a step: some wait for a core. The first ones open connections, and do not count.

    In the pause before each, the process computes, as in a step: an exchange takes longer after it than after another one,
    since the threads of the backend have gone to sleep, and their memory has left the cache.
    """
    found: list[float] = []
    count = PAUSED_EXCHANGES if pause else EXCHANGES
    for _ in range(count):
        compute_for(pause, device)
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return median_of_means(found[count // 5 :], count // 5)


def compute_for(seconds: float, device: torch.device) -> None:
    """Multiply matrices for some time; processes that begin together end together."""
    end, x = time.perf_counter() + seconds, torch.ones(MULTIPLIED, MULTIPLIED, device=device)
    while time.perf_counter() < end:
        x = (x @ x).clamp_(max=1.0)
        if device.type == "cuda":
            torch.cuda.synchronize()


def exchanges_by_size(ranks: Ranks, sizes: list[int], device: torch.device) -> Results:
    """Seconds of an average and of a gather of buffers of these sizes, and of an agreement."""
    buffers = [torch.zeros(size, device=device) for size in sizes]
    parts = [each for each in buffers if len(each) <= LARGEST_GATHER]
    found = {
        "average": [(BYTES * len(x), seconds_of_exchange(partial(ranks.average, [x]), device)) for x in buffers],
        "gather": [(BYTES * len(x), seconds_of_exchange(partial(ranks.gather, x), device)) for x in parts],
    }
    return {**found, "agreement": seconds_of_exchange(partial(ranks.ending, None), device)}


def exchanges_of(traffic: Traffic, asked: float, step: float, ranks: Ranks, device: torch.device) -> dict[str, float]:
    """Seconds of every exchange of a step, each measured on its own, after a computation that takes as long as a step."""

    def average(nbytes: float) -> float:
        x = torch.zeros(int(nbytes) // BYTES, device=device)
        return seconds_of_exchange(partial(ranks.average, [x]), device, step)

    def gather(nbytes: int) -> float:
        return seconds_of_exchange(partial(ranks.gather, torch.zeros(nbytes // BYTES, device=device)), device, step)

    return {
        "average": average(traffic.summed),
        "gather": sum(map(gather, traffic.gathered)),
        "whitening": average(traffic.covariances) / EVERY if traffic.covariances else 0.0,
        "agreement": asked * seconds_of_exchange(partial(ranks.ending, None), device, step),
    }


def compare_in_turn(case: Case, ranks: Ranks, steps: int, device: torch.device) -> list[Results]:
    """Steps without exchange, exchanges without steps, and both together: in turn, since the speed of a machine changes."""
    found = []
    for _ in range(case.repeats):
        dry = steps_of(case, DryRanks(0, 2, is_connected=True), steps, device)
        everyone = ranks.collect(dry["seconds"])
        traffic = traffic_of(case, dry, case.batch // 2)
        exchange = exchanges_of(traffic, dry["asked"], typical(dry["seconds"]), ranks, device)
        real = steps_of(case, ranks, steps, device)
        together = ranks.collect(real["seconds"])
        found.append({**dry, "seconds": everyone, "exchange": exchange, "real": together})
    return found


def work(job: Results) -> Any:
    """What one process does."""
    ranks = Ranks.current()
    device = ranks.device(torch.device(job["device"]))
    if job["kind"] == "exchange":
        return exchanges_by_size(ranks, job["sizes"], device)
    case = Case(**job["case"])
    if job["kind"] == "alone":
        return steps_of(case, DryRanks(0, 2, is_connected=True), job["steps"], device)
    return compare_in_turn(case, ranks, job["steps"], device)


def processes(number: int, job: Results) -> Any:
    """Do a job in so many processes, started by torchrun, with one thread each."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(number)]
        words = [sys.executable, *launcher, __file__, "--job", json.dumps({**job, "out": str(out)})]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(done.stderr[-4000:])
        return json.loads(out.read_text())


# What is made of the measurements


def median_of_means(seconds: list[float], window: int) -> float:
    """Return the median, over windows, of the mean: with what comes once in a while, without a rare interruption."""
    windows = [seconds[i : i + window] for i in range(0, len(seconds), window)]
    return median([fmean(each) for each in windows if len(each) == window or len(windows) == 1])


def typical(steps: list[float]) -> float:
    """Return the seconds of a step."""
    return median_of_means(steps, WINDOW)


def slowest(steps: list[list[float]], ranks: int) -> float:
    """Return the mean of the slowest of so many ranks; a step in which whitening looks is one in all of them."""
    by_phase = [[seconds for each in steps for seconds in each[phase::EVERY]] for phase in range(EVERY)]
    return float(np.mean([slowest_of(each, ranks) for each in by_phase]))


def fitted_link(exchange: Results) -> Link:
    """The latency and the bandwidth of the ring model that fit the measured averages of two ranks."""
    nbytes, seconds = zip(*exchange["average"], strict=True)
    intercept, slope = affine_fit(nbytes, seconds)
    return Link("measured", 1 / slope, intercept / 2, source="measured")


def traffic_of(case: Case, found: Results, local: int) -> Traffic:
    """What a rank with a batch of so many rows sends."""
    gathered: tuple[int, ...] = ()
    if case.schedule == BANK:
        gathered = (local * (8 + 2 * BYTES),)  # an id and two coordinates
    if case.schedule == GATHERED:
        k = found["neighbors"]
        gathered = (local * k * 8, local * k * BYTES, local * 2 * BYTES)  # positions and weights of neighbors, coordinates
    return Traffic(BYTES * found["weights"], gathered, BYTES * found["covariances"], EVERY)


def compare(case: Case, device: str, steps: int) -> Results:
    """Predict the step of two ranks, and measure it."""
    job = {"case": asdict(case), "steps": steps, "device": device}
    alone, runs = processes(1, {**job, "kind": "alone"}), processes(2, {**job, "kind": "compare"})
    traffic = traffic_of(case, runs[0], case.batch // 2)
    parts = [{"step of the slower rank": slowest(run["seconds"], 2), **run["exchange"]} for run in runs]
    predicted, measured = [sum(each.values()) for each in parts], [typical(run["real"][0]) for run in runs]
    errors = [made / took - 1 for made, took in zip(predicted, measured, strict=True)]
    return {
        **{name: value for name, value in asdict(case).items() if name != "schedule"},
        "weights": runs[0]["weights"],
        "sent_bytes": round(traffic.sent(2)),
        "alone_ms": 1e3 * typical(alone["seconds"]),
        "beside_ms": 1e3 * median([typical(each) for run in runs for each in run["seconds"]]),
        "parts_ms": {name: 1e3 * median([each[name] for each in parts]) for name in parts[0]},
        "predicted_ms": 1e3 * median(predicted),
        "measured_ms": 1e3 * median(measured),
        "error": median(errors),
        "errors": errors,
        "steps_of_one_rank": [seconds for run in runs for seconds in run["seconds"]],
        "traffic": asdict(traffic),
    }


def simulate(name: str, compute: dict[int, float], traffic: Traffic, rows: dict[int, int]) -> list[Results]:
    """Steps of up to 256 ranks on each network; compute and rows by the number of ranks."""
    found = []
    for link in LINKS:
        for ranks in [each for each in RANKS if each <= link.most]:
            exchange = traffic.seconds(link, ranks)
            step = compute[ranks] + exchange
            rate, alone = ranks * rows[ranks] / step, rows[1] / compute[1]
            found.append(
                {
                    "what": name,
                    "network": link.name,
                    "ranks": ranks,
                    "compute_ms": 1e3 * compute[ranks],
                    "exchange_ms": 1e3 * exchange,
                    "sent_bytes": round(traffic.sent(ranks)),
                    "steps_per_second": 1 / step,
                    "rows_per_second": rate,
                    "efficiency": rate / ranks / alone,
                }
            )
    return found


def weak(run: Results) -> list[Results]:
    """Every rank has the batch that it has of two."""
    given = {**run["traffic"], "gathered": tuple(run["traffic"]["gathered"])}
    compute = {ranks: slowest(run["steps_of_one_rank"], ranks) for ranks in RANKS}
    name = f"{run['name']}, {run['encoder']}, {run['batch'] // 2:,} rows of each rank"
    return simulate(name, compute, Traffic(**given), dict.fromkeys(RANKS, run["batch"] // 2))


def sweep(encoder: str, device: str, steps: int, local: list[int]) -> Results:
    """The step of one rank by the rows of its batch."""
    seconds, weights = [], 0
    for rows in local:
        case = Case("", encoder, BATCH, 2 * rows)
        found = processes(1, {"kind": "alone", "case": asdict(case), "steps": steps, "device": device})
        seconds.append(typical(found["seconds"]))
        weights = found["weights"]
    fixed, per_row = affine_fit(local, seconds)
    return {
        "encoder": encoder,
        "weights": weights,
        "rows": local,
        "ms": [1e3 * each for each in seconds],
        "fixed_ms": 1e3 * fixed,
        "us_of_a_row": 1e6 * per_row,
    }


def strong(step: Results) -> list[Results]:
    """All ranks share one batch."""
    rows = {ranks: GLOBAL // ranks for ranks in RANKS}
    compute = {ranks: 1e-3 * step["fixed_ms"] + 1e-6 * step["us_of_a_row"] * each for ranks, each in rows.items()}
    return simulate(f"{step['encoder']}, {GLOBAL:,} rows of all ranks", compute, Traffic(BYTES * step["weights"]), rows)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def measure(arguments: argparse.Namespace) -> Results:
    """Measure exchanges, steps and runs, and simulate."""
    device, steps = arguments.device, WINDOW if arguments.quick else arguments.steps
    repeats = 2 if arguments.quick else arguments.repeats
    cases = CASES[device] if arguments.cases is None else [CASES[device][i] for i in arguments.cases]
    exchange = processes(2, {"kind": "exchange", "sizes": SIZES[:11] if arguments.quick else SIZES, "device": device})
    link = fitted_link(exchange)
    fit_errors = [link.all_reduce(nbytes, 2) / seconds - 1 for nbytes, seconds in exchange["average"]]
    print(f"latency {1e6 * link.latency:.0f} us, {link.bandwidth / 1e9:.2f} GB/s; {rounded(exchange)}", flush=True)
    runs, simulated = [], []
    for case in cases:
        run = compare(case if repeats is None else replace(case, repeats=repeats), device, steps)
        simulated += weak(run)
        runs.append({name: value for name, value in run.items() if name != "steps_of_one_rank"})
        print(json.dumps(rounded(runs[-1])), flush=True)
    local = list(LOCAL[1:4:2] if arguments.quick else LOCAL)
    swept = [] if arguments.cases else [sweep(each, device, WINDOW, local) for each in SWEPT[device]]
    return {
        "exchange": {**exchange, "latency": link.latency, "bandwidth": link.bandwidth, "fit_errors": fit_errors},
        "steps": swept,
        "runs": runs,
        "links": [asdict(each) for each in LINKS],
        "simulation": simulated + [each for step in swept for each in strong(step)],
        "tolerance": TOLERANCE,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--steps", type=int, default=2 * WINDOW)
    parser.add_argument("--repeats", type=int, help="how often each case is measured; default: what the case says")
    parser.add_argument("--cases", type=int, nargs="+", help="numbers of some cases, from 0 on; nothing is recorded")
    parser.add_argument("--quick", action="store_true", help="fewer steps, and nothing is recorded")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        job = json.loads(arguments.job)
        found = work(job)
        if Ranks.current().is_first:
            Path(job["out"]).write_text(json.dumps(found))
        return
    results = measure(arguments)
    missed = [f"{run['name']}, {run['encoder']}" for run in results["runs"] if abs(run["error"]) > TOLERANCE]
    print(f"{len(missed)} of {len(results['runs'])} predictions are off by more than {TOLERANCE:.0%}: {missed}", flush=True)
    if not arguments.quick and arguments.cases is None:
        name = "scale-simulation" + ("-gpu" if arguments.device == "cuda" else "")
        record(name, rounded(results), rows=ROWS, columns=COLUMNS)


if __name__ == "__main__":
    main()
