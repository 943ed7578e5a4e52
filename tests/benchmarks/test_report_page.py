"""The page as a whole: it needs nothing from outside, text stays text, and it works with whatever records there are."""

from __future__ import annotations

import base64
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
import pytest
from page import written

from paper.canvas import Grid
from paper.jobs import Selection
from paper.networks import draw_networks
from paper.report import check_installed, read_report
from paper.schematic import draw_schematic
from paper.spec import Job

SPEC = made_up.spec()
HOSTILE = "<script>alert('x')</script> | <img src=x onerror=alert(1)> ](javascript:alert(1))"
INSTALL = r"pip install 'deep-recursive-embedding\[bench,report\]'"


def test_nothing_is_measured_yet_and_the_report_says_so_everywhere(tmp_path: Path) -> None:
    found = written(SPEC, made_up.store(tmp_path), tmp_path / "report")
    assert "DRE has not been measured yet." in found.html
    for table in SPEC.tables:
        for block in found.page.of(table.name):
            assert {cell.text for row in block.rows[2:] for cell in row if "here" in cell.classes} == {"–"}
    assert {claim.verdict for claim in read_report(SPEC, found.store, tmp_path, figures={}, quick=False).claims} == {
        "undecided"
    }


def test_only_what_was_selected_is_reported(tmp_path: Path) -> None:
    store = made_up.store(tmp_path)
    chosen = Selection(parts=("table-3",)).apply(SPEC)
    made_up.write_all(chosen, store)
    page = written(chosen, store, tmp_path / "report").page
    assert {table.section for table in page.tables} == {"summary", "table-3"}


def test_hostile_titles_messages_and_commands_stay_text(tmp_path: Path) -> None:
    data = {**SPEC.data, "mnist": replace(SPEC.data["mnist"], title=HOSTILE)}
    methods = {**SPEC.methods, "pca": replace(SPEC.methods["pca"], title=HOSTILE)}
    tables = tuple(replace(table, title=f"{table.title} {HOSTILE}", about=HOSTILE) for table in SPEC.tables)
    claims = tuple(replace(claim, title=HOSTILE, says=HOSTILE) for claim in SPEC.claims)
    spec = replace(SPEC, data=data, methods=methods, tables=tables, claims=claims)
    store = made_up.store(tmp_path)
    for job in made_up.write_all(spec, store):
        store.save(job, made_up.record(job, spec, command=HOSTILE, data=HOSTILE, versions={HOSTILE: HOSTILE}))
    store.save(Job("mnist", "umap", 0), {"plan": {}, "failed": HOSTILE})
    found = written(spec, store, tmp_path / "report")
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
    found = written(SPEC, made_up.store(tmp_path), tmp_path / "report", figures=figures)
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
    assert SPEC.figures[0].title in found.markdown
    anchors = set(re.findall(r'id="([\w-]+)"', found.html))
    assert {reference[1:] for reference in found.page.references if reference.startswith("#")} <= anchors


def test_hits_at_several_levels_and_published_maps_have_tables(tmp_path: Path) -> None:
    store = made_up.store(tmp_path)
    made_up.write_all(Selection(parts=("table-1",)).apply(SPEC), store)
    for seed, hit in enumerate((0.61, 0.62, 0.63)):
        levels: Any = {"sentiment": hit, "stars": 0.25}
        made_up.set_scores(store, Job("imdb", "dre", seed), neighborhood_hit_by_level=levels)
    content = {"command": "python benchmarks/tasic_maps.py", "results": {"tsne-p30": {"class": 0.99971, "cluster": 0.9038}}}
    (tmp_path / "tasic-maps.json").write_text(json.dumps(content))
    page = written(SPEC, store, tmp_path / "report").page
    imdb, published = page.of("levels")
    assert [cell.text for cell in imdb.rows[0]] == ["method", "sentiment", "stars"]
    assert [cell.text for cell in imdb.row(SPEC.methods["dre"].title)] == [".620", ".250"]
    assert [cell.text for cell in published.row("tsne-p30")] == ["1.000", ".904"]


def test_a_quick_run_says_that_it_is_one(tmp_path: Path) -> None:
    spec = SPEC.quick(2000, 500)
    store = made_up.store(tmp_path)
    made_up.write_all(spec, store)
    found = written(spec, store, tmp_path / "report", quick=True)
    assert "A quick run." in found.html
    assert "A quick run." in found.markdown
    assert not any("likely why" in table.heads() for table in found.page.of("summary"))
    assert "vs. the value published" not in found.html
    assert all(claim.verdict == "undecided" for claim in read_report(spec, store, tmp_path, figures={}, quick=True).claims)


def test_machines_versions_and_days_come_from_the_records(tmp_path: Path) -> None:
    store = made_up.full(SPEC, tmp_path)
    report = read_report(SPEC, store, tmp_path / "report", figures={}, quick=False)
    assert report.sources.count == len(list(store.records.glob("*.json")))
    assert report.sources.failed == 3
    assert report.sources.days == "2025-03-01 to 2025-03-03"
    assert any(machine.startswith("NVIDIA H200, 16 CPU cores") for machine in report.sources.machines)
    assert "torch 2.6.0" in report.sources.versions
    assert report.records == "../cells"


def test_what_differs_from_the_published_programs_is_told(tmp_path: Path) -> None:
    text = " ".join("".join(written(SPEC, made_up.store(tmp_path), tmp_path / "report").page.texts).split())
    assert "Adam instead of conjugate gradients" in text
    assert "UMAP uses one thread if it has one" in text


@pytest.mark.parametrize("module", ["jinja2", "matplotlib.figure"])
def test_what_is_not_installed_is_named_with_the_remedy(module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_installed()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"{module.partition('.')[0]} is needed.*{INSTALL}"):
        check_installed()
    if module == "jinja2":
        with pytest.raises(ImportError, match=INSTALL):
            written(SPEC, made_up.store(tmp_path), tmp_path / "report")
        return
    for draw in (draw_networks, draw_schematic, lambda: Grid(1, 1)):
        with pytest.raises(ImportError, match=INSTALL):
            draw()
