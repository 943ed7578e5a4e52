"""Files as people have them: each is mapped by its features, or refused with the right remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dre import DRE
from messy_files import FILES, MessyFile

Run = Callable[..., int]
QUICK = ("--recipe", "fast", "--seed", "0", "--device", "cpu")


@pytest.mark.parametrize("file", FILES, ids=[" ".join([file.name, *file.options[2:]]) for file in FILES])
def test_a_messy_file_is_mapped_or_refused_with_a_remedy(file: MessyFile, dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    file.write(Path(file.name))
    code = dre("fit", file.name, "-o", "m.safetensors", *file.options, *QUICK)
    printed = capsys.readouterr()
    if file.error:
        assert code == 2
        assert file.error in printed.err
        assert len(printed.err.splitlines()) <= 2
        return
    assert code == 0, printed.err
    assert all(line.startswith("dre: ") for line in printed.err.splitlines())
    names = getattr(DRE.load("m.safetensors"), "feature_names_in_", None)
    assert (None if names is None else names.tolist()) == file.features
    (accuracy,) = re.findall(r"^1-NN, .+ (\d\.\d+)$", printed.out, re.MULTILINE)
    assert float(accuracy) >= file.accuracy


def test_mixed_units_are_standardized_unless_they_are_kept(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    FILES[0].write(Path("shops.csv"))
    assert dre("fit", "shops.csv", "-o", "a.safetensors", "--labels", "kind", *QUICK) == 0
    printed = capsys.readouterr()
    assert "column 'rent' makes up 99 % of all squared distances, so the columns are standardized" in printed.err
    assert DRE.load("a.safetensors").standardize is True
    assert dre("fit", "shops.csv", "-o", "b.safetensors", "--labels", "kind", "--no-standardize", *QUICK) == 0
    kept = capsys.readouterr()
    assert "squared distances" not in kept.err
    assert DRE.load("b.safetensors").standardize is False
    accuracies = [float(re.findall(r"^1-NN, .+ (\d\.\d+)$", each.out, re.MULTILINE)[0]) for each in (printed, kept)]
    assert accuracies[0] > 0.9 > 0.5 > accuracies[1]  # a map of the rent alone says nothing about the kind


def test_a_map_of_another_method_is_judged_in_the_same_units(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    FILES[0].write(Path("shops.csv"))
    assert dre("fit", "shops.csv", "-o", "a.safetensors", "--labels", "kind", "--embedding", "y.csv", *QUICK) == 0
    capsys.readouterr()
    assert dre("evaluate", "shops.csv", "a.safetensors") == 0
    model = capsys.readouterr()
    assert dre("evaluate", "shops.csv", "y.csv") == 0
    coordinates = capsys.readouterr()
    assert "standardized" in coordinates.err
    values = [re.findall(r"^trustworthiness .*?(\d\.\d+) +1", each.out, re.MULTILINE) for each in (model, coordinates)]
    assert float(values[0][0]) == pytest.approx(float(values[1][0]), abs=2e-3)


def test_a_vector_column_and_a_size_in_pixels_are_refused_where_there_is_none(
    dre: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    FILES[0].write(Path("shops.csv"))
    for option, value, what in (("--vector", "a", "columns of vectors"), ("--size", "64", "a folder of images")):
        assert dre("fit", "shops.csv", "-o", "a.safetensors", option, value, *QUICK) == 2
        assert f"shops.csv does not hold {what}" in capsys.readouterr().err
    assert dre("fit", "shops.csv", "-o", "a.safetensors", "--size", "big", *QUICK) == 2
    assert "--size big: expected a number of pixels" in capsys.readouterr().err
