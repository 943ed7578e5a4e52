"""What baselines share: rows as float vectors, and errors that name a missing library."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
import torch
from small_models import Stream

from dre.baselines import make
from dre.baselines.sklearn_api import float_for, import_umap, vectors
from dre.baselines.spectral import PCA


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, size=(50, 4, 3)).astype(np.uint8)


@pytest.mark.parametrize(
    "form",
    [
        lambda X: X.reshape(50, 12),
        lambda X: X.astype(np.int16),
        lambda X: X.astype(np.float16),
        lambda X: np.asfortranarray(X.astype(np.float32)),
        lambda X: torch.from_numpy(X),
        lambda X: torch.from_numpy(X).bfloat16(),
        lambda X: X.tolist(),
        lambda X: scipy.sparse.csr_array(X.reshape(50, 12)),
        lambda X: Stream(X),
    ],
)
def test_the_form_of_the_rows_does_not_matter(form, X):
    np.testing.assert_allclose(PCA(random_state=0).fit_transform(form(X)), PCA(random_state=0).fit_transform(X), atol=0.01)


def test_what_is_handed_on_is_a_copy_in_one_piece(X):
    rows = X.reshape(50, 12).astype(np.float32)
    given = vectors(PCA(), rows, fitting=True)
    assert not np.shares_memory(given, rows)
    assert given.flags.c_contiguous
    np.testing.assert_array_equal(given, rows)


def test_digits_that_float32_does_not_have_are_kept():
    near = np.random.default_rng(0).normal(size=(60, 8)) * 0.1 * np.arange(8)
    Y = PCA(random_state=0).fit_transform(1e6 + near)  # float32 would move these by up to 0.03
    np.testing.assert_allclose(np.abs(Y), np.abs(PCA(random_state=0).fit_transform(near)), atol=1e-4)


@pytest.mark.parametrize(
    ("given", "expected"), [("u1", "f4"), ("b", "f4"), ("?", "f4"), ("i4", "f8"), ("f2", "f4"), ("g", "f8")]
)
def test_integers_become_floats_that_hold_them(given, expected):
    assert float_for(given) == np.dtype(expected)


def test_new_images_of_another_size_are_refused_though_one_side_agrees(X):
    model = PCA().fit(X)
    with pytest.raises(ValueError, match=r"\(4, 5\), but the model was fitted on \(4, 3\)"):
        model.transform(np.zeros((2, 4, 5)))
    with pytest.raises(ValueError, match=r"\(4, 3\), but the model was fitted on \(12,\)"):
        PCA().fit(X.reshape(50, 12)).transform(X)


def test_a_single_feature_has_no_two_components():
    with pytest.raises(ValueError, match=r"PCA starts from 2 principal components, but X has n_features = 1: add a feature"):
        PCA().fit(np.arange(9.0)[:, None])


NEEDS = {"umap": "umap", "open-tsne": "openTSNE", "fit-sne": "openTSNE", "dl-tsne": "openTSNE", "dl-umap": "umap"}


@pytest.mark.parametrize(("name", "library"), NEEDS.items())
def test_a_missing_library_is_named_with_what_installs_it(name, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    with pytest.raises(ImportError, match=rf"{library}.*{name}.*pip install 'deep-recursive-embedding\[baselines\]'"):
        make(name, device="cpu").fit(np.random.default_rng(0).normal(size=(20, 3)))


def test_what_a_library_lacks_for_parts_that_are_not_used_is_no_warning(tmp_path, monkeypatch):
    """Stands in for umap-learn, which warns when it is imported where TensorFlow is missing."""
    lines = ["import warnings", "warnings.warn('Tensorflow not installed', ImportWarning)", "UMAP = 'found'"]
    (tmp_path / "umap.py").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "umap", None)
    del sys.modules["umap"]  # as if nobody had imported it yet
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert import_umap().UMAP == "found"


def test_the_others_need_neither(monkeypatch):
    for library in set(NEEDS.values()):
        monkeypatch.setitem(sys.modules, library, None)
    X = np.random.default_rng(0).normal(size=(60, 3))
    for name, options in {"pca": {}, "eigenmaps": {}, "bh-tsne": {"perplexity": 5, "max_iter": 250}}.items():
        assert make(name, **options).fit_transform(X).shape == (60, 2)
