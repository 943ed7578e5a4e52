"""Claims in the report: a verdict with the numbers that it rests on, and what its intervals mean."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import made_up
import pytest
from page import Written, written

from paper.jobs import Selection, jobs
from paper.report import read_report
from paper.spec import Job

SPEC = made_up.spec()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("full")
    return written(SPEC, made_up.full(SPEC, folder), folder / "report")


def test_each_claim_has_a_verdict_and_what_is_missing_is_named(full: Written) -> None:
    report = read_report(SPEC, full.store, full.folder, figures={}, quick=False)
    assert [claim.title for claim in report.claims] == [claim.title for claim in SPEC.claims]
    text = "".join(full.page.texts)
    for claim, shown in zip(SPEC.claims, report.claims, strict=True):
        assert shown.verdict in ("holds", "does not hold", "undecided")
        assert len(shown.comparisons) == len(claim.comparisons)
        assert claim.title in text
        assert " ".join(claim.says.split()) in text
        assert f"### {claim.title}: {shown.verdict}" in full.markdown
    missing = [each.interval for claim in report.claims for each in claim.comparisons if each.this == "–"]
    assert "no record of umap on mnist, seed 0: failed: MemoryError: 31 GiB" in missing


def test_a_claim_shows_both_means_the_difference_and_its_interval(tmp_path: Path) -> None:
    claim = next(claim for claim in SPEC.claims if claim.name == "recursion-lowers-shepard")
    spec = replace(SPEC, tables=(), figures=(), claims=(claim,))
    store = made_up.store(tmp_path)
    for job in jobs(spec, Selection()):
        content = made_up.record(job, spec)
        for stage in content["stages"]:
            stage["scores"]["shepard_goodness"] = 0.4 + 0.001 * job.seed
        content["stages"][3]["scores"]["shepard_goodness"] = 0.3
        store.save(job, content)
    (shown,) = read_report(spec, store, tmp_path, figures={}, quick=False).claims
    assert shown.verdict == "holds"
    assert (
        shown.comparisons[0].this,
        shown.comparisons[0].that,
        shown.comparisons[0].difference,
        shown.comparisons[0].seeds,
    ) == (
        ".3000",
        ".4010",
        "−.1010",
        "3",
    )
    low, high = (float(part.replace("−", "-")) for part in shown.comparisons[0].interval.split(" to "))
    assert low < -0.101 < high < 0
    assert math.isclose((low + high) / 2, -0.101, abs_tol=1e-3)


def test_the_report_says_what_an_interval_covers_and_when_a_claim_fails(full: Written) -> None:
    text = " ".join("".join(full.page.texts).split())
    for shown in (text, full.markdown):
        assert "two-sided at 90 %" in shown
        assert "a bound at 95 %" in shown
        assert "paired by seed" in shown
        assert "covers the randomness of training, not that of the test rows" in shown
        assert "Bonferroni" in shown


def test_how_the_comparisons_of_a_claim_went_is_counted(full: Written) -> None:
    report = read_report(SPEC, full.store, full.folder, figures={}, quick=False)
    text = " ".join("".join(full.page.texts).split())
    for claim in report.claims:
        counts = [int(part.split()[0]) for part in claim.counts.split(", ")]
        assert sum(counts) == len(claim.comparisons)
        assert claim.counts in text


def test_a_comparison_whose_record_is_of_another_plan_is_not_measured_and_says_so(tmp_path: Path) -> None:
    claim = next(claim for claim in SPEC.claims if claim.name == "recursion-lowers-shepard")
    spec = replace(SPEC, tables=(), figures=(), claims=(claim,))
    store = made_up.store(tmp_path)
    made_up.write_all(spec, store)
    job = Job("mnist", "paper", 1)
    store.save(job, made_up.record(job, spec, plan={"data": "another"}))
    (shown,) = read_report(spec, store, tmp_path, figures={}, quick=False).claims
    assert shown.comparisons[0].verdict == "not measured"
    assert (
        shown.comparisons[0].interval == "no record of paper-tsne on mnist, seed 1: measured before its settings were changed"
    )
