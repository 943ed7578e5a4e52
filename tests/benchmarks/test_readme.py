"""The tables of the Markdown pages are those of the result files."""

import subprocess
import sys
from pathlib import Path

import pytest

import readme

ROOT = Path(__file__).parents[2]


def test_every_table_is_read_from_the_result_files():
    done = subprocess.run(
        [sys.executable, "benchmarks/readme.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_and_all_pages_of_the_docs_are_filled(tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("README.md", "docs/speed.md", "docs/api.md"):
        (tmp_path / name).write_text("")
    found = [page.relative_to(tmp_path).as_posix() for page in readme.pages(tmp_path) if page.is_relative_to(tmp_path)]
    assert found == ["README.md", "docs/api.md", "docs/speed.md"]
    assert {page.name for page in readme.pages()} >= {"README.md", "NOTES.md", "SPEED.md"}


def test_only_the_text_between_the_marks_is_replaced(monkeypatch):
    monkeypatch.setitem(readme.TABLES, "digits", lambda: "| new |\n")
    page = "# Title\n<!-- results: digits -->\n| old |\n<!-- end of results -->\n| old |\n"
    assert readme.fill_tables(page) == "# Title\n<!-- results: digits -->\n| new |\n<!-- end of results -->\n| old |\n"


def test_an_unknown_table_is_named():
    with pytest.raises(SystemExit, match=r"'no-such'.*known: explorer"):
        readme.fill_tables("<!-- results: no-such -->\n<!-- end of results -->")
