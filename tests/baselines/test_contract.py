"""What holds for every baseline of the registry, whichever library or network does the work."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from dre import DRE
from dre.baselines import NAMES, make
from dre.baselines.tsne import OpenTSNE

SMALL = {"encoder": "mlp(64)"}
# Options that make each of them quick on 200 rows.
CHEAP = {
    "pca": {},
    "autoencoder": {**SMALL, "epochs": 40, "batch_size": 50},
    "eigenmaps": {"n_neighbors": 10},
    "bh-tsne": {"perplexity": 15, "max_iter": 300},
    "fit-sne": {"perplexity": 15, "n_iter": 270, "n_jobs": 1},
    "open-tsne": {"perplexity": 15, "n_iter": 100, "n_jobs": 1},
    "umap": {"n_epochs": 100},
    "parametric-tsne": {"layers": (50, 50, 100), "pretraining_epochs": 3, "epochs": 60},
    "dl-tsne": {"teacher": OpenTSNE(perplexity=15, n_jobs=1, random_state=0), "epochs": 60},
    "dl-umap": {"epochs": 60},
    "paper-deep-tsne": SMALL,
    "paper-deep-umap": SMALL,
    "paper-tsne": SMALL,
    "paper": SMALL,
    "dre": {**SMALL, "schedule": "x: gaussian(15) -> kl * 100; h1: gaussian(15) -> kl * 20"},
}
IN_SAMPLE = {"eigenmaps", "bh-tsne", "fit-sne"}
EMBED_NEW_ROWS = [name for name in NAMES if name not in IN_SAMPLE]
SEED = 3


def cheap(name: str):
    return make(name, random_state=SEED, device="cpu", **CHEAP[name])


@pytest.fixture(scope="module")
def fits(digits):
    """Each baseline, fitted once."""
    kept = {}

    def fitted(name: str):
        if name not in kept:
            kept[name] = cheap(name).fit(digits.rows)
        return kept[name]

    return fitted


def test_every_name_is_tried_here():
    assert set(CHEAP) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_images_become_a_flat_float32_map(name, fits, digits):
    map_ = fits(name).embedding_
    assert type(map_) is np.ndarray
    assert map_.shape == (len(digits.rows), 2)
    assert map_.dtype == np.float32
    assert np.isfinite(map_).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_columns_of_the_map_have_names(name, fits):
    model = fits(name)
    by_class = [f"{type(model).__name__.lower()}{axis}" for axis in range(2)]
    assert model.get_feature_names_out().tolist() == (["dre1", "dre2"] if isinstance(model, DRE) else by_class)


@pytest.mark.parametrize("name", NAMES)
def test_neighbors_in_the_map_are_of_one_class(name, fits, digits):
    nearest = KNeighborsClassifier(1).fit(fits(name).embedding_, digits.labels).kneighbors(return_distance=False)[:, 0]
    assert accuracy_score(digits.labels, digits.labels[nearest]) > 0.6  # one class in five by chance


@pytest.mark.parametrize("name", EMBED_NEW_ROWS)
def test_new_rows_are_placed_among_their_own_kind(name, fits, digits):
    model = fits(name)
    Y = model.transform(digits.new)
    assert Y.shape == (len(digits.new), 2)
    assert Y.dtype == np.float32
    assert KNeighborsClassifier(1).fit(model.embedding_, digits.labels).score(Y, digits.new_labels) > 0.55


@pytest.mark.parametrize("name", EMBED_NEW_ROWS)
def test_a_transform_can_be_had_again(name, fits, digits):
    model = fits(name)
    before = model.embedding_.copy()
    first = model.transform(digits.new)
    np.testing.assert_array_equal(model.transform(digits.new), first)
    np.testing.assert_array_equal(model.embedding_, before)


@pytest.mark.parametrize("name", sorted(IN_SAMPLE))
def test_those_that_embed_no_new_rows_say_so_and_what_does(name, fits, digits):
    model = fits(name)
    assert model.embeds_new_rows is False
    with pytest.raises(NotImplementedError, match=r"can't embed new rows.*pca, autoencoder.*umap"):
        model.transform(digits.new)


@pytest.mark.parametrize("name", EMBED_NEW_ROWS)
def test_all_others_embed_new_rows(name):
    assert getattr(cheap(name), "embeds_new_rows", True)


@pytest.mark.parametrize("name", EMBED_NEW_ROWS)
def test_an_unfitted_one_embeds_nothing(name, digits):
    with pytest.raises(NotFittedError):
        cheap(name).transform(digits.new)


@pytest.mark.parametrize("name", NAMES)
def test_a_clone_with_the_same_seed_gives_the_same_map_and_no_state_or_argument_is_changed(name, fits, digits):
    rows = digits.rows.copy()
    rows.flags.writeable = False
    numpy_state, torch_state = np.random.get_state(), torch.get_rng_state()
    np.testing.assert_array_equal(clone(fits(name)).fit_transform(rows), fits(name).embedding_)
    np.testing.assert_array_equal(rows, digits.rows)
    assert all(map(np.array_equal, np.random.get_state(), numpy_state))
    assert torch.equal(torch.get_rng_state(), torch_state)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_make_the_round_trip_through_get_and_set(name):
    kind = type(cheap(name))
    names = list(inspect.signature(kind).parameters)
    assert len(names) <= 21  # each is one thing, with a name of the field
    given = {name: object() for name in names}  # any check or conversion would stumble over these
    model = kind(**given)
    assert vars(model) == given
    assert model.get_params(deep=False) == given


@pytest.mark.parametrize("name", EMBED_NEW_ROWS)
def test_a_pickled_model_embeds_alike(name, fits, digits):
    model = fits(name)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(digits.new[:9]), model.transform(digits.new[:9]))


@pytest.mark.parametrize("name", NAMES)
def test_rows_with_gaps_are_refused(name):
    X = np.ones((40, 4))
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        cheap(name).fit(X)


@pytest.mark.parametrize("name", EMBED_NEW_ROWS)
def test_rows_of_another_shape_are_refused(name, fits, digits):
    with pytest.raises(ValueError, match=r"\(64,\), but the model was fitted on \(8, 8\)"):
        fits(name).transform(digits.new.reshape(-1, 64))
