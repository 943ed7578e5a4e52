"""The summary of the report: where DRE is better and where worse, and every value below the published one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import made_up
from page import Table as ShownTable
from page import Written, written

from paper.report import read_report
from paper.spec import Explained, Job, Table

SPEC = made_up.spec()


def table_named(name: str) -> Table:
    return next(table for table in SPEC.tables if table.name == name)


def list_of(found: Written) -> ShownTable:
    """Of what is below the published values."""
    return next(table for table in found.page.of("summary") if "likely why" in table.heads())


def test_the_summary_says_plainly_where_dre_is_worse(tmp_path: Path) -> None:
    store = made_up.store(tmp_path)
    made_up.write_all(SPEC, store)
    for seed, hit in ((0, 0.95), (1, 0.94), (2, 0.93)):
        job = Job("mnist", "dre", seed)
        content = made_up.record(job, SPEC)
        content["stages"][-1]["scores"] |= {"neighborhood_hit": hit, "nearest_neighbor": 2.0}
        store.save(job, content)
    report = read_report(SPEC, store, tmp_path, figures={}, quick=False)
    title = SPEC.methods["dre"].title
    found = {balance.rival: balance for balance in report.summary.balances if balance.method == title}
    assert "MNIST, neighborhood hit (−.030)" in found["the value published for DRE t-SNE + UMAP"].worse
    for rival in ("the best parametric baseline", "the best that embeds by optimization"):
        told = found[rival]
        assert not any(text.startswith("MNIST, 1-NN") for text in told.worse)
        assert told.better + told.same + len(told.worse) == told.of > told.better > 0


def below_by(tmp_path: Path, table: Table, shortfalls: dict[str, float]) -> Written:
    """Every method of a table on MNIST so much below the published hit, and in the other scores as published."""
    spec = replace(SPEC, tables=(replace(table, data=("mnist",), methods=tuple(shortfalls)),), figures=(), claims=())
    store = made_up.store(tmp_path)
    for method, less in shortfalls.items():
        known = SPEC.methods[method]
        job = Job("mnist", known.run, 0)
        content = made_up.record(job, spec)
        values = dict(zip(table.scores, table.published["mnist"][method], strict=False))
        scores = {**values, "neighborhood_hit": values["neighborhood_hit"] - less, "nearest_neighbor": 0.5}
        content["stages"][-1 if known.stage is None else known.stage]["scores"] = scores
        store.save(job, content)
    return written(spec, store, tmp_path / "report")


def test_every_value_more_than_the_tolerance_below_the_published_one_is_listed_with_its_explanation(tmp_path: Path) -> None:
    reason = Explained("a program of another year", methods=("pca",))
    table = replace(table_named("table-1"), explained=(reason,))
    listed = list_of(below_by(tmp_path, table, {"pca": 0.0201, "umap": 0.0199, "dl-umap": 0.05}))
    rows = {row[0].text: row for row in listed.rows[1:]}
    assert set(rows) == {"PCA", SPEC.methods["dl-umap"].title}
    assert rows["PCA"][6].text == "a program of another year"
    assert rows[SPEC.methods["dl-umap"].title][6].text == "not explained"
    assert rows["PCA"][5].text == "−.020"
    assert not listed.folded


def test_baselines_that_nothing_explains_come_first_and_an_explanation_is_told_once(tmp_path: Path) -> None:
    reason = Explained("a program of another year", methods=("pca", "umap"))
    table = replace(table_named("table-1"), explained=(reason,), seeds_of={})
    found = below_by(tmp_path, table, {"pca": 0.1, "paper": 0.1, "umap": 0.1, "dl-umap": 0.1})
    order = [(row[1].text, row[6].text) for row in list_of(found).rows[1:]]
    assert order == [
        ("baseline", "not explained"),
        ("DRE", "not explained"),
        ("baseline", "a program of another year"),
        ("baseline", "as above"),
    ]
    counts = "4 values: 1 of baselines, not explained, 1 of DRE, not explained, 2 explained."
    assert counts in found.html
    assert counts in found.markdown


def test_a_long_list_is_folded_on_the_page_and_whole_in_markdown(tmp_path: Path) -> None:
    table = replace(table_named("table-1"), published={"mnist": {"pca": [0.99] * 5, "umap": [0.99] * 5, "dl-umap": [0.99] * 5}})
    spec = replace(SPEC, tables=(replace(table, data=("mnist",), methods=("pca", "umap", "dl-umap")),), figures=(), claims=())
    store = made_up.store(tmp_path)
    for method in ("pca", "umap", "dl-umap"):
        job = Job("mnist", method, 0)
        content = made_up.record(job, spec)
        content["stages"][0]["scores"] = dict.fromkeys(table.scores, 0.5)
        store.save(job, content)
    found = written(spec, store, tmp_path / "report")
    listed = list_of(found)
    assert len(listed.rows) - 1 == 15
    assert listed.folded
    assert found.html.count('<details class="long">') == 1
    assert found.markdown.count("🟥 −.490") == 15 + 15  # in the list and in the table


def test_differences_are_those_of_the_default_or_none(tmp_path: Path) -> None:
    store = made_up.store(tmp_path)
    spec = replace(SPEC, tables=(table_named("table-1"),), figures=(), claims=())
    made_up.write_all(spec, store)
    for seed in range(3):
        store.path(Job("mnist", "dre", seed)).unlink()
    found = written(spec, store, tmp_path / "report")
    (table,) = (table for table in found.page.of("summary") if "published for DRE t-SNE + UMAP" in table.heads())
    rows = {row[0].text: row[1:] for row in table.rows[1:]}
    mnist, fashion = rows["MNIST, neighborhood hit"], rows["Fashion-MNIST, neighborhood hit"]
    assert mnist[0].text == "not measured"
    assert mnist[1].text.startswith(".")
    assert mnist[2].text == ".970"
    assert not any("(" in cell.text.removesuffix("(UMAP)").removesuffix("(t-SNE)") for cell in mnist[2:])
    assert not any(kind.startswith("s") for cell in mnist for kind in cell.classes)
    dre, paper = float(fashion[0].text), float(fashion[2].text.split()[0])
    difference = float(fashion[2].text.partition("(")[2].rstrip(")").replace("−", "-"))
    assert abs(difference - (dre - paper)) < 0.0011
    report = read_report(spec, store, tmp_path, figures={}, quick=False)
    of_default = [each for each in report.summary.balances if each.method == SPEC.methods["dre"].title]
    assert of_default
    assert not any(text.startswith("MNIST, ") for each in of_default for text in each.worse)
    known = [each for each in report.summary.rows if "dre" in each.dre]
    assert len(known) == len(report.summary.rows) - 4  # MNIST's four scores
    assert [each.of for each in of_default] == [
        sum(kind in each.rivals for each in known) for kind in ("published", "parametric", "by optimization")
    ]


def test_the_best_of_few_says_how_many_were_not_run(tmp_path: Path) -> None:
    table = replace(table_named("table-2"), data=("infimnist-50k",), methods=("pca", "autoencoder", "dl-umap", "dre"))
    spec = replace(SPEC, tables=(table,), figures=(), claims=())
    store = made_up.store(tmp_path)
    for method in ("pca", "dl-umap", "dre"):
        job = Job("infimnist-50k", method, 0)
        store.save(job, made_up.record(job, spec))
    (row,) = read_report(spec, store, tmp_path, figures={}, quick=False).summary.rows
    assert row.rivals["parametric"].remark == "the best of 2 that were run; 1 not run"


def test_a_quick_run_says_nothing_of_better_and_worse(tmp_path: Path) -> None:
    store = made_up.store(tmp_path)
    made_up.write_all(SPEC, store)
    shown = written(SPEC, store, tmp_path / "report", quick=True)
    assert not read_report(SPEC, store, tmp_path, figures={}, quick=True).summary.balances
    assert not any(square in shown.markdown.partition("## The claims")[0] for square in "🟩🟨🟥")
    results = [table for name in ("summary", "table-1") for table in shown.page.of(name)]
    assert not any(set(cell.classes) & {f"s{i}" for i in range(9)} for table in results for row in table.rows for cell in row)


def test_a_rival_that_rests_on_fewer_rows_says_so(tmp_path: Path) -> None:
    table = replace(table_named("table-2"), data=("infimnist-50k",), methods=("pca", "umap", "dre"))
    spec = replace(SPEC, tables=(table,), figures=(), claims=())
    store = made_up.store(tmp_path)
    for method, count in (("pca", 1_000_000), ("umap", 100_000), ("dre", 1_000_000)):
        job = Job("infimnist-50k", method, 0)
        store.save(job, made_up.record(job, spec, test_rows=count))
    found = written(spec, store, tmp_path / "report")
    (shown,) = (table for table in found.page.of("summary") if "published for DRE t-SNE + UMAP" in table.heads())
    parametric, by_search = shown.rows[1][-2:]
    assert by_search.text.endswith("UMAP on the first 100,000 test rows, the others on 1,000,000")
    assert "test rows" not in parametric.text
    assert "UMAP <small>on the first 100,000 test rows" in found.markdown
