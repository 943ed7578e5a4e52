"""BERTopic with DRE in place of UMAP: the real class, on made-up sentence vectors."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre import DRE

bertopic = pytest.importorskip("bertopic", reason="needs bertopic")
hdbscan = pytest.importorskip("hdbscan", reason="needs hdbscan")

SUBJECTS = {
    "ship": "sea captain sailor storm harbor anchor deck wave island",
    "court": "judge lawyer jury trial verdict witness prison law crime",
    "music": "band guitar singer concert song stage drummer record piano",
    "space": "planet rocket astronaut orbit star galaxy alien moon crew",
}
EACH = 60
DIMENSIONS = 48


def corpus(names: list[str], seed: int) -> tuple[list[str], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Documents of these subjects, their vectors of length 1, and the subject of each."""
    rng, center = np.random.default_rng(seed), np.random.default_rng(9).normal(size=(len(SUBJECTS), DIMENSIONS))
    numbers = np.repeat([list(SUBJECTS).index(name) for name in names], EACH)
    words = [SUBJECTS[list(SUBJECTS)[k]].split() for k in numbers]
    documents = [" ".join(rng.choice(each, 6)) for each in words]
    vectors = center[numbers] + 0.6 * rng.normal(size=(len(numbers), DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return documents, vectors.astype(np.float32), numbers


def topic_model(**options: Any) -> Any:
    dre = DRE("fast", n_components=5, metric="cosine", random_state=0, device="cpu")
    return bertopic.BERTopic(umap_model=dre, min_topic_size=15, **options)


def purity(topics: Any, subjects: Any) -> float:
    """Share of the documents whose subject is the most frequent one of their topic; outliers count as wrong."""
    topics, subjects = np.asarray(topics), np.asarray(subjects)
    right = sum(np.bincount(subjects[topics == topic]).max() for topic in set(topics.tolist()) - {-1})
    return float(right / len(topics))


@pytest.fixture(scope="module")
def fitted() -> Any:
    documents, vectors, subjects = corpus(list(SUBJECTS), seed=0)
    model = topic_model()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        topics, _ = model.fit_transform(documents, embeddings=vectors)
    return model, topics, subjects


def test_topics_are_the_subjects_and_their_words(fitted: Any) -> None:
    model, topics, subjects = fitted
    assert purity(topics, subjects) > 0.9
    found = {name for name, words in SUBJECTS.items() for topic in set(topics) - {-1}
             if {word for word, _ in model.get_topic(topic)} <= set(words.split()) | {""}}  # fmt: skip
    assert found == set(SUBJECTS)


def test_new_documents_get_the_topic_of_their_subject(fitted: Any) -> None:
    model, topics, subjects = fitted
    documents, vectors, new_subjects = corpus(list(SUBJECTS), seed=1)
    new_topics, _ = model.transform(documents, embeddings=vectors)
    of_subject = [np.bincount(np.asarray(topics)[(subjects == k) & (np.asarray(topics) >= 0)]).argmax() for k in range(4)]
    assert np.mean(np.asarray(new_topics) == np.asarray(of_subject)[new_subjects]) > 0.85


@pytest.mark.parametrize("serialization", ["pickle", "safetensors", "pytorch"])
def test_a_saved_model_gives_the_same_topics(fitted: Any, serialization: str, tmp_path: Path) -> None:
    model, _, _ = fitted
    documents, vectors, _ = corpus(list(SUBJECTS), seed=2)
    path = str(tmp_path / "topics")
    model.save(path, serialization=serialization, save_ctfidf=serialization != "pickle")
    loaded = bertopic.BERTopic.load(path)
    assert loaded.topics_ == model.topics_
    if serialization == "pickle":  # the others keep the topics' vectors, and neither UMAP nor what stands for it
        expected, _ = model.transform(documents, embeddings=vectors)
        found, _ = loaded.transform(documents, embeddings=vectors)
        assert list(found) == list(expected)
    else:
        found, _ = loaded.transform(documents, embeddings=vectors)
        assert purity(found, corpus(list(SUBJECTS), seed=2)[2]) > 0.85


@pytest.mark.slow
def test_partial_fit_adds_a_subject_and_keeps_the_others() -> None:
    from bertopic.vectorizers import OnlineCountVectorizer
    from sklearn.cluster import MiniBatchKMeans

    names = list(SUBJECTS)
    model = bertopic.BERTopic(
        umap_model=DRE("fast", n_components=5, metric="cosine", random_state=0, device="cpu"),
        hdbscan_model=MiniBatchKMeans(4, random_state=0, n_init=3),
        vectorizer_model=OnlineCountVectorizer(),
    )
    documents, vectors, _ = corpus(names[:3], seed=0)
    model.partial_fit(documents, embeddings=vectors)
    before = model.umap_model.transform(vectors)
    more, more_vectors, _ = corpus(names[2:], seed=1)
    model.partial_fit(more, embeddings=more_vectors)
    after = model.umap_model.transform(vectors)
    moved = np.linalg.norm(after - before, axis=1)
    assert np.median(moved) < 0.1 * np.sqrt(before.var(0).sum())
    new = model.umap_model.transform(more_vectors[EACH:])
    distances = np.linalg.norm(new[:, None] - after[None], axis=2).min(1)
    assert np.median(distances) > np.median(np.linalg.norm(new - new.mean(0), axis=1))  # apart from what was there


@pytest.mark.parametrize("y", ["all missing", "some"])
def test_labels_of_semi_supervised_topics_do_no_harm(y: str) -> None:
    documents, vectors, subjects = corpus(list(SUBJECTS), seed=0)
    labels = np.full(len(subjects), -1) if y == "all missing" else np.where(np.arange(len(subjects)) % 2, subjects, -1)
    model = topic_model()
    topics, _ = model.fit_transform(documents, embeddings=vectors, y=labels)
    assert purity(topics, subjects) > 0.9


@pytest.mark.slow
def test_topics_can_be_reduced_and_drawn(fitted: Any) -> None:
    documents, vectors, _ = corpus(list(SUBJECTS), seed=0)
    model = topic_model()
    model.fit(documents, embeddings=vectors)
    plane = DRE("fast", metric="cosine", random_state=0, device="cpu").fit_transform(vectors)
    figure = model.visualize_documents(documents, reduced_embeddings=plane, hide_document_hover=True)
    assert len(figure.data) > 4
    model.reduce_topics(documents, nr_topics=3)
    assert len(set(model.topics_) - {-1}) <= 3
    other = topic_model()
    other.fit(documents, embeddings=vectors)
    assert bertopic.BERTopic.merge_models([model, other]).topics_
