"""Topics of IMDB reviews by BERTopic, with DRE and with its default UMAP.

python benchmarks/topics.py --data FOLDER --vectors FOLDER      write results/topics.json; FOLDER holds imdb/

The vectors are those of sentences.py. For each seed both methods run in turn, in a process where a first fit and transform of
few rows, which are not counted, have compiled what they compile. HDBSCAN and the words of topics are the same for both.
Coherence is the mean normalized pointwise mutual information (NPMI) of the pairs among a topic's ten words, in the documents of
the fit; diversity is the share of different words among all of them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from dre import DRE
from record import record
from sentences import ENCODER, REVIEWS, load_sentences

Array = np.ndarray[Any, Any]
COMPONENTS = 5
WORDS = 10
HELD_OUT = 1_000  # reviews that are embedded after the fit
WARM_UP = 4_500  # rows: beyond 4,096 umap-learn searches neighbors in another way
LEAST_DOCUMENTS = 10  # of a word


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--vectors", type=Path, metavar="FOLDER", help="folder that keeps the sentence vectors")
    options.add_argument("--reviews", type=int, default=REVIEWS)
    options.add_argument("--seeds", type=int, default=3)
    chosen = options.parse_args()
    texts, vectors, _ = load_sentences(chosen.data, chosen.vectors, chosen.reviews)
    for method in METHODS:
        make(method, 0).fit(vectors[:WARM_UP]).transform(vectors[WARM_UP : WARM_UP + HELD_OUT])
    words = Cooccurrences(texts[HELD_OUT:])
    runs = [run(method, seed, texts, vectors, words) for seed in range(chosen.seeds) for method in METHODS]
    record("topics", runs, encoder=ENCODER, reviews=len(texts) - HELD_OUT, held_out=HELD_OUT)


def make(method: str, seed: int) -> Any:
    """The reduction; UMAP has none, since it then uses one thread."""
    if method == "dre":
        return DRE(n_components=COMPONENTS, metric="cosine", random_state=seed, device="cpu", verbose=False)
    from umap import UMAP

    return UMAP(n_neighbors=15, n_components=COMPONENTS, min_dist=0.0, metric="cosine")


METHODS = ("umap", "dre")


def run(method: str, seed: int, texts: list[str], vectors: Array, words: Cooccurrences) -> dict[str, Any]:
    """Scores and seconds of one topic model."""
    from bertopic import BERTopic  # type: ignore[import-untyped]
    from sklearn.feature_extraction.text import CountVectorizer

    reduction = Timed(make(method, seed))
    vectorizer = CountVectorizer(stop_words="english", min_df=2, token_pattern=words.pattern)
    topics = BERTopic(umap_model=reduction, vectorizer_model=vectorizer)
    began = time.perf_counter()
    labels, _ = topics.fit_transform(texts[HELD_OUT:], embeddings=vectors[HELD_OUT:])
    whole = time.perf_counter() - began
    began = time.perf_counter()
    reduction.model.transform(vectors[:HELD_OUT])
    embed = time.perf_counter() - began
    found = [topic for topic in set(labels) if topic != -1]
    top = [[word for word, _ in topics.get_topic(topic)][:WORDS] for topic in found]
    scores = {
        "topics": len(found),
        "outliers": round(float(np.mean(np.asarray(labels) == -1)), 4),
        "coherence": round(float(np.mean([words.npmi(each) for each in top])), 4) if top else None,
        "diversity": round(len({word for each in top for word in each}) / max(1, sum(map(len, top))), 4),
    }
    print(method, seed, scores, round(reduction.seconds, 1), flush=True)
    seconds = {"reduce": round(reduction.seconds, 2), "all": round(whole, 2), "embed": round(embed, 2)}
    return {"method": method, "seed": seed, **scores, "seconds": seconds}


class Timed:
    """A reduction that BERTopic calls, and the seconds of its fit."""

    def __init__(self, model: Any) -> None:
        self.model, self.seconds = model, 0.0

    def fit_transform(self, X: Array, y: Any = None) -> Array:
        began = time.perf_counter()
        Y: Array = self.model.fit_transform(X)
        self.seconds = time.perf_counter() - began
        return Y

    def fit(self, X: Array, y: Any = None) -> Timed:
        self.fit_transform(X, y)
        return self

    def transform(self, X: Array) -> Array:
        Y: Array = self.model.transform(X)
        return Y


class Cooccurrences:
    """Which documents hold a word, to tell how often words meet."""

    pattern = r"(?u)\b[a-zA-Z][a-zA-Z]+\b"

    def __init__(self, texts: list[str]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        counts = CountVectorizer(binary=True, min_df=LEAST_DOCUMENTS, token_pattern=self.pattern, dtype=np.float64)
        self._in = counts.fit_transform(texts).tocsc()
        self._column, self._n = counts.vocabulary_, len(texts)

    def npmi(self, words: list[str]) -> float:
        """Mean NPMI of the pairs; -1 for two words that never meet. Words of too few documents are left out."""
        columns = [self._column[word] for word in words if word in self._column]
        if len(columns) < 2:
            return -1.0
        part = self._in[:, columns]
        together = (part.T @ part).toarray() / self._n
        alone = together.diagonal()
        heads, tails = np.triu_indices(len(columns), 1)
        p = together[heads, tails]
        met = (p > 0) & (p < 1)
        values = np.where(p >= 1, 1.0, -1.0)
        values[met] = np.log(p[met] / (alone[heads] * alone[tails])[met]) / -np.log(p[met])
        return float(values.mean())


if __name__ == "__main__":
    main()
