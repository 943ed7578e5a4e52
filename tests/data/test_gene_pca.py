"""Counts and log-normalized genes give the same components, sparse or dense, in memory or from a file of a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from dre import DRE, ModelFileError
from dre.data.gene_pca import Components, CountNormalization, GenePCA, ReferenceCells
from dre.data.preparation import Prepared
from model_file_parts import Parts

GENES = [f"GENE{i}" for i in range(12)]


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(0).poisson(3, (60, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def logged(counts):
    return np.log1p(counts / counts.sum(1, keepdims=True) * 1e4)


@pytest.fixture(scope="module")
def pca(logged):
    used = np.array([0, 2, 3, 5, 7, 8, 11])
    rows = logged[:, used].astype(np.float64)
    _, _, axes = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    return GenePCA(
        GENES,
        torch.from_numpy(rows.mean(0)),
        torch.from_numpy(used),
        torch.from_numpy(axes[:4].T).float(),
        CountNormalization(1e4),
        residual=0.5,
    )


def test_counts_are_normalized_as_the_reference_was(pca, counts, logged):
    assert np.allclose(pca.transform(counts), pca.transform(logged), atol=1e-4)
    mixed = np.where(np.arange(60)[:, None] % 2, counts, logged)
    assert np.allclose(pca.transform(mixed), pca.transform(logged), atol=1e-4)
    assert np.allclose(pca.transform(scipy.sparse.csr_array(mixed)), pca.transform(mixed), atol=1e-4)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csc_matrix, lambda X: X.astype(np.int64)])
def test_any_matrix_of_counts_will_do(pca, counts, kind):
    assert np.allclose(pca.transform(kind(counts)), pca.transform(counts), atol=1e-5)


def test_genes_of_a_frame_are_found_by_name(pca, counts):
    frame = pd.DataFrame(counts, columns=GENES)[GENES[::-1]].assign(other=1.0)
    assert np.array_equal(pca.transform(frame), pca.transform(counts))
    with pytest.raises(ValueError, match="no column 'GENE3'"):
        pca.transform(frame.drop(columns="GENE3"))
    with pytest.raises(ValueError, match="reads 12 genes, 'GENE0' first"):
        pca.transform(counts[:, :5])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_genes_that_were_scaled_by_their_own_deviations_are_refused(pca, logged, kind):
    scaled = logged.copy()
    scaled[7] -= 10
    for reads in (pca, replace(pca, normalization=None, scale=(torch.zeros(7), torch.ones(7)))):
        with pytest.raises(ValueError, match="row 7 has negative values"):
            reads.transform(kind(scaled))
    assert np.isfinite(replace(pca, normalization=None).transform(kind(scaled))).all()


def test_a_cell_does_not_depend_on_the_others(pca, counts):
    alone = np.concatenate([pca.transform(row[None]) for row in counts])
    assert np.allclose(alone, pca.transform(counts), atol=1e-5)


def test_a_cell_without_counts_is_one(pca):
    assert np.isfinite(pca.transform(np.zeros((2, 12)))).all()


def test_scaled_genes_are_scaled_alike_and_clipped(pca, logged):
    mean, std = logged[:, pca.used].mean(0).astype(np.float64), logged[:, pca.used].std(0).astype(np.float64)
    scaled = replace(pca, center=torch.zeros(7), scale=(torch.from_numpy(mean), torch.from_numpy(std)), largest=1.0)
    expected = np.clip((logged[:, pca.used] - mean) / std, -1, 1) @ pca.loadings.numpy()
    assert np.allclose(scaled.transform(logged), expected, atol=1e-4)
    assert np.allclose(scaled.transform(scipy.sparse.csr_array(logged)), expected, atol=1e-4)


def test_what_lies_outside_of_the_components_is_between_none_and_all(pca, logged):
    rows, outside = pca.project(logged)
    x = logged[:, pca.used] - pca.center.numpy()
    left = np.linalg.norm(x - rows @ pca.loadings.numpy().T, axis=1) / np.linalg.norm(logged[:, pca.used], axis=1)
    assert np.allclose(outside, left, atol=1e-4)


def test_all_genes_are_a_case_of_some_genes(pca, logged):
    whole, outside = pca.project(logged)
    shared, outside_shared = pca.project_shared(logged, np.ones(12, bool))
    assert np.allclose(shared, whole, atol=1e-4)
    assert np.allclose(outside_shared, outside, atol=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_cells_within_the_components_are_known_by_some_of_their_genes(pca, kind):
    rows = np.random.default_rng(0).normal(size=(20, 4))
    cells = np.zeros((20, 12))
    cells[:, pca.used] = rows @ pca.loadings.numpy().T + pca.center.numpy()
    present = np.arange(12) != 3
    found, outside = pca.project_shared(kind(cells[:, present]), present)
    assert np.allclose(found, rows, atol=1e-4)
    assert outside.max() < 1e-3


def test_components_of_few_genes_stay_between_the_mean_and_least_squares(pca, logged):
    present = np.isin(np.arange(12), [0, 2, 5, 7, 8])
    plain = pca.project_shared(logged[:, present], present)[0]
    noisy = replace(pca, noise=torch.full((4,), 0.2)).project_shared(logged[:, present], present)[0]
    drowned = replace(pca, noise=torch.full((4,), 1e6)).project_shared(logged[:, present], present)[0]
    assert np.linalg.norm(noisy) < np.linalg.norm(plain)
    assert np.abs(drowned).max() < 1e-3


def test_absent_genes_have_their_mean_without_components(pca, logged):
    genes = replace(pca, loadings=None)
    filled = logged.copy()
    filled[:, 7] = float(pca.center[4])
    present = np.arange(12) != 7
    assert np.allclose(genes.project_shared(logged[:, present], present)[0], genes.project(filled)[0], atol=1e-5)


@pytest.mark.parametrize("known", [CountNormalization(None), CountNormalization(1e4, over_genes=False)])
def test_counts_that_cannot_be_normalized_are_refused(pca, counts, logged, known):
    partial = replace(pca, normalization=known)
    assert np.isfinite(partial.transform(logged)).all()
    with pytest.raises(ValueError, match=r"row 0 holds counts.*normalize_total"):
        partial.transform(counts)


@pytest.mark.parametrize("base", [None, 2.0])
def test_the_module_computes_the_same(pca, counts, logged, base):
    pca = replace(pca, normalization=CountNormalization(1e4, base=base))
    mixed = np.where(np.arange(60)[:, None] % 2, counts, logged)
    assert np.allclose(pca.module()(torch.from_numpy(mixed)).numpy(), pca.transform(mixed), atol=1e-4)


def cells():
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(-1, 2, (9,), generator=generator, dtype=torch.int32)
    return ReferenceCells(torch.randn(9, 4, generator=generator), {"cell_type": (codes, ["B", "T"])})


@pytest.fixture(scope="module")
def model(pca, counts):
    whole = replace(
        pca, cells=cells(), noise=torch.full((4,), 0.1, dtype=torch.double), levels=torch.arange(12.0), distance_ratio=0.9
    )
    return DRE(schedule="x: gaussian(5) -> kl * 2", encoder="mlp(8)", random_state=0, device="cpu").fit(Prepared(counts, whole))


def test_a_saved_model_reads_genes_and_keeps_the_labels(model, counts, logged, tmp_path):
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model")
    assert np.array_equal(loaded.transform(counts), model.transform(counts))
    assert np.allclose(loaded.transform(logged), model.transform(counts), atol=1e-3)
    assert list(loaded.feature_names_in_) == GENES
    codes, names = loaded._map.preparation.cells.labels["cell_type"]
    assert names == ["B", "T"]
    assert codes.equal(cells().labels["cell_type"][0])
    present = np.arange(12) != 3
    some = [each._map.preparation.project_shared(logged[:, present], present)[0] for each in (model, loaded)]
    assert np.array_equal(*some)
    assert loaded._map.preparation.levels.equal(torch.arange(12.0))
    assert loaded._map.preparation.distance_ratio == 0.9


def test_components_stand_for_genes(model, pca, counts):
    assert np.array_equal(model.transform(Components(pca.transform(counts))), model.transform(counts))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": GENES[:5]},
        {"columns": [*GENES[:-1], "GENE0"]},
        {"columns": "GENE0"},
        {"residual": -1.0},
        {"residual": "0.5"},
        {"distance_ratio": 0.0},
        {"largest": float("inf")},
        {"normalization": [1e4, 1, None]},
        {"normalization": [-1.0, True, None]},
        {"normalization": [1e4]},
        {"labels": [["cell_type", ["B"]]]},
        {"labels": [["cell_type", ["B", 3]]]},
        {"labels": []},
    ],
)
def test_a_file_that_was_edited_is_refused(model, tmp_path, change):
    model.save(tmp_path / "model")
    parts = Parts.read(tmp_path / "model")
    parts.configuration["preparation"]["config"] |= change
    parts.sign()
    parts.write(tmp_path / "edited")
    with pytest.raises(ModelFileError, match="edited"):
        DRE.load(tmp_path / "edited")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("used", torch.arange(7) + 9),
        ("used", torch.zeros(7, dtype=torch.long)),
        ("center", torch.full((7,), torch.nan, dtype=torch.double)),
        ("loadings", torch.zeros(6, 4)),
        ("std", torch.ones(7, dtype=torch.double)),
        ("cells", torch.zeros(9, 3)),
        ("codes.0", torch.full((9,), 2, dtype=torch.int32)),
        ("codes.0", torch.zeros(8, dtype=torch.int32)),
        ("noise", torch.zeros(3, dtype=torch.double)),
        ("noise", torch.full((4,), -1.0, dtype=torch.double)),
        ("levels", torch.zeros(7)),
        ("levels", torch.full((12,), torch.inf)),
        ("extra", torch.zeros(1)),
    ],
)
def test_tensors_that_were_edited_are_refused(model, name, value):
    config, tensors = model._map.preparation.state()
    GenePCA.restore(config, tensors)
    with pytest.raises((ValueError, KeyError)):
        GenePCA.restore(config, tensors | {name: value})
