"""The data sets of the panel: training and held-out rows with labels, for each of three splits."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
SPLITS = 3
TEST_SHARE = 0.25
SMALLEST_CLASS = 4  # members: fewer can't be split
WORDS = 20_000
SCORED = {"imdb": 3_000}  # held-out rows that are scored, where all of them would take too long
TABLES = (
    "ecoli", "seeds", "har", "segment", "optdigits", "wine_quality", "pendigits", "mapping", "dry_bean", "letter",
)  # fmt: skip
IN_ONE_UNIT = ("har",)  # taken as they are; the columns of the others are standardized


class Split(NamedTuple):
    """Rows to fit and rows that are held out."""

    rows: Any  # (n, ...), dense or sparse
    labels: Array
    test_rows: Any
    test_labels: Array


def load(name: str, split: int, folder: Path) -> Split:
    """Load one split of a data set. Those with an official split have the same rows in all three."""
    return DATA[name](name, split, folder)


def _scikit_learn(name: str, split: int, folder: Path) -> Split:
    from sklearn import datasets

    base = name.removesuffix("-images")
    found = getattr(datasets, f"load_{base}")()
    if base == "digits":
        return stratified(found.images if name != base else found.data, found.target, split)
    return stratified(_standardized(found.data), found.target, split)


def _table(name: str, split: int, folder: Path) -> Split:
    with np.load(folder / "tables" / f"{name}.npz") as file:
        rows, labels = file["X"].astype(np.float64), file["y"]
    if name not in IN_ONE_UNIT:
        rows = _standardized(rows)
    if name == "letter":  # the customary split
        return Split(rows[:16_000], labels[:16_000], rows[16_000:], labels[16_000:])
    return stratified(rows, labels, split)


def _cells(name: str, split: int, folder: Path) -> Split:
    from sklearn.decomposition import PCA

    from dre.datasets.scrna import CBMC, COMPONENTS, PBMC, TARGET_SUM

    counts, labels = {"pbmc": PBMC, "cbmc": CBMC}[name].read(folder)
    found = stratified(np.log1p(counts / counts.sum(1, keepdims=True) * TARGET_SUM), labels, split)
    pca = PCA(COMPONENTS, random_state=0).fit(found.rows)
    return found._replace(rows=pca.transform(found.rows), test_rows=pca.transform(found.test_rows))


def _images(name: str, split: int, folder: Path) -> Split:
    return _official_images(name, folder)


@lru_cache(maxsize=1)
def _official_images(name: str, folder: Path) -> Split:
    from dre.datasets import load as load_dataset

    base, _, components = name.partition("-pca")
    data = load_dataset(base, folder=folder)
    found = Split(data.train.rows, data.train.labels, data.test.rows, data.test.labels)
    if not components:
        return found
    from sklearn.decomposition import PCA

    rows, test_rows = (part.reshape(len(part), -1).astype(np.float32) / 255 for part in (found.rows, found.test_rows))
    pca = PCA(int(components), random_state=0).fit(rows)
    return found._replace(rows=pca.transform(rows), test_rows=pca.transform(test_rows))


def _texts(name: str, split: int, folder: Path) -> Split:
    return _official_texts(folder)


@lru_cache(maxsize=1)
def _official_texts(folder: Path) -> Split:
    from sklearn.feature_extraction.text import TfidfVectorizer

    def read(part: str) -> tuple[list[str], Array]:
        with gzip.open(folder / "imdb" / f"aclImdb_{part}.jsonl.gz", "rt") as file:
            lines = [json.loads(line) for line in file]
        return [line["text"] for line in lines], np.array([line["label"] for line in lines])

    (texts, labels), (test_texts, test_labels) = read("train"), read("test")
    vectorizer = TfidfVectorizer(max_features=WORDS, dtype=np.float32).fit(texts)
    return Split(vectorizer.transform(texts), labels, vectorizer.transform(test_texts), test_labels)


def _standardized(rows: Array) -> Array:
    std = rows.std(0)
    scaled: Array = (rows - rows.mean(0)) / np.where(std > 0, std, 1)
    return scaled


def stratified(rows: Array, labels: Array, split: int) -> Split:
    """Split rows at random, with the same share of each class in both parts."""
    from sklearn.model_selection import train_test_split

    _, member, counts = np.unique(labels, return_inverse=True, return_counts=True)
    kept = np.flatnonzero(counts[member] >= SMALLEST_CLASS)
    fitted, held_out = train_test_split(kept, test_size=TEST_SHARE, stratify=labels[kept], random_state=split)
    return Split(rows[fitted], labels[fitted], rows[held_out], labels[held_out])


Loader = Callable[[str, int, Path], Split]
DATA: dict[str, Loader] = {
    **dict.fromkeys(("iris", "wine", "breast_cancer", "digits", "digits-images"), _scikit_learn),
    **dict.fromkeys(TABLES, _table),
    **dict.fromkeys(("pbmc", "cbmc"), _cells),
    **dict.fromkeys(("mnist-pca50", "fashion-mnist-pca50", "mnist", "fashion-mnist"), _images),
    "imdb": _texts,
}
