"""The metrics: speed and memory against scikit-learn and ZADU, full size on a GPU, and the paper's protocol on PCA.

    python benchmarks/metrics.py speed --data FOLDER     trustworthiness beside scikit-learn's, each in a process of its own
    python benchmarks/metrics.py zadu --data FOLDER      all beside ZADU's
    python benchmarks/metrics.py gpu --data FOLDER       all at 60,000 rows
    python benchmarks/metrics.py paper --data FOLDER     PCA of the MNIST test images, fitted on the training images

FOLDER holds MNIST as published. The rows are its images in float64, the map their first two principal components: a poor map,
for which ranks are high and float32 leaves many open.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA

from dre.compare.memory import PeakMemory
from dre.datasets import mnist
from dre.metrics import continuity, evaluate, trustworthiness
from record import record

Array = np.ndarray[Any, Any]
Work = Callable[[Array, Array, Array], Any]
K = 7
SIZES = (2_000, 5_000, 10_000, 20_000)
REPEATS = {2_000: 5, 5_000: 5, 10_000: 5}  # runs of trustworthiness, of which the best counts; everything else runs once
# What Table 1 of the paper has for PCA on MNIST.
PRINTED = {
    "neighborhood_hit": 0.47,
    "trustworthiness": 0.74,
    "continuity": 0.94,
    "one_minus_stress": 0.42,
    "shepard_goodness": 0.50,
}
WARM_UP = 500  # rows of an untimed first run, for imports and compilation


def dre_trustworthiness(X: Array, Y: Array, labels: Array) -> Any:
    return trustworthiness(X, Y, k=K, device="cpu")


def scikit_learn(X: Array, Y: Array, labels: Array) -> Any:
    from sklearn.manifold import trustworthiness as sklearn_trustworthiness

    return sklearn_trustworthiness(X, Y, n_neighbors=K)


def scikit_learn_float32(X: Array, Y: Array, labels: Array) -> Any:
    return scikit_learn(X.astype(np.float32), Y.astype(np.float32), labels)


def dre_trustworthiness_and_continuity(X: Array, Y: Array, labels: Array) -> Any:
    return trustworthiness(X, Y, k=K, device="cpu"), continuity(X, Y, k=K, device="cpu")


def dre_all(X: Array, Y: Array, labels: Array) -> Any:
    return dict(evaluate(X, Y, labels, k=K, device="cpu"))


def zadu_all(X: Array, Y: Array, labels: Array) -> Any:
    """The scores that ZADU has: trustworthiness, continuity, stress, Spearman's ρ, neighborhood hit."""
    from zadu import zadu

    parts = [
        {"id": "tnc", "params": {"k": K}},
        {"id": "stress", "params": {}},
        {"id": "srho", "params": {}},
        {"id": "nh", "params": {"k": K}},
    ]
    return zadu.ZADU(parts, X).measure(Y, labels)


WORK: dict[str, Work] = {
    "trustworthiness, dre": dre_trustworthiness,
    "trustworthiness, scikit-learn": scikit_learn,
    "trustworthiness, scikit-learn in float32": scikit_learn_float32,
    "all, dre": dre_all,
    "all, ZADU": zadu_all,
    "trustworthiness and continuity, dre": dre_trustworthiness_and_continuity,
}


def rows_and_map(folder: Path, n: int) -> tuple[Array, Array, Array]:
    train = mnist.load_mnist(folder).train
    images, labels = train.rows, train.labels
    rows = images[:n].reshape(n, -1) / 255.0
    sample = rows[:: max(1, n // 5000)]
    return rows, PCA(2, random_state=0).fit(sample).transform(rows), labels[:n]


def measure(name: str, folder: Path, n: int) -> dict[str, Any]:
    """Measure in this process: the best time, and memory in addition to data and libraries."""
    X, Y, labels = rows_and_map(folder, n)
    WORK[name](X[:WARM_UP], Y[:WARM_UP], labels[:WARM_UP])
    with PeakMemory() as peak:  # first run only: memory that the allocator keeps would add up
        seconds, value = timed(name, X, Y, labels)
    again = REPEATS.get(n, 1) - 1 if name.startswith("trustworthiness, ") else 0
    seconds = min([seconds, *(timed(name, X, Y, labels)[0] for _ in range(again))])
    return {"work": name, "n": n, "seconds": seconds, "peak_mb": peak.host_mb, "value": value}


def timed(name: str, X: Array, Y: Array, labels: Array) -> tuple[float, Any]:
    began = time.perf_counter()
    value = WORK[name](X, Y, labels)
    return time.perf_counter() - began, value


def in_its_own_process(name: str, folder: Path, n: int, kernels: str | None = None) -> dict[str, Any]:
    command = [sys.executable, __file__, "one", "--data", str(folder), "--work", name, "--n", str(n)]
    chosen = {} if kernels is None else {"OPENBLAS_CORETYPE": kernels}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **chosen})
    if done.returncode == -signal.SIGSEGV and kernels is None:
        # OpenBLAS 0.3.31 crashes in A @ A.T from 16,000 rows on, with its kernels for some processors; not with these.
        return in_its_own_process(name, folder, n, "Haswell")
    if done.returncode:
        print(f"{name:45s}{n:8,d} ended with {done.returncode}\n{done.stderr[-500:]}", flush=True)
        return {"work": name, "n": n, "failed": done.returncode}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1]) | chosen
    print(f"{name:45s}{n:8,d}{found['seconds']:9.2f} s{found['peak_mb']:10,.0f} MB  {found['value']} {chosen}", flush=True)
    return found


def speed(folder: Path) -> None:
    runs = [(name, n) for name in list(WORK)[:3] for n in SIZES]
    runs.append(("trustworthiness and continuity, dre", 60_000))
    results = [in_its_own_process(name, folder, n) for name, n in runs]
    record("metrics-speed", results, k=K, precision="rows and map in float64", threads=torch.get_num_threads())


def zadu(folder: Path) -> None:
    results = []
    for name, n in [*(("all, dre", n) for n in (*SIZES, 60_000)), *(("all, ZADU", n) for n in SIZES)]:
        results.append(in_its_own_process(name, folder, n))
        record("metrics-zadu", results, k=K, precision="rows and map in float64", threads=torch.get_num_threads())


def gpu(folder: Path) -> None:
    train = mnist.load_mnist(folder).train
    images, labels = train.rows, train.labels
    results = []
    for dtype in (np.float32, np.float64):
        X = (images.reshape(60_000, -1) / 255.0).astype(dtype)
        Y = PCA(2, random_state=0).fit_transform(X)
        evaluate(X[:WARM_UP], Y[:WARM_UP], labels[:WARM_UP], device="cuda")
        seconds = []
        for _ in range(5):
            torch.cuda.reset_peak_memory_stats()
            began = time.perf_counter()
            found = evaluate(X, Y, labels, k=K, device="cuda")
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - began)
        gib = torch.cuda.max_memory_allocated() / 2**30
        results.append({"n": 60_000, "dtype": dtype.__name__, "seconds": seconds, "peak_gib": gib, "value": dict(found)})
        print(results[-1], flush=True)
    record("metrics-gpu", results, k=K)


def paper(folder: Path) -> None:
    data = mnist.load_mnist(folder)
    images, test_images, test_labels = data.train.rows, data.test.rows, data.test.labels
    pca = PCA(2, random_state=0).fit(images.reshape(60_000, -1) / 255.0)
    X = test_images.reshape(10_000, -1) / 255.0
    Y = pca.transform(X)
    results = {protocol: dict(evaluate(X, Y, test_labels, k=K, protocol=protocol)) for protocol in ("paper", "standard")}
    print(json.dumps(results, indent=1))
    record("metrics-paper", results, k=K, printed=PRINTED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "zadu", "gpu", "paper", "one"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", choices=WORK)
    parser.add_argument("--n", type=int)
    options = parser.parse_args()
    if options.what == "one":
        print(json.dumps(measure(options.work, options.data, options.n)))
    else:
        {"speed": speed, "zadu": zadu, "gpu": gpu, "paper": paper}[options.what](options.data)


if __name__ == "__main__":
    main()
