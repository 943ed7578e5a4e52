"""A Parquet file that is larger than memory should hold, sorted by class: seconds, memory, and the map against one in memory.

    python benchmarks/out_of_core.py --data FOLDER                       # 20 GB; results/out-of-core.json
    python benchmarks/out_of_core.py --data FOLDER --whole batch fast    # also with a graph of all rows
    python benchmarks/out_of_core.py --data FOLDER --quick               # 200 MB, recorded under another name

The files are made in the folder, unless they are there. Each fit has a process to itself. ``batch`` is a network without a PCA
front that is trained inside batches: its steps read the rows themselves, and it has no graph; of the large file, it makes some
of the steps of an epoch. ``fast`` is the recipe of that name. Of a smaller file of the same clusters, fits from the file and in
memory are compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from record import record

COLUMNS, CLUSTERS, LATENT, HELD_OUT = 768, 12, 16, 10_000
GROUP_ROWS = 2**16  # of a row group, 200 MB
ROW_BYTES = 4 * COLUMNS
PLANS: dict[str, dict[str, Any]] = {
    "batch": {"schedule": "x: gaussian(30, scope=batch) -> kl * 1", "encoder": "mlp(256)", "batch_size": "shuffled(250)"},
    "fast": {"recipe": "fast"},
}
SAMPLED = 0.02  # seconds between two looks at the memory
Array = np.ndarray[Any, Any]
Results = dict[str, Any]


def clusters(labels: Array, rng: np.random.Generator) -> Array:
    """Rows of overlapping clusters in a few directions, with noise in all columns, which does not compress."""
    fixed = np.random.default_rng(0)
    centers = 0.3 * fixed.normal(size=(CLUSTERS, LATENT)).astype(np.float32)
    axes = fixed.normal(size=(LATENT, COLUMNS)).astype(np.float32)
    latent = centers[labels] + 0.4 * rng.standard_normal((len(labels), LATENT), dtype=np.float32)
    return latent @ axes + 0.5 * rng.standard_normal((len(labels), COLUMNS), dtype=np.float32)


def make_file(path: Path, rows: int) -> None:
    """Write rows sorted by class, one row group at a time, with a label and a text that nobody asks for."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.exists() and pq.ParquetFile(path).metadata.num_rows == rows:
        return
    schema = pa.schema([("vector", pa.list_(pa.float32(), COLUMNS)), ("label", pa.int64()), ("text", pa.string())])
    rng, part = np.random.default_rng(1), path.with_suffix(".part")
    with pq.ParquetWriter(part, schema) as writer:
        for start in range(0, rows, GROUP_ROWS):
            numbers = np.arange(start, min(rows, start + GROUP_ROWS))
            labels = numbers * CLUSTERS // rows
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(clusters(labels, rng).ravel()), COLUMNS)
            texts = [f"row {i} has a text that the map does not need" for i in numbers]
            writer.write_table(pa.table([vectors, labels, texts], schema=schema))
    part.rename(path)


class Watch:
    """Observes a fit: peak of anonymous memory, seconds of its phases, and steps; ends it after ``most`` steps."""

    def __init__(self, most: int | None = None) -> None:
        self.began, self.most, self.phase = time.perf_counter(), most, "reading"
        self.seconds: dict[str, float] = {"reading": 0.0, "targets": 0.0, "training": 0.0}
        self.peak_mb = dict.fromkeys((*self.seconds, "map of all rows"), 0.0)
        self.rows = self.steps = self.graph_bytes = 0

    def __call__(self, event: Any) -> None:
        kind, now = type(event).__name__, time.perf_counter()
        if kind == "TargetBegan":
            self.seconds["reading"] = self.seconds["reading"] or now - self.began
            self.phase = "targets"
        if kind == "StageBegan":
            self.phase = "training"
            self.seconds["targets"] += event.seconds + event.free_seconds
            self.graph_bytes = max(self.graph_bytes, graph_bytes(event.target))
        if kind == "StepEnded":
            self.steps += 1
            if self.steps == self.most:
                event.run.end_fit()
        if kind == "EpochEnded":
            self.seconds["training"] += event.seconds
            self.rows += event.rows
        if kind.startswith("StageE"):
            self.phase = "map of all rows"

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Look at the anonymous memory of this process, from a thread."""
        done = threading.Event()

        def look() -> None:
            while not done.wait(SAMPLED):
                self.peak_mb[self.phase] = max(self.peak_mb[self.phase], anonymous_mb())

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def anonymous_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("RssAnon"))


def graph_bytes(target: Any) -> int:
    """Bytes of the arrays of a graph: ids and weights of neighbors, in both directions if there are links."""
    arrays = [getattr(target, name, None) for name in ("indices", "weight")]
    links = vars(target).get("links") or ()
    return sum(int(each.nbytes) for each in (*arrays, *links) if each is not None)


def fit(path: Path, plan: str, held_out: Path, *, in_memory: bool, most: int | None, seed: int) -> Results:
    """Fit one map in this process, and score it by held-out rows."""
    from dre import DRE
    from dre.data.rows import read_all
    from dre.io.readers import open_source
    from dre.metrics import evaluate

    watch = Watch(most)
    start_mb = anonymous_mb()
    with watch.sampling():
        source = open_source(path)
        rows = read_all(source.rows) if in_memory else source.rows
        watch.began = time.perf_counter()
        model = DRE(**PLANS[plan], random_state=seed, device="cpu", verbose=False).fit(rows, observers=[watch])
        seconds = time.perf_counter() - watch.began
    rest = seconds - sum(watch.seconds.values())
    test = np.load(held_out)
    labels = np.asarray(source.metadata["label"])
    scores = evaluate(test["rows"], model.transform(test["rows"]), test["labels"], reference=(model.embedding_, labels))
    return {
        "rows": int(rows.shape[0]),
        "recipe": str(model.recipe_).splitlines(),
        "seconds": {**watch.seconds, "map of all rows": rest, "all": seconds},
        "steps": watch.steps,
        "steps_per_second": watch.steps / watch.seconds["training"],
        "rows_per_second": watch.rows / watch.seconds["training"],
        "start_mb": start_mb,
        "peak_anonymous_mb": watch.peak_mb,
        "graph_mb": watch.graph_bytes / 1e6,
        "peak_without_graph_mb": max(watch.peak_mb.values()) - watch.graph_bytes / 1e6,
        "nearest_neighbor": scores["nearest_neighbor"],
    }


def in_fresh_process(
    path: Path, plan: str, held_out: Path, *, in_memory: bool = False, most: int | None = None, seed: int = 0
) -> Results:
    """Fit in a process of its own, whose memory has nothing else in it."""
    job = json.dumps([str(path), plan, str(held_out), in_memory, most, seed])
    done = subprocess.run([sys.executable, __file__, "--job", job], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"}
    found: Results = rounded(json.loads(done.stdout.splitlines()[-1]))
    return found


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return round(value, 4 if abs(value) < 10 else 1) if isinstance(value, float) else value


def compare(path: Path, held_out: Path, plans: list[str], seeds: list[int]) -> Results:
    """Fit a file and the same rows in memory, with the same number of steps; of later seeds, keep the score alone."""
    found: Results = {}
    for plan in plans:
        fits = {
            way: [in_fresh_process(path, plan, held_out, in_memory=way == "memory", seed=seed) for seed in seeds]
            for way in ("file", "memory")
        }
        both = {way: each[0] for way, each in fits.items()}
        found[plan] = {**both, "seeds": {way: [one.get("nearest_neighbor") for one in each] for way, each in fits.items()}}
        if not any("failed" in each for each in both.values()):
            found[plan]["file_to_memory"] = {
                name: round(both["file"][name] / both["memory"][name], 3) for name in ("steps_per_second", "nearest_neighbor")
            }
        print(f"{plan}: {json.dumps(found[plan], indent=1)}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder for the files")
    parser.add_argument("--gb", type=float, default=20.0, help="size of the large file")
    parser.add_argument("--subset", type=int, default=400_000, help="rows of the file that is also fitted in memory")
    parser.add_argument("--whole", nargs="*", choices=list(PLANS), default=["batch"], help="fits of the large file")
    parser.add_argument("--plans", nargs="*", choices=list(PLANS), default=list(PLANS), help="fits of the smaller file")
    parser.add_argument("--steps", type=int, default=4000, help="steps of the fit batch of the large file, at most")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the fits of the smaller file")
    parser.add_argument("--quick", action="store_true", help="200 MB, and 20,000 rows in memory")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        path, plan, held_out, in_memory, most, seed = json.loads(arguments.job)
        print(json.dumps(fit(Path(path), plan, Path(held_out), in_memory=in_memory, most=most, seed=seed)))
        return
    if arguments.data is None:
        parser.error("--data FOLDER: where the files go")
    gb, subset = (0.2, 20_000) if arguments.quick else (arguments.gb, arguments.subset)
    folder: Path = arguments.data
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2)
    labels = rng.integers(CLUSTERS, size=HELD_OUT)
    held_out = folder / "held-out.npz"
    np.savez(held_out, rows=clusters(labels, rng), labels=labels)
    rows, results = int(gb * 1e9 / ROW_BYTES), {}
    for name, count in (("whole", rows), ("subset", subset)):
        began, path = time.perf_counter(), folder / f"{count}.parquet"
        make_file(path, count)
        results[name] = {"rows": count, "file_bytes": path.stat().st_size}
        print(f"{path.name}: {path.stat().st_size / 1e9:.2f} GB in {time.perf_counter() - began:.0f} s", flush=True)
    results["subset"] |= compare(folder / f"{subset}.parquet", held_out, arguments.plans, arguments.seeds)
    for plan in arguments.whole:
        most = arguments.steps if plan == "batch" else None
        results["whole"][plan] = in_fresh_process(folder / f"{rows}.parquet", plan, held_out, most=most)
        print(f"whole, {plan}: {json.dumps(results['whole'][plan], indent=1)}", flush=True)
    record("out-of-core-quick" if arguments.quick else "out-of-core", results, seed=0)


if __name__ == "__main__":
    main()
