"""Clusters of a map and their names, on data where the right ones are known."""

from __future__ import annotations

import numpy as np
import pytest

from dre.explore import build_explorer
from dre.explore.cluster_column import cluster_column
from dre.explore.clusters import find_clusters, name_clusters
from dre.explore.columns import make_column

RNG = np.random.default_rng(0)
CENTERS = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])
SIZES = (300, 200, 100)
TRUE = np.repeat([0, 1, 2], SIZES)
MAP = (CENTERS[TRUE] + RNG.normal(size=(600, 2))).astype(np.float32)
COMMON = ["the", "and", "report", "about", "today", "people"]
TOPICS = (["galaxy", "telescope", "orbit"], ["recipe", "oven", "butter"], ["goal", "referee", "stadium"])


def sentences(rng: np.random.Generator = RNG) -> np.ndarray:
    words = [[*rng.choice(COMMON, size=4), *rng.choice(TOPICS[code], size=2)] for code in TRUE]
    return np.array([f"{' '.join(each)} <br/> https://a.org/{i}" for i, each in enumerate(words)], dtype=object)


def agreement(codes: np.ndarray) -> float:
    """Share of the points that are in the cluster of most points of their own."""
    counts = np.histogram2d(TRUE, codes, bins=[np.arange(4), np.arange(-1, codes.max() + 2)])[0][:, 1:]
    return float(counts.max(1).sum() / len(TRUE))


def test_clusters_that_are_apart_are_found_and_numbered_by_size() -> None:
    codes = find_clusters(MAP)
    assert codes is not None
    assert codes.max() == 2
    assert agreement(codes) > 0.9
    assert [int(np.median(codes[each == TRUE])) for each in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("points", [RNG.normal(size=(2000, 2)), RNG.uniform(size=(2000, 2)), MAP[::40]])
def test_a_map_without_gaps_has_no_clusters(points: np.ndarray) -> None:
    assert find_clusters(points) is None


def test_points_outside_the_sample_join_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.explore.clusters.SAMPLE", 200)
    codes = find_clusters(MAP)
    assert codes is not None
    assert len(codes) == 600
    assert agreement(codes) > 0.85


def test_words_of_the_texts_name_the_clusters() -> None:
    names = name_clusters(TRUE, 3, [sentences()], None, [])
    for name, topic in zip(names, TOPICS, strict=True):
        assert set(name.split(", ")) <= set(topic), name
        assert len(name.split(", ")) >= 2


def test_forms_of_a_word_are_named_once() -> None:
    texts = np.array(["a quick fox and foxes"] * 40 + ["lazy dogs and a dog"] * 40)
    names = name_clusters(np.repeat([0, 1], 40), 2, [texts], None, [])
    assert sorted(part[:3] for part in names[0].split(", ")) == ["fox", "qui"]
    assert sorted(part[:3] for part in names[1].split(", ")) == ["dog", "laz"]


def test_features_name_the_clusters_high_low_or_medium() -> None:
    features = np.column_stack([[1.0, 5.0, 9.0], [3.0, 1.0, 9.0]])[TRUE] + RNG.normal(size=(600, 2)) * 0.3
    features = np.column_stack([features, features[:, 0] * 2 + 1, RNG.normal(size=600)])
    features[::17, 1] = np.nan
    names = name_clusters(TRUE, 3, [], features, ["mass", "speed", "weight", "luck"])
    assert names[0].startswith(("low mass", "low weight"))
    assert "low speed" in names[1] or names[1].startswith(("medium mass", "medium weight"))
    assert "high" in names[2]
    assert not any("luck" in name for name in names)
    assert not any("mass" in name and "weight" in name for name in names)  # they say the same


def test_without_texts_or_named_features_clusters_have_numbers() -> None:
    assert name_clusters(TRUE, 3, [], None, []) == ["cluster 1", "cluster 2", "cluster 3"]
    assert name_clusters(TRUE, 3, [np.array([f"id {i}" for i in range(600)])], None, []) == [
        "cluster 1",
        "cluster 2",
        "cluster 3",
    ]


def test_names_differ_and_are_short() -> None:
    features = np.where(TRUE == 2, 0.0, 5.0)[:, None] + RNG.normal(size=(600, 1)) * 0.1
    title = "a name of a feature that is far too long to stand on a map"
    names = name_clusters(TRUE, 3, [], features, [title])
    assert len(set(names)) == 3
    assert max(map(len, names)) < 45


def test_a_page_without_labels_is_colored_by_clusters() -> None:
    page = build_explorer([("s", MAP)], title="t", metadata={"text": sentences()})
    (cluster,) = (column for column in page.columns if column.name == "cluster")
    assert page.color == "cluster"
    assert cluster.names is not None
    assert len(cluster.class_names) == 3
    assert "galaxy" in cluster.names[0]
    assert cluster.explain is not None
    assert not page.maps[0].stages[0].scores  # a cluster of the map says nothing about the map


def test_a_page_with_labels_has_no_clusters_nor_has_one_that_wants_none() -> None:
    labeled = build_explorer([("s", MAP)], title="t", metadata={"topic": np.array(["a", "b", "c"])[TRUE]})
    unwanted = build_explorer([("s", MAP)], title="t", clusters=False)
    for page in (labeled, unwanted):
        assert "cluster" not in [column.name for column in page.columns]


def test_rows_with_named_columns_name_the_clusters() -> None:
    rows = np.column_stack([TRUE * 3.0, np.zeros(600)]).astype(np.float32) + RNG.normal(size=(600, 2)).astype(np.float32) * 0.1
    made = cluster_column(MAP, [], rows=rows, feature_names=["gene A", "gene B"])
    assert made is not None
    assert made.class_names == ["low gene A", "medium gene A", "high gene A"]
    unnamed = cluster_column(MAP, [make_column("cluster", np.arange(600))], rows=rows)
    assert unnamed is not None
    assert unnamed.name == "cluster of the map"
