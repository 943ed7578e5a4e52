"""Ten million rows of Gaussian clusters: fitted on a random sample, and in parts on all rows; minutes, memory and scores.

    python benchmarks/ten_million.py --data FOLDER                     10 million x 50 on a CPU: 2 GB in FOLDER, then two fits
    python benchmarks/ten_million.py --data FOLDER --quick             the same with 300,000 rows
    python benchmarks/ten_million.py --device cuda --rows 30000000 --columns 128 --out FILE.json

Each fit has a process of its own. On a CPU the rows lie in a file that is mapped into memory; those for a GPU are made on it in
pieces, and held by the host. Results are printed as they come, and recorded after each fit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from record import record

ROWS, COLUMNS, HELD_OUT, CLUSTERS = 10_000_000, 50, 10_000, 12
QUICK = 300_000
PIECE = 500_000  # rows that are made at a time, of one seed
REFERENCE = 1_000_000  # evenly spaced rows among which a held-out row has its nearest neighbor in the map
WAYS = ("sample", "parts")
SCORES = ("nearest_neighbor", "neighborhood_hit", "trustworthiness", "shepard_goodness")
Array = np.ndarray[Any, Any]
Results = dict[str, Any]


def make_piece(number: int, rows: int, columns: int, device: str) -> tuple[Array, Array]:
    """Clusters that share three directions of variance, with noise in all columns, as in million.py; and their numbers."""
    rng = np.random.default_rng(0)
    centers, directions = 2 * rng.normal(size=(CLUSTERS, columns)), rng.normal(size=(min(3, columns), columns))
    generator = torch.Generator(device).manual_seed(number)
    kind: dict[str, Any] = {"generator": generator, "device": device}
    labels = torch.randint(CLUSTERS, (rows,), **kind)
    X = torch.as_tensor(centers, dtype=torch.float32, device=device)[labels]
    X += 0.5 * torch.randn(rows, len(directions), **kind) @ torch.as_tensor(directions, dtype=torch.float32, device=device)
    X += 0.3 * torch.randn(rows, columns, **kind)
    return X.cpu().numpy(), labels.cpu().numpy().astype(np.int8)


def make(X: Array, device: str) -> Array:
    """Fill an array, or a file that is mapped into memory, and return the numbers of the clusters."""
    labels = np.empty(len(X), np.int8)
    for number, start in enumerate(range(0, len(X), PIECE)):
        part = slice(start, min(len(X), start + PIECE))
        X[part], labels[part] = make_piece(number, part.stop - start, X.shape[1], device)
    return labels


def rows_and_labels(arguments: argparse.Namespace) -> tuple[Any, Array]:
    """Return all rows, the last of them held out, and the numbers of their clusters."""
    shape = (arguments.rows + HELD_OUT, arguments.columns)
    if arguments.device != "cpu":
        X = np.empty(shape, np.float32)
        return X, make(X, arguments.device)
    path, labels_path = (arguments.data / f"clusters-{shape[0]}-{shape[1]}{end}.npy" for end in ("", "-labels"))
    if not labels_path.exists():
        arguments.data.mkdir(parents=True, exist_ok=True)
        np.save(labels_path, make(np.lib.format.open_memmap(path, "w+", np.float32, shape), "cpu"))
    return np.load(path, mmap_mode="r"), np.load(labels_path)


class Phases:
    """Seconds of each phase of a fit, by the events of the run; and what is said of the graph."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.graph: Results = {}
        self._phase, self._began = "read and scale", time.perf_counter()

    def begin(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[self._phase] = round(self.seconds.get(self._phase, 0.0) + now - self._began, 1)
        if phase != self._phase:
            print(f"  {self._phase}: {self.seconds[self._phase]} s", file=sys.stderr, flush=True)
        self._phase, self._began = phase, now

    def __call__(self, event: Any) -> None:
        kind = type(event).__name__
        phases = {"TargetBegan": "graph", "CoordinatesMoved": "coordinates", "StageBegan": "network", "StageEnded": "embed"}
        if kind in phases and phases[kind] != self._phase:
            self.begin(phases[kind])
        if kind == "StageBegan":
            graph = event.target
            self.graph = {**graph.search._asdict(), "k": graph.k, "gib": round(graph.nbytes / 2**30, 2)}


class Memory:
    """Largest resident memory of this process while it is open: anonymous, and with the pages of files."""

    def __enter__(self) -> Memory:
        self.gib = {"anonymous": 0.0, "total": 0.0}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._end.set()
        self._thread.join()
        if torch.cuda.is_available():
            self.gib["gpu"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)

    def _watch(self) -> None:
        names = {"RssAnon": "anonymous", "VmRSS": "total"}
        while not self._end.wait(0.2):
            for line in Path("/proc/self/status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in names:
                    gib = round(int(value.split()[0]) / 2**20, 2)
                    self.gib[names[name]] = max(self.gib[names[name]], gib)


def lower_limits() -> None:
    """Let some ten thousand rows be many, to try the script."""
    from dre.plan.recipes import default
    from dre.training import graph_parts

    for limits in (default.MOST, graph_parts.SEARCHED, graph_parts.PART):
        limits.update(dict.fromkeys(limits, QUICK // 10))
    default.EPOCH_ROWS = QUICK // 10


def fit(way: str, arguments: argparse.Namespace) -> Results:
    """Fit and score in this process."""
    from dre import DRE
    from dre.metrics import evaluate

    began = time.perf_counter()
    X, labels = rows_and_labels(arguments)
    n, made = arguments.rows, time.perf_counter() - began
    sample = arguments.sample if way == "sample" else n
    model = DRE(sample=sample, random_state=0, device=arguments.device)
    phases = Phases()
    with Memory() as memory:
        began = time.perf_counter()
        model.fit(X[:n], observers=[phases])
        phases.begin("score")
        seconds = time.perf_counter() - began
    reference = np.linspace(0, n - 1, min(n, REFERENCE)).astype(np.int64)
    held_out = np.array(X[n:])
    known = (model.embedding_[reference], labels[reference])
    scores = evaluate(held_out, model.transform(held_out), labels[n:], reference=known)
    phases.begin("end")
    return {
        "rows": n,
        "columns": arguments.columns,
        "fitted": n if model.sample_indices_ is None else len(model.sample_indices_),
        "data_seconds": round(made, 1),
        "fit_minutes": round(seconds / 60, 2),
        "phase_seconds": phases.seconds,
        "graph": phases.graph,
        "peak_gib": memory.gib,
        **{name: round(float(scores[name]), 4) for name in SCORES},
        "recipe": str(model.recipe_).splitlines(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder for the rows, on a CPU")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sample", type=int, help="rows of the sample; default: the recipe's choice")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK:,} rows, a tenth of them in the sample; nothing is recorded"
    )
    parser.add_argument("--out", type=Path, help="file of the results; default: benchmarks/results/ten-million.json")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)  # in a process of its own
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows = QUICK
        lower_limits()
    if arguments.device == "cpu" and arguments.data is None:
        parser.error("--data FOLDER is needed on a CPU")
    if arguments.one:
        print(json.dumps(fit(arguments.one, arguments)), flush=True)
        return
    results: Results = {}
    for way in arguments.ways:
        output = subprocess.run([sys.executable, *sys.argv, "--one", way], stdout=subprocess.PIPE, text=True, check=True).stdout
        results[way] = json.loads(output.splitlines()[-1])
        print(json.dumps({way: results[way]}, indent=1), flush=True)
        if arguments.out or not arguments.quick:
            record(arguments.out or "ten-million", results, seed=0)


if __name__ == "__main__":
    main()
