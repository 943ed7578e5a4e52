"""Jobs carried out: records that say everything, runs that go on where they stopped, failures that stop nothing."""

import contextlib
import json
import os
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest

from dre.compare.memory import PeakMemory
from paper.loading import load_data
from paper.runner import Outcome, Setting, measure_job, pending, report_progress, run_jobs, run_one
from paper.spec import Data, Figure, Job, Method, Row, RunSpec, Spec
from paper.store import Store

SMALL = {
    "encoder": "mlp(16)",
    "schedule": "x: gaussian(10) -> kl * 2; h1: gaussian(10) -> kl * 1",
    "batch_size": 100,
    "learning_rate": 1e-3,
}
DIGITS = Data("digits", "Digits", "digits", rows=200, test_rows=80, prefixes=(40, 80))
RUNS = {
    "pca": RunSpec("pca", "pca"),
    "eigenmaps": RunSpec("eigenmaps", "eigenmaps"),
    "dre": RunSpec("dre", "dre", SMALL, quick=SMALL),
    "wrong": RunSpec("wrong", "pca", {"colour": "red"}),
}
METHODS = {name: Method(name, name, name) for name in RUNS} | {"dre-0": Method("dre-0", "", "dre", 0)}
SHOWN = Figure("f", "", "", (Row("", "digits", ("dre-0", "dre", "eigenmaps")),))
SPEC = Spec({"digits": DIGITS}, RUNS, METHODS, (), (SHOWN,), ())


@pytest.fixture
def setting(tmp_path):
    return Setting(SPEC, Store(tmp_path / "cells", tmp_path / "maps"), device="cpu")


def test_a_record_says_what_was_measured_and_by_what(setting):
    job = Job("digits", "dre", 0)
    assert run_one(job, setting).problem == ""
    record = json.loads(setting.store.path(job).read_text())
    assert (record["rows"], record["test_rows"], record["in_sample"], record["device"]) == (200, 80, False, "cpu")
    assert record["job"] == {"data": "digits", "run": "dre", "seed": 0, "panel": ""}
    assert {"command", "date", "versions", "machine", "workers", "peak_memory_mb", "transform_seconds"} <= set(record)
    assert [stage["stage"] for stage in record["stages"]] == ["x: gaussian(10) -> kl * 2", "h1: gaussian(10) -> kl * 1"]
    ends = [stage["seconds"] for stage in record["stages"]]
    assert 0 < ends[0] < ends[1] <= record["fit_seconds"]
    for stage in record["stages"]:
        assert {"neighborhood_hit", "trustworthiness", "one_minus_stress", "nearest_neighbor"} <= set(stage["scores"])
        assert set(stage["prefixes"]) == {"40", "80"}
        assert stage["prefixes"]["80"]["nearest_neighbor"] == stage["scores"]["nearest_neighbor"]


def test_the_maps_that_a_figure_shows_are_kept_and_no_others(setting):
    for seed in (0, 1):
        run_one(Job("digits", "dre", seed), setting)
    first, second = (Job("digits", "dre", seed) for seed in (0, 1))
    assert setting.store.map(first, "test", 0).shape == setting.store.map(first, "test", None).shape == (80, 2)
    assert not np.array_equal(setting.store.map(first, "test", 0), setting.store.map(first, "test", 1))
    assert setting.store.map(first, "train", None) is None
    assert setting.store.map(second, "test", None) is None


def test_a_run_can_have_fewer_test_rows_than_its_data(setting):
    few = replace(
        SPEC, figures=(), runs={"pca": replace(RUNS["pca"], test_rows=50)}, data={"digits": replace(DIGITS, prefixes=())}
    )
    run_one(Job("digits", "pca", 0), replace(setting, spec=few))
    assert setting.store.find(Job("digits", "pca", 0))["test_rows"] == 50


def test_what_embeds_no_new_rows_is_fitted_to_the_test_rows_and_says_so(setting):
    job = Job("digits", "eigenmaps", 0)
    run_one(job, setting)
    record = setting.store.find(job)
    assert (record["in_sample"], record["rows"], record["transform_seconds"]) == (True, 80, None)
    assert setting.store.map(job, "train", None) is None
    assert setting.store.map(job, "test", None).shape == (80, 2)


def test_a_panel_times_the_training_rows_of_every_method_alike(setting):
    dataset = load_data(DIGITS, None)
    for run in ("eigenmaps", "dre", "pca"):
        record = measure_job(Job("digits", run, 0, "cpu"), SPEC, dataset, device="cpu").record
        assert record["rows"] == 200
        assert record["fit_seconds"] > 0


def test_what_is_done_is_not_done_again_unless_the_plan_changed(setting):
    job = Job("digits", "pca", 0)
    assert pending([job], setting) == [job]
    list(run_jobs([job], setting))
    assert pending([job], setting) == []
    retitled = replace(SPEC, data={"digits": replace(DIGITS, title="Other")})
    assert pending([job], replace(setting, spec=retitled)) == []
    changed = replace(SPEC, data={"digits": replace(DIGITS, rows=100)})
    assert pending([job], replace(setting, spec=changed)) == [job]


def test_a_failure_is_recorded_tried_again_and_stops_no_other(setting):
    jobs = [Job("digits", "wrong", 0), Job("digits", "pca", 0)]
    messages = []
    failed = report_progress(run_jobs(jobs, setting), 2, messages.append)
    assert [outcome.job for outcome in failed] == jobs[:1]
    assert "colour" in messages[0]
    assert "colour" in setting.store.find(jobs[0])["failed"]
    assert pending(jobs, setting) == jobs[:1]


@pytest.mark.slow
def test_several_workers_give_the_records_that_one_gives(setting, tmp_path):
    jobs = [Job("digits", "pca", 0), Job("digits", "dre", 1)]
    list(run_jobs(jobs, setting))
    others = replace(setting, store=Store(tmp_path / "others", tmp_path / "other-maps"), workers=2)
    assert {outcome.problem for outcome in run_jobs(jobs, others)} == {""}
    for job in jobs:
        alone, beside = setting.store.find(job), others.store.find(job)
        assert [s["scores"] for s in alone["stages"]] == [s["scores"] for s in beside["stages"]]
        assert (alone["workers"], beside["workers"]) == (1, 2)


def test_a_half_trained_model_is_no_result(setting, monkeypatch):
    def interrupted(model, rows, **more):
        warnings.warn("fit was interrupted in stage 0", stacklevel=1)

    monkeypatch.setattr("dre.model.estimator.DRE.fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_one(Job("digits", "dre", 0), setting)
    assert setting.store.find(Job("digits", "dre", 0)) is None


def test_ctrl_c_that_a_library_swallowed_stops_before_the_next_cell():
    def outcomes():
        with contextlib.suppress(KeyboardInterrupt):  # as a compiler does that is called back by C
            signal.raise_signal(signal.SIGINT)
        yield Outcome(Job("digits", "pca", 0))
        raise AssertionError("the next cell was begun")

    messages = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        report_progress(outcomes(), 2, messages.append)
    assert messages[-1] == "stopped after 1 of 2; the same command resumes"
    assert signal.getsignal(signal.SIGINT) is before


class Deadly(Store):
    """The process dies when it wants to keep the record of one job."""

    def save(self, job, record):
        if job.seed == 7 and "failed" not in record:
            os._exit(9)
        super().save(job, record)


@pytest.mark.slow
def test_a_worker_that_dies_takes_no_other_job_with_it(setting, tmp_path):
    deadly = replace(setting, store=Deadly(tmp_path / "cells", tmp_path / "maps"), workers=2)
    jobs = [Job("digits", "pca", seed) for seed in (0, 7, 1)]
    problems = {outcome.job.seed: outcome.problem for outcome in run_jobs(jobs, deadly)}
    assert (problems[0], problems[1]) == ("", "")
    assert "process died" in problems[7]
    assert "process died" in deadly.store.find(jobs[1])["failed"]


def test_the_peak_of_a_piece_of_work_is_seen():
    with PeakMemory() as little:
        pass
    with PeakMemory() as much:
        held = np.ones(30_000_000)
    if much.host_mb is None:
        pytest.skip("this system does not tell the peak memory of a process")
    assert much.host_mb > held.nbytes / 1e6 * 0.9 > little.host_mb
