"""Fits one method to one data set after another, in a process of its own. The panel starts it.

    python benchmarks/panel_fit.py METHOD DEVICE [--warm]

It reads jobs from its input, a line of JSON each, and answers each with a line. It imports nothing but the method, so that the
time from the start of the process is that of the method alone. With --warm, fits of 5,000 and of 500 rows come first: each
method has other compiled paths for few and for many rows, and for sparse ones.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

WARM_ROWS = (5_000, 500)
Array = np.ndarray[Any, Any]


class Method:
    """A method by its library's defaults. ``fit`` returns the map of the rows, ``transform`` that of others."""

    _model: Any

    def __init__(self, name: str, seed: int, device: str) -> None:
        self._name, self._seed, self._device = name, seed, device

    def fit(self, rows: Any) -> Array:
        if self._name.startswith("dre"):
            from dre import DRE

            recipe = {"dre": "auto", "dre-fast": "fast"}[self._name]
            self._model = DRE(recipe, random_state=self._seed, device=self._device, verbose=False).fit(rows)
            return np.asarray(self._model.embedding_)
        rows = _flat(rows)
        if self._name == "umap":
            from umap import UMAP

            self._model = UMAP().fit(rows)  # a seed would limit it to one thread
            return np.asarray(self._model.embedding_)
        if self._name == "open-tsne":
            from openTSNE import TSNE

            self._model = TSNE(n_jobs=-1, random_state=self._seed).fit(rows)
            return np.asarray(self._model)
        if self._name == "pacmap":
            if not isinstance(rows, np.ndarray):
                raise TypeError("PaCMAP does not take sparse rows")
            from pacmap import PaCMAP

            # A seed would limit it to one thread. Its tree is needed to embed other rows.
            self._model = PaCMAP(save_tree=True).fit(rows)
            return np.asarray(self._model.embedding_)
        raise ValueError(self._name)

    def transform(self, rows: Any) -> Array:
        return np.asarray(self._model.transform(rows if self._name.startswith("dre") else _flat(rows)))


def _flat(rows: Any) -> Any:
    return rows if len(rows.shape) == 2 else rows.reshape(len(rows), -1).astype(np.float32)


def read(path: str, part: str) -> Any:
    """Read an array, or a sparse matrix from its three arrays."""
    with np.load(path) as file:
        if part in file:
            return file[part]
        from scipy.sparse import csr_matrix

        arrays = (file[f"{part}_{name}"] for name in ("data", "indices", "indptr"))
        return csr_matrix(tuple(arrays), file[f"{part}_shape"])


def warm_rows(rows: Any, count: int) -> Any:
    """Rows of the same kind, drawn with repetition and, where they are numbers of a table, shaken a little."""
    rng = np.random.default_rng(0)
    drawn = rows[rng.integers(rows.shape[0], size=count)]
    if isinstance(drawn, np.ndarray) and drawn.dtype.kind == "f":
        noise = 0.1 * rows.std() * rng.standard_normal(drawn.shape)
        return drawn + noise.astype(drawn.dtype)
    return drawn


def peak_mb() -> float:
    """Peak memory of this process since it started, in MB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1000 for line in file if line.startswith("VmHWM"))


def warm_up(name: str, device: str, rows: Any) -> None:
    for count in WARM_ROWS:
        method = Method(name, 0, device)
        method.fit(warm_rows(rows, count))
        method.transform(warm_rows(rows, 100))


def work(name: str, device: str, job: dict[str, Any]) -> dict[str, Any]:
    """Fit the rows of a job and, where they are to be embedded, the held-out rows."""
    rows, method = read(job["data"], "rows"), Method(name, job["seed"], device)
    began = time.perf_counter()
    maps: dict[str, Any] = {"rows": method.fit(rows)}
    found: dict[str, Any] = {"fit_seconds": time.perf_counter() - began, "fitted_at": time.time(), "peak_mb": peak_mb()}
    if job["embed"]:
        test_rows = read(job["data"], "test_rows")
        began = time.perf_counter()
        maps["test_rows"] = method.transform(test_rows)
        found["transform_seconds"] = time.perf_counter() - began
    np.savez(job["out"], **maps)
    return found


def main() -> None:
    name, device = sys.argv[1:3]
    warm: set[str] = set()
    for line in sys.stdin:
        job = json.loads(line)
        try:
            if "--warm" in sys.argv and job["kind"] not in warm:
                warm_up(name, device, read(job["data"], "rows"))
                warm.add(job["kind"])
            answer = work(name, device, job)
        except Exception as problem:  # any failure of a library is a result
            answer = {"failed": f"{type(problem).__name__}: {problem}"[:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
