"""The panel: its splits, a process that fits, and the tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import panel
import panel_tables
from panel_data import SMALLEST_CLASS, Split, load


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "digits-images"])
def test_splits_are_stratified_disjoint_and_differ(name):
    splits = [load(name, number, Path()) for number in range(2)]
    for split in splits:
        shares = [np.unique(labels, return_counts=True)[1] / len(labels) for labels in (split.labels, split.test_labels)]
        np.testing.assert_allclose(*shares, atol=0.03)
        assert len(split.test_labels) == pytest.approx(len(split.labels) / 3, rel=0.02)
    assert not np.array_equal(splits[0].rows, splits[1].rows)
    assert (splits[0].rows.ndim == 3) == (name == "digits-images")


def test_tables_are_standardized_and_tiny_classes_left_out(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "tables").mkdir()
    X, y = rng.normal(5, [1, 100], size=(200, 2)), np.r_[[7] * (SMALLEST_CLASS - 1), rng.integers(2, size=197)]
    for name in ("seeds", "har"):
        np.savez(tmp_path / "tables" / f"{name}.npz", X=X, y=y)
    seeds, har = (load(name, 0, tmp_path) for name in ("seeds", "har"))
    assert 7 not in {*seeds.labels, *seeds.test_labels}
    np.testing.assert_allclose(np.r_[seeds.rows, seeds.test_rows].std(0), 1, rtol=0.05)
    assert har.rows[:, 1].std() > 50  # as it is


def test_a_process_fits_and_embeds_and_a_failure_is_a_result(tmp_path):
    split: Split = load("iris", 0, Path())
    data = tmp_path / "data.npz"
    panel.write(data, split.rows, split.test_rows)
    process = panel.Process("dre-fast", "cpu", warm=False)
    try:
        found, maps = process.fit(data, 0)
        assert maps["rows"].shape == (len(split.rows), 2)
        assert maps["test_rows"].shape == (len(split.test_rows), 2)
        assert 0 < found["fit_seconds"] < found["whole_seconds"]
        assert found["peak_mb"] > 50
        scores = panel.score("iris", split, maps["rows"], maps["test_rows"])
        assert {"nearest_neighbor", "centroid_correlation"} <= set(scores)
        panel.write(data, np.full_like(split.rows, np.nan), split.test_rows)
        with pytest.raises(panel.FailedError, match="NaN"):
            process.fit(data, 0)
    finally:
        process.close()


def test_sparse_rows_reach_the_process_as_they_are(tmp_path):
    from scipy.sparse import random as random_matrix

    from panel_fit import read

    rows = random_matrix(20, 30, 0.2, format="csr", random_state=0)
    panel.write(tmp_path / "data.npz", rows, rows[:5])
    assert (read(str(tmp_path / "data.npz"), "rows") != rows).nnz == 0
    assert read(str(tmp_path / "data.npz"), "test_rows").shape == (5, 30)


def test_the_summary_counts_where_the_default_is_at_or_above_both(monkeypatch):
    def cell(hit):
        return {"rows": 9, "columns": 2, "runs": [dict.fromkeys(panel_tables.SCORES, hit)]}

    results = {
        "a": {"dre": cell(0.9), "umap": cell(0.8), "open-tsne": cell(0.9)},
        "b": {"dre": cell(0.7), "umap": cell(0.8), "open-tsne": cell(0.6)},
        "c": {"dre": cell(0.1), "umap": {"failed": "too large"}, "open-tsne": cell(0.6)},
    }
    monkeypatch.setattr(panel_tables, "load", lambda name: {"results": results})
    first = panel_tables.summary().splitlines()[2]
    assert "1 of 2" in first
    assert "b, -0.100" in first
