"""benchmarks/bench.py: from a selection to a report, quickly; and in full on few rows."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pytest

import bench as script
from paper import loading
from paper.load_spec import load_spec

mpl.use("Agg")
FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Without data of one's own, a cache or a network, as on a fresh machine."""
    monkeypatch.setenv("DRE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DRE_DATA", raising=False)
    monkeypatch.setenv("DRE_OFFLINE", "1")

    def run(*arguments):
        argv = ["bench.py", *map(str, arguments), "--spec", str(FOLDER), "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as ended:
            script.main()
        return ended.value.code

    return run


def records(folder):
    return {path.stem: json.loads(path.read_text()) for path in (folder / "out" / "cells").glob("*.json")}


@pytest.mark.slow
def test_a_selection_is_measured_and_reported(bench, tmp_path, capsys):
    selected = ["table-3", "generalization-is-flat", "--only-methods", "pca,dre", "--quick"]
    assert bench(*selected) == 0
    found = records(tmp_path)
    assert set(found) == {"digits-for-infimnist-10k--pca--0", "digits-for-infimnist-10k--dre--0"}
    record = found["digits-for-infimnist-10k--dre--0"]
    assert record["data"] == "digits in place of InfiMNIST, 10,000"
    assert record["plan"]["data"]["set"] == "digits"
    assert record["command"] == "python benchmarks/bench.py --quick --only-data infimnist-10k --only-methods dre"
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
    assert "1 cells failed" in capsys.readouterr().err
    assert "is missing" in (tmp_path / "out" / "report" / "report.md").read_text()


def test_what_may_be_missing_is_left_out_with_its_reason(bench, tmp_path, capsys):
    assert bench("table-1", "--only-data", "tasic2018", "--only-methods", "pca", "--panels", "none") == 0
    assert "skipped: " in capsys.readouterr().out
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


@pytest.mark.slow
def test_digits_are_never_reported_under_the_name_of_another_data_set(bench, tmp_path, capsys):
    parts = ("table-3", "figure-6", "generalization-is-flat")
    only = ("--only-data", "infimnist-10k,infimnist-100k", "--only-methods", "pca,dre")
    assert bench(*parts, *only, "--quick") == 0
    printed = capsys.readouterr().out.splitlines()
    assert "digits-for-NAME, are in place of data that are not here: infimnist-100k, infimnist-10k" in printed[0]
    assert all(line.split()[1].startswith("digits-for-") for line in printed if line.startswith("["))
    assert bench(*parts, *only, "--quick", "--dry-run") == 0
    assert not any(re.search(r"(?<!for-)infimnist-100k/", line) for line in capsys.readouterr().out.splitlines())
    for path in (tmp_path / "out").glob("*/*--*"):
        assert path.name.startswith("digits-for-")
    for name in ("report.md", "report.html"):
        text = (tmp_path / "out" / "report" / name).read_text(encoding="utf-8")
        assert "digits in place of InfiMNIST, 10,000, 1-NN" in text  # in the summary
        assert "digits in place of InfiMNIST, 10,000: 1,3" in text  # above the table
        assert "scikit-learn" in text.partition("Table 3")[0]
        assert not re.search(r"(?<!in place of )InfiMNIST, 10,000[,:]", text)
        assert not re.search(r"(?<!for-)infimnist-10k", text)
        assert ": here, paper" not in text  # no published value next to the digits
        for about in ("1-NN accuracy of the first", "Training and test rows, and of the test rows"):
            before, found, _ = text.partition(about)
            assert found
            assert "digits are in place of: InfiMNIST" in before[-150:].replace("&#39;", "'")


@pytest.mark.slow
def test_digits_are_measured_anew_once_the_data_are_there(bench, tmp_path, capsys, monkeypatch):
    selected = ["table-1", "--only-data", "mnist", "--only-methods", "pca", "--panels", "none", "--quick"]
    assert bench(*selected) == 0
    real = loading.load

    def load(name, **named):
        return replace(real("digits", images=True), title="MNIST") if name == "mnist" else real(name, **named)

    monkeypatch.setattr(loading, "load", load)
    loading._load.cache_clear()
    assert bench(*selected) == 0
    loading._load.cache_clear()
    found = records(tmp_path)
    assert set(found) == {"digits-for-mnist--pca--0", "mnist--pca--0"}
    assert {name: record["data"] for name, record in found.items()} == {
        "digits-for-mnist--pca--0": "digits in place of MNIST",
        "mnist--pca--0": "MNIST",
    }
    text = (tmp_path / "out" / "report" / "report.md").read_text()
    assert "digits in place of MNIST" not in text
    assert "digits in place of IMDB" in text  # which are still not there


@pytest.mark.slow
@pytest.mark.timeout(1800)  # 175 fits, one after the other
def test_all_of_it_runs_on_few_rows(bench, tmp_path, capsys):
    assert bench("--quick") == 0
    spec = load_spec(FOLDER)
    found = records(tmp_path)
    assert not [name for name, record in found.items() if "failed" in record]
    assert {record["job"]["run"] for record in found.values()} == set(spec.runs)
    text = (tmp_path / "out" / "report" / "report.md").read_text()
    assert all(each.title in text for each in (*spec.tables, *spec.figures, *spec.claims))
