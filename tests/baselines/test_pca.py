"""Principal components: the plane that the rows vary most in."""

from __future__ import annotations

import numpy as np

from dre.baselines.pca import PCA


def test_the_map_is_the_projection_on_the_first_two_singular_vectors(digits):
    rows = digits.rows.reshape(200, -1).astype(np.float64)
    centred = rows - rows.mean(0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:2]
    model = PCA(random_state=0).fit(digits.rows)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(centred @ directions.T), atol=1e-2)
    new = digits.new.reshape(100, -1) - rows.mean(0)
    np.testing.assert_allclose(np.abs(model.transform(digits.new)), np.abs(new @ directions.T), atol=1e-2)
