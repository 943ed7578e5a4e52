"""The command ``dre bench``: from a selection to a report, quickly; and in full on few rows."""

import json
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

import dre
from dre.cli import main
from paper.load_spec import Spec

mpl.use("Agg")
PLANS = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Without data of one's own, a cache or a network, as on a fresh machine."""
    monkeypatch.setenv("DRE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DRE_DATA", raising=False)
    monkeypatch.setenv("DRE_OFFLINE", "1")

    def run(*arguments):
        told = ["dre", "bench", *map(str, arguments), "--plans", str(PLANS), "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", told)
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    return run


def records(folder):
    return {path.stem: json.loads(path.read_text()) for path in (folder / "out" / "cells").glob("*.json")}


def test_a_selection_is_measured_and_reported(bench, tmp_path, capsys):
    selected = ["table-3", "generalisation-is-flat", "--only-methods", "pca,dre", "--quick"]
    assert bench(*selected) == 0
    found = records(tmp_path)
    assert set(found) == {"infimnist-10k--pca--0", "infimnist-10k--dre--0"}
    assert "stand in" in found["infimnist-10k--pca--0"]["data"]
    assert found["infimnist-10k--dre--0"]["command"] == "dre bench --only-data infimnist-10k --only-methods dre"
    report = tmp_path / "out" / "report"
    assert "Table 3" in (report / "report.md").read_text()
    assert 'id="table-1"' not in (report / "report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert bench(*selected) == 0
    assert "2 cells, 2 of them done" in capsys.readouterr().out


def test_what_would_be_run_is_said(bench, capsys, tmp_path):
    assert bench("table-1", "--dry-run", "--only-data", "mnist", "--panels", "none") == 0
    out = capsys.readouterr().out
    assert "mnist/paper/2" in out
    assert "mnist/umap/0" in out
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_not_there_is_an_error_of_one_line(bench, capsys):
    assert bench("table-9", "--quick") == 2
    assert "table-9" in capsys.readouterr().err.splitlines()[0]


def test_a_failed_cell_makes_the_command_fail_and_is_shown(bench, tmp_path, capsys):
    assert bench("table-1", "--only-data", "mnist", "--only-methods", "pca", "--panels", "none") == 1  # no data, no stand-in
    record = json.loads((tmp_path / "out" / "cells" / "mnist--pca--0.json").read_text())
    assert "is missing" in record["failed"]
    assert record["job"] == {"data": "mnist", "run": "pca", "seed": 0, "panel": ""}
    assert "1 of the cells failed" in capsys.readouterr().err
    assert "is missing" in (tmp_path / "out" / "report" / "report.md").read_text()


def test_what_may_be_missing_is_left_out_with_its_reason(bench, tmp_path, capsys):
    assert bench("table-1", "--only-data", "tasic2018", "--only-methods", "pca", "--panels", "none") == 0
    assert "left out: " in capsys.readouterr().out
    assert not list((tmp_path / "out").glob("cells/*"))


@pytest.mark.parametrize("wrong", [("--only-data", "minst"), ("--only-methods", "umpa"), ("--panels", "tpu")])
def test_what_is_not_in_the_plans_is_refused(bench, wrong, capsys):
    assert bench("table-1", "--dry-run", *wrong) == 2
    assert wrong[1] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("selected", "message"),
    [
        (("table-3", "--only-data", "mnist"), "no cell of table-3 has the data mnist; --only-data can be infimnist-10k"),
        (
            ("table-1", "--only-methods", "fit-sne-8,paper-tsne-wide"),
            "table-1 has the method fit-sne-8 or paper-tsne-wide; --only-methods can be pca",
        ),
        (
            ("table-2", "--only-data", "infimnist-50k", "--panels", "cpu"),
            "with the data infimnist-50k has the panel cpu; --panels can be none",
        ),
        (("table-4", "--panels", "none"), "table-4 has the panel none; --panels can be gpu, cpu"),
    ],
)
def test_a_selection_without_a_cell_says_which_part_matches_nothing_and_what_could(bench, selected, message, tmp_path, capsys):
    assert bench(*selected) == 2
    line, *others = capsys.readouterr().err.splitlines()
    assert message in line
    assert not others
    assert not (tmp_path / "out").exists()


def test_the_version_is_printed_and_nothing_else(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dre", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr() == (f"{dre.__version__}\n", "")


@pytest.mark.slow
def test_all_of_it_runs_on_few_rows(bench, tmp_path, capsys):
    assert bench("--quick") == 0
    spec = Spec.read(PLANS)
    found = records(tmp_path)
    assert not [name for name, record in found.items() if "failed" in record]
    assert {record["job"]["run"] for record in found.values()} == set(spec.runs)
    text = (tmp_path / "out" / "report" / "report.md").read_text()
    assert all(each.title in text for each in (*spec.tables, *spec.figures, *spec.claims))
