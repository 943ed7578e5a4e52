"""Tables of the report: every cell has its value or its reason, and says what it rests on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import made_up
import pytest
from page import Written, written

from paper.jobs import Selection
from paper.report.formatting import number, ratio, score_title, signed
from paper.report.reading import CHANGED, NOT_YET, Place
from paper.spec import ANYWHERE, Job, Table

PLANS = made_up.spec()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("full")
    return written(PLANS, made_up.full(PLANS, folder), folder / "report")


def table_named(name: str) -> Table:
    return next(table for table in PLANS.tables if table.name == name)


def measured(full: Written, data: str, method: str, score: str, panel: str = ANYWHERE) -> list[float]:
    """Of all seeds that there are records of, whether a table or a claim asked for them."""
    run = PLANS.methods[method].run
    there = [seed for seed in range(9) if full.store.path(Job(data, run, seed, panel)).exists()]
    return made_up.measured(full.store, PLANS, Place(data, method, score, panel), there)


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
    seeds = table.seeds_for("paper")
    store = iter(block.row(PLANS.methods["paper"].title)[1:])
    for score, paper in zip(table.scores, table.published["mnist"]["paper"], strict=False):
        values = measured(full, "mnist", "paper", score)
        here, theirs, difference = next(store), next(store), next(store)
        assert here.text == f"{number(fmean(values))} ± {number(stdev(values))}"
        assert theirs.text == number(paper, 2)
        assert difference.text == signed(fmean(values) - paper)
        assert all(f"mnist--dre-paper--{seed}.json" in here.title for seed in seeds)
    assert number(fmean(measured(full, "mnist", "paper", table.scores[-1]))) in next(store).text


def test_a_method_that_reads_an_earlier_stage_of_a_run_shows_that_stage(full: Written) -> None:
    block = next(block for block in full.page.of("table-1") if block.heading == "Fashion-MNIST")
    for method in ("paper-deep-tsne", "paper-tsne"):
        values = measured(full, "fashion-mnist", method, "neighborhood_hit")
        assert block.row(PLANS.methods[method].title)[1].text.startswith(number(fmean(values)))


def test_prefixes_are_columns_of_their_own(full: Written) -> None:
    table, (block,) = table_named("table-3"), full.page.of("table-3")
    row = block.row(PLANS.methods["dre"].title)
    for i, score in enumerate(table.scores):
        values = measured(full, "infimnist-10k", "dre", score)
        assert row[1 + 3 * i].text.startswith(number(fmean(values), 4))
        assert score_title(score) in block.rows[0][2 + i].text


def test_times_are_shown_with_their_ratio_in_a_panel_for_each_kind_of_machine(full: Written) -> None:
    table = table_named("table-4")
    gpu, cpu = full.page.of("table-4")
    (seconds,) = measured(full, "mnist", "paper-tsne", "fit_seconds", "gpu")
    paper = table.published["mnist"]["paper-tsne"][0]
    assert [cell.text for cell in gpu.row(PLANS.methods["paper-tsne"].title)[1:4]] == [
        "40.0",
        f"{paper:,}",
        ratio(seconds, paper),
    ]
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
        means = {m: fmean(measured(full, "cbmc", m, score)) for m in known}
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
        "IMDB" in row[2].text for table in full.page.of("summary") if "likely why" in table.heads() for row in table.rows[1:]
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


def test_a_record_of_another_plan_is_no_result_and_the_reason_is_given(tmp_path: Path) -> None:
    store = made_up.store(tmp_path)
    for seed in range(2):
        job = Job("infimnist-10k", "pca", seed)
        store.keep(job, made_up.record(job, PLANS, **({"plan": {"data": "another"}} if seed else {})))
    (block,) = written(Selection(spec=("table-3",)).of(PLANS), store, tmp_path / "report").page.of("table-3")
    assert f"seed 1: {CHANGED}" in block.notes
    assert f"seed 2: {NOT_YET}" in block.notes
    here = made_up.measured(store, PLANS, Place("infimnist-10k", "pca", table_named("table-3").scores[0]), range(1))
    assert block.row("PCA")[1].text == number(here[0], 4)


def of_table_2(tmp_path: Path, test_rows: dict[str, int], **changes: Any) -> Written:
    """PCA, UMAP and DL projection on the smallest of its data, each scored on so many rows."""
    table = replace(table_named("table-2"), data=("infimnist-50k",), methods=tuple(test_rows))
    spec = replace(PLANS, tables=(table,), figures=(), claims=())
    store = made_up.store(tmp_path)
    for method, count in test_rows.items():
        job = Job("infimnist-50k", PLANS.methods[method].run, 0)
        store.keep(job, made_up.record(job, spec, rows=50_000, test_rows=count, **changes))
    return written(spec, store, tmp_path / "report")


def test_a_value_that_rests_on_other_rows_than_its_column_says_so(tmp_path: Path) -> None:
    found = of_table_2(tmp_path, {"pca": 1_000_000, "umap": 100_000, "dl-umap": 1_000_000})
    (block,) = found.page.of("table-2")
    note = "on the first 100,000 test rows, the others on 1,000,000"
    store = {method: block.row(PLANS.methods[method].title)[1] for method in ("pca", "umap", "dl-umap")}
    assert block.notes[int(store["umap"].notes) - 1] == note
    assert not store["pca"].notes
    assert not store["dl-umap"].notes
    assert f". {note}" in found.markdown
    assert re.search(rf"\| UMAP \| 1 \| \**{re.escape(cells['umap'].text)}\**<sup>{cells['umap'].notes}</sup>", found.markdown)


def test_rows_that_are_the_same_for_all_need_no_note(tmp_path: Path) -> None:
    found = of_table_2(tmp_path, {"pca": 100_000, "umap": 100_000})
    assert "the others" not in "".join(found.page.of("table-2")[0].notes)


def test_the_rows_are_told_under_the_title_that_the_data_have_in_the_plans(full: Written, tmp_path: Path) -> None:
    found = of_table_2(tmp_path, {"pca": 1_000_000, "umap": 100_000, "dl-umap": 1_000_000}, data="InfiMNIST")
    title = PLANS.data["infimnist-50k"].title
    assert f"{title}: 50,000 rows to learn from, 1,000,000 to be tested on. Measured on" in found.html
    for data in table_named("table-2").data:
        assert full.html.count(f"{PLANS.data[data].title}: 60,000 rows to learn from") == 1


def test_what_stands_in_for_data_is_named(tmp_path: Path) -> None:
    told = f"{PLANS.data['infimnist-50k'].title} (not at hand: the digits of scikit-learn stand in)"
    found = of_table_2(tmp_path, {"pca": 400, "umap": 400}, data=told)
    assert f"{told}: 50,000 rows to learn from" in found.html


def test_a_value_is_the_mean_of_all_seeds_that_a_table_or_a_claim_asks_for(full: Written) -> None:
    table = table_named("table-1")
    assert list(table.seeds_for("umap")) == [0]
    values = made_up.measured(full.store, PLANS, Place("pbmc", "umap", "neighborhood_hit"), range(3))  # three for the claims
    row = next(block for block in full.page.of("table-1") if block.heading.startswith("PBMC")).row(PLANS.methods["umap"].title)
    assert [cell.text for cell in row[:2]] == ["3", f"{number(fmean(values))} ± {number(stdev(values))}"]


def test_the_readme_has_the_means_of_the_report(full: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    import readme

    monkeypatch.setattr(readme, "Cells", lambda records, maps: full.store)
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in readme.paper().splitlines() if "|" in line]
    rows = {line[0]: dict(zip(lines[0][1:], line[1:], strict=True)) for line in lines[2:]}
    blocks = {block.heading: block for block in full.page.of("table-1")}
    for data in ("mnist", "fashion-mnist", "pbmc"):
        title = PLANS.data[data].title
        for method in ("dre", "umap", "dl-umap"):
            shown = blocks[title].row(PLANS.methods[method].title)[1].text
            assert rows[f"{title}, hit"][PLANS.methods[method].title] == shown.split(" ±")[0]
    assert rows["MNIST, hit"][PLANS.methods["umap"].title] == "–"
