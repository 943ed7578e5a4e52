"""The scores that the benchmarks report follow their definitions."""

import numpy as np
import pytest
from sklearn import manifold
from sklearn.neighbors import KNeighborsClassifier

from scores import held_out_1nn, neighborhood_hit, trustworthiness

RNG = np.random.default_rng(0)
X, MAP, LABELS = RNG.normal(size=(300, 5)), RNG.normal(size=(300, 2)), RNG.integers(3, size=300)


def test_trustworthiness_equals_that_of_scikit_learn():
    assert trustworthiness(X, MAP) == pytest.approx(manifold.trustworthiness(X, MAP, n_neighbors=7), abs=1e-9)


def test_held_out_1nn_equals_a_classifier_with_one_neighbour():
    wanted = KNeighborsClassifier(1).fit(MAP[:200], LABELS[:200]).score(MAP[200:], LABELS[200:])
    assert held_out_1nn(MAP[:200], LABELS[:200], MAP[200:], LABELS[200:]) == pytest.approx(wanted)


@pytest.mark.parametrize("counting_itself", [True, False])
def test_the_neighbourhood_hit_is_a_mean_over_seven(counting_itself):
    distances = np.linalg.norm(MAP[:, None] - MAP[None], axis=2)
    near = distances.argsort(1)[:, :7] if counting_itself else distances.argsort(1)[:, 1:8]
    assert neighborhood_hit(MAP, LABELS, counting_itself=counting_itself) == pytest.approx(
        (LABELS[near] == LABELS[:, None]).mean()
    )
