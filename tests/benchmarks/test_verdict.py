"""Verdicts: what follows from differences over seeds."""

import math
from dataclasses import replace

import numpy as np
import pytest

from paper.spec import Claim, ClaimComparison, Data, Job, Method, RunSpec, Side, Spec
from paper.store import Store, fingerprint
from paper.verdict import DOES_NOT, HOLDS, UNDECIDED, decide, interval, judge, value_of

SPEC = Spec(
    {"d": Data("d", "D", "digits")},
    {"r": RunSpec("r", "dre"), "u": RunSpec("u", "umap")},
    {"first": Method("first", "", "r", 0), "last": Method("last", "", "r"), "umap": Method("umap", "", "u")},
    (), (), (),
)  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells", tmp_path / "maps")


def fill(store, run, seed, *scores, **fields):
    stages = [{"seconds": i + 1.0, "scores": {"s": s}, "prefixes": {"10": {"s": s / 2}}} for i, s in enumerate(scores)]
    job = Job("d", run, seed)
    store.save(job, {"plan": fingerprint(job, SPEC), "stages": stages, **fields})


def claim(expect, *, this="last", that="first", seeds=3, **more):
    return Claim("c", "", "", (ClaimComparison(this, that, "s", expect, data="d", **more),), seeds)


def test_a_clear_rise_holds_and_its_opposite_does_not(store):
    for seed in range(3):
        fill(store, "r", seed, 0.9 + seed / 1000, 0.95 + seed / 900)
    found = judge(claim("higher"), SPEC, store)
    assert found.verdict == HOLDS
    assert found.findings[0].difference == pytest.approx(0.05, abs=1e-3)
    assert found.findings[0].low < found.findings[0].difference < found.findings[0].high
    assert judge(claim("lower"), SPEC, store).verdict == DOES_NOT
    assert judge(claim("same", within=0.01), SPEC, store).verdict == DOES_NOT
    assert judge(claim("same", within=0.1), SPEC, store).verdict == HOLDS
    assert judge(claim("higher", within=0.1), SPEC, store).verdict == DOES_NOT


def test_what_differs_between_seeds_is_undecided(store):
    for seed, change in enumerate((0.05, -0.04, 0.02)):
        fill(store, "r", seed, 0.9, 0.9 + change)
    assert {judge(claim(expect), SPEC, store).verdict for expect in ("higher", "lower")} == {UNDECIDED}


def test_one_seed_decides_nothing(store):
    fill(store, "r", 0, 0.5, 0.9)
    assert judge(claim("higher", seeds=1), SPEC, store).verdict == UNDECIDED


def test_a_missing_or_failed_cell_is_named_and_undecided(store):
    fill(store, "r", 0, 0.5, 0.9)
    store.save_failure(Job("d", "r", 1), SPEC, "no")
    found = judge(claim("higher"), SPEC, store)
    assert (found.verdict, found.findings[0].missing) == (UNDECIDED, "last on d, seed 1")


def test_a_reference_is_taken_off_both(store):
    for seed in range(3):
        fill(store, "r", seed, 0.8, 0.9)
        fill(store, "u", seed, 0.7 + seed / 10)
    found = judge(claim("higher", minus="umap"), SPEC, store).findings[0]
    assert found.this == pytest.approx(0.1)
    assert found.difference == pytest.approx(0.1)


def test_all_comparisons_of_a_claim_must_hold(store):
    for seed in range(3):
        fill(store, "r", seed, 0.8, 0.9)
    up, down = claim("higher").comparisons[0], claim("lower").comparisons[0]
    assert judge(Claim("c", "", "", (up, up)), SPEC, store).verdict == HOLDS
    assert judge(Claim("c", "", "", (up, down)), SPEC, store).verdict == DOES_NOT


def test_values_are_read_off_stages_prefixes_and_fields(store):
    fill(store, "r", 0, 0.8, 0.9, fit_seconds=7.0, transform_seconds=None)
    read = [value_of(store, SPEC, Side(m, "d"), score, seed=0) for m in ("first", "last") for score in ("s", "fit_seconds")]
    assert read == [0.8, 1.0, 0.9, 7.0]
    assert value_of(store, SPEC, Side("last", "d", 10), "s", seed=0) == 0.45
    assert value_of(store, SPEC, Side("last", "d"), "transform_seconds", seed=0) is None
    assert value_of(store, SPEC, Side("last", "d"), "other", seed=0) is None
    assert value_of(store, SPEC, Side("umap", "d"), "s", seed=0) is None


def test_the_interval_covers_the_mean_as_often_as_it_says():
    random = np.random.default_rng(0)
    covered = [low <= 1 <= high for low, high in (interval(random.normal(1, 2, size=3)) for _ in range(4000))]
    assert np.mean(covered) == pytest.approx(0.90, abs=0.015)


def test_equal_differences_leave_no_doubt():
    assert interval(np.array([0.5, 0.5, 0.5])) == (0.5, 0.5)
    assert interval(np.array([0.5])) == (-math.inf, math.inf)


def test_an_unknown_expectation_is_refused():
    with pytest.raises(ValueError, match="'higher', 'lower' or 'same'"):
        decide("more", 0, 1, 0)


def test_a_record_of_another_plan_is_missing(store):
    fill(store, "r", 0, 0.8, 0.9)
    other = replace(SPEC, data={"d": replace(SPEC.data["d"], rows=5)})
    assert value_of(store, SPEC, Side("last", "d"), "s", seed=0) == 0.9
    assert value_of(store, other, Side("last", "d"), "s", seed=0) is None


def test_the_more_comparisons_the_surer_a_refutation_must_be(store):
    for seed, change in enumerate((0.05, 0.06, 0.02)):
        fill(store, "r", seed, 0.8, 0.8 - change)
    once = claim("higher").comparisons
    assert judge(Claim("c", "", "", once), SPEC, store).verdict == DOES_NOT
    good = claim("lower").comparisons
    many = judge(Claim("c", "", "", (*once, *good * 11)), SPEC, store)
    assert many.findings[0].verdict == DOES_NOT
    assert not many.findings[0].refuted
    assert many.verdict == UNDECIDED
    assert judge(Claim("c", "", "", (*once * 4, *good * 8)), SPEC, store).verdict == DOES_NOT  # too many for chance


def test_in_sample_and_held_out_are_not_compared(store):
    for seed in range(3):
        fill(store, "r", seed, 0.8, 0.9, in_sample=False)
        fill(store, "u", seed, 0.9, in_sample=True)
    with pytest.raises(ValueError, match="one is in-sample, the other held-out"):
        judge(claim("higher", that="umap"), SPEC, store)
