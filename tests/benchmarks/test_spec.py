"""The spec: what its TOML files must hold, and the jobs that follow."""

from dataclasses import replace
from pathlib import Path

import pytest

from dre.baselines import NAMES as BASELINES
from dre.datasets import NAMES as DATASETS
from paper.jobs import Selection, jobs
from paper.load_spec import load_spec
from paper.spec import ANYWHERE, Job, SpecError, parse_side

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
MENTIONED = """
[mnist]
title = "MNIST"
set = "mnist"
"""
METHODS = """
[runs.pca]
[runs.paper]
[methods.pca]
title = "PCA"
[methods.deep]
title = "Deep"
run = "paper"
stage = 0
[methods.paper]
title = "DRE"
"""
TABLE = """
title = "A table"
about = ""
data = ["mnist"]
methods = ["pca", "deep", "paper"]
scores = ["nearest_neighbor"]
seeds_of = { deep = 2 }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "data.toml").write_text(MENTIONED)
    (tmp_path / "methods.toml").write_text(METHODS)
    (tmp_path / "tables" / "one.toml").write_text(TABLE)
    return tmp_path


@pytest.fixture(scope="module")
def paper_spec():
    return load_spec(BENCHMARKS)


def test_methods_that_share_a_run_share_its_jobs(folder):
    assert jobs(load_spec(folder), Selection()) == [
        Job("mnist", "pca", 0),
        Job("mnist", "paper", 0),
        Job("mnist", "paper", 1),
    ]


def test_a_selection_keeps_what_it_names(folder):
    spec = load_spec(folder)
    assert jobs(spec, Selection(methods=("pca",))) == [Job("mnist", "pca", 0)]
    with pytest.raises(ValueError, match="unknown data 'digits'"):
        jobs(spec, Selection(data=("digits",)))
    assert jobs(spec, Selection(parts=("one",))) == jobs(spec, Selection(parts=("tables",))) == jobs(spec, Selection())
    assert jobs(spec, Selection(parts=("figures",))) == []
    with pytest.raises(ValueError, match=r"'on'.*did you mean 'one'|on"):
        jobs(spec, Selection(parts=("on",)))


def test_what_has_a_reason_not_to_be_run_is_not_run_for_anything(folder):
    reason = '[[not_run]]\nmethods = ["pca"]\nreason = "too large"\n'
    (folder / "tables" / "one.toml").write_text(TABLE + reason)
    (folder / "claims").mkdir()
    claim = 'title = ""\nsays = ""\n[[compare]]\nthis = "pca"\nthat = "deep"\nscore = "s"\nexpect = "higher"\ndata = "mnist"'
    (folder / "claims" / "one.toml").write_text(claim)
    spec = load_spec(folder)
    assert spec.tables[0].reason("mnist", "pca") == "too large"
    assert spec.tables[0].reason("mnist", "deep") is None
    assert {job.run for job in jobs(spec, Selection())} == {"paper"}


@pytest.mark.parametrize(
    ("file", "before", "after", "says"),
    [
        ("methods.toml", 'run = "paper"', 'run = "dre-papr"', "dre-papr"),
        ("tables/one.toml", '"pca"', '"pcaa"', "pcaa"),
        ("tables/one.toml", '["mnist"]', '["minst"]', "minst"),
        ("data.toml", "title", "titl e", "data.toml"),
    ],
)
def test_a_plan_that_names_what_is_not_there_is_refused(folder, file, before, after, says):
    path = folder / file
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(SpecError, match=says):
        load_spec(folder)


def test_no_plans_is_an_error_that_says_where_they_are(tmp_path):
    with pytest.raises(SpecError, match="--spec FOLDER"):
        load_spec(tmp_path)


def test_a_side_of_a_comparison_is_read():
    assert parse_side("umap", "mnist").data == "mnist"
    assert parse_side("umap@cells", "mnist").data == "cells"
    assert parse_side("umap@cells#100", "mnist").prefix == 100


def test_the_paper_spec_names_data_sets_and_baselines_that_there_are(paper_spec):
    assert {data.set for data in paper_spec.data.values()} <= set(DATASETS)
    assert {run.baseline for run in paper_spec.runs.values()} <= set(BASELINES)
    assert {method.run for method in paper_spec.methods.values()} == set(paper_spec.runs)


def test_the_paper_spec_has_all_that_the_paper_has(paper_spec):
    assert {table.name for table in paper_spec.tables} == {"table-1", "table-2", "table-2b", "table-3", "table-4"}
    assert {figure.name for figure in paper_spec.figures} == {"figure-3", "figure-4", "figure-5", "figure-6"}
    assert len(paper_spec.claims) >= 11
    for table in paper_spec.tables:  # one published value per score at most, of methods and data that are in the table
        for data, of_methods in table.published.items():
            assert data in table.data
            for method, values in of_methods.items():
                assert method in table.methods
                assert len(values) <= len(table.scores)
                assert table.smaller_is_better or all(0 <= value <= 1 for value in values)


def test_a_quick_plan_is_the_same_on_few_rows_with_one_seed(paper_spec):
    quick = paper_spec.quick(100, 50)
    assert {job.seed for job in jobs(quick, Selection())} == {0}
    assert all(data.rows <= 100 and data.test_rows == 50 for data in quick.data.values())
    assert quick.data["infimnist-10k"].options == {"n_train": 100, "n_test": 60_000, "bases": "originals"}
    assert quick.data["infimnist-10k"].prefixes == (8, 25, 50)
    assert "mlp" in quick.runs["paper"].options["encoder"]
    assert {table.name for table in quick.tables} == {table.name for table in paper_spec.tables}


def test_panels_are_jobs_of_their_own(paper_spec):
    timed = jobs(paper_spec, Selection(parts=("table-4",)))
    assert {job.panel for job in timed} == {"gpu", "cpu"}
    assert {job.panel for job in jobs(paper_spec, Selection(parts=("table-1",)))} == {ANYWHERE}
    assert str(replace(timed[0], panel="gpu")).startswith("gpu/mnist/")
