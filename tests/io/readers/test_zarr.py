"""zarr: an array, one of several, or AnnData, in folders of either version of the format."""

import os

import numpy as np
import pytest
import scipy.sparse
import zarr
from anndata_files import CELLS, COUNTS, GENES, KINDS, PCA, put, write_cells
from row_checks import same_rows

from dre.io.readers import SourceError, open_source

X = np.random.default_rng(0).normal(size=(12, 5))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("chunks", [(12, 5), (5, 2), (1, 5)])
@pytest.mark.parametrize("name", ["x.zarr", "x"])
def test_an_array_is_read_as_it_was_written(tmp_path, version, chunks, name):
    array = zarr.create_array(tmp_path / name, shape=X.shape, dtype=X.dtype, chunks=chunks, zarr_format=version)
    array[:] = X
    same_rows(open_source(tmp_path / name).rows, X)


def test_of_several_one_must_be_named(tmp_path):
    root = zarr.open_group(tmp_path / "x.zarr", mode="w")
    put(root.create_group("a"), "X", X)
    put(root, "labels", np.arange(12))
    same_rows(open_source(tmp_path / "x.zarr").rows, X)
    put(root, "b", X[:, :2])
    same_rows(open_source(f"{tmp_path}/x.zarr:b").rows, X[:, :2])
    with pytest.raises(SourceError, match=r"name one, as in x\.zarr:a/X. Its arrays: a/X \(12, 5\), b"):
        open_source(tmp_path / "x.zarr")
    with pytest.raises(SourceError, match=r"unknown array '\.\./c'"):
        open_source(f"{tmp_path}/x.zarr:../c")
    with pytest.raises(SourceError, match=r"an array 'labels' of shape \(12,\)"):
        open_source(f"{tmp_path}/x.zarr:labels")


@pytest.mark.filterwarnings("ignore:The data type")  # texts are not yet in the format's standard
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("X", [COUNTS, scipy.sparse.csr_matrix(COUNTS)], ids=["dense", "csr"])
def test_cells_are_those_that_were_written(tmp_path, X, version):
    write_cells(zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=version), X)
    found = open_source(tmp_path / "x.zarr")
    same_rows(found.rows, COUNTS)
    assert found.columns == GENES
    assert found.names.tolist() == CELLS
    assert found.metadata["kind"].tolist() == KINDS
    same_rows(open_source(f"{tmp_path}/x.zarr:obsm/X_pca").rows, PCA)


@pytest.mark.filterwarnings("ignore:Object at")
def test_a_damaged_folder_is_an_error_of_two_lines(tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=X, chunks=(5, 5))
    rows = open_source(path).rows
    (path / "c" / "1" / "0").write_bytes(b"no chunk")
    with pytest.raises(SourceError, match=r"x\.zarr cannot be read") as caught:
        rows.read(0, 12)
    assert len(str(caught.value).splitlines()) == 2
    for content in ("{", "{}", "[]"):
        (path / "zarr.json").write_text(content)
        with pytest.raises(SourceError, match=r"x\.zarr (cannot be read|has no array)"):
            open_source(path)
    (path / "zarr.json").unlink()
    with pytest.raises(SourceError, match=r"x\.zarr cannot be read"):
        open_source(path)


@pytest.mark.skipif(os.name != "posix", reason="pipes are those of POSIX systems")
@pytest.mark.parametrize("name", ["zarr.json", "c/0/0"])
def test_a_pipe_in_the_folder_is_refused(tmp_path, name):
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=X.shape)
    (tmp_path / "x.zarr" / name).unlink()
    os.mkfifo(tmp_path / "x.zarr" / name)
    with pytest.raises(SourceError, match=r"is a pipe, not a file|is no file"):
        open_source(tmp_path / "x.zarr").rows.read(0, 1)
