"""scikit-learn's own checks of estimators, on all adapters but the slowest.

FIt-SNE is left out: it shares its every line with those beside it but the descent, which takes seconds for any data.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from dre.baselines.distillation import DLProjection
from dre.baselines.spectral import PCA, LaplacianEigenmaps
from dre.baselines.tsne import BarnesHutTSNE, OpenTSNE
from dre.baselines.umap import UMAP

# The data of the checks are a few dozen rows, in clouds apart from each other.
SMALL = pytest.mark.filterwarnings(
    "ignore:Graph is not fully connected", "ignore:n_neighbors is larger", "ignore:k >= N", "ignore:Spectral init"
)


@SMALL
@pytest.mark.parametrize("model", [PCA(random_state=0), UMAP(n_neighbors=3, n_epochs=5, random_state=0)], ids=["pca", "umap"])
def test_those_with_a_transform_pass(model):
    check_estimator(model, on_skip=None)


LAST_DIGIT = "float32: the last digit of a row's coordinates depends on its position in a product; to six digits, see below"


def test_dl_projection_passes_but_for_the_last_digit():
    close = dict.fromkeys(("check_methods_sample_order_invariance", "check_methods_subset_invariance"), LAST_DIGIT)
    model = DLProjection(PCA(random_state=0), epochs=2, random_state=0, device="cpu")
    check_estimator(model, on_skip=None, expected_failed_checks=close)


def test_dl_projection_places_a_row_alike_in_any_order_and_company(digits):
    model = DLProjection(PCA(random_state=0), epochs=2, random_state=0, device="cpu").fit(digits.rows)
    Y = model.transform(digits.new)
    np.testing.assert_allclose(model.transform(digits.new[::-1])[::-1], Y, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([model.transform(row[None]) for row in digits.new]), Y, atol=1e-6)


AGAIN = "transform places rows by their neighbors in the map, the fitted ones too: it does not repeat the fit"


@SMALL
def test_open_tsne_passes_but_for_placing_fitted_rows_a_second_time():
    differs = dict.fromkeys(("check_transformer_data_not_an_array", "check_transformer_general"), AGAIN)
    model = OpenTSNE(perplexity=2, n_iter=5, n_jobs=1, random_state=0)
    outcomes = check_estimator(model, on_skip=None, expected_failed_checks=differs)
    assert {each["check_name"] for each in outcomes if each["status"] == "xfail"} == set(differs)


def _absent(self):
    raise AttributeError("transform")


class Eigenmaps(LaplacianEigenmaps, auto_wrap_output_keys=None):
    """Without the transform that raises: as scikit-learn's own in-sample methods are."""

    transform = property(_absent)


class BarnesHut(BarnesHutTSNE, auto_wrap_output_keys=None):
    transform = property(_absent)


@SMALL
@pytest.mark.parametrize(
    "model",
    [Eigenmaps(n_neighbors=3, random_state=0), BarnesHut(perplexity=2, max_iter=250, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_in_sample_ones_pass_what_does_not_ask_for_new_rows(model):
    check_estimator(model, on_skip=None)
