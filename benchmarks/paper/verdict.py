"""Judge claims: paired differences over the seeds, their confidence intervals, and the verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from paper.spec import ANYWHERE, Claim, ClaimComparison, Job, Method, Side, Spec, sides
from paper.store import Store

Array = np.ndarray[Any, Any]
HOLDS, DOES_NOT, UNDECIDED = "holds", "does not hold", "undecided"
CONFIDENCE = 0.90  # two-sided; "higher", "lower" and each end of "same" are one-sided questions at 95 %
ERROR = round((1 - CONFIDENCE) / 2, 6)  # one-sided error of a comparison
# Fields of a record, not scores of a stage.
FIELDS = ("fit_seconds", "transform_seconds")


@dataclass(frozen=True)
class Finding:
    """The outcome of a comparison: both means, and the interval of their difference."""

    comparison: ClaimComparison
    verdict: str
    this: float = math.nan
    that: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seeds: int = 0
    missing: str = ""  # the missing cell
    refuted: bool = False  # also at the Bonferroni-corrected confidence

    @property
    def difference(self) -> float:
        return self.this - self.that


@dataclass(frozen=True)
class Verdict:
    """A claim and the findings of its comparisons."""

    claim: Claim
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """A claim holds if all comparisons do, and fails if one is surely refuted or more are refuted than by chance."""
        if all(finding.verdict == HOLDS for finding in self.findings):
            return HOLDS
        count = sum(finding.verdict == DOES_NOT for finding in self.findings)
        by_chance = float(stats.binom.sf(count - 1, len(self.findings), ERROR)) if count else 1.0
        return DOES_NOT if any(finding.refuted for finding in self.findings) or by_chance <= ERROR else UNDECIDED


def judge(claim: Claim, spec: Spec, store: Store) -> Verdict:
    """Judge a claim by the records."""
    return Verdict(claim, tuple(_finding(comparison, claim, spec, store) for comparison in claim.comparisons))


def _finding(comparison: ClaimComparison, claim: Claim, spec: Spec, store: Store) -> Finding:
    values: list[list[float]] = []
    in_sample: set[bool] = set()
    for side in sides(comparison):
        of_seeds = []
        for seed in range(claim.seeds):
            value = value_of(store, spec, side, comparison.score, seed=seed, panel=comparison.panel)
            in_sample |= {_is_in_sample(store, spec, side, seed, comparison.panel)}
            if value is None:
                return Finding(comparison, UNDECIDED, missing=f"{side.method} on {side.data}, seed {seed}")
            of_seeds.append(value)
        values.append(of_seeds)
    if len(in_sample) > 1:
        raise ValueError(
            f"{claim.name}: can't compare {comparison.this} with {comparison.that}: one is in-sample, the other held-out"
        )
    this, that = (np.array(values[i]) - (np.array(values[i + 2]) if comparison.minus else 0) for i in (0, 1))
    low, high = interval(this - that)
    verdict = decide(comparison.expect, low, high, comparison.within)
    wide = interval(this - that, 1 - (1 - CONFIDENCE) / len(claim.comparisons))
    refuted = decide(comparison.expect, *wide, comparison.within) == DOES_NOT
    return Finding(comparison, verdict, float(this.mean()), float(that.mean()), low, high, claim.seeds, refuted=refuted)


def interval(differences: Array, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the confidence interval of the mean, by Student's t.

    >>> interval(np.array([.02, .03, .04]))[0] > 0, interval(np.array([.02]))
    (True, (-inf, inf))
    """
    n = len(differences)
    if n < 2:
        return -math.inf, math.inf
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(n)
    reach = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    return mean - reach, mean + reach


def decide(expect: str, low: float, high: float, within: float) -> str:
    """Return the verdict of an interval: "higher" or "lower" by more than ``within``, or "same" up to it.

    >>> decide("higher", .01, .03, 0), decide("higher", -.03, -.01, 0), decide("higher", -.01, .03, 0)
    ('holds', 'does not hold', 'undecided')
    >>> decide("same", -.01, .01, .02), decide("same", .03, .05, .02), decide("same", .01, .03, .02)
    ('holds', 'does not hold', 'undecided')
    """
    if expect == "same":
        inside, outside = -within <= low and high <= within, low > within or high < -within
        return HOLDS if inside else DOES_NOT if outside else UNDECIDED
    if expect == "lower":
        low, high = -high, -low
    elif expect != "higher":
        raise ValueError(f"expect={expect!r}: 'higher', 'lower' or 'same'")
    return HOLDS if low > within else DOES_NOT if high < within else UNDECIDED


def value_of(store: Store, spec: Spec, side: Side, score: str, *, seed: int, panel: str = ANYWHERE) -> float | None:
    """Return a score from the current record of a cell, or None without one."""
    method: Method = spec.methods[side.method]
    job = Job(side.data, method.run, seed, panel)
    found = store.find(job)
    if found is None or not store.is_done(job, spec):
        return None
    if score == "fit_seconds" and method.stage is not None:
        return _number(found["stages"][method.stage]["seconds"])
    if score in FIELDS:
        return _number(found[score])
    stage = found["stages"][-1 if method.stage is None else method.stage]
    scores = stage.get("prefixes", {}).get(str(side.prefix), {}) if side.prefix else stage.get("scores", {})
    return _number(scores.get(score))


def _is_in_sample(store: Store, spec: Spec, side: Side, seed: int, panel: str) -> bool:
    found = store.find(Job(side.data, spec.methods[side.method].run, seed, panel))
    return found is not None and bool(found.get("in_sample", False))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
