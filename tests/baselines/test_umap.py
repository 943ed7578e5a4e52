"""UMAP: umap-learn's, quiet with a seed, parallel without one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dre.baselines import umap as adapter
from dre.baselines.umap import UMAP
from dre.data.validation import check_seed

umap_learn = pytest.importorskip("umap", reason="needs umap-learn, the extra `baselines`")


def test_the_map_is_that_of_the_library_and_a_seed_costs_no_warning(digits):
    rows = digits.rows.reshape(200, -1).astype(np.float32)
    expected = umap_learn.UMAP(n_neighbors=8, n_epochs=30, n_jobs=1, random_state=check_seed(5)).fit_transform(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = UMAP(n_neighbors=8, n_epochs=30, random_state=5).fit(digits.rows)
        model.transform(digits.new)
    np.testing.assert_array_equal(model.embedding_, expected)


def test_the_rows_that_were_fitted_are_known_again(digits):
    model = UMAP(n_epochs=10, random_state=0).fit(digits.rows)
    np.testing.assert_array_equal(model.transform(digits.rows), model.embedding_)


def test_without_a_seed_the_library_itself_works_on_all_cores_without_a_warning(digits):
    import numba

    cores = numba.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = UMAP(n_neighbors=8, n_epochs=30, random_state=None).fit(digits.rows)
        Y = model.transform(digits.new)
    assert model.model_.n_jobs == -1  # the library writes 1 here where it takes the cores away
    assert model.model_.random_state is None
    assert numba.get_num_threads() == cores
    assert np.isfinite(Y).all()


class GraphCapture:
    """Stands in for the library: notes how it was called, and draws from numpy's global state as that does."""

    def UMAP(self, **options):
        self.options = options
        return self

    def fit(self, rows):
        self.embedding_ = np.random.normal(size=(len(rows), 2))
        return self


@pytest.mark.parametrize(("random_state", "n_jobs"), [(None, -1), (0, 1)])
def test_without_a_seed_all_cores_work_and_the_global_state_is_left_alone(random_state, n_jobs, monkeypatch):
    recorder = GraphCapture()
    monkeypatch.setattr(adapter, "import_umap", lambda: recorder)
    X = np.zeros((20, 3))
    before = np.random.get_state()
    first = UMAP(random_state=random_state).fit_transform(X)
    second = UMAP(random_state=random_state).fit_transform(X)
    assert all(map(np.array_equal, np.random.get_state(), before))
    assert not np.array_equal(first, second)  # each fit begins anew, and not where the global state stands
    assert recorder.options["n_jobs"] == n_jobs
    assert (recorder.options["random_state"] is None) == (random_state is None)
