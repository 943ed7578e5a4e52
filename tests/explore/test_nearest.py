"""Nearest rows in the data, and the vectors between which they are measured."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from dre.data.subsample import evenly_spaced_ids
from dre.explore import build_explorer
from dre.explore.measured import measure_rows
from dre.explore.nearest import mean_kept, nearest_in_data
from dre.explore.trust import point_trust
from dre.metrics import trustworthiness

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 300)).astype(np.float32) * np.linspace(5, 0.1, 300, dtype=np.float32)


def truth(rows: np.ndarray, k: int = 10, metric: str = "euclidean") -> np.ndarray:
    return NearestNeighbors(n_neighbors=k, metric=metric).fit(rows).kneighbors(return_distance=False)


def test_few_rows_are_searched_exactly() -> None:
    found = nearest_in_data(ROWS)
    assert found.recall == 1
    assert found.ids.dtype == np.uint16
    assert (found.ids == truth(ROWS)).mean() > 0.999


def test_candidates_in_principal_components_are_compared_by_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.explore.nearest.EXACT_UP_TO", 0)
    found = nearest_in_data(measure_rows(ROWS).vectors)
    expected = truth(ROWS)
    overlap = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.ids, expected, strict=True)])
    assert overlap > 0.9
    assert found.recall == pytest.approx(overlap, abs=0.05)
    rows = ROWS[found.ids.astype(int)] - ROWS[:, None]
    assert (np.diff((rows**2).sum(2), axis=1) >= -1e-3).all()  # nearest first


def test_the_metric_is_that_of_the_model() -> None:
    scaled = ROWS * RNG.uniform(0.1, 9, size=(400, 1)).astype(np.float32)
    found = nearest_in_data(measure_rows(scaled, "cosine").vectors)
    assert (found.ids == truth(scaled, metric="cosine")).mean() > 0.99


def test_fewer_rows_than_neighbors() -> None:
    assert nearest_in_data(ROWS[:5]).ids.shape == (5, 4)


def test_wide_rows_are_projected_and_keep_their_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = RNG.normal(size=(60, 3000)).astype(np.float32)
    sparse = scipy.sparse.csr_matrix(wide)
    assert measure_rows(sparse).vectors == pytest.approx(wide - wide.mean(0), abs=1e-5)
    monkeypatch.setattr("dre.explore.measured.MAX_VALUES", 60 * 1000)
    made = measure_rows(sparse)
    assert made.is_projected
    assert made.vectors.shape == (60, 512)
    apart = [np.linalg.norm(each[:1] - each[1:], axis=1) for each in (wide, made.vectors)]
    assert apart[1] / apart[0] == pytest.approx(1, abs=0.15)


def test_a_page_keeps_neighbors_unless_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    embedding = ROWS[:, :2]
    page = build_explorer([("s", embedding)], title="t", rows=ROWS)
    assert page.neighbors is not None
    assert page.neighbors.ids.shape == (400, 10)
    assert build_explorer([("s", embedding)], title="t", rows=ROWS, neighbors=False).neighbors is None
    monkeypatch.setattr("dre.explore.build.MAX_WITH_NEIGHBORS", 300)
    without = build_explorer([("s", embedding)], title="t", rows=ROWS)
    assert without.neighbors is None
    assert any("left out" in note for note in without.notes)


def test_the_neighbors_that_a_map_keeps_are_counted_on_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    found, embedding = nearest_in_data(ROWS), ROWS[:, :2] + 1000
    kept = [len(set(a) & set(b)) for a, b in zip(truth(ROWS), truth(ROWS[:, :2]), strict=True)]
    assert mean_kept(found, embedding) == pytest.approx(np.mean(kept), abs=0.02)
    assert mean_kept(found, ROWS) == pytest.approx(10, abs=0.02)
    monkeypatch.setattr("dre.explore.nearest.KEPT_SAMPLE", 100)
    assert mean_kept(found, embedding) == pytest.approx(np.mean(np.array(kept)[evenly_spaced_ids(400, 100)]), abs=0.02)


def test_every_stage_of_every_map_tells_what_it_keeps() -> None:
    stages = [("first", RNG.normal(size=(400, 2))), ("last", ROWS[:, :2])]
    page = build_explorer(stages, title="t", rows=ROWS, beside={"more": ROWS[:, :3]})
    (random, last), (more,) = ([stage.kept for stage in shown.stages] for shown in page.maps)
    assert random is not None
    assert last is not None
    assert more is not None
    assert random < last < more
    assert build_explorer(stages, title="t", rows=ROWS, neighbors=False).maps[0].stages[0].kept is None


def test_rows_under_a_metric_without_a_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.abs(ROWS[:, :20])
    measured = measure_rows(rows, "canberra")
    assert (nearest_in_data(measured.vectors, metric=measured.metric).ids == truth(rows, metric="canberra")).mean() > 0.99
    embedding = rows[:, :2]
    exact = point_trust(measured.vectors, embedding, measured.metric)
    assert exact == pytest.approx(trustworthiness(rows, embedding, metric="canberra", per_point=True), abs=1e-6)
    monkeypatch.setattr("dre.explore.trust.EXACT_TRUST", 100)
    monkeypatch.setattr("dre.explore.trust.TRUST_SAMPLE", 400)
    assert point_trust(measured.vectors, embedding, measured.metric) == pytest.approx(exact, abs=1e-5)


def test_a_page_of_distances_is_that_of_their_rows() -> None:
    rows = np.abs(ROWS[:, :20]).astype(np.float64)
    D, embedding = pairwise_distances(rows, metric="manhattan"), [("map", rows[:, :2])]
    of_rows = build_explorer(embedding, title="a", metric_rows=rows, metric="manhattan")
    of_distances = build_explorer(embedding, title="a", metric_rows=D, metric="precomputed")
    assert of_rows.neighbors is not None
    assert of_distances.neighbors is not None
    assert (of_rows.neighbors.ids == of_distances.neighbors.ids).mean() > 0.99
    assert of_rows.maps[0].stages[0].scores == pytest.approx(of_distances.maps[0].stages[0].scores, abs=1e-4)


def test_too_many_values_to_compare_are_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.explore.measured.MAX_VALUES", 100)
    with pytest.raises(ValueError, match=r"400 rows of 300 values.*trust=False and neighbors=False"):
        measure_rows(ROWS, "canberra")
