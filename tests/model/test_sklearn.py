"""The estimators are scikit-learn's kind of estimators: its own checks pass, and its tools take them."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from dre import DRE, KL, DeepTSNE, DeepUMAP, Gaussian, Schedule, Stage
from dre.augment import Noise
from dre.batches import Fixed
from dre.io.writers import OutputSpec
from dre.plan.recipes import RECIPES

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"
KINDS = [DRE, DeepTSNE, DeepUMAP]


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 6))


@pytest.fixture
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipes of DeepTSNE and DeepUMAP, with three epochs."""
    for name in ("deep-tsne", "deep-umap"):

        def shortened(facts, recursions, whole=RECIPES[name]):
            recipe = whole(facts, recursions)
            return replace(recipe, schedule=Schedule(*(replace(stage, epochs=3) for stage in recipe.schedule)))

        monkeypatch.setitem(RECIPES, name, shortened)


# scikit-learn's own checks. Two compare fits to rows in different orders, and steps draw rows by their position: such maps are
# alike, not equal. test_sample_weight.py checks that weights are repetitions, bit by bit, of rows in the same order.

ORDER = "the order of the rows changes bits"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": ORDER for kind in ("dense", "sparse")}


def expected(_: object) -> dict[str, str]:
    return EXPECTED


@pytest.mark.filterwarnings("ignore:perplexity")
@parametrize_with_checks([cheap()], expected_failed_checks=expected)
def test_dre_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.filterwarnings("ignore:perplexity", "ignore:n_neighbors")
@pytest.mark.parametrize("kind", [DeepTSNE, DeepUMAP])
def test_the_models_without_recursion_pass_the_checks_of_scikit_learn(kind):
    check_estimator(kind(encoder="mlp(16, depth=1)", random_state=0, device="cpu"), expected_failed_checks=EXPECTED)


TINY = "mlp(8, depth=1)"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:perplexity", "ignore:n_neighbors")
@parametrize_with_checks(
    [DRE(device="cpu"), DeepTSNE(encoder=TINY, device="cpu"), DeepUMAP(encoder=TINY, device="cpu")],
    expected_failed_checks=expected,
)
def test_whole_recipes_pass_the_checks_of_scikit_learn(estimator, check):
    torch.set_num_threads(1)  # a few dozen rows
    check(estimator)


# Its tools.


def test_a_pipeline_gives_the_map_of_its_steps(X):
    pipeline = make_pipeline(StandardScaler(), cheap())
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(pipeline.fit_transform(X), cheap().fit_transform(scaled))
    np.testing.assert_array_equal(pipeline.transform(X[:7]), cheap().fit(scaled).transform(scaled[:7]))


def test_a_grid_search_over_perplexity_and_recursions_finds_a_map_that_classifies():
    X, y = make_blobs(60, 5, centers=3, random_state=0)
    pipeline = make_pipeline(DRE("paper", encoder="mlp(16)", random_state=0, device="cpu"), KNeighborsClassifier(3))
    grid = {"dre__perplexity": [4, 8.0], "dre__recursions": np.arange(2)}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    best = search.best_estimator_[0]
    assert len(best.schedule_) == 2 + best.recursions  # x, the recursions, the UMAP stage
    assert best.schedule_[0].affinity.perplexity == best.perplexity
    assert search.best_score_ > 0.9


def test_a_clone_is_unfitted_and_learns_the_same_map(X):
    model = cheap(schedule=Schedule.parse(SCHEDULE), augment=Noise(0.1)).fit(X)
    copy = clone(model)
    with pytest.raises(NotFittedError):
        copy.transform(X)
    np.testing.assert_array_equal(copy.fit(X).embedding_, model.embedding_)


def test_pandas_output_has_the_index_of_the_rows_and_named_columns(X):
    frame = pd.DataFrame(X, index=[f"cell {i}" for i in range(len(X))], columns=list("abcdef"))
    model = cheap(n_components=3).set_output(transform="pandas").fit(frame)
    for Y in (model.transform(frame), cheap(n_components=3).set_output(transform="pandas").fit_transform(frame)):
        assert list(Y.columns) == ["dre1", "dre2", "dre3"]
        assert list(Y.index) == list(frame.index)
        np.testing.assert_array_equal(Y.to_numpy(), model.embedding_)


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.filterwarnings("ignore:perplexity")
@pytest.mark.parametrize("kind", KINDS)
def test_output_features_are_named_as_in_the_files_of_the_command_line(kind, X):
    pytest.importorskip("polars")
    model = (cheap() if kind is DRE else kind(random_state=0, device="cpu")).fit(X)
    names = list(model.get_feature_names_out())
    assert names == OutputSpec(len(X), 2).column_names == ["dre1", "dre2"]
    for library in ("pandas", "polars"):
        assert list(model.set_output(transform=library).transform(X).columns) == names


def test_output_features_are_those_of_the_fit_and_not_of_parameters_changed_since(X):
    model = cheap().fit(X).set_params(n_components=5)
    assert len(model.get_feature_names_out()) == model.transform(X).shape[1] == 2


def test_the_names_of_a_data_frame_are_kept_and_checked(X):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = cheap().fit(frame)
    assert list(model.feature_names_in_) == list("abcdef")
    assert model.n_features_in_ == 6
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[list("fedcba")])
    assert not hasattr(model.fit(X), "feature_names_in_")


@pytest.mark.parametrize(
    "form", [scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array]
)
def test_sparse_rows_give_the_map_of_their_dense_copy(form, X):
    dense = np.where(X > 0.5, X, 0.0)
    model, other = cheap().fit(dense), cheap().fit(form(dense))
    np.testing.assert_array_equal(other.embedding_, model.embedding_)
    np.testing.assert_array_equal(other.transform(form(dense[:9])), model.transform(dense[:9]))


def test_a_pickled_model_gives_the_same_map(X):
    model = cheap().fit(X)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))
    np.testing.assert_array_equal(copy.transform(X, stage=0), model.transform(X, stage=0))
    np.testing.assert_array_equal(copy.embedding_, model.embedding_)
    assert copy.history_ == model.history_


# Its conventions for constructors.


@pytest.mark.parametrize("kind", KINDS)
def test_the_constructor_only_assigns_its_flat_parameters(kind):
    names = list(inspect.signature(kind).parameters)
    assert len(names) <= 21  # each is one thing, with a name of the field
    given = {name: object() for name in names}  # any check or conversion would stumble over these
    model = kind(**given)
    assert vars(model) == given


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_make_the_round_trip_through_get_and_set(kind):
    model = kind()
    changed = {name: object() for name in model.get_params()}
    assert model.set_params(**changed).get_params() == changed
    assert set(changed) == set(inspect.signature(kind).parameters)


def test_the_repr_shows_what_was_chosen_and_evaluates_to_the_same():
    model = DRE(
        "fast",
        schedule=Schedule(Stage("x", Gaussian(5), KL(), 2)),
        batch_size=Fixed(50),
        learning_rate=0.001,
        augment=Noise(0.5),
        random_state=0,
    )
    text = " ".join(repr(model).split())
    assert "recipe='fast'" in text
    assert "gaussian(5) -> kl * 2" in text
    assert "Fixed(size=50)" in text
    assert "verbose" not in text  # what is as usual is left out
    assert eval(text, {k: v for k, v in globals().items() if k[0].isupper()}).get_params() == model.get_params()


def test_a_fitted_model_has_a_picture_for_notebooks(X):
    assert "gaussian(5)" in cheap().fit(X)._repr_html_()
