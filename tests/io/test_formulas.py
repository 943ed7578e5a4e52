"""Texts that a spreadsheet would run are written with an apostrophe, and read as they were."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dre.cli.map import match_points, read_coordinates
from dre.io.formulas import defuse, restore
from dre.io.readers import ReadOptions, open_source
from dre.io.readers.labels import read_labels
from dre.io.readers.table import MISSING
from dre.io.writers import OutputSpec, open_sink

NAMES = ["=1+1", "-x", "+4 9", "@home", "'=a", "''=b", "'tis", "-1.5", "+3e2", '=HYPERLINK("a","b")', "-", "＝1", "plain"]
DANGEROUS = tuple("=+-@\t\r\n＝＋－＠")
EMBEDDING = np.random.default_rng(0).normal(size=(len(NAMES), 2)).astype(np.float32)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@given(st.text(alphabet="'=+-@\t\r\n＝ax1.e", max_size=6))
def test_every_text_is_restored_and_none_is_run(text: str) -> None:
    assert restore(defuse(text)) == text
    assert is_number(defuse(text)) or not defuse(text).startswith(DANGEROUS)


@pytest.mark.parametrize("number", ["-1.5", "+3", "-.5e-9", "-0"])
def test_numbers_stay_numbers(number: str) -> None:
    assert defuse(number) == number


def written(path: Path, names: list[str] = NAMES, **about: object) -> Path:
    with open_sink(path, OutputSpec(len(names), 2, names=np.array(names, dtype=object), **about)) as sink:  # type: ignore[arg-type]
        sink.write(EMBEDDING[: len(names)])
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz"])
def test_no_cell_of_a_written_table_is_a_formula(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"map{suffix}", names_title="@id")
    with (gzip.open if suffix.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="") as file:
        cells = [cell for line in csv.reader(file, delimiter="\t" if "tsv" in suffix else ",") for cell in line]
    assert not [cell for cell in cells if cell.startswith(DANGEROUS) and not is_number(cell)]
    assert "'@id" in cells
    assert f"{EMBEDDING[0, 0]:.9g}" in cells
    found = open_source(path, options=ReadOptions(coordinates=True, id="@id"))
    assert found.names is not None
    assert found.names.tolist() == NAMES
    np.testing.assert_array_equal(found.rows.astype(np.float32), EMBEDDING)


def test_rows_of_a_map_are_found_by_such_names_in_data_of_other_formats(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    embedding, table = read_coordinates(str(written(tmp_path / "map.csv")))
    order = np.random.default_rng(1).permutation(len(NAMES))
    rows = pandas.DataFrame({"a": np.arange(len(NAMES)) % 5 + 0.5, "b": 1.5}, index=pandas.Index(NAMES, name="name"))
    rows.iloc[order].to_parquet(tmp_path / "data.parquet")
    source = open_source(tmp_path / "data.parquet", options=ReadOptions(columns=["a"]))
    assert source.names is not None
    assert source.names.tolist() == [NAMES[i] for i in order]
    np.testing.assert_array_equal(match_points("map.csv", embedding, table, source).embedding, EMBEDDING[order])


def test_labels_are_found_by_such_names_and_restored(tmp_path: Path) -> None:
    with (tmp_path / "y.csv").open("w", newline="") as file:
        csv.writer(file).writerows([defuse(name), defuse(f"={i % 2}")] for i, name in enumerate(NAMES))
    found = read_labels(tmp_path / "y.csv", len(NAMES), np.array(NAMES[::-1], dtype=object))
    assert found.tolist() == [f"={i % 2}" for i in range(len(NAMES))][::-1]
    (tmp_path / "y.txt").write_text("'=a\n'tis\n-5x\n")
    assert read_labels(tmp_path / "y.txt", 3).tolist() == ["=a", "'tis", "-5x"]


def test_values_of_a_text_column_are_restored_and_numbers_behind_an_apostrophe_count(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,'-b,kind\n1,'-5,'=x\n2,'+6,y\n4,7,'=x\n")
    found = open_source(tmp_path / "x.csv")
    assert found.columns == ["a", "-b"]
    assert found.rows.tolist() == [[1, -5], [2, 6], [4, 7]]
    assert found.metadata["kind"].tolist() == ["=x", "y", "=x"]


KEPT = st.text(alphabet="'=+-@\t\r\n＝ax ", min_size=1, max_size=6).filter(lambda text: text.strip() not in MISSING)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(KEPT, min_size=3, max_size=3))
@example([" '=x", "\t=x", "\r=x"])
@example(["a\r=x", "a\r\n=x", "a"])
@example(["  ''-x", "'\n=x ", " =x"])
def test_texts_are_read_as_they_were_but_for_white_space(tmp_path: Path, texts: list[str]) -> None:
    expected = [re.sub(r"[\r\n]+", "\n", text).strip() for text in texts]
    (tmp_path / "map.csv").unlink(missing_ok=True)
    found = open_source(written(tmp_path / "map.csv", texts), options=ReadOptions(coordinates=True))
    assert found.names is not None
    assert found.names.tolist() == expected
    if not any("\r" in text or "\n" in text for text in texts):
        (tmp_path / "y.txt").write_text("\n".join(map(defuse, texts)))
        assert read_labels(tmp_path / "y.txt", 3).tolist() == expected
