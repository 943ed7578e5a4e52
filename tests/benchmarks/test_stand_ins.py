"""Stand-ins of a quick run: digits in the shape of missing data, and never under their name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paper.jobs import Selection, jobs
from paper.load_spec import load_spec
from paper.loading import is_available, load_data
from paper.spec import Data
from paper.stand_ins import replace_data, replace_selected, stand_in

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_the_digits_stand_in_for_what_is_not_at_hand_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setenv("DRE_OFFLINE", "1")
    monkeypatch.setenv("DRE_CACHE", str(tmp_path))
    monkeypatch.delenv("DRE_DATA", raising=False)
    data = Data("mnist", "MNIST", "mnist", rows=100, test_rows=30)
    with pytest.raises(FileNotFoundError, match="train-images"):
        load_data(data, None)
    assert not is_available(data, None)
    found = load_data(stand_in(data), None)
    assert found.title == "digits in place of MNIST"
    assert found.train.rows.shape == (100, 28, 28)
    assert found.test.rows.shape[0] == len(found.test.labels) == 30
    texts = load_data(stand_in(replace(data, name="imdb", set="imdb")), None)
    assert texts.train.rows.shape == (100, 64)
    assert {name: len(np.unique(values)) for name, values in texts.train.levels.items()} == {"sentiment": 2, "stars": 10}


def test_a_spec_with_stand_ins_names_the_digits_and_has_no_published_values_of_them():
    spec = load_spec(FOLDER)
    assert replace_data(spec, []) == spec
    replaced = replace_data(spec, ["mnist", "infimnist-10k"])
    replaced.check()
    assert "mnist" not in replaced.data
    assert replaced.data["digits-for-mnist"].title == "digits in place of MNIST"
    assert replaced.data["fashion-mnist"] == spec.data["fashion-mnist"]
    for table in replaced.tables:
        assert not {"mnist", "infimnist-10k"} & {*table.data, *table.published, *table.not_differenced}
    rows = [row for figure in replaced.figures for row in figure.rows if row.data == "digits-for-mnist"]
    assert rows
    assert all(row.title.startswith("digits") for row in rows)
    told = {(job.data, job.run, job.seed, job.panel) for job in jobs(replaced, Selection())}
    known = {(job.data, job.run, job.seed, job.panel) for job in jobs(spec, Selection())}
    assert len(told) == len(known)
    assert {data.removeprefix("digits-for-") for data, *_ in told} == {data for data, *_ in known}
    assert replace_selected(Selection(data=("mnist", "imdb")), ["mnist"]).data == ("digits-for-mnist", "imdb")
