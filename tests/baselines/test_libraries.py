"""Optional libraries: where one is missing, the error names it and how to get it."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

from dre.baselines import make
from dre.baselines.libraries import umap_learn

NEEDS = {"umap": "umap", "open-tsne": "openTSNE", "fit-sne": "openTSNE", "dl-tsne": "openTSNE", "dl-umap": "umap"}


@pytest.mark.parametrize(("name", "library"), NEEDS.items())
def test_a_missing_library_is_named_with_what_installs_it(name, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    with pytest.raises(ImportError, match=rf"{library}.*{name}.*pip install 'deep-recursive-embedding\[baselines\]'"):
        make(name, device="cpu").fit(np.random.default_rng(0).normal(size=(20, 3)))


def test_what_a_library_lacks_for_parts_that_are_not_used_is_no_warning(tmp_path, monkeypatch):
    """In the place of umap-learn, which warns when it is imported where TensorFlow is missing."""
    lines = ["import warnings", "warnings.warn('Tensorflow not installed', ImportWarning)", "UMAP = 'found'"]
    (tmp_path / "umap.py").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "umap", None)
    del sys.modules["umap"]  # as if nobody had imported it yet
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert umap_learn().UMAP == "found"


def test_the_others_need_neither(monkeypatch):
    for library in set(NEEDS.values()):
        monkeypatch.setitem(sys.modules, library, None)
    X = np.random.default_rng(0).normal(size=(60, 3))
    for name, options in {"pca": {}, "eigenmaps": {}, "bh-tsne": {"perplexity": 5, "max_iter": 250}}.items():
        assert make(name, **options).fit_transform(X).shape == (60, 2)
