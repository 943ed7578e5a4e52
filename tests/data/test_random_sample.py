"""A map can be fitted to a random sample of the rows; the network embeds the others."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse
import torch

from dre import DRE, DeepTSNE
from dre.data.random_sample import sample_ids
from dre.data.rows import HostRows
from dre.plan.recipes import default
from dre.training import graph_parts

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


def test_the_default_fits_a_sample_of_too_many_rows_and_says_so(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    monkeypatch.setitem(default.MOST, "cpu", 200)
    options = {**OPTIONS, "verbose": None}
    model = DRE("fast", **options).fit(X)
    assert len(model.sample_indices_) == 200
    assert model.embedding_.shape == (len(X), 2)
    assert str(model.recipe_) == str(DRE("fast", **options).plan(X.shape))
    assert "200 of 300 rows, sampled at random, are fitted" in capfd.readouterr().err
    DRE("fast", **{**options, "verbose": False}).fit(X)
    assert capfd.readouterr().err == ""
    every = DRE("fast", sample=len(X), **options).fit(X)
    assert every.sample_indices_ is None
    assert all(record["against"] == "batch" for record in every.history_)


def test_a_graph_in_parts_is_announced(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    for limits in (graph_parts.SEARCHED, graph_parts.PART):
        monkeypatch.setitem(limits, "cpu", 100)
    DRE(schedule=SCHEDULE, **{**OPTIONS, "verbose": None}).fit(X)
    assert re.search(
        r"dre: stage 0 \(x\): exact graph of \d+ neighbors in each of 3 random parts in .* MiB", capfd.readouterr().err
    )
    DRE(schedule=SCHEDULE, **{**OPTIONS, "verbose": False}).fit(X)
    assert capfd.readouterr().err == ""
