"""Tables of the report: every cell has its value or its reason, and says what it rests on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import made_up
import pytest
from page import Written, written

from paper.jobs import Selection
from paper.spec import Job, Table

SPEC = made_up.spec()


# Scores of three seeds that tests know by heart; stage 0 and 3 of the paper's run are Deep t-SNE and DRE t-SNE.
KNOWN = {
    "neighborhood_hit": (0.90, 0.91, 0.92),
    "trustworthiness": (0.93, 0.93, 0.93),
    "continuity": (0.95, 0.96, 0.97),
    "one_minus_stress": (0.50, 0.52, 0.54),
    "shepard_goodness": (0.31, 0.32, 0.33),
    "nearest_neighbor": (0.90, 0.90, 0.93),
}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("full")
    store = made_up.full(SPEC, folder)
    for seed in range(3):
        made_up.set_scores(store, Job("mnist", "paper", seed), **{name: values[seed] for name, values in KNOWN.items()})
        made_up.set_scores(store, Job("fashion-mnist", "paper", seed), 0, neighborhood_hit=0.70)
        made_up.set_scores(store, Job("fashion-mnist", "paper", seed), 3, neighborhood_hit=0.75)
        made_up.set_scores(store, Job("pbmc", "umap", seed), neighborhood_hit=(0.90, 0.92, 0.94)[seed])
        made_up.set_scores(store, Job("infimnist-10k", "dre", seed), prefixes={10_000: 0.8123, 30_000: 0.8456, 60_000: 0.8789})
    return written(SPEC, store, folder / "report")


def table_named(name: str) -> Table:
    return next(table for table in SPEC.tables if table.name == name)


def test_every_table_and_every_method_is_there(full: Written) -> None:
    for table in SPEC.tables:
        shown = full.page.of(table.name)
        assert len(shown) == len(table.panels) * (1 if len(table.scores) == 1 else len(table.data))
        for block in shown:
            for method in table.methods:
                assert block.row(SPEC.methods[method].title)
        assert f"## {table.title}" in full.markdown


def test_a_score_is_the_mean_over_the_seeds_next_to_the_published_value_and_the_difference(full: Written) -> None:
    block = next(block for block in full.page.of("table-1") if block.heading == "MNIST")
    cells = block.row("DRE t-SNE + UMAP")[1:]
    assert [cell.text for cell in cells] == [
        *(".910 ± .010", ".97", "−.060"),
        *(".930 ± .000", ".92", "+.010"),
        *(".960 ± .010", ".96", "±.000"),
        *(".520 ± .020", ".52", "±.000"),
        *(".320 ± .010", ".29", "+.030"),
        ".910 ± .017",
    ]
    for seed in range(3):
        assert f"mnist--paper--{seed}.json" in cells[0].title
    assert cells[0].title.startswith("seed 0: .900, seed 1: .910, seed 2: .920")


def test_a_method_that_reads_an_earlier_stage_of_a_run_shows_that_stage(full: Written) -> None:
    block = next(block for block in full.page.of("table-1") if block.heading == "Fashion-MNIST")
    assert block.row("Deep t-SNE")[1].text == ".700 ± .000"
    assert block.row("DRE t-SNE")[1].text == ".750 ± .000"


def test_prefixes_are_columns_of_their_own(full: Written) -> None:
    (block,) = full.page.of("table-3")
    assert [cell.text for cell in block.rows[0][2:]] == ["1-NN, first 10,000", "1-NN, first 30,000", "1-NN, first 60,000"]
    row = block.row("DRE(), default")
    assert [row[1 + 3 * i].text for i in range(3)] == [".8123 ± .0000", ".8456 ± .0000", ".8789 ± .0000"]


def test_times_are_shown_with_their_ratio_in_a_panel_for_each_kind_of_machine(full: Written) -> None:
    gpu, cpu = full.page.of("table-4")
    assert [cell.text for cell in gpu.row("DRE t-SNE")[1:4]] == ["40.0", "339.51", "8.5 × faster"]
    assert {"ratio"} == set(gpu.heads()) - {"method", "seeds", "here", "paper"}
    assert "NVIDIA H200" in "".join(full.page.texts)
    assert "2 CPU cores" in "".join(full.page.texts)
    assert cpu.row("FIt-SNE, late exaggeration 4")[4].text == "–"
    assert "can't embed new rows" in cpu.notes


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
    assert "not measured yet" in notes["MNIST"]
    assert "seed 2: not measured yet" in notes["Fashion-MNIST"]
    fashion = next(block for block in full.page.of("table-1") if block.heading == "Fashion-MNIST")
    assert fashion.row(SPEC.methods["dre"].title)[0].text == "2 of 3"
    for table in SPEC.tables:
        for told in table.not_run:
            assert any(" ".join(told.reason.split()) in block.notes for block in full.page.of(table.name))
            assert told.reason.replace("*", "\\*") in full.markdown


def test_in_sample_methods_are_marked_have_no_shade_and_are_never_the_best(full: Written) -> None:
    titles = {method.title for method in SPEC.methods.values() if SPEC.runs[method.run].baseline in made_up.IN_SAMPLE}
    for block in full.page.of("table-1"):
        for row in block.rows[2:]:
            in_sample = row[0].text.removesuffix(" in-sample") in titles and row[1].text != "–"
            assert row[0].text.endswith("in-sample") == in_sample
            if in_sample:
                values = [cell for cell in row if {"here", "paper"} & set(cell.classes)]
                assert not any(re.search(r"\bs\d|best", " ".join(cell.classes)) for cell in values)
    assert "not comparable with held-out values" in "".join(full.page.texts)


def test_the_best_parametric_value_of_each_column_is_bold(full: Written) -> None:
    block = next(block for block in full.page.of("table-1") if block.heading.startswith("CBMC"))
    table = table_named("table-1")
    known = [
        m for m in table.methods if SPEC.runs[SPEC.methods[m].run].baseline not in (*made_up.IN_SAMPLE, "umap", "open-tsne")
    ]
    for i, score in enumerate(table.scores):
        means = {m: fmean(made_up.measured(full.store, SPEC, "cbmc", m, score)) for m in known}
        best = [row[0].text for row in block.rows[2:] if "best" in row[2 + i].classes]
        assert best == [SPEC.methods[max(means, key=means.__getitem__)].title]


def test_published_values_on_other_features_are_printed_but_not_differenced(full: Written) -> None:
    blocks = {block.heading: block for block in full.page.of("table-1")}
    for name in table_named("table-1").not_differenced:
        heads = blocks[SPEC.data[name].title].heads()
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
        store.save(job, made_up.record(job, SPEC, **({"plan": {"data": "another"}} if seed else {})))
    made_up.set_scores(store, Job("infimnist-10k", "pca", 0), prefixes={10_000: 0.8123})
    (block,) = written(Selection(parts=("table-3",)).apply(SPEC), store, tmp_path / "report").page.of("table-3")
    assert "seed 1: measured before its settings were changed" in block.notes
    assert "seed 2: not measured yet" in block.notes
    assert block.row("PCA")[1].text == ".8123"


def of_table_2(tmp_path: Path, test_rows: dict[str, int], **changes: Any) -> Written:
    """PCA, UMAP and DL projection on the smallest of its data, each scored on so many rows."""
    table = replace(table_named("table-2"), data=("infimnist-50k",), methods=tuple(test_rows))
    spec = replace(SPEC, tables=(table,), figures=(), claims=())
    store = made_up.store(tmp_path)
    for method, count in test_rows.items():
        job = Job("infimnist-50k", SPEC.methods[method].run, 0)
        store.save(job, made_up.record(job, spec, rows=50_000, test_rows=count, **changes))
    return written(spec, store, tmp_path / "report")


def test_a_value_that_rests_on_other_rows_than_its_column_says_so(tmp_path: Path) -> None:
    found = of_table_2(tmp_path, {"pca": 1_000_000, "umap": 100_000, "dl-umap": 1_000_000})
    (block,) = found.page.of("table-2")
    note = "on the first 100,000 test rows, the others on 1,000,000"
    cells = {method: block.row(SPEC.methods[method].title)[1] for method in ("pca", "umap", "dl-umap")}
    assert block.notes[int(cells["umap"].notes) - 1] == note
    assert not cells["pca"].notes
    assert not cells["dl-umap"].notes
    assert f". {note}" in found.markdown
    assert re.search(rf"\| UMAP \| 1 \| \**{re.escape(cells['umap'].text)}\**<sup>{cells['umap'].notes}</sup>", found.markdown)


def test_rows_that_are_the_same_for_all_need_no_note(tmp_path: Path) -> None:
    found = of_table_2(tmp_path, {"pca": 100_000, "umap": 100_000})
    assert "the others" not in "".join(found.page.of("table-2")[0].notes)


def test_the_rows_are_told_under_the_title_that_the_data_have_in_the_plans(full: Written, tmp_path: Path) -> None:
    found = of_table_2(tmp_path, {"pca": 1_000_000, "umap": 100_000, "dl-umap": 1_000_000}, data="InfiMNIST")
    title = SPEC.data["infimnist-50k"].title
    assert f"{title}: 50,000 training rows, 1,000,000 test rows. Measured on" in found.html
    for data in table_named("table-2").data:
        assert full.html.count(f"{SPEC.data[data].title}: 60,000 training rows") == 1


def test_a_value_is_the_mean_of_all_seeds_that_a_table_or_a_claim_asks_for(full: Written) -> None:
    assert list(table_named("table-1").seeds_for("umap")) == [0]  # the other seeds are those of claims
    row = next(block for block in full.page.of("table-1") if block.heading.startswith("PBMC")).row("UMAP")
    assert [cell.text for cell in row[:2]] == ["3", ".920 ± .020"]


def test_the_readme_has_the_means_of_the_report(full: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    import readme

    monkeypatch.setattr(readme, "Store", lambda records, maps: full.store)
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in readme.paper().splitlines() if "|" in line]
    rows = {line[0]: dict(zip(lines[0][1:], line[1:], strict=True)) for line in lines[2:]}
    blocks = {block.heading: block for block in full.page.of("table-1")}
    for data in ("mnist", "fashion-mnist", "pbmc"):
        title = SPEC.data[data].title
        for method in ("dre", "umap", "dl-umap"):
            shown = blocks[title].row(SPEC.methods[method].title)[1].text
            assert rows[f"{title}, hit"][SPEC.methods[method].title] == shown.split(" ±")[0]
    assert rows["MNIST, hit"][SPEC.methods["umap"].title] == "–"
