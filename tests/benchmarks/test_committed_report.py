"""The committed report says what the committed records say."""

from pathlib import Path

import pytest

from paper.jobs import Selection, jobs
from paper.load_spec import load_spec
from paper.report import read_report
from paper.report.rendering import as_markdown, as_page
from paper.spec import Job
from paper.store import Store, fingerprint

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
REPORT = BENCHMARKS / "report"
STORE = Store(BENCHMARKS / "results" / "cells", REPORT)


@pytest.fixture(scope="module")
def spec():
    return load_spec(BENCHMARKS)


@pytest.fixture(scope="module")
def report(spec):
    order = ["figure-1", "figure-2", *(figure.name for figure in spec.figures)]
    order.insert(order.index("figure-5") + 1, "figure-5-published")
    paths = {path.stem: path for path in (REPORT / "figures").iterdir()}
    return read_report(spec, STORE, REPORT, figures={name: paths[name] for name in order}, quick=False)


def test_the_report_is_that_of_the_records(report):
    remedy = "run `python benchmarks/bench.py --report-only`"
    assert as_markdown(report, REPORT) == (REPORT / "report.md").read_text(encoding="utf-8"), remedy
    assert as_page(report) == (REPORT / "report.html").read_text(encoding="utf-8"), remedy


def test_every_record_belongs_to_a_plan_as_it_is_now(spec):
    wanted = set(jobs(spec, Selection()))
    for record in STORE.all():
        job = Job(**record["job"])
        assert job in wanted, f"{job} belongs to no plan: delete its record"
        assert record["plan"] == fingerprint(job, spec), (
            f"{job} was measured by another plan: run `python benchmarks/bench.py` again"
        )
        assert {"command", "date", "versions", "machine", "fit_seconds", "peak_memory_mb"} <= set(record)
