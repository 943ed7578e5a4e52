"""From a path or a name to rows: what is meant is found, and what can't be found is named with what is near."""

import sys

import numpy as np
import pytest

from dre.datasets import NAMES, load
from dre.io.readers import (
    FORMATS,
    SourceError,
    anndata,
    arrow,
    delimited,
    frames,
    hdf5,
    images,
    numpy_files,
    open_source,
    parquet,
    spreadsheets,
    zarr,
)

X = np.random.default_rng(0).normal(size=(12, 5))


def test_every_format_has_a_suffix_of_its_own():
    modules = (anndata, arrow, delimited, frames, hdf5, images, numpy_files, parquet, spreadsheets, zarr)
    suffixes = [suffix for module in modules for each in module.FORMATS for suffix in each.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert set(suffixes) == set(FORMATS)
    assert {".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".parquet", ".h5", ".hdf5", ".h5ad", ".zarr", ".png"} <= set(suffixes)


def test_datasets_are_opened_by_name():
    found, data = open_source("digits"), load("digits")
    np.testing.assert_array_equal(found.rows, data.train.rows)
    np.testing.assert_array_equal(found.metadata["digit"], data.train.labels)
    np.testing.assert_array_equal(open_source("digits:test").rows, data.test.rows)
    with pytest.raises(SourceError, match=r"unknown part 'tset'; known: train, test, all. Did you mean 'test'"):
        open_source("digits:tset")


def test_all_of_a_dataset_is_its_training_rows_and_then_its_test_rows():
    found, data = open_source("digits:all"), load("digits")
    np.testing.assert_array_equal(found.rows, np.concatenate([data.train.rows, data.test.rows]))
    np.testing.assert_array_equal(found.metadata["digit"], np.concatenate([data.train.labels, data.test.labels]))
    for part, rows in (("train", data.train.rows), ("test", data.test.rows)):
        np.testing.assert_array_equal(found.rows[found.metadata["part"] == part], rows)


def test_a_name_is_a_dataset_and_a_path_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert len(open_source("digits").rows) == len(load("digits").train.rows)
    with pytest.raises(SourceError, match="digits is a folder without images"):
        open_source("./digits")


@pytest.mark.parametrize("name", ["x:y.npy", "<b>$(true)&.npy", "a b;c.npy", "ü.NPY", "{0}%s.npy"])
def test_hostile_names_are_only_text(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(SourceError) as caught:
        open_source(f"{tmp_path}/{name}")
    assert name in str(caught.value)
    with (tmp_path / name).open("wb") as file:
        np.save(file, X)
    assert open_source(f"{tmp_path}/{name}").rows.shape == X.shape


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("mnits", "'mnits' is neither a file nor a dataset; datasets: .*Did you mean 'mnist'"),
        ("", "is neither a file nor a dataset"),
        ("cels.npy", r"cels\.npy does not exist. Did you mean cells\.npy"),
        ("other.h5ad:obsm/X_pca", r"other\.h5ad does not exist: check the path"),
        ("no/where/x", r"no/where/x does not exist"),
        ("cells.npy:X", r"cells\.npy has no parts: leave out 'X'"),
        ("notes.doc", r"notes\.doc: expected .*\.npy.*or a folder of images"),
    ],
)
def test_what_can_not_be_found_or_opened_is_named(tmp_path, monkeypatch, data, message):
    monkeypatch.chdir(tmp_path)
    np.save("cells.npy", X)
    (tmp_path / "notes.doc").touch()
    with pytest.raises(SourceError, match=message) as caught:
        open_source(data)
    assert len(str(caught.value).splitlines()) <= 2


def test_home_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    np.save(tmp_path / "x.npy", X)
    assert open_source("~/x.npy").rows.shape == X.shape


@pytest.mark.parametrize(
    ("name", "library"),
    [("x.parquet", "pyarrow"), ("x.h5", "h5py"), ("x.h5ad", "h5py"), ("x.zarr", "zarr"), ("x.png", "PIL")],
)
def test_a_library_that_is_missing_is_named_with_the_extra(tmp_path, monkeypatch, name, library):
    for module in [name for name in sys.modules if name.split(".")[0] == library] + [library]:
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).touch()
    with pytest.raises(ImportError, match=r"pip install 'deep-recursive-embedding\[files\]'"):
        open_source(tmp_path / name)


def test_no_dataset_name_ends_in_a_suffix():
    assert not {name for name in NAMES if any(name.endswith(suffix) for suffix in FORMATS)}
