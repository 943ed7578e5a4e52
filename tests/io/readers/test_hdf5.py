"""HDF5: the array that is named, or the only one, read in pieces and in any order."""

import h5py
import numpy as np
import pytest
from row_checks import same_rows

from dre.io.readers import SourceError, open_source

X = np.random.default_rng(0).normal(size=(12, 5))


@pytest.mark.parametrize("name", ["x.h5", "x.hdf5"])
@pytest.mark.parametrize("options", [{}, {"chunks": (5, 2), "compression": "gzip"}, {"chunks": (1, 5)}], ids=str)
@pytest.mark.parametrize("values", [X, np.arange(48, dtype=np.uint8).reshape(12, 2, 2)], ids=["table", "images"])
def test_the_only_array_with_columns_is_the_rows(tmp_path, name, options, values):
    options = dict(options)
    if "chunks" in options:
        options["chunks"] = (*options["chunks"], 1)[: values.ndim]
        options["chunks"] = tuple(min(pair) for pair in zip(options["chunks"], values.shape, strict=True))
    with h5py.File(tmp_path / name, "w") as file:
        file.create_dataset("deep/down/X", data=values, **options)
        file["labels"] = np.arange(12)
        file["nothing"] = h5py.Empty("f4")
    same_rows(open_source(tmp_path / name).rows, values)


def test_of_several_one_must_be_named(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a/X"], file["b"] = X, X[:, :2]
    same_rows(open_source(f"{tmp_path}/x.h5:a/X").rows, X)
    same_rows(open_source(tmp_path / "x.h5", part="/b").rows, X[:, :2])
    with pytest.raises(
        SourceError, match=r"several arrays with columns; name one, as in x\.h5:a/X. Its arrays: a/X \(12, 5\), b"
    ):
        open_source(tmp_path / "x.h5")
    for wrong in ("a", "c", "a/../../X"):
        with pytest.raises(SourceError, match=r"unknown array '.*'; known: a/X, b"):
            open_source(f"{tmp_path}/x.h5:{wrong}")


def test_a_group_that_holds_itself_is_gone_through_once(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        group = file.create_group("a")
        group["X"], group["again"], group["gone"] = X, group, h5py.SoftLink("/nowhere")
    same_rows(open_source(tmp_path / "x.h5").rows, X)


def test_what_has_no_columns_or_no_numbers_is_named(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["y"], file["t"] = np.arange(3), np.array([[b"a"]])
    with pytest.raises(SourceError, match="not real numbers"):
        open_source(tmp_path / "x.h5")
    with pytest.raises(SourceError, match=r"an array 'y' of shape \(3,\)"):
        open_source(f"{tmp_path}/x.h5:y")


def test_a_damaged_file_is_an_error_of_two_lines(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=np.tile(X, (100, 1)), chunks=(50, 5), compression="gzip", fletcher32=True)
        place = file["X"].id.get_chunk_info(3).byte_offset
    whole = path.read_bytes()
    for content in (b"", b"no HDF5", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"x\.h5 cannot be read") as caught:
            open_source(path)
        assert len(str(caught.value).splitlines()) == 2
    path.write_bytes(whole[:place] + b"\xff" * 50 + whole[place + 50 :])
    rows = open_source(path).rows
    with pytest.raises(SourceError, match=r"x\.h5 cannot be read") as caught:
        rows.read(0, 1200)
    assert len(str(caught.value).splitlines()) == 2
