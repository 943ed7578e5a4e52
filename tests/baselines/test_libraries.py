"""Optional libraries: where one is missing, the error names it and how to get it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dre.baselines import make

NEEDS = {"umap": "umap", "open-tsne": "openTSNE", "fit-sne": "openTSNE", "dl-tsne": "openTSNE", "dl-umap": "umap"}


@pytest.mark.parametrize(("name", "library"), NEEDS.items())
def test_a_missing_library_is_named_with_what_installs_it(name, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    with pytest.raises(ImportError, match=rf"{library}.*{name}.*pip install 'deep-recursive-embedding\[baselines\]'"):
        make(name, device="cpu").fit(np.random.default_rng(0).normal(size=(20, 3)))


def test_the_others_need_neither(monkeypatch):
    for library in set(NEEDS.values()):
        monkeypatch.setitem(sys.modules, library, None)
    X = np.random.default_rng(0).normal(size=(60, 3))
    for name, options in {"pca": {}, "eigenmaps": {}, "bh-tsne": {"perplexity": 5, "max_iter": 250}}.items():
        assert make(name, **options).fit_transform(X).shape == (60, 2)
