"""IMDB: 50,000 reviews of films, half of them praise; as texts, and as 500-dimensional vectors."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre.datasets.dataset import Array, Dataset, Part
from dre.datasets.files import File, Folder, corrupt, first, read, unpacked
from dre.datasets.remembered import remembered

SUBFOLDER = "imdb"
ARCHIVE = File(
    "aclImdb_v1.tar.gz",
    SUBFOLDER,
    "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    "md5:7c2ac02c03563afcf9b574c7e56c153a",
)
LINES = "aclImdb_{}.jsonl.gz"  # of "train" and "test": a line per review, {"id": 0, "label": 1, "rating": 9, "text": "…"}
EXTRACTED = "aclImdb"
MEMBER = re.compile(r"(?:.*/)?(train|test)/(pos|neg)/(\d+)_(\d+)\.txt")
REVIEWS = 12_500  # of each sentiment, in each part
STARS = {1: range(7, 11), 0: range(1, 5)}

WORDS: dict[str, Any] = {"ngram_range": (1, 2), "min_df": 10, "max_df": 0.5, "sublinear_tf": True}
SVD: dict[str, Any] = {"algorithm": "randomized", "n_iter": 5, "random_state": 0}
ABOUT = """IMDB, Large Movie Review Dataset v1.0 (Maas et al. 2011): 25,000 reviews to train and 25,000 to test, half of each
praise. Rows: TF-IDF of words and pairs of words (lower case, 1 + log tf, those in 10 training reviews or more and in at most
half of them, no list of stop words, rows of length 1), then a truncated SVD to {components} components (randomised, 5
iterations, random_state 0), both fitted on the training reviews{scaled}. Labels: sentiment (1 praise, 0 not) and stars (1 to 4,
7 to 10). No licence is stated; its authors ask to be cited."""

Review = tuple[str, int, int, int, str]  # part, sentiment, id, stars, text


@dataclass(frozen=True, eq=False)
class Reviews:
    """In the order of the archive: praise by id, then the others by id."""

    texts: list[str]
    sentiment: Array  # 1 praise, 0 not
    stars: Array  # 1 to 4, 7 to 10


def load(folder: Folder = None, *, components: int = 500, unit_length: bool = False) -> Dataset:
    """Vectors float32 (25000, 500) twice; ``unit_length`` scales each to length 1, so that distances compare directions.

    Fitting takes a minute or two, once: the vectors are kept in the cache.
    """
    reviews = texts(folder)
    vectors = remembered("imdb", _settings(reviews, components), lambda: _vectors(reviews, components))
    parts = []
    for part, rows in zip(reviews, (vectors["train"], vectors["test"]), strict=True):
        scaled = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) if unit_length else rows
        parts.append(Part.of(scaled.astype(np.float32), {"sentiment": part.sentiment, "stars": part.stars}))
    about = ABOUT.format(components=components, scaled=", each row scaled to length 1" if unit_length else "")
    return Dataset("imdb", "IMDB", parts[0], parts[1], about)


def texts(folder: Folder = None) -> tuple[Reviews, Reviews]:
    """The reviews themselves, to train and to test: of the archive, of the folder in it, or of two files of JSON lines."""
    path = first([LINES.format("train"), ARCHIVE.name, EXTRACTED], SUBFOLDER, folder)
    if path is None or path.name == ARCHIVE.name:
        path, found = Path(ARCHIVE.name), list(_from_archive(read(ARCHIVE, folder)))
    elif path.is_dir():
        found = list(_from_folder(path))
    else:
        found = [review for part in ("train", "test") for review in _from_lines(path.with_name(LINES.format(part)), part)]
    found.sort(key=lambda review: (review[0], -review[1], review[2]))
    return _checked(found, "train", path), _checked(found, "test", path)


def _from_archive(content: bytes) -> Iterator[Review]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            match, file = MEMBER.fullmatch(member.name), archive.extractfile(member)
            if match and file:
                yield _review(match, file.read())


def _from_folder(path: Path) -> Iterator[Review]:
    for file in path.glob("t*/*/*_*.txt"):
        if match := MEMBER.fullmatch(file.as_posix()):
            yield _review(match, file.read_bytes())


def _review(match: re.Match[str], content: bytes) -> Review:
    part, kind, number, stars = match.groups()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise corrupt(match.string, f"it is no text in UTF-8 ({problem})", ARCHIVE.url) from problem
    return part, int(kind == "pos"), int(number), int(stars), text


def _from_lines(path: Path, part: str) -> Iterator[Review]:
    if not path.exists():
        raise corrupt(path.parent, f"{path.name} is missing beside its other half", ARCHIVE.url)
    try:
        for line in unpacked(path.read_bytes(), str(path), ARCHIVE.url).splitlines():
            review = json.loads(line)
            yield part, int(review["label"]), int(review["id"]), int(review["rating"]), str(review["text"])
    except (ValueError, KeyError, TypeError) as problem:
        raise corrupt(path, f"a line of it is no review ({problem})", ARCHIVE.url) from problem


def _checked(found: list[Review], part: str, path: Path) -> Reviews:
    """The reviews of one part, if they are all there: ids from 0 to 12,499, praise with 7 stars or more."""
    chosen = [review for review in found if review[0] == part]
    for kind, stars in STARS.items():
        group = [review for review in chosen if review[1] == kind]
        if [review[2] for review in group] != list(range(REVIEWS)) or any(review[3] not in stars for review in group):
            said = f"of the {part} reviews with {stars[0]} to {stars[-1]} stars {len(group):,} were found"
            raise corrupt(path, f"{said}, expected {REVIEWS:,} with ids from 0", ARCHIVE.url)
    sentiment, stars_given = (np.array([review[i] for review in chosen], dtype=np.int64) for i in (1, 3))
    return Reviews([review[4] for review in chosen], sentiment, stars_given)


def _settings(reviews: tuple[Reviews, Reviews], components: int) -> dict[str, Any]:
    import sklearn

    digest = hashlib.sha256()
    for part in reviews:
        for text in part.texts:
            digest.update(text.encode() + b"\0")
    return {"content": digest.hexdigest(), "components": components, "words": WORDS, "svd": SVD, "sklearn": sklearn.__version__}


def _vectors(reviews: tuple[Reviews, Reviews], components: int) -> dict[str, Array]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(preprocessor=_plain, dtype=np.float32, **WORDS)
    train, test = words.fit_transform(reviews[0].texts), words.transform(reviews[1].texts)
    if not components < train.shape[1]:
        raise ValueError(f"components={components}: the reviews have {train.shape[1]} words and pairs; ask for fewer")
    svd = TruncatedSVD(components, **SVD)
    return {"train": svd.fit_transform(train).astype(np.float32), "test": svd.transform(test).astype(np.float32)}


def _plain(text: str) -> str:
    return text.replace("<br />", " ").lower()
