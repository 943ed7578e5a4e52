"""One rank and two, with the same global batch: held-out 1-NN, seconds, and what a step and an exchange cost.

    python benchmarks/ranks.py --data FOLDER                    # results/ranks.json: pendigits on 2 CPU ranks through gloo
    python benchmarks/ranks.py --data FOLDER --device cuda      # results/ranks-gpu.json: MNIST, 2 ranks on one GPU through gloo
    python benchmarks/ranks.py --data FOLDER --device cuda --nccl   # one rank through NCCL: its steps are captured

FOLDER has tables/pendigits.npz and mnist. Every fit has processes of its own, started by torchrun.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from record import record, result_file

SEEDS = (0, 1, 2)
Array = np.ndarray[Any, Any]
WAYS: dict[str, dict[str, Any]] = {
    "coordinates, then the bank of all rows (default)": {},
    "inside each rank's batch": {"schedule": "{source}: gaussian(30) -> kl * {epochs}", "batch_size": 1000},
    "inside the gathered batch": {"schedule": "{source}: gaussian(30) -> kl * {epochs} against ranks", "batch_size": 1000},
}
EPOCHS = {"cpu": 60, "cuda": 20}
EXCHANGES = 200


def load(folder: Path, device: str) -> tuple[Array, Array, Array, Array]:
    """Rows and labels to fit, and to score."""
    if device == "cpu":
        found = np.load(folder / "tables" / "pendigits.npz")
        order = np.random.default_rng(0).permutation(len(found["X"]))
        X, y, fitted = found["X"][order].astype(np.float32), found["y"][order], len(order) * 3 // 4
        return X[:fitted], y[:fitted], X[fitted:], y[fitted:]
    from dre.datasets import load as load_dataset

    data = load_dataset("mnist", folder=folder)
    return data.train.rows, data.train.labels, data.test.rows, data.test.labels


def parameters(way: str, device: str, seed: int) -> dict[str, Any]:
    chosen = dict(WAYS[way])
    if "schedule" in chosen:
        source = "x" if device == "cpu" else "features"
        chosen["schedule"] = chosen["schedule"].format(source=source, epochs=EPOCHS[device])
        chosen["encoder"] = "mlp(256)" if device == "cpu" else "patch-mlp(256)"  # gloo carries gradients through the host
    return {**chosen, "device": device, "random_state": seed}


def fit(arguments: argparse.Namespace) -> None:
    """What one rank does: fit, score, and measure the exchange of gradients; the first one writes the result."""
    from sklearn.neighbors import KNeighborsClassifier

    from dre import DRE
    from dre.runtime.ranks import Ranks
    from dre.training.events import StepEnded

    X, y, new, new_y = load(arguments.data, arguments.device)
    times: list[float] = []

    def watch(event: Any) -> None:
        if isinstance(event, StepEnded):
            times.append(time.perf_counter())

    began = time.perf_counter()
    model = DRE(**parameters(arguments.way, arguments.device, arguments.seed)).fit(X, observers=[watch])
    seconds = time.perf_counter() - began
    ranks, gaps = Ranks.current(), np.diff(times)
    score = KNeighborsClassifier(1).fit(model.embedding_, y).score(model.transform(new), new_y)
    weights = sum(weight.numel() for weight in model.encoder_.parameters() if weight.requires_grad)
    flat = torch.zeros(weights, device=model._map.device)
    begun = time.perf_counter()
    for _ in range(EXCHANGES):
        ranks.average([flat])
    if flat.is_cuda:
        torch.cuda.synchronize()
    exchange = (time.perf_counter() - begun) / EXCHANGES
    if ranks.is_first:
        found = {
            "nearest_neighbor": round(float(score), 4),
            "fit_seconds": round(seconds, 2),
            "steps": len(times),
            "step_ms": round(1e3 * float(np.median(gaps)), 3),
            "weights": weights,
            "exchange_ms": round(1e3 * exchange, 3),
        }
        Path(arguments.out).write_text(json.dumps(found))


def run(arguments: argparse.Namespace, way: str, seed: int, ranks: int) -> dict[str, Any]:
    """Fit in so many processes; one process without torchrun for a single rank, except through NCCL."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        words = [__file__, "--data", str(arguments.data), "--device", arguments.device]
        words += ["--way", way, "--seed", str(seed), "--out", str(out)]
        is_launched = ranks > 1 or arguments.nccl
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)] if is_launched else []
        environment = {**os.environ, "OMP_NUM_THREADS": "1"} if is_launched else None
        done = subprocess.run([sys.executable, *launcher, *words], check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(done.stderr[-4000:])
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--ways", type=int, nargs="+", default=list(range(len(WAYS))), help="numbers of the ways, from 0 on")
    parser.add_argument("--nccl", action="store_true")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        fit(arguments)
        return
    name = {"cpu": "ranks", "cuda": "ranks-gpu"}[arguments.device] + ("-nccl" if arguments.nccl else "")
    results: dict[str, Any] = json.loads(result_file(name).read_text())["results"] if result_file(name).exists() else {}
    for way in [list(WAYS)[i] for i in arguments.ways]:
        for ranks in [1] if arguments.nccl else arguments.ranks:
            found = [run(arguments, way, seed, ranks) for seed in arguments.seeds]
            results.setdefault(way, {})[str(ranks)] = found
            print(f"{way}, {ranks} ranks: {found}", flush=True)
            data = "pendigits" if arguments.device == "cpu" else "MNIST"
            record(name, results, seeds=arguments.seeds, data=data)


if __name__ == "__main__":
    main()
