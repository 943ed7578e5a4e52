"""The verdict on each claim with the comparisons behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paper.report import formatting
from paper.report.reading import NOT_YET, CellReader
from paper.spec import ANYWHERE, Claim, ClaimComparison, Job, Side, sides
from paper.verdict import CONFIDENCE, DOES_NOT, HOLDS, UNDECIDED, Finding, judge

NOT_MEASURED = "not measured"  # verdict of a comparison; its claim is then undecided
KINDS = {HOLDS: "good", DOES_NOT: "bad", UNDECIDED: "open", NOT_MEASURED: "open"}
SIGNS = {HOLDS: "✓", DOES_NOT: "✗", UNDECIDED: "?"}
SEVERAL = {HOLDS: "hold", DOES_NOT: "do not hold"}
DIGITS = 4
VERDICTS = (
    "A claim holds if all of its comparisons hold. It does not hold if one comparison is also refuted by a wider interval, "
    "corrected for the number of comparisons (Bonferroni), or if more comparisons are refuted than chance explains. Otherwise "
    "it is undecided."
)
INTERVALS = (
    f"Intervals are for the mean difference over the seeds, paired by seed: two-sided at {100 * CONFIDENCE:.3g} %, so that "
    f"either end alone is a bound at {50 * (1 + CONFIDENCE):.3g} %. All seeds share one split of the data: the interval covers "
    "the randomness of training, not that of the test rows."
)


@dataclass(frozen=True)
class ComparisonRow:
    """A comparison in words and numbers."""

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
class ClaimRow:
    """A claim with its verdict and comparisons."""

    name: str
    title: str
    says: str
    verdict: str
    comparisons: tuple[ComparisonRow, ...]

    @property
    def kind(self) -> str:
        return KINDS[self.verdict]

    @property
    def sign(self) -> str:
        return SIGNS[self.verdict]

    @property
    def counts(self) -> str:
        """Count the verdicts of its comparisons."""
        return counted([each.verdict for each in self.comparisons])


def counted(verdicts: list[str]) -> str:
    """Count verdicts in words.

    >>> counted(["holds", "undecided", "holds", "not measured", "does not hold"])
    '2 hold, 1 does not hold, 1 undecided, 1 not measured'
    """
    counts = {verdict: verdicts.count(verdict) for verdict in KINDS if verdict in verdicts}
    return ", ".join(f"{n} {verdict if n == 1 else SEVERAL.get(verdict, verdict)}" for verdict, n in counts.items())


def claim_row(claim: Claim, reader: CellReader) -> ClaimRow:
    """Judge a claim and describe its comparisons."""
    verdict = judge(claim, reader.spec, reader.store)
    comparisons = tuple(_comparison_row(finding, claim, reader) for finding in verdict.findings)
    return ClaimRow(claim.name, claim.title, " ".join(claim.says.split()), verdict.verdict, comparisons)


def _comparison_row(finding: Finding, claim: Claim, reader: CellReader) -> ComparisonRow:
    comparison = finding.comparison
    what, expected = _what(comparison, reader), _expected(comparison)
    if finding.missing:
        why = _why(claim, comparison, reader)
        return ComparisonRow(what, expected, "–", "–", "–", f"no record of {finding.missing}: {why}", "–", NOT_MEASURED)
    if formatting.is_time(comparison.score):
        this, that, low, high = (
            f"{formatting.seconds(abs(v))} s" for v in (finding.this, finding.that, finding.low, finding.high)
        )
        signs = ["+" if value > 0 else "−" for value in (finding.difference, finding.low, finding.high)]
        texts = this, that, f"{signs[0]}{formatting.seconds(abs(finding.difference))} s", f"{signs[1]}{low} to {signs[2]}{high}"
    else:
        texts = (
            formatting.number(finding.this, DIGITS),
            formatting.number(finding.that, DIGITS),
            formatting.signed(finding.difference, DIGITS),
            f"{formatting.signed(finding.low, DIGITS)} to {formatting.signed(finding.high, DIGITS)}",
        )
    interval = texts[3] if math.isfinite(finding.low) else "one seed has no interval"
    return ComparisonRow(what, expected, *texts[:3], interval, str(finding.seeds), finding.verdict)


def _what(comparison: ClaimComparison, reader: CellReader) -> str:
    """Name both sides, and their data once if they are the same."""
    this, that = sides(comparison)[:2]
    score = formatting.score_title(comparison.score)
    less = f", each above {reader.spec.methods[comparison.minus].title}'s" if comparison.minus else ""
    panel = f", {formatting.PANELS.get(comparison.panel, comparison.panel)}" if comparison.panel != ANYWHERE else ""
    if (this.data, this.prefix) == (that.data, that.prefix):
        pair = f"{_method(this, reader)} vs. {_method(that, reader)}"
        return f"{_data(this, reader)}, {score}{less}{panel}: {pair}"
    if this.method == that.method:
        return f"{_method(this, reader)}, {score}{less}{panel}: {_data(this, reader)} vs. {_data(that, reader)}"
    pair = " vs. ".join(f"{_method(side, reader)} on {_data(side, reader)}" for side in (this, that))
    return f"{score}{less}{panel}: {pair}"


def _method(side: Side, reader: CellReader) -> str:
    return reader.spec.methods[side.method].title


def _data(side: Side, reader: CellReader) -> str:
    title = reader.spec.data[side.data].title
    return title if side.prefix is None else f"{title} (first {side.prefix:,} test rows)"


def _expected(comparison: ClaimComparison) -> str:
    least = (
        formatting.number(comparison.within, 2)
        if not formatting.is_time(comparison.score)
        else formatting.seconds(comparison.within)
    )
    if comparison.expect == "same":
        return f"the same, up to {least}"
    return comparison.expect + (f" by more than {least}" if comparison.within else "")


def _why(claim: Claim, comparison: ClaimComparison, reader: CellReader) -> str:
    """Return why the first missing cell is missing."""
    for side in sides(comparison):
        for seed in range(claim.seeds):
            job = Job(side.data, reader.spec.methods[side.method].run, seed, comparison.panel)
            record, missing = reader.record(job)
            if missing == NOT_YET:
                return reader.reason(side.data, side.method, comparison.panel) or NOT_YET
            if record is None:
                return missing
    return f"its record has no {formatting.score_title(comparison.score)}"
