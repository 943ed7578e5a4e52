"""IMDB: 50,000 movie reviews, half of them positive, as texts and as 500-dimensional vectors."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dre.datasets.dataset import Array, Dataset, DatasetSplit
from dre.datasets.files import Folder, RemoteFile, cached_arrays, corrupt, decompress, find_first, read_file

SUBFOLDER = "imdb"
ARCHIVE = RemoteFile(
    "aclImdb_v1.tar.gz",
    SUBFOLDER,
    "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    "md5:7c2ac02c03563afcf9b574c7e56c153a",
)
JSON_LINES = "aclImdb_{}.jsonl.gz"  # one review per line: {"id": 0, "label": 1, "rating": 9, "text": "…"}
EXTRACTED = "aclImdb"
MEMBER = re.compile(r"(?:.*/)?(train|test)/(pos|neg)/(\d+)_(\d+)\.txt")
REVIEWS = 12_500  # of each sentiment, in each split
STARS = {1: range(7, 11), 0: range(1, 5)}  # of positive and of negative reviews

TFIDF: dict[str, Any] = {"ngram_range": (1, 2), "min_df": 10, "max_df": 0.5, "sublinear_tf": True}
SVD: dict[str, Any] = {"algorithm": "randomized", "n_iter": 5, "random_state": 0}
DESCRIPTION = """IMDB, Large Movie Review Dataset v1.0 (Maas et al. 2011): 25,000 reviews to train and 25,000 to test, half of
each positive. Rows: TF-IDF of words and word pairs (lower case, 1 + log tf, those in at least 10 training reviews and in at
most half of them, no stop words, rows of length 1), then a truncated SVD to {components} components (randomized, 5
iterations, random_state 0), both fitted on the training reviews{scaled}. Labels: sentiment (1 positive, 0 negative) and stars
(1 to 4, 7 to 10). No license is stated; the authors ask to be cited."""


class Review(NamedTuple):
    """One review of the archive."""

    split: str
    sentiment: int
    id: int
    stars: int
    text: str


@dataclass(frozen=True, eq=False)
class Reviews:
    """The reviews of one split: positive by id, then negative by id."""

    texts: list[str]
    sentiment: Array  # 1 positive, 0 negative
    stars: Array  # 1 to 4, 7 to 10


def load_imdb(folder: Folder = None, *, n_components: int = 500, unit_length: bool = False) -> Dataset:
    """Load the reviews as vectors, float32 (25000, 500) to train and to test.

    The first call takes a minute or two; the cache keeps the vectors.

    Parameters
    ----------
    folder : path, default=None
        See `dre.datasets.load`.
    n_components : int, default=500
        Components of the truncated SVD.
    unit_length : bool, default=False
        Whether to scale each row to length 1, so that distances compare directions.

    Returns
    -------
    dataset : Dataset
    """
    reviews = load_reviews(folder)
    vectors = cached_arrays("imdb", _settings(reviews, n_components), lambda: _vectorize(reviews, n_components))
    splits = []
    for split, rows in zip(reviews, (vectors["train"], vectors["test"]), strict=True):
        scaled = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) if unit_length else rows
        splits.append(DatasetSplit.from_levels(scaled.astype(np.float32), {"sentiment": split.sentiment, "stars": split.stars}))
    description = DESCRIPTION.format(components=n_components, scaled=", each row scaled to length 1" if unit_length else "")
    return Dataset("imdb", "IMDB", splits[0], splits[1], description)


def load_reviews(folder: Folder = None) -> tuple[Reviews, Reviews]:
    """Load the texts of the training and of the test reviews.

    Parameters
    ----------
    folder : path, default=None
        Folder with the archive, with its extracted folder, or with two files of JSON lines.

    Returns
    -------
    train, test : Reviews
    """
    path = find_first([JSON_LINES.format("train"), ARCHIVE.name, EXTRACTED], SUBFOLDER, folder)
    if path is None or path.name == ARCHIVE.name:
        path, reviews = Path(ARCHIVE.name), list(_read_archive(read_file(ARCHIVE, folder)))
    elif path.is_dir():
        reviews = list(_read_folder(path))
    else:
        files = {split: path.with_name(JSON_LINES.format(split)) for split in ("train", "test")}
        reviews = [review for split, file in files.items() for review in _read_json_lines(file, split)]
    reviews.sort(key=lambda review: (review.split, -review.sentiment, review.id))
    return _check_split(reviews, "train", path), _check_split(reviews, "test", path)


def _read_archive(content: bytes) -> Iterator[Review]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            match, file = MEMBER.fullmatch(member.name), archive.extractfile(member)
            if match and file:
                yield _parse_review(match, file.read())


def _read_folder(path: Path) -> Iterator[Review]:
    for file in path.glob("t*/*/*_*.txt"):
        if match := MEMBER.fullmatch(file.as_posix()):
            yield _parse_review(match, file.read_bytes())


def _parse_review(match: re.Match[str], content: bytes) -> Review:
    split, sentiment, number, stars = match.groups()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise corrupt(match.string, f"it is not UTF-8 text ({problem})", ARCHIVE.url) from problem
    return Review(split, int(sentiment == "pos"), int(number), int(stars), text)


def _read_json_lines(path: Path, split: str) -> Iterator[Review]:
    if not path.exists():
        raise corrupt(path.parent, f"{path.name} is missing", ARCHIVE.url)
    try:
        for line in decompress(path.read_bytes(), str(path), ARCHIVE.url).splitlines():
            review = json.loads(line)
            yield Review(split, int(review["label"]), int(review["id"]), int(review["rating"]), str(review["text"]))
    except (ValueError, KeyError, TypeError) as problem:
        raise corrupt(path, f"one of its lines is not a review ({problem})", ARCHIVE.url) from problem


def _check_split(reviews: list[Review], split: str, path: Path) -> Reviews:
    """Select one split; ids must run from 0 to 12,499, and stars must agree with the sentiment."""
    chosen = [review for review in reviews if review.split == split]
    for sentiment, stars in STARS.items():
        group = [review for review in chosen if review.sentiment == sentiment]
        if [review.id for review in group] != list(range(REVIEWS)) or any(review.stars not in stars for review in group):
            found = f"it has {len(group):,} {split} reviews with {stars[0]} to {stars[-1]} stars"
            raise corrupt(path, f"{found}, expected {REVIEWS:,} with ids from 0", ARCHIVE.url)
    return Reviews(
        [review.text for review in chosen],
        np.array([review.sentiment for review in chosen], dtype=np.int64),
        np.array([review.stars for review in chosen], dtype=np.int64),
    )


def _settings(reviews: tuple[Reviews, Reviews], n_components: int) -> dict[str, Any]:
    import sklearn

    digest = hashlib.sha256()
    for split in reviews:
        for text in split.texts:
            digest.update(text.encode() + b"\0")
    return {
        "content": digest.hexdigest(),
        "components": n_components,
        "words": TFIDF,
        "svd": SVD,
        "sklearn": sklearn.__version__,
    }


def _vectorize(reviews: tuple[Reviews, Reviews], n_components: int) -> dict[str, Array]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    tfidf = TfidfVectorizer(preprocessor=_preprocess, dtype=np.float32, **TFIDF)
    train, test = tfidf.fit_transform(reviews[0].texts), tfidf.transform(reviews[1].texts)
    if not n_components < train.shape[1]:
        raise ValueError(f"n_components={n_components}: the reviews have {train.shape[1]} words and word pairs; choose fewer")
    svd = TruncatedSVD(n_components, **SVD)
    return {"train": svd.fit_transform(train).astype(np.float32), "test": svd.transform(test).astype(np.float32)}


def _preprocess(text: str) -> str:
    return text.replace("<br />", " ").lower()
