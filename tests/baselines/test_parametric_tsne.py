"""Parametric t-SNE: the network starts as the stack of machines, and learns the map."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from small_models import parametric_tsne as cheap
from small_models import some

from dre.baselines.parametric_tsne import MinMax, ParametricTSNE, unroll
from dre.baselines.rbm import RBM
from dre.data.scaling import Scaling
from dre.metrics import nearest_neighbor
from dre.model.fitted import embed, to_model_rows
from dre.runtime import IsolatedRNG

CPU = torch.device("cpu")
WIDTHS = (60, 60, 120)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    bunch = load_digits()
    return bunch.images, bunch.target


def on_digits(digits: tuple[np.ndarray, np.ndarray], pretraining_epochs: int) -> tuple[ParametricTSNE, float]:
    """A model of 600 digits, and the held-out 1-NN of 400 others."""
    X, y = digits
    model = ParametricTSNE(WIDTHS, pretraining_epochs=pretraining_epochs, epochs=200, random_state=0, device="cpu").fit(X[:600])
    return model, nearest_neighbor(model.transform(X[600:1000]), y[600:1000], reference=(model.embedding_, y[:600]))


@pytest.fixture(scope="module")
def trained(digits) -> tuple[ParametricTSNE, float]:
    return on_digits(digits, 30)


# It learns.


def test_new_rows_fall_among_their_own_kind_and_do_not_in_an_untrained_network(trained, digits):
    X, y = digits
    scaling = Scaling.fit(X[:600])
    rows, others = (to_model_rows(part, scaling, CPU) for part in (X[:600], X[600:1000]))
    with IsolatedRNG(0, CPU)():
        bare = unroll(MinMax.fit(rows, scaling), [64, *WIDTHS, 2], [])
    untrained = nearest_neighbor(embed(bare, others), y[600:1000], reference=(embed(bare, rows), y[:600]))
    assert trained[1] > 0.75
    assert trained[1] > untrained + 0.3


def test_pretraining_gives_the_better_map_after_the_same_steps(trained, digits):
    bare, score = on_digits(digits, 0)
    assert trained[0].history_[-1]["loss"] < bare.history_[-1]["loss"]
    assert trained[1] > score


def test_every_layer_is_a_machine_that_learned_and_the_top_one_is_linear(trained):
    machines = trained[0].machines_
    assert [tuple(machine.weight.shape) for machine in machines] == [(64, 60), (60, 60), (60, 120), (120, 2)]
    assert [machine.linear for machine in machines] == [False, False, False, True]
    for machine in machines:
        assert len(machine.errors) == 30
        assert machine.errors[-1] < machine.errors[0]
        assert machine.weight.isfinite().all()


def test_fine_tuning_lowers_the_loss_from_where_the_machines_put_it(trained):
    losses = [record["loss"] for record in trained[0].history_]
    assert len(losses) == 200
    assert losses[-1] < 0.7 * losses[0]


def test_the_plan_is_that_of_the_publication():
    recipe = ParametricTSNE()._recipe(torch.nn.Identity(), 60_000)
    assert str(recipe.batches) == "fixed(5000)"
    assert str(recipe.schedule) == "x: gaussian(30, scope=batch) -> kl * 100"
    assert str(ParametricTSNE()._recipe(torch.nn.Identity(), 2000).schedule).endswith("* 1000")  # few batches, more epochs


# The network sees what the machines were trained on.


def test_the_unrolled_network_is_the_machines_one_above_the_other():
    X = some((30, 5, 4))
    scaling = Scaling.fit(X)
    rows = to_model_rows(X, scaling, CPU)
    min_max, random = MinMax.fit(rows, scaling), torch.Generator().manual_seed(0)
    machines = [RBM.initialize(20, 7, random), RBM.initialize(7, 2, random, linear=True)]
    machines[0].hidden_bias += 0.3
    network = unroll(min_max, [20, 7, 2], machines)
    v = torch.from_numpy((X - X.min()) / np.ptp(X)).float().reshape(30, 20)
    np.testing.assert_allclose(embed(network, rows), machines[1].up(machines[0].up(v)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(30, 5, 4), (30, 6, 6, 3), (30, 3, 6, 6)], ids=str)
def test_pixels_are_brought_into_the_unit_interval_together(shape):
    X = some(shape)
    X[0] = 1e3 * X[0]
    scaling = Scaling.fit(X)
    rows = to_model_rows(X, scaling, CPU)
    expected = (X - X.min()) / np.ptp(X)
    expected = np.moveaxis(expected, -1, 1) if shape[-1] == 3 else expected
    np.testing.assert_allclose(MinMax.fit(rows, scaling)(rows.read(0, 30)), expected.reshape(30, -1), atol=1e-5)


def test_columns_are_brought_into_the_unit_interval_one_by_one():
    X = some() * [1, 10, 100, 1, 1, 0] + [0, 0, 0, 1e4, 0, 7]
    scaling = Scaling.fit(X)
    rows = to_model_rows(X, scaling, CPU)
    v = MinMax.fit(rows, scaling)(rows.read(0, 60)).numpy()
    np.testing.assert_allclose(v.min(0), 0, atol=1e-4)
    np.testing.assert_allclose(v.max(0), [1, 1, 1, 1, 1, 0], atol=1e-4)
    assert MinMax.fit(rows, scaling).size == 6


# Rows of every kind.


@pytest.mark.parametrize("shape", [(24, 6), (24, 8, 7), (24, 9, 8, 3), (24, 3, 8, 8)], ids=str)
def test_vectors_and_images_are_embedded(shape):
    X = some(shape)
    model = cheap().fit(X)
    Y = model.transform(X)
    assert Y.shape == model.embedding_.shape == (24, 2)
    assert Y.dtype == model.embedding_.dtype == np.float32
    assert np.isfinite(Y).all()


def test_widths_may_come_as_a_list_too():
    np.testing.assert_array_equal(cheap(layers=[8, 6]).fit_transform(some()), cheap(layers=(8, 6)).fit_transform(some()))


# Errors.


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layers": ()}, "layers=.*widths"),
        ({"layers": (5, 0)}, "layers=.*widths"),
        ({"layers": 500}, "layers=.*widths"),
        ({"pretraining_epochs": -1}, "pretraining_epochs=-1"),
        ({"pretraining_epochs": 0.5}, "integer"),
        ({"epochs": 0}, "epochs=0"),
        ({"batch_size": 1}, "at least 2 rows"),
        ({"perplexity": 0}, "perplexity=0"),
        ({"device": "gpu"}, "device='gpu'"),
    ],
)
def test_wrong_parameters_are_named(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        cheap(**wrong).fit(some())


def test_a_perplexity_that_is_too_large_is_lowered_with_a_warning():
    with pytest.warns(UserWarning, match="perplexity 30 is too large for 30 rows"):
        cheap(perplexity=30).fit(some((30, 4)))
