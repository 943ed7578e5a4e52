"""The comparison on data of one's own: methods side by side on the same held-out rows, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from dre.bench.measure import Result, measure
from dre.bench.plan import Data, Job, Method, Run
from dre.bench.plans import Plans
from dre.datasets import Dataset, Part
from dre.inputs import check_array
from dre.metrics.points import check_row_names

Array = np.ndarray[Any, Any]
# The order of the table, and what of it must be installed. Those that embed new rows: the table is of held-out rows.
USUAL = {"pca": None, "umap": "umap", "open-tsne": "openTSNE", "deep-tsne": None, "dre": None}
SCORES = (
    "nearest_neighbor",
    "neighborhood_hit",
    "trustworthiness",
    "continuity",
    "shepard_goodness",
    "silhouette",
    "centroid_correlation",
)
OURS = "yours"
DEEP_TSNE = Run("deep-tsne", "dre", {"recipe": "deep-tsne"})  # on any machine; the paper's own is "dre-paper"


@dataclass(frozen=True)
class Compared:
    """Printed, a table. ``results`` has the record and the maps of each method; ``picture()`` draws them."""

    dataset: Dataset
    results: dict[str, Result]
    failed: dict[str, str]

    def rows(self) -> list[dict[str, Any]]:
        """One record per method, ready for ``pandas.DataFrame``."""
        found = []
        for name, result in self.results.items():
            record = result.record
            scores = {score: value for score, value in record["stages"][-1]["scores"].items() if score in SCORES}
            in_order = {score: scores[score] for score in SCORES if score in scores}
            times = {"fit_seconds": record["fit_seconds"], "transform_seconds": record["transform_seconds"]}
            found.append({"method": name, "in_sample": record["in_sample"], **in_order, **times})
        return found

    def __str__(self) -> str:
        rows = self.rows()
        if not rows:
            return "no method ran"
        names = [name for name in rows[0] if name not in ("method", "in_sample")]
        wide = [max(11, len(_head(name)) + 2) for name in names]
        lines = [f"{'':22s}" + "".join(f"{_head(name):>{w}s}" for name, w in zip(names, wide, strict=True))]
        for row in rows:
            name = row["method"] + (" (in-sample)" if row["in_sample"] else "")
            lines.append(f"{name:22s}" + "".join(f"{_cell(row.get(n)):>{w}s}" for n, w in zip(names, wide, strict=True)))
        held = "1-NN against the training rows" if self.dataset.test.levels else "no labels: scores that need them are left out"
        counts = [part.rows.shape[0] for part in (self.dataset.train, self.dataset.test)]
        lines.append(f"\nfitted to {counts[0]:,} rows, scored on {counts[1]:,} held-out rows; {held}")
        lines += [f"{name} did not run: {problem}" for name, problem in self.failed.items()]
        return "\n".join(lines)

    def picture(self) -> Any:
        """The map of the held-out rows by every method, side by side; a matplotlib figure."""
        from dre.plot import scatter
        from dre.plot.look import panels

        figure, axes = panels(len(self.results), 4.2, 4.5)
        labels = self.dataset.test.labels if self.dataset.test.levels else None
        for axis, (name, result) in zip(axes, self.results.items(), strict=True):
            stages = [stage for stage in result.maps if stage.startswith("test-")]
            score = result.record["stages"][-1]["scores"].get("nearest_neighbor")
            beside = "" if score is None else f", 1-NN {score:.3f}".replace("0.", ".")
            scatter(result.maps[stages[-1]], labels, title=f"{name}{beside}", ax=axis)
        return figure


def usual_methods() -> list[str]:
    """Those of the usual ones that are installed."""
    return [name for name, library in USUAL.items() if library is None or find_spec(library) is not None]


def compare(
    X: Any,
    labels: Any = None,
    *,
    methods: Sequence[str] | None = None,
    test_size: float = 0.25,
    random_state: int = 0,
    device: str = "auto",
    say: Callable[[str], None] | None = None,
) -> Compared:
    """Fit every method to the same training rows of X, and score its map of the same held-out rows.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 9))
    >>> X[:50, 0] += 20
    >>> found = compare(X, ["left"] * 50 + ["right"] * 50, methods=["pca"])
    >>> found.rows()[0]["nearest_neighbor"] > 0.9
    True

    ``methods`` are names of ``dre.baselines``; by default the usual ones that are installed. ``say`` is told what is going on.
    """
    dataset = split(X, labels, test_size, random_state)
    names = list(usual_methods() if methods is None else methods)
    plans = _plans(names)
    results, failed = {}, {}
    for name in names:
        if say is not None:
            say(f"fitting {name}")
        try:
            results[name] = measure(Job(OURS, name, random_state), plans, dataset, device=device)
        except ImportError as problem:
            failed[name] = str(problem)
    return Compared(dataset, results, failed)


def split(X: Any, labels: Any, test_size: float, random_state: int) -> Dataset:
    """Training and test rows, every class in both in its proportion where that can be."""
    from sklearn.model_selection import train_test_split

    rows = check_array(X, "X")
    check_row_names(X=X, labels=labels)
    if labels is None:
        train, test = train_test_split(np.arange(rows.shape[0]), test_size=test_size, random_state=random_state)
        parts = [Part(rows[ids], np.zeros(len(ids), int), {}) for ids in (train, test)]
        return Dataset(OURS, "your data", parts[0], parts[1], "")
    known = np.asarray(labels)
    if known.shape != (rows.shape[0],):
        raise ValueError(f"labels have the shape {known.shape}, but X has {rows.shape[0]} rows: pass one label per row")
    _, counts = np.unique(known, return_counts=True)
    stratify = known if counts.min() >= 2 and len(counts) <= min(test_size, 1 - test_size) * len(known) else None
    train, test = train_test_split(np.arange(len(known)), test_size=test_size, random_state=random_state, stratify=stratify)
    parts = [Part(rows[ids], known[ids], {"label": known[ids]}) for ids in (train, test)]
    return Dataset(OURS, "your data", parts[0], parts[1], "")


def _plans(names: Sequence[str]) -> Plans:
    runs = {name: DEEP_TSNE if name == "deep-tsne" else Run(name, name) for name in names}
    methods = {name: Method(name, name, name) for name in names}
    return Plans({OURS: Data(OURS, "your data", OURS, protocol="standard")}, runs, methods, (), (), ())


def _head(name: str) -> str:
    short = {"nearest_neighbor": "1-NN", "fit_seconds": "fit, s", "transform_seconds": "embed, s"}
    return short.get(name, name.replace("_", " "))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
