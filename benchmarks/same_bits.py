"""Digests of maps and scores, to compare before and after a change that must not alter results.

python benchmarks/same_bits.py before.json
python benchmarks/same_bits.py after.json --against before.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits, load_iris

from dre import DRE
from dre.metrics import evaluate


def digest(Y: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> str:
    return hashlib.sha256(np.ascontiguousarray(Y).tobytes()).hexdigest()[:16]


def digests() -> dict[str, str]:
    """Digests of maps by the default, the fast and the paper's recipe, and every score of one map."""
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)
    found = {}
    for name, X in {"images": images[:600], "vectors": images[:400].reshape(400, -1), "table": load_iris().data}.items():
        for recipe in ("auto", "fast"):
            model = DRE(recipe, random_state=0, device="cpu").fit(X)
            found[f"{recipe}, {name}"] = digest(model.embedding_)
            found[f"{recipe}, {name}, new rows"] = digest(model.transform(X[:50]))
    schedule = (
        "x: gaussian(30, scope=batch) -> kl * 3; h1: gaussian(30, scope=batch) -> kl * 2; "
        "h3: fuzzy(15, scope=batch) -> ce(min_dist=0.001) * 2"
    )
    for name, X in {"images": images[:600], "vectors": images[:600].reshape(600, -1)}.items():
        found[f"paper, {name}"] = digest(DRE("paper", schedule=schedule, random_state=0, device="cpu").fit_transform(X))
    Y = np.random.default_rng(0).normal(size=(len(images), 2)).astype(np.float32)
    for protocol in ("standard", "paper"):
        scores = evaluate(images.reshape(len(images), -1), Y, labels, protocol=protocol)
        found |= {f"{score}, {protocol}": struct.pack("<d", float(value)).hex() for score, value in scores.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--against", type=Path, help="an earlier file; exits with 1 where a digest differs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = digests()
    given.file.write_text(json.dumps(found, indent=2) + "\n")
    if given.against is not None:
        earlier = json.loads(given.against.read_text())
        differing = sorted(name for name in earlier.keys() | found.keys() if earlier.get(name) != found.get(name))
        print("\n".join(f"differs: {name}" for name in differing) or f"all {len(found)} digests are the same")
        raise SystemExit(bool(differing))


if __name__ == "__main__":
    main()
