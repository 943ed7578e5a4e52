"""Whether a claim holds: differences over the seeds, their confidence interval, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dre.compare.cells import Cells
from dre.compare.plan import ANYWHERE, Claim, Comparison, Job, Method, Side, sides
from dre.compare.plans import Plans

Array = np.ndarray[Any, Any]
HOLDS, DOES_NOT, UNDECIDED = "holds", "does not hold", "undecided"
CONFIDENCE = 0.90  # on both sides: 95 % that it is higher, or lower, or the same, of which each is a question about one side
ERROR = round((1 - CONFIDENCE) / 2, 6)  # of one comparison, on its side
# What is a field of the record and not a score of a stage.
FIELDS = ("fit_seconds", "transform_seconds")


@dataclass(frozen=True)
class Finding:
    """Of one comparison: the two means, and the mean difference with its interval."""

    comparison: Comparison
    verdict: str
    this: float = math.nan
    that: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seeds: int = 0
    missing: str = ""  # the cell that is not there
    refuted: bool = False  # also by the wider interval that as many comparisons as the claim has ask for

    @property
    def difference(self) -> float:
        return self.this - self.that


@dataclass(frozen=True)
class Verdict:
    claim: Claim
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """All must hold. One that is surely refuted is enough, or more refuted ones than chance would make."""
        if all(finding.verdict == HOLDS for finding in self.findings):
            return HOLDS
        count = sum(finding.verdict == DOES_NOT for finding in self.findings)
        by_chance = float(stats.binom.sf(count - 1, len(self.findings), ERROR)) if count else 1.0
        return DOES_NOT if any(finding.refuted for finding in self.findings) or by_chance <= ERROR else UNDECIDED


def judge(claim: Claim, plans: Plans, cells: Cells) -> Verdict:
    return Verdict(claim, tuple(_finding(comparison, claim, plans, cells) for comparison in claim.comparisons))


def _finding(comparison: Comparison, claim: Claim, plans: Plans, cells: Cells) -> Finding:
    values: list[list[float]] = []
    held_out: set[bool] = set()
    for side in sides(comparison):
        of_seeds = []
        for seed in range(claim.seeds):
            value = value_of(cells, plans, side, comparison.score, seed=seed, panel=comparison.panel)
            held_out |= {_is_in_sample(cells, plans, side, seed, comparison.panel)}
            if value is None:
                return Finding(comparison, UNDECIDED, missing=f"{side.method} on {side.data}, seed {seed}")
            of_seeds.append(value)
        values.append(of_seeds)
    if len(held_out) > 1:
        raise ValueError(f"{claim.name}: {comparison.this} and {comparison.that}: one is in-sample and the other held-out")
    this, that = (np.array(values[i]) - (np.array(values[i + 2]) if comparison.minus else 0) for i in (0, 1))
    low, high = interval(this - that)
    verdict = decided(comparison.expect, low, high, comparison.within)
    wide = interval(this - that, 1 - (1 - CONFIDENCE) / len(claim.comparisons))
    refuted = decided(comparison.expect, *wide, comparison.within) == DOES_NOT
    return Finding(comparison, verdict, float(this.mean()), float(that.mean()), low, high, claim.seeds, refuted=refuted)


def interval(differences: Array, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Of the mean, by Student's t.

    >>> interval(np.array([.02, .03, .04]))[0] > 0, interval(np.array([.02]))
    (True, (-inf, inf))
    """
    n = len(differences)
    if n < 2:
        return -math.inf, math.inf
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(n)
    reach = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    return mean - reach, mean + reach


def decided(expect: str, low: float, high: float, within: float) -> str:
    """``higher`` and ``lower`` by more than ``within``; ``same`` up to it.

    >>> decided("higher", .01, .03, 0), decided("higher", -.03, -.01, 0), decided("higher", -.01, .03, 0)
    ('holds', 'does not hold', 'undecided')
    >>> decided("same", -.01, .01, .02), decided("same", .03, .05, .02), decided("same", .01, .03, .02)
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


def value_of(cells: Cells, plans: Plans, side: Side, score: str, *, seed: int, panel: str = ANYWHERE) -> float | None:
    """A score of a method on data; None where the cell is not there, failed, is of another plan, or has no such score."""
    method: Method = plans.methods[side.method]
    job = Job(side.data, method.run, seed, panel)
    found = cells.find(job)
    if found is None or not cells.is_done(job, plans):
        return None
    if score == "fit_seconds" and method.stage is not None:
        return _number(found["stages"][method.stage]["seconds"])
    if score in FIELDS:
        return _number(found[score])
    stage = found["stages"][-1 if method.stage is None else method.stage]
    scores = stage.get("prefixes", {}).get(str(side.prefix), {}) if side.prefix else stage.get("scores", {})
    return _number(scores.get(score))


def _is_in_sample(cells: Cells, plans: Plans, side: Side, seed: int, panel: str) -> bool:
    found = cells.find(Job(side.data, plans.methods[side.method].run, seed, panel))
    return found is not None and bool(found.get("in_sample", False))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
