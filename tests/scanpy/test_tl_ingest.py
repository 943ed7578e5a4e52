"""``tl.ingest`` places new cells by the names of their genes, labels them, and refuses those that are foreign."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import scipy.sparse
import torch
from made_cells import OPTIONS, anndata, log_normalized, make_cells, pd

import dre.scanpy
from dre import DRE
from dre.data.gene_pca import ReferenceCells
from dre.scanpy.labels import NOT_ON_MAP, LabelTransfer

sc = pytest.importorskip("scanpy", reason="scanpy is not installed")


@pytest.fixture(scope="module")
def reference():
    adata = log_normalized(make_cells(400))
    sc.pp.pca(adata, n_comps=20)
    dre.scanpy.tl.dre(adata, **OPTIONS)
    return adata


@pytest.fixture
def query():
    """New counts of the same kinds of cells; the truth is in another column."""
    adata = make_cells(150, seed=1)
    adata.obs["truth"] = adata.obs.pop("cell_type").astype(object)
    return adata


def right(adata):
    return float((adata.obs["cell_type"].astype(str) == adata.obs["truth"]).mean())


def test_new_cells_get_coordinates_labels_and_confidences(reference, query):
    assert dre.scanpy.tl.ingest(query, reference) is None
    assert query.obsm["X_dre"].shape == (150, 2)
    assert query.obsm["X_pca"].shape == (150, 20)
    assert right(query) > 0.95
    confidence = query.obs["cell_type_confidence"]
    assert confidence.dtype == np.float32
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert isinstance(query.obs["cell_type"].dtype, pd.CategoricalDtype)


def test_the_cells_of_the_reference_stay_where_they_are(reference):
    again = dre.scanpy.tl.ingest(reference, reference, copy=True, refuse=0)
    assert np.allclose(again.obsm["X_dre"], reference.obsm["X_dre"], atol=1e-3)
    assert (again.obs["cell_type"].astype(str) == reference.obs["cell_type"].astype(str)).mean() > 0.98


def test_counts_and_their_logarithms_are_the_same_cells(reference, query, capsys):
    logged = log_normalized(query)
    dre.scanpy.tl.ingest(query, reference)
    assert "adata holds counts: normalized to 10,000" in capsys.readouterr().err
    dre.scanpy.tl.ingest(logged, reference)
    assert "holds counts" not in capsys.readouterr().err
    assert np.allclose(query.obsm["X_pca"], logged.obsm["X_pca"], atol=1e-2)
    layered = query.copy()
    layered.layers["counts"] = layered.X.copy()
    layered.X = layered.X * 0.5
    dre.scanpy.tl.ingest(layered, reference, layer="counts")
    assert np.allclose(query.obsm["X_pca"], layered.obsm["X_pca"])


def test_the_order_of_genes_and_others_beside_them_do_not_matter(reference, query, capsys):
    dre.scanpy.tl.ingest(query, reference)
    assert "120 of the 120 genes" in capsys.readouterr().err
    rng = np.random.default_rng(0)
    names = [*query.var_names, "other1", "other2"]
    extra = scipy.sparse.hstack([query.X, scipy.sparse.csr_matrix(rng.poisson(5, (150, 2)))]).tocsr()
    order = rng.permutation(len(names))
    var = pd.DataFrame(index=pd.Index([names[i] for i in order], dtype=object))
    shuffled = anndata.AnnData(extra[:, order], obs=query.obs.copy(), var=var)
    dre.scanpy.tl.ingest(shuffled, reference)
    assert np.allclose(query.obsm["X_dre"], shuffled.obsm["X_dre"], atol=1e-3)
    assert (query.obs["cell_type"] == shuffled.obs["cell_type"]).all()
    logged = log_normalized(shuffled)
    dre.scanpy.tl.ingest(logged, reference)
    assert np.allclose(query.obsm["X_pca"], logged.obsm["X_pca"], atol=1e-2)


@pytest.mark.parametrize("steps", [lambda adata: adata, log_normalized])
@pytest.mark.parametrize("kept", [108, 84, 60])
def test_cells_that_lack_genes_are_labelled_by_the_others(reference, query, steps, kept):
    part = steps(query)[:, np.random.default_rng(0).permutation(120)[:kept]].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=f"{1 - kept / 120:.0%} of the genes of the reference are not in adata")
        dre.scanpy.tl.ingest(part, reference)
    assert right(part) > 0.9
    assert (part.obs["cell_type"] == NOT_ON_MAP).mean() < 0.05


def test_many_absent_genes_are_said(reference, query):
    with pytest.warns(UserWarning, match="33% of the genes of the reference are not in adata"):
        dre.scanpy.tl.ingest(query[:, :80].copy(), reference)


@pytest.mark.filterwarnings("ignore:.*of the genes of the reference are not in adata")
def test_counts_of_some_genes_are_normalized_to_the_share_of_the_reference_in_these(reference, capsys):
    own = make_cells(400)[:, :80].copy()
    dre.scanpy.tl.ingest(own, reference, refuse=0)
    share = make_cells(400).X[:, :80].sum(1) / make_cells(400).X.sum(1)
    assert f"normalized to {1e4 * float(share.mean()):,.6g}"[:20] in capsys.readouterr().err
    logged = log_normalized(make_cells(400))[:, :80].copy()
    dre.scanpy.tl.ingest(logged, reference, refuse=0)
    assert abs(own.obsm["X_pca"].mean(0) - logged.obsm["X_pca"].mean(0)).max() < 0.1 * logged.obsm["X_pca"].std()


def test_a_reference_without_pca_gives_absent_genes_their_mean(query):
    reference = log_normalized(make_cells(400, genes=30))
    dre.scanpy.tl.dre(reference, **OPTIONS)
    part = query[:, :20].copy()
    with pytest.warns(UserWarning, match="33% of the genes"):
        dre.scanpy.tl.ingest(part, reference)
    assert right(part) > 0.9
    logged = log_normalized(make_cells(400, genes=30))[:, :20].copy()
    filled = reference.X.toarray()
    filled[:, 20:] = filled[:, 20:].mean(0)
    with pytest.warns(UserWarning, match="33% of the genes"):
        dre.scanpy.tl.ingest(logged, reference)
    assert np.allclose(logged.obsm["X_dre"], dre.scanpy.model(reference).transform(filled), atol=1e-3)


def test_counts_of_foreign_cells_do_not_blame_the_normalization(reference, query):
    query.X = scipy.sparse.csr_matrix(np.random.default_rng(0).permuted(query.X.toarray() ** 2, axis=1))
    with pytest.warns(UserWarning, match="unlike the reference") as caught:
        dre.scanpy.tl.ingest(query, reference)
    assert not any("normalized otherwise" in str(each.message) for each in caught)


def test_genes_that_do_not_overlap_are_named(reference, query):
    query.var_names = [f"ENSG{i:05}" for i in range(query.n_vars)]
    with pytest.raises(ValueError, match=r"0 of the 120 genes.*'GENE0', 'GENE1'.*'ENSG00000', 'ENSG00001'"):
        dre.scanpy.tl.ingest(query, reference)
    query.var_names = [*(f"GENE{i}" for i in range(10)), *query.var_names[10:]]
    with pytest.raises(ValueError, match="10 of the 120 genes of the reference are in adata, which are too few"):
        dre.scanpy.tl.ingest(query, reference)
    query.var_names = [*(f"GENE{i}" for i in range(119)), "GENE0"]
    with pytest.raises(ValueError, match="var_names_make_unique"):
        dre.scanpy.tl.ingest(query, reference)


def test_foreign_cells_are_not_on_the_map(reference, query):
    rng = np.random.default_rng(0)
    foreign = query.copy()
    foreign.X = scipy.sparse.csr_matrix(rng.poisson(rng.permuted(np.tile(np.geomspace(0.01, 30, 120), (150, 1)), axis=1)))
    with pytest.warns(UserWarning, match="unlike the reference"):
        dre.scanpy.tl.ingest(foreign, reference)
    refused = foreign.obs["cell_type"] == NOT_ON_MAP
    assert refused.mean() > 0.95
    assert (foreign.obs["cell_type_confidence"][refused] == 0).all()
    dre.scanpy.tl.ingest(foreign, reference, refuse=0)
    assert NOT_ON_MAP not in foreign.obs["cell_type"].cat.categories
    dre.scanpy.tl.ingest(query, reference)
    assert (query.obs["cell_type"] == NOT_ON_MAP).mean() < 0.05


@pytest.mark.parametrize("refuse", [0.05, 0.2, 0.5, 0.9])
def test_the_share_of_ordinary_cells_that_is_refused_is_the_one_asked_for(reference, refuse):
    new = make_cells(600, seed=3)
    dre.scanpy.tl.ingest(new, reference, obs="cell_type", refuse=refuse)
    found = (new.obs["cell_type"] == NOT_ON_MAP).mean()
    assert abs(found - refuse) < 0.03 + 0.25 * refuse


def test_a_file_of_cells_alone_is_a_reference(reference, query, tmp_path):
    reference.write_h5ad(tmp_path / "reference.h5ad")
    dre.scanpy.tl.ingest(query, reference)
    backed = anndata.read_h5ad(tmp_path / "reference.h5ad", backed="r")
    again = dre.scanpy.tl.ingest(query, backed, copy=True)
    assert np.array_equal(again.obsm["X_dre"], query.obsm["X_dre"])
    assert (again.obs["cell_type"] == query.obs["cell_type"]).all()
    backed.file.close()
    again.write_h5ad(tmp_path / "query.h5ad")
    read = anndata.read_h5ad(tmp_path / "query.h5ad")
    assert (read.obs["cell_type"].astype(str) == query.obs["cell_type"].astype(str)).all()


def test_a_model_file_alone_labels_cells(reference, query, tmp_path):
    dre.scanpy.model(reference, "cell_type").save(tmp_path / "model")
    dre.scanpy.tl.ingest(query, reference)
    for model in (tmp_path / "model", str(tmp_path / "model"), DRE.load(tmp_path / "model")):
        again = dre.scanpy.tl.ingest(query, model, copy=True)
        assert (again.obs["cell_type"] == query.obs["cell_type"]).all()
        assert np.array_equal(again.obsm["X_dre"], query.obsm["X_dre"])


def test_a_model_without_labels_gives_coordinates_alone(reference, query, tmp_path):
    dre.scanpy.model(reference).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"has no such labels; it has: none.*obs=None"):
        dre.scanpy.tl.ingest(query, tmp_path / "model")
    dre.scanpy.tl.ingest(query, tmp_path / "model", obs=None)
    assert "X_dre" in query.obsm
    assert "cell_type" not in query.obs


def test_a_model_of_other_rows_reads_no_genes(query, tmp_path):
    rows = np.random.default_rng(0).normal(size=(50, 4))
    DRE(**OPTIONS, random_state=0).fit(rows).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"shape \(4,\), not genes"):
        dre.scanpy.tl.ingest(query, tmp_path / "model")


def test_several_columns_of_labels(reference, query):
    reference = reference.copy()
    reference.obs["lineage"] = np.where(reference.obs["cell_type"] == "NK", "innate", "adaptive")
    dre.scanpy.tl.ingest(query, reference, obs=["cell_type", "lineage"])
    agrees = (query.obs["lineage"] == "innate") == (query.obs["cell_type"] == "NK")
    assert agrees.mean() > 0.98


def test_labels_that_are_missing_do_not_vote(reference, query):
    reference = reference.copy()
    labels = reference.obs["cell_type"].astype(object)
    labels.iloc[::2] = np.nan
    labels.iloc[1::8] = "-1"
    labels.iloc[3::8] = NOT_ON_MAP  # of a reference that was labelled so before
    known = ["T", "unused", "B", "NK", "-1", NOT_ON_MAP]
    reference.obs["cell_type"] = pd.Categorical(labels, categories=pd.Index(known, dtype=object))
    dre.scanpy.tl.ingest(query, reference)
    assert set(query.obs["cell_type"].cat.categories) <= {"T", "B", "NK", NOT_ON_MAP}
    assert right(query) > 0.95


@pytest.mark.parametrize("labels", [np.nan, -1, "-1"])
def test_labels_that_are_none_at_all_are_said(reference, query, labels):
    reference = reference.copy()
    reference.obs["cell_type"] = labels
    with pytest.raises(ValueError, match="obs='cell_type': the reference has no label in this column"):
        dre.scanpy.tl.ingest(query, reference)


def test_labels_may_be_numbers(reference, query):
    reference = reference.copy()
    reference.obs["cell_type"] = reference.obs["cell_type"].cat.codes.to_numpy() + 1
    dre.scanpy.tl.ingest(query, reference)
    assert set(query.obs["cell_type"]) - {NOT_ON_MAP} == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.linspace(0, 1, 400), "continuous values"),
        (pd.date_range("2020-01-01", periods=400).to_numpy(), "dates or times"),
        ([f"barcode{i}" for i in range(400)], "400 cells of the reference have 400 labels"),
        (np.arange(400), "400 cells of the reference have 400 labels"),
    ],
)
def test_columns_that_name_no_groups_are_refused(reference, query, labels, message):
    reference = reference.copy()
    reference.obs["column"] = labels
    for call in (lambda: dre.scanpy.tl.ingest(query, reference, obs="column"), lambda: dre.scanpy.model(reference, "column")):
        with pytest.raises(ValueError, match=f"obs='column': .*{message}.*pass a column of groups"):
            call()


def test_errors_name_what_is_there(reference, query):
    with pytest.raises(ValueError, match="no such column in obs; there are: 'cell_type'"):
        dre.scanpy.tl.ingest(query, reference, obs="celltype")
    with pytest.raises(ValueError, match=r"no map 'dre': run dre.scanpy.tl.dre"):
        dre.scanpy.tl.ingest(query, make_cells())
    with pytest.raises(TypeError, match="read_h5ad"):
        dre.scanpy.tl.ingest(query, "reference.h5ad")
    with pytest.raises(TypeError, match="the reference is a list"):
        dre.scanpy.tl.ingest(query, [1])
    with pytest.raises(ValueError, match=r"layer='counts' is not in adata.layers; there are: none"):
        dre.scanpy.tl.ingest(query, reference, layer="counts")
    with pytest.raises(ValueError, match="refuse=2"):
        dre.scanpy.tl.ingest(query, reference, refuse=2)
    with pytest.raises(ValueError, match=r"n_neighbors=5,000: the reference has 400 cells"):
        dre.scanpy.tl.ingest(query, reference, n_neighbors=5000)
    for target_sum in (-5, 0, np.nan):
        with pytest.raises(ValueError, match=f"target_sum={target_sum}: counts per cell are more than 0"):
            dre.scanpy.tl.ingest(query, reference, target_sum=target_sum)
    for call in (dre.scanpy.model, lambda adata, obs: dre.scanpy.tl.ingest(query, adata, obs)):
        with pytest.raises(TypeError, match=r"obs is a Series: pass the name of a column.*'cell_type'"):
            call(reference, reference.obs["cell_type"])
    with pytest.raises(ValueError, match="adata has no cells"):
        dre.scanpy.tl.ingest(query[:0].copy(), reference)
    query.X = query.X.toarray()
    query.X[2, 5] = np.nan
    with pytest.raises(ValueError, match="cell 'cell1-2', gene 'GENE5'"):
        dre.scanpy.tl.ingest(query, reference)
    assert "X_dre" not in query.obsm


def _scale(adata):
    adata.X = adata.X.toarray()
    sc.pp.scale(adata)
    sc.pp.pca(adata, n_comps=20)


def _fewer(adata):
    sc.pp.pca(adata, n_comps=10)


def _permute(adata):
    adata.obsm["X_pca"] = np.random.default_rng(0).permutation(adata.obsm["X_pca"])


@pytest.mark.parametrize("change", [_scale, _fewer, _permute])
def test_components_that_were_computed_again_since_are_refused(reference, query, change):
    changed = reference.copy()
    change(changed)
    for call in (lambda: dre.scanpy.tl.ingest(query, changed), lambda: dre.scanpy.model(changed, "cell_type")):
        with pytest.raises(ValueError, match=r"obsm\['X_pca'\] of the reference is not the one.*tl.dre\(adata_ref\) again"):
            call()
    assert "cell_type" not in query.obs
    dre.scanpy.tl.ingest(query, changed, obs=None)  # the model alone decides


def test_cells_that_were_left_out_of_a_reference_since_do_not_matter(reference, query):
    part = reference[reference.obs["cell_type"] != "B"].copy()
    dre.scanpy.tl.ingest(query, part, refuse=0)
    assert set(query.obs["cell_type"]) == {"NK", "T"}


def test_a_map_under_another_key_is_named(reference, query):
    other = reference.copy()
    other.uns["map2"], other.obsm["map2"] = other.uns.pop("dre"), other.obsm.pop("X_dre")
    with pytest.raises(ValueError, match="no map 'dre': there are: 'map2'; pass key='map2'"):
        dre.scanpy.tl.ingest(query, other)
    dre.scanpy.tl.ingest(query, other, key="map2")
    assert query.obsm["map2"].shape == (150, 2)


def test_one_cell_is_enough(reference, query):
    one = query[:1].copy()
    dre.scanpy.tl.ingest(one, reference)
    dre.scanpy.tl.ingest(query, reference)
    assert np.allclose(one.obsm["X_dre"], query.obsm["X_dre"][:1], atol=1e-3)
    assert one.obs["cell_type"].iloc[0] == query.obs["cell_type"].iloc[0]


def test_values_that_are_neither_counts_nor_logarithms_are_refused(reference, query):
    query.X = query.X * 10.5
    with pytest.raises(ValueError, match="neither counts, which are whole numbers, nor their logarithms"):
        dre.scanpy.tl.ingest(query, reference)
    scaled = log_normalized(make_cells(100, seed=2))
    sc.pp.scale(scaled)
    with pytest.raises(ValueError, match="negative values"):
        dre.scanpy.tl.ingest(scaled, reference)


@pytest.mark.parametrize("total", [848.0, 1e6])
def test_another_total_is_undone(reference, query, total, capsys):
    other = log_normalized(query, total)
    dre.scanpy.tl.ingest(other, reference)
    assert f"normalized to {total:,.6g} counts per cell, the reference to 10,000" in capsys.readouterr().err
    dre.scanpy.tl.ingest(query, reference)
    assert np.allclose(other.obsm["X_pca"], query.obsm["X_pca"], atol=1e-2)


def with_base(adata, base, is_stated=True):
    """Log-normalized cells with logarithms to another base, as ``sc.pp.log1p(adata, base=base)`` gives."""
    adata = adata.copy()
    adata.X = adata.X / np.log(base)
    adata.uns["log1p"] = {"base": base}
    if not is_stated:
        del adata.uns["log1p"]
    return adata


@pytest.mark.parametrize("is_stated", [True, False])
@pytest.mark.parametrize("base", [2, 10])
@pytest.mark.parametrize("kept", [120, 100])
@pytest.mark.filterwarnings("ignore:.*of the genes of the reference are not in adata")
def test_another_base_of_the_logarithm_is_converted(reference, query, base, is_stated, kept, capsys):
    logged = log_normalized(query)[:, :kept].copy()
    other = with_base(log_normalized(query), base, is_stated or kept < 120)[:, :kept].copy()
    dre.scanpy.tl.ingest(other, reference)
    assert f"to the base {base}: converted to 2.718" in capsys.readouterr().err
    dre.scanpy.tl.ingest(logged, reference)
    assert "base" not in capsys.readouterr().err
    assert np.allclose(other.obsm["X_pca"], logged.obsm["X_pca"], atol=1e-2)


def test_natural_logarithms_fit_a_reference_with_another_base(query):
    reference = with_base(log_normalized(make_cells(400)), 2)
    sc.pp.pca(reference, n_comps=20)
    dre.scanpy.tl.dre(reference, **OPTIONS)
    logged = log_normalized(query)
    dre.scanpy.tl.ingest(logged, reference)
    dre.scanpy.tl.ingest(query, reference)
    assert right(query) > 0.95
    assert np.allclose(query.obsm["X_pca"], logged.obsm["X_pca"], atol=1e-2)


def scaled_reference(clip):
    """As in scanpy's tutorial: log-normalized genes in raw, and the scaled half of them in X."""
    adata = log_normalized(make_cells(400))
    adata.raw = adata
    adata = adata[:, adata.var_names[::2]].copy()
    sc.pp.scale(adata, max_value=clip)
    sc.pp.pca(adata, n_comps=20)
    dre.scanpy.tl.dre(adata, **OPTIONS)
    return adata


@pytest.mark.parametrize("clip", [None, 2.0])
def test_a_scaled_reference_scales_new_cells_alike(query, clip):
    reference = scaled_reference(clip)
    own = make_cells(400)
    dre.scanpy.tl.ingest(own, reference, refuse=0)
    assert np.allclose(own.obsm["X_pca"], reference.obsm["X_pca"], atol=0.05)
    dre.scanpy.tl.ingest(query, reference, refuse=0)
    assert right(query) > 0.95


def test_new_cells_that_are_scaled_are_read_from_raw(query, capsys):
    reference = scaled_reference(None)
    logged = log_normalized(query)
    logged.raw = logged
    sc.pp.scale(logged)
    dre.scanpy.tl.ingest(logged, reference)
    assert "reading those of adata.raw" in capsys.readouterr().err
    dre.scanpy.tl.ingest(query, reference)
    assert np.allclose(logged.obsm["X_pca"], query.obsm["X_pca"], atol=1e-2)


def test_a_total_that_is_not_known_must_be_said(query):
    reference = log_normalized(make_cells(400))[:, ::2].copy()
    sc.pp.pca(reference, n_comps=20)
    dre.scanpy.tl.dre(reference, **OPTIONS)
    with pytest.raises(ValueError, match="target_sum=10_000"):
        dre.scanpy.tl.ingest(query, reference)
    dre.scanpy.tl.ingest(query, reference, target_sum=1e4)
    logged = log_normalized(query)
    dre.scanpy.tl.ingest(logged, reference)
    assert np.allclose(query.obsm["X_pca"], logged.obsm["X_pca"], atol=1e-2)


def test_genes_stay_outside_of_an_exported_map(reference, query, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = dre.scanpy.model(reference)
    with pytest.warns(UserWarning, match=r"rows of 20 numbers, which model.prepare\(X\) makes.*'gene-pca'"):
        model.to_onnx(tmp_path / "map.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "map.onnx", providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape[1] == 20
    found = session.run(["embedding"], {"x": model.prepare(query.X)})[0]
    np.testing.assert_allclose(found, model.transform(query.X), atol=1e-4, rtol=1e-4)
    names = json.loads(session.get_modelmeta().custom_metadata_map["dre.feature_names"])
    assert names[:2] == ["PC1", "PC2"]
    with pytest.warns(UserWarning, match="gene-pca"):
        model.to_torch_export(tmp_path / "map.pt2")


def test_dense_classes_do_not_hide_foreign_cells_next_to_them():
    """Cells that are far for the class next to them, but no farther than those of a sparse class are from each other."""
    rng = np.random.default_rng(0)
    dense, sparse = rng.normal(0, 0.1, (300, 2)), rng.normal(10, 2.0, (300, 2))
    cells = ReferenceCells(
        torch.from_numpy(np.concatenate([dense, sparse]).astype(np.float32)),
        {"cell_type": (torch.arange(600, dtype=torch.int32) // 300, ["dense", "sparse"])},
    )
    transfer = LabelTransfer(cells, 15)
    foreign = rng.normal([1.2, 0.0], 0.02, (50, 2)).astype(np.float32)
    known = rng.normal(0, 0.1, (200, 2)).astype(np.float32)
    assert transfer.are_unlike(*transfer.nearest(foreign), 0.01).all()
    assert transfer.are_unlike(*transfer.nearest(known), 0.01).mean() < 0.05


@pytest.mark.parametrize("n", [1, 2, 4])
def test_copies_of_few_cells_are_like_these(n):
    cells = ReferenceCells(torch.zeros(n, 2), {"cell_type": (torch.zeros(n, dtype=torch.int32), ["B"])})
    transfer = LabelTransfer(cells, 15)
    assert not transfer.are_unlike(*transfer.nearest(np.zeros((3, 2), np.float32)), 0.01).any()
