"""The comparison on data of one's own, in Python and from the command line."""

import json
import sys

import matplotlib as mpl
import numpy as np
import pandas
import pytest
from sklearn.datasets import load_digits

from dre.bench.compare import compare, usual_methods
from dre.cli import main
from dre.cli.compare import read_array, read_labels

mpl.use("Agg")
DIGITS = load_digits()
X, LABELS = DIGITS.data[:240], DIGITS.target[:240]


def command(*arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dre", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_every_method_is_fitted_to_the_same_rows_and_scored_on_the_same_others():
    found = compare(X, LABELS, methods=["pca", "eigenmaps"])
    rows = {row["method"]: row for row in found.rows()}
    assert rows["pca"]["in_sample"] is False
    assert rows["eigenmaps"]["in_sample"] is True
    assert found.dataset.train.rows.shape[0] == 180
    assert found.dataset.test.rows.shape[0] == 60
    assert "eigenmaps (in-sample)" in str(found)
    assert len(pandas.DataFrame(found.rows())) == 2
    assert len(found.picture().axes) == 2


def test_without_labels_the_scores_that_need_none_are_there():
    row = compare(X, methods=["pca"]).rows()[0]
    assert "trustworthiness" in row
    assert "nearest_neighbor" not in row


def test_a_class_of_one_row_is_no_obstacle():
    labels = LABELS.astype(str)
    labels[0] = "alone"
    assert compare(X, labels, methods=["pca"]).rows()[0]["nearest_neighbor"] > 0.2


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="one label per row"):
        compare(X, LABELS[:10], methods=["pca"])
    with pytest.raises(ValueError, match="pca"):
        compare(X, LABELS, methods=["pcaa"])


def test_a_method_that_is_not_installed_is_named_and_the_others_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    found = compare(X, LABELS, methods=["pca", "umap"])
    assert list(found.results) == ["pca"]
    assert "umap did not run" in str(found)
    assert "pip install" in str(found)


def test_the_usual_methods_are_those_that_are_installed():
    assert usual_methods()[0] == "pca"
    assert usual_methods()[-1] == "dre"


def test_from_the_command_line(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(map(str, LABELS)))
    picture = tmp_path / "there" / "c.png"
    arguments = ["compare", tmp_path / "x.npy", "--labels", tmp_path / "y.txt", "--methods", "pca", "-o", picture]
    assert command(*arguments, monkeypatch=monkeypatch) == 0
    out = capsys.readouterr().out
    assert "1-NN" in out
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert json.loads(picture.with_suffix(".json").read_text())["results"][0]["method"] == "pca"
    assert command(*arguments, monkeypatch=monkeypatch) == 1  # nothing is written over
    assert "--force" in capsys.readouterr().err
    assert command(*arguments, "--force", monkeypatch=monkeypatch) == 0


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv"])
def test_rows_are_read_from(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    if suffix == "npy":
        np.save(path, X)
    elif suffix == "npz":
        np.savez(path, X)
    else:
        np.savetxt(path, X, delimiter=",", header=",".join(f"c{i}" for i in range(64)), comments="")
    np.testing.assert_array_equal(read_array(path), X)


def test_files_that_are_not_there_or_not_known_are_named(tmp_path):
    with pytest.raises(ValueError, match="is not there"):
        read_array(tmp_path / "x.npy")
    (tmp_path / "x.doc").write_text("")
    with pytest.raises(ValueError, match=r"expected \.npy, \.npz or \.csv"):
        read_array(tmp_path / "x.doc")
    with pytest.raises(ValueError, match="is not there"):
        read_labels(tmp_path / "y.txt")


def test_a_pickle_is_not_read(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        read_array(tmp_path / "x.npy")
