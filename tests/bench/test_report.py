"""The report says what the records say: every table, no cell without a value or a reason, nothing from outside."""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import made_up
import pytest
from page import Page

from dre.bench.cells import Cells
from dre.bench.jobs import Selection, jobs
from dre.bench.plan import ANYWHERE, Job, NotRun, Table
from dre.bench.plans import Plans
from dre.bench.report import read_report, write_report
from dre.bench.report.reading import CHANGED, NOT_YET, split_score
from dre.bench.report.wording import number, ratio, score_title, signed

PLANS = made_up.plans()
HOSTILE = "<script>alert('x')</script> | <img src=x onerror=alert(1)> ](javascript:alert(1))"


@dataclass(frozen=True)
class Written:
    folder: Path
    cells: Cells
    page: Page
    html: str
    markdown: str


def written(plans: Plans, cells: Cells, folder: Path, **more: Any) -> Written:
    paths = write_report(plans, cells, folder, **{"figures": {}, "quick": False, **more})
    assert [path.name for path in paths] == ["report.md", "report.html"]
    html = (folder / "report.html").read_text()
    return Written(folder, cells, Page(html), html, (folder / "report.md").read_text())


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """All records but three: one failed, one was never run, one has only two of its seeds."""
    folder = tmp_path_factory.mktemp("full")
    cells = made_up.cells(folder)
    made_up.write_all(PLANS, cells)
    job = Job("mnist", "umap", 0)
    cells.keep(job, {"plan": {}, "failed": "MemoryError: 31 GiB"})
    cells.path(Job("mnist", "dl-tsne", 0)).unlink()
    cells.path(Job("fashion-mnist", "dre", 2)).unlink()
    return written(PLANS, cells, folder / "report")


def table_named(name: str) -> Table:
    return next(table for table in PLANS.tables if table.name == name)


def measured(cells: Cells, data: str, method: str, score: str, seeds: range, panel: str = ANYWHERE) -> list[float]:
    """Straight from the files."""
    told = PLANS.methods[method]
    found = []
    for seed in seeds:
        content = json.loads(
            (cells.records / "--".join([*([panel] if panel else []), data, told.run, f"{seed}.json"])).read_text()
        )
        stage = content["stages"][-1 if told.stage is None else told.stage]
        name, prefix = split_score(score)
        if name == "fit_seconds" and told.stage is not None:
            found.append(stage["seconds"])
        elif name.endswith("_seconds"):
            found.append(content[name])
        else:
            found.append((stage["prefixes"][str(prefix)] if prefix else stage["scores"])[name])
    return found


def test_every_table_and_every_method_is_there(full: Written) -> None:
    for table in PLANS.tables:
        shown = full.page.of(table.name)
        assert len(shown) == len(table.panels) * (1 if len(table.scores) == 1 else len(table.data))
        for block in shown:
            for method in table.methods:
                assert block.row(PLANS.methods[method].title)
        assert f"## {table.title}" in full.markdown


def test_a_score_is_the_mean_over_the_seeds_beside_the_published_value_and_the_difference(full: Written) -> None:
    table = table_named("table-1")
    block = next(block for block in full.page.of("table-1") if block.heading == "MNIST")
    seeds = table.seeds_for("dre-paper")
    cells = iter(block.row(PLANS.methods["dre-paper"].title)[1:])
    for score, paper in zip(table.scores, table.published["mnist"]["dre-paper"], strict=False):
        values = measured(full.cells, "mnist", "dre-paper", score, seeds)
        here, theirs, difference = next(cells), next(cells), next(cells)
        assert here.text == f"{number(fmean(values))} ± {number(stdev(values))}"
        assert theirs.text == number(paper, 2)
        assert difference.text == signed(fmean(values) - paper)
        assert all(f"mnist--dre-paper--{seed}.json" in here.title for seed in seeds)
    assert number(fmean(measured(full.cells, "mnist", "dre-paper", table.scores[-1], seeds))) in next(cells).text


def test_a_method_that_reads_an_earlier_stage_of_a_run_shows_that_stage(full: Written) -> None:
    block = next(block for block in full.page.of("table-1") if block.heading == "Fashion-MNIST")
    for method in ("deep-tsne", "dr-tsne"):
        values = measured(full.cells, "fashion-mnist", method, "neighborhood_hit", table_named("table-1").seeds_for(method))
        assert block.row(PLANS.methods[method].title)[1].text.startswith(number(fmean(values)))


def test_prefixes_are_columns_of_their_own(full: Written) -> None:
    table, (block,) = table_named("table-3"), full.page.of("table-3")
    row = block.row(PLANS.methods["dre"].title)
    for i, score in enumerate(table.scores):
        values = measured(full.cells, "infimnist-10k", "dre", score, table.seeds_for("dre"))
        assert row[1 + 3 * i].text.startswith(number(fmean(values), 4))
        assert score_title(score) in block.rows[0][2 + i].text


def test_times_are_shown_with_their_ratio_in_a_panel_for_each_kind_of_machine(full: Written) -> None:
    table = table_named("table-4")
    gpu, cpu = full.page.of("table-4")
    (seconds,) = measured(full.cells, "mnist", "dr-tsne", "fit_seconds", range(1), "gpu")
    paper = table.published["mnist"]["dr-tsne"][0]
    assert [cell.text for cell in gpu.row(PLANS.methods["dr-tsne"].title)[1:4]] == ["40.0", f"{paper:,}", ratio(seconds, paper)]
    assert {"ratio"} == set(gpu.heads()) - {"method", "seeds", "here", "paper"}
    assert "NVIDIA H200" in "".join(full.page.texts)
    assert "2 CPU cores" in "".join(full.page.texts)
    assert cpu.row(PLANS.methods["fit-sne"].title)[4].text == "–"
    assert "embeds no new rows" in cpu.notes


def test_no_cell_is_empty_and_each_dash_has_a_reason_that_is_there(full: Written) -> None:
    for table in full.page.tables:
        for row in table.rows:
            for cell in row:
                assert cell.text
                if cell.text == "–" and table.section.startswith("table") and "seeds" not in cell.classes:
                    numbers = [int(part) for part in cell.notes.split(", ")]
                    assert all(table.notes[i - 1] for i in numbers)


def test_the_reasons_are_those_of_the_plans_and_of_the_records(full: Written) -> None:
    notes = {table.heading: table.notes for table in full.page.of("table-1")}
    assert "failed: MemoryError: 31 GiB" in notes["MNIST"]
    assert NOT_YET in notes["MNIST"]
    assert f"seed 2: {NOT_YET}" in notes["Fashion-MNIST"]
    fashion = next(block for block in full.page.of("table-1") if block.heading == "Fashion-MNIST")
    assert fashion.row(PLANS.methods["dre"].title)[0].text == "2 of 3"
    for table in PLANS.tables:
        for told in table.not_run:
            assert any(" ".join(told.reason.split()) in block.notes for block in full.page.of(table.name))
            assert told.reason.replace("*", "\\*") in full.markdown


def test_in_sample_methods_are_marked_have_no_shade_and_are_never_the_best(full: Written) -> None:
    titles = {method.title for method in PLANS.methods.values() if PLANS.runs[method.run].baseline in made_up.IN_SAMPLE}
    for block in full.page.of("table-1"):
        for row in block.rows[2:]:
            in_sample = row[0].text.removesuffix(" in-sample") in titles and row[1].text != "–"
            assert row[0].text.endswith("in-sample") == in_sample
            if in_sample:
                values = [cell for cell in row if {"here", "paper"} & set(cell.classes)]
                assert not any(re.search(r"\bs\d|best", " ".join(cell.classes)) for cell in values)
    assert "not comparable with the held-out ones" in "".join(full.page.texts)


def test_the_best_parametric_value_of_each_column_is_bold(full: Written) -> None:
    block = next(block for block in full.page.of("table-1") if block.heading.startswith("CBMC"))
    table = table_named("table-1")
    known = [
        m for m in table.methods if PLANS.runs[PLANS.methods[m].run].baseline not in (*made_up.IN_SAMPLE, "umap", "open-tsne")
    ]
    for i, score in enumerate(table.scores):
        means = {m: fmean(measured(full.cells, "cbmc", m, score, table.seeds_for(m))) for m in known}
        best = [row[0].text for row in block.rows[2:] if "best" in row[2 + i].classes]
        assert best == [PLANS.methods[max(means, key=means.__getitem__)].title]


def test_published_values_on_other_features_are_printed_but_not_differenced(full: Written) -> None:
    blocks = {block.heading: block for block in full.page.of("table-1")}
    for name in table_named("table-1").not_differenced:
        heads = blocks[PLANS.data[name].title].heads()
        assert "paper" in heads
        assert "diff." not in heads
    assert "diff." in blocks["MNIST"].heads()
    assert not any(
        "IMDB" in row[2].text for table in full.page.of("summary") if "why" in table.heads() for row in table.rows[1:]
    )


def test_better_has_a_higher_shade_for_scores_and_a_lower_one_for_times(full: Written) -> None:
    def shades(block: Any, column: int) -> list[tuple[float, int]]:
        found = []
        for row in block.rows[2:]:
            step = re.search(r"\bs(\d)\b", " ".join(row[column].classes))
            if step:
                found.append((float(row[column].text.split()[0].replace(",", "").replace("−", "-")), int(step[1])))
        return sorted(found)

    scores = shades(full.page.of("table-1")[0], 2)
    times = shades(full.page.of("table-4")[0], 2)
    assert [step for _, step in scores] == sorted(step for _, step in scores)
    assert [step for _, step in times] == sorted((step for _, step in times), reverse=True)
    assert scores[0][1] < scores[-1][1]


def test_the_summary_says_plainly_where_ours_is_worse(tmp_path: Path) -> None:
    cells = made_up.cells(tmp_path)
    made_up.write_all(PLANS, cells)
    for seed, hit in ((0, 0.95), (1, 0.94), (2, 0.93)):
        job = Job("mnist", "dre", seed)
        content = made_up.record(job, PLANS)
        content["stages"][-1]["scores"] |= {"neighborhood_hit": hit, "nearest_neighbor": 2.0}
        cells.keep(job, content)
    report = read_report(PLANS, cells, tmp_path, figures={}, quick=False)
    title = PLANS.methods["dre"].title
    found = {balance.rival: balance for balance in report.summary.balances if balance.method == title}
    assert "MNIST, neighbourhood hit (−.030)" in found["the published value"].worse
    assert any(text.startswith("MNIST, 1-NN (+1.") for text in found["the best parametric baseline"].better)
    assert any(text.startswith("MNIST, 1-NN (+1.") for text in found["the best that embeds by search"].better)


def test_every_value_more_than_the_tolerance_below_the_published_one_is_listed_with_its_explanation(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Explaining(Table):
        explained: tuple[NotRun, ...] = ()

    table = table_named("table-1")
    small = {
        name: getattr(table, name)
        for name in table.__dataclass_fields__
        if name not in ("explained", "data", "methods", "seeds_of")
    }
    reason = NotRun("a program of another year", methods=("pca",))
    told = Explaining(**small, data=("mnist",), methods=("pca", "umap", "dl-umap"), explained=(reason,))
    plans = replace(PLANS, tables=(told,), figures=(), claims=())
    cells = made_up.cells(tmp_path)
    for method, below in (("pca", 0.0201), ("umap", 0.0199), ("dl-umap", 0.05)):
        job = Job("mnist", method, 0)
        content = made_up.record(job, plans)
        values = dict(zip(table.scores, table.published["mnist"][method], strict=False))
        content["stages"][0]["scores"] = {
            **values,
            "neighborhood_hit": values["neighborhood_hit"] - below,
            "nearest_neighbor": 0.5,
        }
        cells.keep(job, content)
    page = written(plans, cells, tmp_path / "report").page
    listed = next(table for table in page.of("summary") if "why" in table.heads())
    rows = {row[0].text: row for row in listed.rows[1:]}
    assert set(rows) == {"PCA", PLANS.methods["dl-umap"].title}
    assert rows["PCA"][6].text == "a program of another year"
    assert rows[PLANS.methods["dl-umap"].title][6].text == "not explained"
    assert rows["PCA"][5].text == "−.020"


def test_each_claim_has_a_verdict_and_what_is_missing_is_named(full: Written) -> None:
    report = read_report(PLANS, full.cells, full.folder, figures={}, quick=False)
    assert [claim.title for claim in report.claims] == [claim.title for claim in PLANS.claims]
    text = "".join(full.page.texts)
    for claim, shown in zip(PLANS.claims, report.claims, strict=True):
        assert shown.verdict in ("holds", "does not hold", "undecided")
        assert len(shown.told) == len(claim.comparisons)
        assert claim.title in text
        assert " ".join(claim.says.split()) in text
        assert f"### {claim.title}: {shown.verdict}" in full.markdown
    missing = [told.interval for claim in report.claims for told in claim.told if told.this == "–"]
    assert "no record of umap on mnist, seed 0: failed: MemoryError: 31 GiB" in missing


def test_a_claim_shows_both_means_the_difference_and_its_interval(tmp_path: Path) -> None:
    claim = next(claim for claim in PLANS.claims if claim.name == "recursion-lowers-shepard")
    plans = replace(PLANS, tables=(), figures=(), claims=(claim,))
    cells = made_up.cells(tmp_path)
    for job in jobs(plans, Selection()):
        content = made_up.record(job, plans)
        for stage in content["stages"]:
            stage["scores"]["shepard_goodness"] = 0.4 + 0.001 * job.seed
        content["stages"][3]["scores"]["shepard_goodness"] = 0.3
        cells.keep(job, content)
    (shown,) = read_report(plans, cells, tmp_path, figures={}, quick=False).claims
    assert shown.verdict == "holds"
    assert (shown.told[0].this, shown.told[0].that, shown.told[0].difference, shown.told[0].seeds) == (
        ".3000",
        ".4010",
        "−.1010",
        "3",
    )
    low, high = (float(part.replace("−", "-")) for part in shown.told[0].interval.split(" to "))
    assert low < -0.101 < high < 0
    assert math.isclose((low + high) / 2, -0.101, abs_tol=1e-3)


def test_nothing_is_measured_yet_and_the_report_says_so_everywhere(tmp_path: Path) -> None:
    found = written(PLANS, made_up.cells(tmp_path), tmp_path / "report")
    assert "No record of ours is there yet." in found.html
    for table in PLANS.tables:
        for block in found.page.of(table.name):
            assert {cell.text for row in block.rows[2:] for cell in row if "here" in cell.classes} == {"–"}
    assert found.html.count("does not hold") == 0


def test_only_what_was_selected_is_reported(tmp_path: Path) -> None:
    cells = made_up.cells(tmp_path)
    chosen = Selection(plans=("table-3",)).of(PLANS)
    made_up.write_all(chosen, cells)
    page = written(chosen, cells, tmp_path / "report").page
    assert {table.section for table in page.tables} == {"summary", "table-3"}


def test_a_record_of_another_plan_is_shown_with_a_remark(tmp_path: Path) -> None:
    cells = made_up.cells(tmp_path)
    job = Job("infimnist-10k", "pca", 0)
    cells.keep(job, made_up.record(job, PLANS, plan={"data": "another"}))
    (block,) = written(Selection(plans=("table-3",)).of(PLANS), cells, tmp_path / "report").page.of("table-3")
    assert f"seed 0: {CHANGED}" in block.notes
    assert block.row("PCA")[1].text != "–"


def test_hostile_titles_messages_and_commands_stay_text(tmp_path: Path) -> None:
    data = {**PLANS.data, "mnist": replace(PLANS.data["mnist"], title=HOSTILE)}
    methods = {**PLANS.methods, "pca": replace(PLANS.methods["pca"], title=HOSTILE)}
    tables = tuple(replace(table, title=f"{table.title} {HOSTILE}", about=HOSTILE) for table in PLANS.tables)
    claims = tuple(replace(claim, title=HOSTILE, says=HOSTILE) for claim in PLANS.claims)
    plans = replace(PLANS, data=data, methods=methods, tables=tables, claims=claims)
    cells = made_up.cells(tmp_path)
    for job in made_up.write_all(plans, cells):
        cells.keep(job, made_up.record(job, plans, command=HOSTILE, data=HOSTILE, versions={HOSTILE: HOSTILE}))
    cells.keep(Job("mnist", "umap", 0), {"plan": {}, "failed": HOSTILE})
    found = written(plans, cells, tmp_path / "report")
    assert not {"script", "img", "iframe"} & found.page.tags
    assert HOSTILE in found.page.of("table-1")[0].heading
    assert "<script" not in found.markdown
    assert "<img" not in found.markdown
    assert "](javascript" not in found.markdown
    columns: list[int] = []
    for line in found.markdown.splitlines():  # every line of a table has as many cells as its head
        columns = [*columns, len(re.findall(r"(?<!\\)\|", line))] if line.startswith("|") else []
        assert len(set(columns)) <= 1, line


def test_the_page_asks_for_nothing_and_shows_its_pictures(tmp_path: Path) -> None:
    from PIL import Image

    figures = {}
    for name, suffix in (("figure-3", "png"), ("figure-5-published", "webp")):
        figures[name] = tmp_path / "report" / "figures" / f"{name}.{suffix}"
        figures[name].parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 40), (200, 30, 60)).save(figures[name], lossless=True)
    found = written(PLANS, made_up.cells(tmp_path), tmp_path / "report", figures=figures)
    assert not {"script", "link", "iframe", "object", "embed"} & found.page.tags
    assert all(reference.startswith(("#", "data:image/")) for reference in found.page.references)
    assert not re.search(r"url\(|@import|https?://", found.html)
    shown = [reference for reference in found.page.references if reference.startswith("data:")]
    assert len(shown) == 2
    for reference, path in zip(shown, figures.values(), strict=True):
        kind, _, content = reference.partition(";base64,")
        assert kind == f"data:image/{path.suffix[1:]}"
        assert base64.b64decode(content) == path.read_bytes()
    for path in re.findall(r"!\[.*?\]\((.*?)\)", found.markdown):
        assert path.startswith("figures/")
        assert (found.folder / path).is_file()
    assert PLANS.figures[0].title in found.markdown
    anchors = set(re.findall(r'id="([\w-]+)"', found.html))
    assert {reference[1:] for reference in found.page.references if reference.startswith("#")} <= anchors


def test_hits_at_several_levels_and_published_maps_have_tables(tmp_path: Path) -> None:
    cells = made_up.cells(tmp_path)
    made_up.write_all(Selection(plans=("table-1",)).of(PLANS), cells)
    content = {"command": "python benchmarks/tasic_maps.py", "results": {"tsne-p30": {"class": 0.99971, "cluster": 0.9038}}}
    (tmp_path / "tasic-maps.json").write_text(json.dumps(content))
    page = written(PLANS, cells, tmp_path / "report").page
    imdb, published = page.of("levels")
    seeds = table_named("table-1").seeds_for("dre")
    hit = fmean(measured(cells, "imdb", "dre", "neighborhood_hit", seeds))
    assert [cell.text for cell in imdb.rows[0]] == ["method", "sentiment", "stars"]
    assert [cell.text for cell in imdb.row(PLANS.methods["dre"].title)] == [number(hit), ".250"]
    assert [cell.text for cell in published.row("tsne-p30")] == ["1.000", ".904"]


def test_a_quick_run_says_that_it_is_one(tmp_path: Path) -> None:
    plans = PLANS.quick(2000, 500)
    cells = made_up.cells(tmp_path)
    made_up.write_all(plans, cells)
    found = written(plans, cells, tmp_path / "report", quick=True)
    assert "A quick run." in found.html
    assert "A quick run." in found.markdown
    assert not any("why" in table.heads() for table in found.page.of("summary"))
    assert "beside the published value" not in found.html
    assert all(claim.verdict == "undecided" for claim in read_report(plans, cells, tmp_path, figures={}, quick=True).claims)


def test_machines_versions_and_days_come_from_the_records(full: Written) -> None:
    report = read_report(PLANS, full.cells, full.folder, figures={}, quick=False)
    assert report.sources.count == len(list(full.cells.records.glob("*.json")))
    assert report.sources.failed == 1
    assert report.sources.days == "2025-03-01 to 2025-03-03"
    assert any(machine.startswith("NVIDIA H200, 16 CPU cores") for machine in report.sources.machines)
    assert "torch 2.6.0" in report.sources.versions
    assert report.records == "../cells"
