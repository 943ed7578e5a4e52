"""The verdict on each claim, with what it rests on, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dre.compare.plan import ANYWHERE, Claim, Comparison, Job, Side, sides
from paper.report import wording
from paper.report.reading import NOT_YET, Reader
from paper.verdict import CONFIDENCE, DOES_NOT, HOLDS, UNDECIDED, Finding, judge

NOT_MEASURED = "not measured"  # of a comparison; a claim is undecided then
KINDS = {HOLDS: "good", DOES_NOT: "bad", UNDECIDED: "open", NOT_MEASURED: "open"}
SIGNS = {HOLDS: "✓", DOES_NOT: "✗", UNDECIDED: "?"}
SEVERAL = {HOLDS: "hold", DOES_NOT: "do not hold"}
DIGITS = 4
VERDICTS = (
    "A claim holds if all of its comparisons do. It does not hold if one of them is refuted by a wider interval too, the wider "
    "the more comparisons the claim has (Bonferroni), or if more of them are refuted than chance would make. Else it is "
    "undecided."
)
INTERVALS = (
    f"An interval is that of the mean difference over the seeds, paired by seed: two-sided, at {100 * CONFIDENCE:.3g} %, which "
    f"makes either end alone a bound at {50 * (1 + CONFIDENCE):.3g} %. All seeds share one fixed split of the data: the "
    "interval covers the randomness of training, and not that of the test rows."
)


@dataclass(frozen=True)
class Told:
    """One comparison."""

    what: str
    expected: str
    this: str
    that: str
    difference: str
    interval: str
    seeds: str
    verdict: str

    @property
    def kind(self) -> str:
        return KINDS[self.verdict]


@dataclass(frozen=True)
class Judged:
    """One claim."""

    name: str
    title: str
    says: str
    verdict: str
    told: tuple[Told, ...]

    @property
    def kind(self) -> str:
        return KINDS[self.verdict]

    @property
    def sign(self) -> str:
        return SIGNS[self.verdict]

    @property
    def counts(self) -> str:
        """How its comparisons went."""
        return counted([each.verdict for each in self.told])


def counted(verdicts: list[str]) -> str:
    """

    >>> counted(["holds", "undecided", "holds", "not measured", "does not hold"])
    '2 hold, 1 does not hold, 1 undecided, 1 not measured'
    """
    counts = {verdict: verdicts.count(verdict) for verdict in KINDS if verdict in verdicts}
    return ", ".join(f"{n} {verdict if n == 1 else SEVERAL.get(verdict, verdict)}" for verdict, n in counts.items())


def judged(claim: Claim, reader: Reader) -> Judged:
    verdict = judge(claim, reader.plans, reader.cells)
    told = tuple(_told(finding, claim, reader) for finding in verdict.findings)
    return Judged(claim.name, claim.title, " ".join(claim.says.split()), verdict.verdict, told)


def _told(finding: Finding, claim: Claim, reader: Reader) -> Told:
    comparison = finding.comparison
    what, expected = _what(comparison, reader), _expected(comparison)
    if finding.missing:
        why = _why(claim, comparison, reader)
        return Told(what, expected, "–", "–", "–", f"no record of {finding.missing}: {why}", "–", NOT_MEASURED)
    if wording.is_time(comparison.score):
        this, that, low, high = (
            f"{wording.seconds(abs(v))} s" for v in (finding.this, finding.that, finding.low, finding.high)
        )
        signs = ["+" if value > 0 else "−" for value in (finding.difference, finding.low, finding.high)]
        texts = this, that, f"{signs[0]}{wording.seconds(abs(finding.difference))} s", f"{signs[1]}{low} to {signs[2]}{high}"
    else:
        texts = (
            wording.number(finding.this, DIGITS),
            wording.number(finding.that, DIGITS),
            wording.signed(finding.difference, DIGITS),
            f"{wording.signed(finding.low, DIGITS)} to {wording.signed(finding.high, DIGITS)}",
        )
    interval = texts[3] if math.isfinite(finding.low) else "one seed has no interval"
    return Told(what, expected, *texts[:3], interval, str(finding.seeds), finding.verdict)


def _what(comparison: Comparison, reader: Reader) -> str:
    """Both sides in words: the data once where they are the same."""
    this, that = sides(comparison)[:2]
    score = wording.score_title(comparison.score)
    less = f", each above {reader.plans.methods[comparison.minus].title}'s" if comparison.minus else ""
    panel = f", {wording.PANELS.get(comparison.panel, comparison.panel)}" if comparison.panel != ANYWHERE else ""
    if (this.data, this.prefix) == (that.data, that.prefix):
        pair = f"{_method(this, reader)} beside {_method(that, reader)}"
        return f"{_data(this, reader)}, {score}{less}{panel}: {pair}"
    if this.method == that.method:
        return f"{_method(this, reader)}, {score}{less}{panel}: {_data(this, reader)} beside {_data(that, reader)}"
    pair = " beside ".join(f"{_method(side, reader)} on {_data(side, reader)}" for side in (this, that))
    return f"{score}{less}{panel}: {pair}"


def _method(side: Side, reader: Reader) -> str:
    return reader.plans.methods[side.method].title


def _data(side: Side, reader: Reader) -> str:
    title = reader.plans.data[side.data].title
    return title if side.prefix is None else f"{title} (first {side.prefix:,} test rows)"


def _expected(comparison: Comparison) -> str:
    least = (
        wording.number(comparison.within, 2) if not wording.is_time(comparison.score) else wording.seconds(comparison.within)
    )
    if comparison.expect == "same":
        return f"the same, up to {least}"
    return comparison.expect + (f" by more than {least}" if comparison.within else "")


def _why(claim: Claim, comparison: Comparison, reader: Reader) -> str:
    """Of the first cell that is not there: the reason that a table gives, or what went wrong."""
    for side in sides(comparison):
        for seed in range(claim.seeds):
            job = Job(side.data, reader.plans.methods[side.method].run, seed, comparison.panel)
            record, missing = reader.record(job)
            if missing == NOT_YET:
                return reader.reason(side.data, side.method, comparison.panel) or NOT_YET
            if record is None:
                return missing
    return f"its record has no {wording.score_title(comparison.score)}"
