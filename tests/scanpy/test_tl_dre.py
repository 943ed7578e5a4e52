"""``tl.dre`` writes a map as scanpy's tools do, of any AnnData: sparse, backed, a view; and its model reads genes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from made_cells import OPTIONS, log_normalized, make_cells

import dre.scanpy
from dre import DRE

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
sc = pytest.importorskip("scanpy", reason="scanpy is not installed")


@pytest.fixture(scope="module")
def logged():
    adata = log_normalized(make_cells())
    sc.pp.pca(adata, n_comps=20)
    return adata


@pytest.fixture(scope="module")
def mapped(logged):
    return dre.scanpy.tl.dre(logged, copy=True, **OPTIONS)


def test_the_map_is_where_scanpy_looks_for_it(mapped):
    assert mapped.obsm["X_dre"].shape == (240, 2)
    assert mapped.obsm["X_dre"].dtype == np.float32
    figure = sc.pl.embedding(mapped, "dre", color="cell_type", show=False, return_fig=True)
    points = figure.axes[0].collections[0].get_offsets()
    assert np.allclose(np.sort(points, axis=0), np.sort(mapped.obsm["X_dre"], axis=0))


def test_it_changes_the_object_or_returns_a_copy(logged, mapped):
    assert "X_dre" not in logged.obsm
    adata = logged.copy()
    assert dre.scanpy.tl.dre(adata, **OPTIONS) is None
    assert np.array_equal(adata.obsm["X_dre"], mapped.obsm["X_dre"])


def test_it_survives_a_file(mapped, tmp_path):
    mapped.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert read.uns["dre"]["params"]["use_rep"] == "X_pca"
    assert read.uns["dre"]["params"]["random_state"] == 0
    assert read.uns["dre"]["params"]["schedule"] == OPTIONS["schedule"]
    assert np.array_equal(read.obsm["X_dre"], mapped.obsm["X_dre"])
    Y = dre.scanpy.model(read).transform(read.X)
    assert np.allclose(Y, mapped.obsm["X_dre"], atol=1e-3)


def test_the_model_reads_counts_as_well_as_their_logarithms(mapped):
    Y = dre.scanpy.model(mapped).transform(make_cells().X)
    assert np.allclose(Y, mapped.obsm["X_dre"], atol=1e-2 * mapped.obsm["X_dre"].std())


def test_the_model_reads_cells_with_their_genes_in_any_order(mapped, tmp_path):
    model = dre.scanpy.model(mapped)
    other = make_cells()[:, np.random.default_rng(0).permutation(120)].copy()
    expected = model.transform(make_cells().X)
    assert np.allclose(model.transform(other), expected, atol=1e-4)
    other.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    assert np.allclose(model.transform(backed), expected, atol=1e-4)
    backed.file.close()
    with pytest.raises(ValueError, match=r"lacks 40 of the 120 genes that the model reads.*tl.ingest"):
        model.transform(make_cells()[:, :80].copy())


def test_other_models_ask_for_rows_of_numbers(mapped):
    for call in (DRE(**OPTIONS).fit, DRE(**OPTIONS).fit(mapped.obsm["X_pca"]).transform):
        with pytest.raises(TypeError, match=r"X is an AnnData.*tl.dre\(adata\).*adata.obsm\['X_pca'\]"):
            call(mapped)


def test_key_added_names_map_and_parameters(logged):
    adata = dre.scanpy.tl.dre(logged, key_added="other", n_components=3, copy=True, **OPTIONS)
    assert adata.obsm["other"].shape == (240, 3)
    assert "dre" not in adata.uns
    assert dre.scanpy.model(adata, key="other").n_components == 3
    with pytest.raises(ValueError, match="no map 'dre'"):
        dre.scanpy.model(adata)


def test_the_seed_decides(logged):
    first, second, third = (dre.scanpy.tl.dre(logged, random_state=s, copy=True, **OPTIONS).obsm["X_dre"] for s in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)


def test_principal_components_are_computed_as_scanpy_does(capsys):
    own, theirs = log_normalized(make_cells()), log_normalized(make_cells())
    marks = np.arange(own.n_vars) % 4 > 0
    own.var["highly_variable"] = theirs.var["highly_variable"] = marks
    sc.pp.pca(theirs)
    dre.scanpy.tl.dre(own, **OPTIONS)
    assert "computing the first 50 principal components of 90 genes" in capsys.readouterr().err
    assert own.obsm["X_pca"].shape == theirs.obsm["X_pca"].shape
    assert np.allclose(abs(own.obsm["X_pca"][:, :5]), abs(theirs.obsm["X_pca"][:, :5]), atol=1e-2)
    assert own.uns["pca"]["params"]["use_highly_variable"]
    assert not own.varm["PCs"][~marks].any()


def test_few_genes_are_mapped_as_they_are():
    adata = log_normalized(make_cells(genes=30))
    dre.scanpy.tl.dre(adata, **OPTIONS)
    assert adata.uns["dre"]["params"]["use_rep"] == "X"
    assert "X_pca" not in adata.obsm
    assert np.allclose(dre.scanpy.model(adata).transform(adata.X), adata.obsm["X_dre"], atol=1e-4)


def test_other_representations_are_mapped_without_genes(logged):
    adata = logged.copy()
    adata.obsm["X_corrected"] = adata.obsm["X_pca"][:, :7] + 1
    dre.scanpy.tl.dre(adata, use_rep="X_corrected", **OPTIONS)
    model = dre.scanpy.model(adata)
    assert model.row_shape_ == (7,)
    assert np.allclose(model.transform(adata.obsm["X_corrected"]), adata.obsm["X_dre"], atol=1e-4)
    with pytest.raises(ValueError, match=r"reads rows of the shape \(7,\), not genes"):
        dre.scanpy.tl.ingest(logged.copy(), adata)


def test_components_that_are_not_those_of_x_are_said(logged):
    adata = logged.copy()
    adata.obsm["X_pca"] = adata.obsm["X_pca"] + np.where(np.arange(240)[:, None] % 2, 3.0, 0.0)  # a batch, corrected
    with pytest.warns(UserWarning, match="X_pca was corrected"):
        dre.scanpy.tl.dre(adata, **OPTIONS)
    assert dre.scanpy.model(adata).row_shape_ == (20,)


def test_cells_that_were_left_out_after_the_pca_do_not_matter(logged):
    part = logged[logged.obs["cell_type"] != "B"].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dre.scanpy.tl.dre(part, **OPTIONS)
    assert np.allclose(dre.scanpy.model(part).transform(part.X), part.obsm["X_dre"], atol=1e-3)


@pytest.mark.parametrize("kind", [scipy.sparse.csc_matrix, scipy.sparse.csr_array, lambda X: X.toarray()])
def test_any_matrix_gives_the_same_map(logged, mapped, kind):
    adata = logged.copy()
    adata.X = kind(adata.X)
    dre.scanpy.tl.dre(adata, **OPTIONS)
    assert np.array_equal(adata.obsm["X_dre"], mapped.obsm["X_dre"])


@pytest.mark.parametrize("kind", [lambda X: X, lambda X: X.toarray()])
@pytest.mark.parametrize("has_pca", [True, False])
def test_backed_cells_are_mapped(logged, tmp_path, kind, has_pca):
    adata = logged.copy()
    adata.X = kind(adata.X)
    if not has_pca:
        del adata.obsm["X_pca"], adata.varm["PCs"], adata.uns["pca"]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    dre.scanpy.tl.dre(backed, **OPTIONS)
    assert backed.isbacked
    dre.scanpy.tl.dre(adata, **OPTIONS)
    assert np.array_equal(backed.obsm["X_dre"], adata.obsm["X_dre"])
    copy = dre.scanpy.tl.dre(backed, copy=True, **OPTIONS)
    assert not copy.isbacked
    backed.file.close()


def test_a_view_becomes_a_copy_and_its_origin_stays(logged):
    view = logged[:100]
    with pytest.warns(anndata.ImplicitModificationWarning):
        dre.scanpy.tl.dre(view, **OPTIONS)
    assert not view.is_view
    assert view.obsm["X_dre"].shape == (100, 2)
    assert "X_dre" not in logged.obsm


def test_raw_counts_are_mapped_with_a_warning():
    adata = make_cells()
    adata.X = adata.X.astype(np.int64)
    with pytest.warns(UserWarning, match="raw counts"):
        dre.scanpy.tl.dre(adata, **OPTIONS)
    assert adata.obsm["X_dre"].shape == (240, 2)


def test_components_of_raw_counts_are_said():
    adata = make_cells()
    sc.pp.pca(adata, n_comps=20)
    with pytest.warns(UserWarning, match="raw counts"):
        dre.scanpy.tl.dre(adata, **OPTIONS)


def test_gaps_in_a_representation_are_named_by_cell(logged):
    adata = logged.copy()
    adata.obsm["X_pca"][5, 3] = np.nan
    with pytest.raises(ValueError, match=r"obsm\['X_pca'\] has NaN or infinity, first in cell 'cell0-5', column 3"):
        dre.scanpy.tl.dre(adata, **OPTIONS)


def test_cells_without_genes_need_a_representation(logged):
    adata = logged[:, :0].copy()
    dre.scanpy.tl.dre(adata, **OPTIONS)
    assert adata.uns["dre"]["params"]["use_rep"] == "X_pca"
    del adata.obsm["X_pca"]
    with pytest.raises(ValueError, match="adata has no genes: pass use_rep"):
        dre.scanpy.tl.dre(adata, **OPTIONS)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, lambda X: X.toarray()])
def test_cells_that_are_all_the_same_have_no_components(kind):
    adata = log_normalized(make_cells(60))
    adata.X = kind(adata.X * 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="same values in all cells"):
            dre.scanpy.tl.dre(adata, **OPTIONS)


def test_a_quiet_map_prints_nothing(logged, capsys):
    dre.scanpy.tl.dre(logged, copy=True, verbose=False, **OPTIONS)
    assert not capsys.readouterr().err


def test_wrong_arguments_name_the_remedy(logged):
    with pytest.raises(TypeError, match="Did you mean 'perplexity'"):
        dre.scanpy.tl.dre(logged, perplexty=5)
    with pytest.raises(TypeError, match=r"unknown option 'min_distance'.*Did you mean 'min_dist'"):
        dre.scanpy.tl.dre(logged, min_distance=0.1)
    with pytest.raises(ValueError, match=r"'X_scVI' is not in adata.obsm; there are: 'X', 'X_pca'"):
        dre.scanpy.tl.dre(logged, use_rep="X_scVI")
    with pytest.raises(ValueError, match=r"1 cell\(s\): a map needs 2"):
        dre.scanpy.tl.dre(logged[:1].copy())
    with pytest.raises(TypeError, match=r"anndata.read_h5ad\('cells.h5ad'\)"):
        dre.scanpy.tl.dre("cells.h5ad")
    with pytest.raises(TypeError, match="adata is a ndarray"):
        dre.scanpy.tl.dre(np.zeros((3, 3)))
    assert "X_dre" not in logged.obsm


@pytest.mark.parametrize("use_rep", [None, "X"])
def test_gaps_are_named_by_cell_and_gene(use_rep):
    adata = log_normalized(make_cells())
    adata.X = adata.X.toarray()
    adata.X[3, 7] = np.nan
    with pytest.raises(ValueError, match="cell 'cell0-3', gene 'GENE7'"):
        dre.scanpy.tl.dre(adata, use_rep=use_rep, **OPTIONS)


def test_names_of_genes_that_occur_twice_leave_the_model_without_genes(logged):
    adata = logged.copy()
    adata.var_names = [*adata.var_names[:-1], "GENE0"]
    with pytest.warns(UserWarning, match="var_names_make_unique"):
        dre.scanpy.tl.dre(adata, **OPTIONS)
    assert dre.scanpy.model(adata).row_shape_ == (20,)


def test_the_neighbors_of_scanpy_are_used(logged):
    adata = logged.copy()
    sc.pp.neighbors(adata, n_neighbors=31, n_pcs=8)
    options = {name: value for name, value in OPTIONS.items() if name != "schedule"} | {"recipe": "fast"}
    dre.scanpy.tl.dre(adata, neighbors_key="neighbors", **options)
    assert adata.uns["dre"]["params"]["neighbors_key"] == "neighbors"
    assert adata.uns["dre"]["params"]["n_features"] == 8
    graph = adata.copy()
    graph.obsp["distances"] = graph.obsp["distances"][::-1, ::-1].tocsr()
    dre.scanpy.tl.dre(graph, neighbors_key="neighbors", **options)
    assert not np.array_equal(adata.obsm["X_dre"], graph.obsm["X_dre"])


def test_a_graph_is_read_as_a_fit_reads_it_also_where_a_cell_has_few_neighbors(logged, capsys):
    adata = logged.copy()
    adata.obsm["X_corrected"] = adata.obsm["X_pca"][:, :7] + 1
    sc.pp.neighbors(adata, n_neighbors=16, use_rep="X_corrected")
    graph = adata.obsp["distances"].tolil()
    others = graph.rows[3]
    graph[3, others[1:]] = 0
    adata.obsp["distances"] = graph.tocsr()
    assert np.diff(adata.obsp["distances"].indptr)[3] == 1
    options = {"recipe": "fast", "encoder": "mlp(16, depth=1)", "device": "cpu"}
    dre.scanpy.tl.dre(adata, neighbors_key="neighbors", **options)
    said = capsys.readouterr().err
    assert "15 neighbors of each row are given" in said
    assert "1 row lists fewer neighbors than most" in said
    fitted = DRE(**options, random_state=0).fit(adata.obsm["X_corrected"], precomputed_knn=adata.obsp["distances"])
    assert np.array_equal(adata.obsm["X_dre"], fitted.embedding_)


def test_neighbors_of_more_cells_than_are_left_are_refused(logged):
    adata = logged.copy()
    sc.pp.neighbors(adata)
    with pytest.raises(ValueError, match=r"on average, and 14 were computed.*run sc.pp.neighbors\(adata\) again"):
        dre.scanpy.tl.dre(adata[:80].copy(), neighbors_key="neighbors", **OPTIONS)


def test_neighbors_that_are_not_there_are_said(logged):
    with pytest.raises(ValueError, match=r"run sc.pp.neighbors"):
        dre.scanpy.tl.dre(logged, neighbors_key="neighbors")
    adata = logged.copy()
    sc.pp.neighbors(adata, key_added="wnn")
    with pytest.raises(ValueError, match="there are: 'wnn'"):
        dre.scanpy.tl.dre(adata, neighbors_key="neighbors")
    del adata.obsp["wnn_distances"]
    with pytest.raises(ValueError, match="obsp has no 'wnn_distances'"):
        dre.scanpy.tl.dre(adata, neighbors_key="wnn")
