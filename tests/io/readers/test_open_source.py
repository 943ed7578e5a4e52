"""From a path or a name to rows: what is meant is found, and what can't be found is named with what is near."""

import pkgutil
import sys

import numpy as np
import pytest

import dre.io.readers
from dre.datasets import NAMES, load
from dre.io.readers import SourceError, formats, open_source

X = np.random.default_rng(0).normal(size=(12, 5))


def test_every_format_has_a_suffix_of_its_own():
    modules = [f"dre.io.readers.{module.name}" for module in pkgutil.iter_modules(dre.io.readers.__path__)]
    formats()
    suffixes = [suffix for name in modules for suffix in getattr(getattr(sys.modules[name], "FORMAT", None), "suffixes", ())]
    assert len(set(suffixes)) == len(suffixes)
    assert set(suffixes) == set(formats())
    assert {".npy", ".npz", ".csv", ".tsv", ".csv.gz", ".parquet", ".h5", ".hdf5", ".h5ad", ".zarr", ".png"} <= set(suffixes)


def test_data_sets_are_known_by_name():
    found, data = open_source("digits"), load("digits")
    np.testing.assert_array_equal(found.rows, data.train.rows)
    np.testing.assert_array_equal(found.metadata["digit"], data.train.labels)
    np.testing.assert_array_equal(open_source("digits:test").rows, data.test.rows)
    with pytest.raises(SourceError, match=r"unknown part 'tset'; known: train, test, all. Did you mean 'test'"):
        open_source("digits:tset")


def test_all_of_a_data_set_is_what_is_learned_from_and_then_what_is_tested_on():
    found, data = open_source("digits:all"), load("digits")
    np.testing.assert_array_equal(found.rows, np.concatenate([data.train.rows, data.test.rows]))
    np.testing.assert_array_equal(found.metadata["digit"], np.concatenate([data.train.labels, data.test.labels]))
    for part, rows in (("train", data.train.rows), ("test", data.test.rows)):
        np.testing.assert_array_equal(found.rows[found.metadata["part"] == part], rows)


def test_a_name_is_a_data_set_and_a_path_a_file(tmp_path, monkeypatch):
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
        ("mnits", "'mnits' is neither a file nor a data set; data sets: .*Did you mean 'mnist'"),
        ("", "is neither a file nor a data set"),
        ("cels.npy", r"cels\.npy is not there. Did you mean cells\.npy"),
        ("other.h5ad:obsm/X_pca", r"other\.h5ad is not there: check the path"),
        ("no/where/x", r"no/where/x is not there"),
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


def test_names_of_data_sets_and_suffixes_do_not_meet():
    assert not {name for name in NAMES if any(name.endswith(suffix) for suffix in formats())}
