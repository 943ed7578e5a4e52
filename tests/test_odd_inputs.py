"""Odd inputs have a finite map in the order of their rows, or are refused with a remedy; they are never changed."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest

from dre import DRE
from odd_inputs import TINY, VALUES, Case, cases
from try_odd_inputs import ALLOWED, fingerprint, outcome, table, try_cases

CASES = 500


@pytest.mark.slow
@hypothesis.settings(
    max_examples=CASES, derandomize=True, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)
@hypothesis.given(cases())
def test_odd_inputs_are_mapped_or_refused(case):
    assert outcome(case) in ALLOWED


@pytest.mark.parametrize("name", sorted(set(VALUES) - {"NaN", "infinity", "huge"}))
def test_all_finite_values_of_a_moderate_size_are_mapped(name):
    values = VALUES[name](np.random.default_rng(0), (20, 8))
    for standardize in (False, True):
        case = Case("array", values, np.asarray, {**TINY, "standardize": standardize, "random_state": 0})
        assert outcome(case) == "mapped"


def test_wrong_maps_and_changed_inputs_are_noticed(monkeypatch):
    case = Case("array", np.random.default_rng(0).normal(size=(9, 3)), np.asarray, {**TINY, "random_state": 0})
    assert outcome(case) == "mapped"
    assert outcome(Case("array", case.values, np.asarray, case.parameters, must_refuse=True)).startswith("silently wrong")
    right = DRE.transform
    monkeypatch.setattr(DRE, "transform", lambda self, X: right(self, np.sort(X, axis=0)))
    assert outcome(case).startswith("silently wrong: transform differs")
    monkeypatch.setattr(DRE, "transform", lambda self, X: right(self, X) + X.__imul__(2)[:, :2].astype("f4") * 0)
    assert outcome(case).startswith("silently wrong")
    monkeypatch.setattr(DRE, "fit", lambda self, X: (_ for _ in ()).throw(ValueError("no")))
    assert outcome(case).startswith("no remedy")


def test_the_table_counts_every_case():
    found = try_cases(20)
    last = table(found).splitlines()[-1].split()
    assert last[0] == "all"
    assert sum(map(int, last[1:])) == len(found) == 20
    X = np.eye(3)
    assert fingerprint(X) == fingerprint(X.copy())
