"""The learned map as one plain module, and neighbors that users bring."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from dre import DRE
from dre.training.events import StageBegan

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"
N = 60


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


def rows(shape: tuple[int, ...] = (6,)) -> np.ndarray:
    return np.random.default_rng(0).normal(3, 2, size=(N, *shape))


# The module.

KINDS = {
    "mlp(16)": (6,),
    "mlp(16, n_pcs=4)": (6,),
    "patch-mlp(16, n_pcs=8)": (8, 8),
    "model-a(width=20)": (6,),
    "model-b(filters=4/8, norm=true)": (8, 8, 3),
    "strided(filters=4/8)": (8, 8),
}


@pytest.mark.parametrize("options", [{}, {"metric": "cosine"}, {"standardize": True}], ids=str)
@pytest.mark.parametrize("encoder", KINDS)
def test_the_module_maps_raw_rows_as_transform_does(encoder, options):
    X = rows(KINDS[encoder]) * 100
    model = cheap(encoder=encoder, **options).fit(X)
    for stage in (None, 0):
        module = model.module(stage=stage)
        np.testing.assert_allclose(module(torch.from_numpy(X)).detach().numpy(), model.transform(X, stage=stage), atol=1e-6)
    assert not module.training


@pytest.mark.parametrize("encoder", KINDS)
def test_the_module_can_be_exported_for_any_number_of_rows(encoder):
    X = rows(KINDS[encoder])
    model = cheap(encoder=encoder, metric="cosine").fit(X)
    example = torch.from_numpy(X[:7])
    n = torch.export.Dim("n", min=2, max=100_000)
    program = torch.export.export(model.module(), (example,), dynamic_shapes=({0: n},))
    for some in (X, X[:3]):
        np.testing.assert_allclose(program.module()(torch.from_numpy(some)).detach().numpy(), model.transform(some), atol=1e-5)


def test_the_module_is_a_copy():
    X = rows()
    model = cheap().fit(X)
    before = model.transform(X)
    for parameter in model.module().parameters():
        parameter.data.zero_()
    np.testing.assert_array_equal(model.transform(X), before)


def test_integers_and_images_of_bytes_are_taken():
    X = np.random.default_rng(0).integers(0, 255, (N, 8, 8)).astype(np.uint8)
    model = cheap(encoder="patch-mlp(16, n_pcs=8)", schedule="features: gaussian(5) -> kl * 2").fit(X)
    np.testing.assert_allclose(model.module()(torch.from_numpy(X)).detach().numpy(), model.transform(X), atol=1e-5)


# Neighbors that users bring.


def knn(X: np.ndarray, k: int, **options: object) -> tuple[np.ndarray, np.ndarray]:
    distances, indices = NearestNeighbors(n_neighbors=k, **options).fit(X).kneighbors(X)
    return indices, distances


def test_the_neighbors_that_the_search_would_find_give_the_same_map():
    X = rows()
    scaled = (X - X.mean(0)) / X.std()
    given = cheap().fit(X, precomputed_knn=knn(scaled, 16))  # the row itself among them
    found = cheap().fit(X)
    maps = [model.embedding_ - model.embedding_.mean(0) for model in (given, found)]  # the loss does not say where a map lies
    np.testing.assert_allclose(*maps, atol=1e-3)
    np.testing.assert_array_equal(given.transform(X), given.embedding_)


def test_the_first_target_is_made_of_the_given_neighbors():
    X = rows()
    indices, distances = knn(X, 16, metric="manhattan")
    targets = []
    cheap().fit(
        X,
        precomputed_knn=(indices[:, 1:], distances[:, 1:]),
        observers=[lambda event: targets.append(event.target) if isinstance(event, StageBegan) else None],
    )
    assert [target.search.method for target in targets] == ["precomputed", "exact"]
    np.testing.assert_array_equal(targets[0].indices.numpy(), indices[:, 1:])


def test_more_neighbors_than_are_needed_are_cut():
    X = rows()
    few, many = (cheap().fit(X, precomputed_knn=knn(X, k)).embedding_ for k in (16, 40))
    np.testing.assert_array_equal(few, many)


def test_too_few_neighbors_lower_the_perplexity_with_a_warning():
    with pytest.warns(UserWarning, match=r"8 neighbors of each row are given, and gaussian\(5\) needs 15: gaussian\(2.67\)"):
        few = cheap().fit(rows(), precomputed_knn=knn(rows(), 9))
    assert [stage.affinity.perplexity for stage in few.schedule_] == [pytest.approx(8 / 3), 5]


def test_the_triple_of_umap_is_taken_too():
    indices, distances = knn(rows(), 16)
    pair, triple = (cheap().fit(rows(), precomputed_knn=given) for given in ((indices, distances), (indices, distances, None)))
    np.testing.assert_array_equal(pair.embedding_, triple.embedding_)


@pytest.mark.parametrize("given", [3, (np.zeros((N, 15)),), np.zeros((3, N, 15))])
def test_what_is_no_pair_is_refused(given):
    with pytest.raises(TypeError, match=r"precomputed_knn.*\(indices, distances\)"):
        cheap().fit(rows(), precomputed_knn=given)


def test_neighbors_that_no_stage_uses_are_refused():
    with pytest.raises(ValueError, match="precomputed_knn"):
        cheap(schedule="h1: gaussian(5) -> kl * 1").fit(rows(), precomputed_knn=knn(rows(), 16))


@pytest.mark.parametrize("call", ["fit", "fit_transform", "partial_fit", "weighted"])
def test_a_warning_of_units_names_the_line_that_called(call):
    X, model = rows() * [1, 1, 1, 1, 1, 1e4], cheap()
    weights = {"sample_weight": np.ones(N)} if call == "weighted" else {}
    with pytest.warns(UserWarning, match="pass standardize=True") as found:
        getattr(model, "fit" if weights else call)(X, **weights)
    assert [each.filename for each in found] == [__file__]
