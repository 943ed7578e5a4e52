"""A map can be fitted to a random sample of the rows; the network embeds the others."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from dre import DRE, DeepTSNE
from dre.data.random_sample import sample_ids
from dre.data.rows import HostRows

X = np.random.default_rng(0).normal(size=(300, 6))
OPTIONS = {"encoder": "mlp(8)", "random_state": 0, "device": "cpu"}
SCHEDULE = "x: gaussian(5) -> kl * 2"


@pytest.mark.parametrize("kind", ["array", "sparse", "rows", "tensor"])
def test_the_map_is_that_of_the_sample_and_embeds_all_rows(kind: str) -> None:
    data = {"array": X, "sparse": scipy.sparse.csr_matrix(X), "rows": HostRows(X), "tensor": torch.from_numpy(X)}[kind]
    model = DRE(schedule=SCHEDULE, sample=100, **OPTIONS).fit(data)
    ids = model.sample_indices_
    assert len(np.unique(ids)) == 100
    assert (np.diff(ids) > 0).all()
    alone = DRE(schedule=SCHEDULE, **OPTIONS).fit(X[ids])
    np.testing.assert_allclose(model.transform(X), alone.transform(X), atol=1e-5)
    assert model.embedding_.shape == (300, 2)
    np.testing.assert_array_equal(model.embedding_, model.transform(data))
    assert {record["rows"] for record in model.history_} == {100}


def test_a_sample_of_all_rows_is_all_rows() -> None:
    model = DRE(schedule=SCHEDULE, sample=300, **OPTIONS).fit(X)
    assert model.sample_indices_ is None
    np.testing.assert_array_equal(model.embedding_, DRE(schedule=SCHEDULE, **OPTIONS).fit(X).embedding_)


def test_the_sample_depends_on_the_seed_and_has_no_preference() -> None:
    assert not np.array_equal(sample_ids(1000, 100, 0), sample_ids(1000, 100, 1))
    counts = np.bincount(np.concatenate([sample_ids(50, 10, seed) for seed in range(2000)]), minlength=50)
    assert (abs(counts - 400) < 5 * 400**0.5).all()


def test_few_of_very_many_ids_need_little_memory() -> None:
    ids = sample_ids(10**12, 1000, 0)
    assert len(np.unique(ids)) == 1000
    assert ids.max() > 10**11


@pytest.mark.parametrize("sample", [1, 0, -5, 2.5, "many", True])
def test_a_sample_is_a_number_of_rows(sample: object) -> None:
    with pytest.raises(ValueError, match="sample="):
        DeepTSNE(sample=sample, **OPTIONS).fit(X)


def test_neighbors_of_all_rows_are_refused() -> None:
    knn = (np.zeros((300, 5), int), np.zeros((300, 5)))
    with pytest.raises(ValueError, match="precomputed_knn"):
        DRE(schedule=SCHEDULE, sample=100, **OPTIONS).fit(X, precomputed_knn=knn)


def test_a_sample_is_resumed(tmp_path) -> None:
    wanted = DRE(schedule=SCHEDULE, sample=100, **OPTIONS).fit(X, checkpoint=tmp_path)
    found = DRE(schedule=SCHEDULE, sample=100, **OPTIONS).fit(X, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)
