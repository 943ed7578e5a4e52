"""Barnes-Hut t-SNE: scikit-learn's, with our way of handing rows in and maps out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import TSNE

from dre.baselines.bh_tsne import BarnesHutTSNE
from dre.data.validation import check_seed


def test_the_map_is_that_of_scikit_learn(digits):
    rows = digits.rows.reshape(200, -1).astype(np.float32)
    theirs = TSNE(perplexity=12, max_iter=260, init="pca", random_state=check_seed(5)).fit_transform(rows)
    np.testing.assert_array_equal(BarnesHutTSNE(perplexity=12, max_iter=260, random_state=5).fit_transform(digits.rows), theirs)


def test_too_few_rows_for_the_perplexity_are_refused(digits):
    with pytest.raises(ValueError, match="perplexity"):
        BarnesHutTSNE().fit(digits.rows[:20])
