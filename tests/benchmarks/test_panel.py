"""The panel: its splits, a process that fits, and the tables."""

from __future__ import annotations

import gzip
import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import curves
import panel
import panel_data
import panel_speed
import panel_tables
from panel_data import SMALLEST_CLASS, Split, load
from panel_fit import Method
from panel_process import FailedError, Process, busy_processes, kind_of, write


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


@pytest.mark.slow
def test_pacmap_embeds_held_out_rows_and_images_and_says_that_it_takes_no_sparse_rows():
    pytest.importorskip("pacmap")
    from scipy.sparse import csr_matrix

    split = load("digits-images", 0, Path())
    method = Method("pacmap", 0, "cpu")
    assert method.fit(split.rows[:200]).shape == (200, 2)
    assert np.isfinite(method.transform(split.test_rows[:20])).all()
    with pytest.raises(TypeError, match="PaCMAP does not take sparse rows"):
        method.fit(csr_matrix(split.rows[:200].reshape(200, -1)))


def test_texts_become_sparse_rows_and_are_read_once(tmp_path):
    (tmp_path / "imdb").mkdir()
    for part in ("train", "test"):
        with gzip.open(tmp_path / "imdb" / f"aclImdb_{part}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps({"text": f"{part} a film number{i}", "label": i % 2}) + "\n" for i in range(6))
    first, second = (load("imdb", number, tmp_path) for number in range(2))
    assert first is second
    assert kind_of(first.rows) == "sparse"
    assert first.rows.dtype == np.float32
    assert first.rows.shape[1] == first.test_rows.shape[1]  # words of the training texts
    assert list(first.test_labels) == [0, 1] * 3


def test_a_sample_of_sparse_rows_is_scored(monkeypatch):
    from scipy.sparse import random as random_matrix

    rows, labels = random_matrix(300, 40, 0.2, format="csr", random_state=0), np.arange(300) % 2
    embedding = np.random.default_rng(0).normal(size=(300, 2))
    monkeypatch.setitem(panel_data.SCORED, "imdb", 100)
    seen = []
    monkeypatch.setattr(panel, "evaluate", lambda X, Y, *_, **__: seen.append((X, Y)) or dict.fromkeys(panel.SCORES, 0.5))
    panel.score("imdb", Split(rows, labels, rows, labels), embedding, embedding)
    ((X, Y),) = seen
    ids = [int(np.flatnonzero((embedding == y).all(1))[0]) for y in Y]
    assert X.shape == (100, 40)
    np.testing.assert_array_equal(X, rows[ids].toarray())
    embedding[3] = np.nan
    with pytest.raises(FailedError, match="2 rows have no finite coordinates"):  # as fitted and as held out
        panel.score("imdb", Split(rows, labels, rows, labels), embedding, embedding)


def test_after_a_process_has_died_the_next_fit_has_a_new_one(tmp_path):
    data, rows = tmp_path / "data.npz", load("iris", 0, Path()).rows
    write(data, rows, rows[:5])
    with Process("no-such-method", "cpu", warm=False) as process:
        process._process.kill()
        process._process.wait()
        with pytest.raises(FailedError, match="ValueError: no-such-method"):
            process.fit(data, 0)
        process._process.kill()
        with pytest.raises(FailedError, match="ended with code -9"):
            process._answer({"data": str(data)})


def _is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_busy_processes_end_even_after_an_error():
    ids = []

    def fail():
        with busy_processes(2) as started:
            ids.extend(started)
            assert all(map(_is_there, ids))
            raise FailedError

    with pytest.raises(FailedError):
        fail()
    assert len(ids) == 2
    assert not any(map(_is_there, ids))


class _Timed:
    """A process whose fits take a known time, twice as long beside others."""

    def __init__(self, monkeypatch):
        self.rows, self._beside = [], 1
        monkeypatch.setattr(panel_speed, "busy_processes", lambda count: self)

    def __enter__(self):
        self._beside = 2

    def __exit__(self, *_):
        self._beside = 1

    def fit(self, data, seed, **_):
        count = len(np.load(data)["rows"])
        self.rows.append(count)
        if count > 500:
            raise FailedError("out of memory")
        return {"fit_seconds": count * self._beside}, {}


def test_fits_alone_and_beside_others_are_timed_in_turn(monkeypatch, tmp_path):
    process = _Timed(monkeypatch)
    found = panel_speed.busy("iris", process, Path(), tmp_path)
    assert found == {"rows": 112, "quiet_seconds": [112] * 3, "busy_seconds": [224] * 3, "slowdown": 2}
    assert len(process.rows) == 7  # the first warms up


def test_two_fits_at_once_are_timed_by_the_slower_one(monkeypatch, tmp_path):
    twin, process = _Timed(monkeypatch), _Timed(monkeypatch)
    twin._beside = 3  # the slower one
    found = panel_speed.busy("iris", process, Path(), tmp_path, twin=twin)
    assert (found["twice_seconds"], found["twice_slowdown"]) == ([336] * 3, 3)
    assert len(process.rows) == 10
    assert len(twin.rows) == 4


def test_the_curve_keeps_each_result_and_goes_on_after_a_failure(monkeypatch, tmp_path):
    monkeypatch.setattr(panel_speed, "CURVE_DATA", "digits")
    kept = {}
    panel_speed.curve(_Timed(monkeypatch), Path(), tmp_path, [100, 600, 300], kept.__setitem__)
    assert kept == {100: 100, 600: {"failed": "out of memory"}, 300: 300}


def test_results_curve_and_busy_are_kept_side_by_side(tmp_path):
    path = tmp_path / "out.json"
    panel.keep(path, "curve", "dre", "100", 0.5)
    panel.keep(path, "busy", "digits", "dre", {"slowdown": 3.0})
    panel.keep(path, "busy", "digits", "umap", {"slowdown": 2.0})
    panel.keep(path, "results", "iris", "pacmap", {"failed": "why"})
    found = panel.known(path)
    assert found["curve"] == {"dre": {"100": 0.5}}
    assert found["busy"]["digits"]["slowdown_ratio"] == 1.5
    assert found["results"] == {"iris": {"pacmap": {"failed": "why"}}}
    assert {"command", "machine", "versions"} <= set(json.loads(path.read_text()))


MEASURED = {
    "machine": {"gpu": None, "cpus": 2},
    "command": "python panel.py --curve",
    "results": {
        "imdb": {"pacmap": {"failed": "TypeError: PaCMAP does not take sparse rows"}},
        "iris": {"dre": {"rows": 9, "columns": 2, "runs": [{"fit_seconds": 1.0}], "whole_seconds": 2.0}},
    },
    "curve": {"dre": {"100": 0.5, "300": 1.25}, "umap": {"100": 0.1, "300": {"failed": "out of memory"}}},
    "busy": {
        "digits": {
            "dre": {"quiet_seconds": [1, 2, 3], "busy_seconds": [4, 5, 6], "slowdown": 2.5},
            "umap": {"quiet_seconds": [1], "busy_seconds": [2], "slowdown": 2.0, "twice_seconds": [3], "twice_slowdown": 3.0},
            "slowdown_ratio": 1.25,
        }
    },
}


def test_tables_show_seconds_and_reasons_of_failures(monkeypatch):
    monkeypatch.setattr(panel_tables, "load", lambda name: MEASURED)
    curve, busy = panel_tables.curve(), panel_tables.busy()
    assert "| 300 | 1.25 | – |" in curve
    assert "UMAP, 300 rows: out of memory." in curve
    assert f"({panel_tables.CURVE_PICTURE})" in curve
    assert "| digits | 2.0 / 5.0, 2.50 × | 1.0 / 2.0, 2.00 ×; 3.0, 3.00 × | 1.25 |" in busy
    assert "PaCMAP on imdb: TypeError: PaCMAP does not take sparse rows." in panel_tables.seconds()
    monkeypatch.setattr(panel_tables, "load", lambda name: {"results": {}})
    assert panel_tables.curve() == panel_tables.busy() == panel_tables.NOT_MEASURED


def test_the_curve_is_drawn_on_log_axes_with_the_names_apart(tmp_path):
    path = tmp_path / "panel.json"
    path.write_text(json.dumps({**MEASURED, "curve": {name: {"100": 0.5, "300": 1.0} for name in panel.METHODS}}))
    (axis,) = curves.panel_curve(path).axes
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert len(axis.lines) == len(axis.texts) == len(panel.METHODS)
    heights = sorted(text.get_position()[1] for text in axis.texts)
    assert min(b / a for a, b in pairwise(heights)) > 1.01
    path.write_text(json.dumps({**MEASURED, "curve": {}}))
    assert curves.panel_curve(path) is None
