"""FIt-SNE: phases of exaggeration, and what late exaggeration does to clusters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_score

from dre.baselines import fit_sne
from dre.baselines.fit_sne import FItSNE


@pytest.fixture
def short_start(monkeypatch):
    """Fewer iterations of early exaggeration: a grid takes its time, however few the rows."""
    monkeypatch.setattr(fit_sne, "EARLY", (60, 12.0, 0.5))


def quick(exaggeration: float, **others: int) -> FItSNE:
    return FItSNE(exaggeration, perplexity=15, n_jobs=1, random_state=0, **{"late_from": 60, "n_iter": 150, **others})


@pytest.mark.usefixtures("short_start")
def test_late_exaggeration_makes_clusters_tighter():
    X, clusters = make_blobs(150, 10, centers=5, cluster_std=2.0, random_state=0)
    plain, late = quick(1).fit_transform(X), quick(4).fit_transform(X)
    assert np.ptp(late) < 0.7 * np.ptp(plain)
    assert 1 - silhouette_score(late, clusters) < 0.5 * (1 - silhouette_score(plain, clusters))


@pytest.mark.usefixtures("short_start")
def test_without_exaggeration_the_start_of_its_phase_is_no_matter(digits):
    rows = digits.rows[:60]
    np.testing.assert_array_equal(
        quick(1, late_from=80, n_iter=100).fit_transform(rows), quick(1, n_iter=100).fit_transform(rows)
    )


def test_the_phases_follow_one_another():
    assert FItSNE().phases() == [(250, 12.0, 0.5), (500, 1.0, 0.8)]  # the authors' defaults
    assert FItSNE(4, late_from=600).phases() == [(250, 12.0, 0.5), (350, 1.0, 0.8), (150, 4, 0.8)]
    assert FItSNE(4, late_from=750).phases() == [(250, 12.0, 0.5), (500, 1.0, 0.8)]
    assert FItSNE(n_iter=250).phases() == [(250, 12.0, 0.5)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"late_from": 200}, "late_from=200, n_iter=750"),
        ({"n_iter": 240}, "late_from=250, n_iter=240"),
        ({"exaggeration": 0}, "exaggeration=0: must be positive"),
    ],
)
def test_phases_that_can_not_be_are_refused(options, message, digits):
    with pytest.raises(ValueError, match=message):
        FItSNE(**options).fit(digits.rows)
