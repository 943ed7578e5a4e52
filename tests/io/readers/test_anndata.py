"""AnnData in HDF5: every encoding, dense and sparse, gives the same rows, names and columns."""

import h5py
import numpy as np
import pytest
import scipy.sparse
import torch
from anndata_files import CELLS, COUNTS, GENES, KINDS, PCA, SIZES, middle_obs, new_obs, old_obs, sparse, write_cells
from row_checks import same_rows

from dre.io.readers import ReadOptions, SourceError, open_source

MATRICES = [COUNTS, scipy.sparse.csr_matrix(COUNTS)]


@pytest.fixture
def written(tmp_path):
    def written(X=COUNTS, obs=new_obs, **options):
        with h5py.File(tmp_path / "x.h5ad", "w") as file:
            write_cells(file, X, obs, **options)
        return tmp_path / "x.h5ad"

    return written


def same_cells(found):
    assert found.names.tolist() == CELLS
    assert found.metadata["kind"].tolist() == KINDS
    np.testing.assert_array_equal(found.metadata["size"], SIZES)


@pytest.mark.parametrize("X", MATRICES, ids=["dense", "csr"])
@pytest.mark.parametrize("obs", [new_obs, middle_obs, old_obs])
@pytest.mark.parametrize("old", [False, True])
def test_rows_columns_and_cells_are_those_that_were_written(written, X, obs, old):
    found = open_source(written(X, obs, old=old))
    same_rows(found.rows, COUNTS)
    assert found.columns == GENES
    same_cells(found)


def test_what_is_missing_is_no_number_and_what_is_not_known_is_left_out(written):
    found = open_source(written())
    assert list(found.metadata) == ["kind", "size", "depth"]
    assert np.flatnonzero(np.isnan(found.metadata["depth"])).tolist() == [4]
    (message,) = found.messages
    assert "obs" in message
    assert message.endswith(": odd")


def test_by_columns_all_is_read_and_said(written):
    found = open_source(written(scipy.sparse.csc_matrix(COUNTS), middle_obs))
    assert found.rows.format == "csr"
    np.testing.assert_array_equal(found.rows.toarray(), COUNTS)
    assert "CSC" in found.messages[0]


def test_parts_can_be_named(written):
    path = written()
    found = open_source(f"{path}:obsm/X_pca")
    same_rows(found.rows, PCA)
    same_cells(found)
    assert found.columns is None
    counts = open_source(path, part="layers/counts")
    same_rows(counts.rows, 2 * COUNTS)
    assert counts.columns == GENES
    assert open_source(f"{path}:raw/X").columns == GENES[:3]
    with pytest.raises(
        SourceError, match=r"unknown part 'obsm/X_pac'; known: X, layers/counts, obsm/X_pca, raw/X. Did you mean"
    ):
        open_source(f"{path}:obsm/X_pac")
    with pytest.raises(SourceError, match="obs is not a matrix; name one of X, layers/counts"):
        open_source(f"{path}:obs")


def test_without_x_the_components_are_the_rows_or_a_part_must_be_named(written):
    path = written()
    with h5py.File(path, "a") as file:
        del file["X"]
    same_rows(open_source(path).rows, PCA)
    with h5py.File(path, "a") as file:
        del file["obsm/X_pca"]
    with pytest.raises(SourceError, match=r"unknown part 'X'.*name a part, as in x\.h5ad:obsm/X_pca"):
        open_source(path)


def test_many_genes_are_mapped_by_their_components_as_in_scanpy(written):
    genes = np.random.default_rng(0).normal(size=(12, 60)).astype(np.float32)
    path = written(genes)
    found = open_source(path)
    same_rows(found.rows, PCA)
    assert "the rows are the principal components obsm/X_pca, as in scanpy; x.h5ad:X maps the genes" in found.messages
    same_rows(open_source(f"{path}:X").rows, genes)
    same_rows(open_source(path, options=ReadOptions(features=GENES)).rows, genes)  # a model of genes


@pytest.mark.parametrize("matrix", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
def test_raw_counts_are_noticed(written, matrix):
    counts = COUNTS.copy()
    counts[3, 2] = 50
    path = written(matrix(counts))
    assert any("X looks like raw counts" in line and "x.h5ad:obsm/X_pca" in line for line in open_source(path).messages)
    with h5py.File(path, "a") as file:
        del file["obsm/X_pca"]
    assert any("sc.pp.log1p" in line for line in open_source(path).messages)
    logs = open_source(written(matrix(np.log1p(counts))))
    assert not any("counts" in line for line in logs.messages)


def test_genes_and_the_names_of_cells_are_chosen(written):
    path = written()
    found = open_source(path, options=ReadOptions(columns=["gene 1-gene 3"], drop=["gene 2"], id="kind"))
    same_rows(found.rows, COUNTS[:, [1, 3]])
    assert found.columns == ["gene 1", "gene 3"]
    assert found.names.tolist() == KINDS
    assert "kind" not in found.metadata
    with pytest.raises(SourceError, match="unknown column 'gen'"):
        open_source(path, options=ReadOptions(columns=["gen"]))
    with pytest.raises(SourceError, match="not a table"):
        open_source(path, options=ReadOptions(categories=True))


def test_many_sparse_rows_are_read_in_several_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("dre.io.readers.file_rows.MIN_BLOCK_VALUES", 40)
    values = scipy.sparse.random(200, 30, density=0.1, random_state=0).toarray()
    values[20:90] = 0
    matrix = scipy.sparse.csr_matrix(values)
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        sparse(file, "X", matrix)
    rows = open_source(tmp_path / "x.h5ad").rows
    same_rows(rows, matrix.toarray())
    ids = np.random.default_rng(0).integers(200, size=300)
    np.testing.assert_array_equal(rows.take(torch.from_numpy(ids)).numpy(), matrix.toarray()[ids])


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [("X/indices", 0, 99), ("X/indices", 0, -5), ("X/indptr", 3, 10**6), ("X/indptr", 12, 2), ("obs/kind/codes", 0, 9)],
)
@pytest.mark.parametrize("X", [scipy.sparse.csr_matrix(COUNTS), scipy.sparse.csc_matrix(COUNTS)], ids=["csr", "csc"])
def test_numbers_that_point_nowhere_are_an_error_of_two_lines(written, X, name, place, value):
    path = written(X)
    with h5py.File(path, "a") as file:
        file[name][min(place, len(file[name]) - 1)] = value
    with pytest.raises(SourceError, match=r"x\.h5ad cannot be read") as caught:
        open_source(path).rows.read(0, 12)
    assert len(str(caught.value).splitlines()) == 2


def test_as_many_names_as_rows(written):
    path = written()
    with h5py.File(path, "a") as file:
        del file["X"]
        file["X"] = COUNTS[:5]
    with pytest.raises(SourceError, match="row names: 12 values for 5 rows"):
        open_source(path)


def test_a_damaged_file_is_an_error_of_two_lines(written):
    path = written()
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(SourceError, match=r"x\.h5ad cannot be read") as caught:
        open_source(path)
    assert len(str(caught.value).splitlines()) == 2
