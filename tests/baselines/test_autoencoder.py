"""The autoencoder: training, reconstruction, and a decoder that mirrors the encoder."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from small_models import autoencoder as cheap
from small_models import some
from torch import nn

from dre.baselines.autoencoder import AutoEncoder, build_decoder, layers_of
from dre.encoder import ENCODERS
from dre.encoder.mlp import MLP
from dre.training.loop import DivergedError


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return load_digits().images


@pytest.fixture(scope="module")
def trained(digits) -> AutoEncoder:
    return AutoEncoder("mlp(128)", epochs=30, batch_size=100, learning_rate=3e-3, random_state=0, device="cpu").fit(
        digits[:1200]
    )


# It learns.


def test_rows_come_back_better_than_from_two_principal_components(trained, digits):
    for part in (digits[:1200], digits[1200:]):  # rows that were fitted, and new ones
        flat = part.reshape(len(part), -1)
        pca = PCA(2).fit(digits[:1200].reshape(1200, -1))
        by_pca = np.square(pca.inverse_transform(pca.transform(flat)) - flat).mean()
        by_mean = np.square(flat - pca.mean_).mean()
        error = np.square(trained.inverse_transform(trained.transform(part)) - part).mean()
        assert error < 0.6 * by_mean
        assert error < 0.8 * by_pca


def test_the_history_has_a_loss_per_epoch_that_is_the_error_of_scaled_rows(trained, digits):
    assert [record["epoch"] for record in trained.history_] == list(range(30))
    losses = [record["loss"] for record in trained.history_]
    assert losses[-1] < 0.75 * losses[0]
    X = digits[:1200]
    scale = np.square(X - X.mean(0)).mean()  # rows are divided by the root of this
    error = np.square(trained.inverse_transform(trained.embedding_) - X).mean() / scale
    assert error == pytest.approx(losses[-1], rel=0.1)


def test_small_data_get_steps_and_large_data_no_more_of_them_than_they_need(monkeypatch):
    monkeypatch.setattr("dre.baselines.autoencoder.MIN_STEPS", 12)
    monkeypatch.setattr("dre.baselines.autoencoder.MAX_STEPS", 35)
    monkeypatch.setattr("dre.baselines.autoencoder.EPOCHS", 3)
    assert len(cheap(epochs=None, batch_size=60).fit(some()).history_) == 12
    assert len(cheap(epochs=None, batch_size=6).fit(some()).history_) == 3
    assert len(cheap(epochs=None, batch_size=3).fit(some()).history_) == 2


# Rows of every kind.


@pytest.mark.parametrize("encoder", [None, MLP(16)])
@pytest.mark.parametrize("shape", [(24, 6), (24, 8, 7), (24, 9, 8, 3), (24, 3, 8, 8)], ids=str)
def test_vectors_and_images_are_embedded_and_come_back_in_their_shape(shape, encoder):
    X = some(shape)
    model = cheap(encoder=encoder, epochs=1).fit(X)
    Y = model.transform(X)
    assert Y.shape == model.embedding_.shape == (24, 2)
    assert Y.dtype == model.embedding_.dtype == np.float32
    again = model.inverse_transform(Y)
    assert again.shape == shape
    assert again.dtype == np.float32


def test_channels_that_lie_last_come_back_last():
    X = some((40, 6, 7, 2))
    X[..., 1] += 100  # the two channels can't be mistaken
    model = cheap(epochs=1).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_).mean((0, 1, 2)), X.mean((0, 1, 2)), atol=20)


def test_images_have_convolutions_and_vectors_have_none():
    kinds = [{type(m) for m in cheap(encoder=None, epochs=1).fit(some(s)).encoder_.modules()} for s in [(20, 6, 6), (20, 6)]]
    assert torch.nn.Conv2d in kinds[0]
    assert torch.nn.Conv2d not in kinds[1]


def test_an_encoder_may_be_an_object_or_its_text():
    X = some()
    model = cheap(encoder=MLP(16)).fit(X)
    np.testing.assert_array_equal(cheap(encoder="mlp(16)").fit_transform(X), model.embedding_)
    np.testing.assert_array_equal(clone(model).fit_transform(X), model.embedding_)


def test_the_way_back_changes_no_argument_and_takes_coordinates_alone():
    model = cheap().fit(some((20, 6, 4)))
    Y = model.embedding_.copy()
    model.inverse_transform(Y)
    np.testing.assert_array_equal(Y, model.embedding_)
    with pytest.raises(ValueError, match=r"points of the embedding"):
        model.inverse_transform(some((20, 3)))


# Errors.


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epochs": 0}, "epochs=0"),
        ({"epochs": 1.5}, "integer"),
        ({"batch_size": 1}, "at least 2 rows"),
        ({"learning_rate": -1.0}, "lr=-1.0"),
        ({"encoder": "mpl"}, "Did you mean 'mlp'"),
        ({"encoder": "mlp(16, n_pcs=3)"}, "PCA front.*mlp"),
        ({"encoder": torch.nn.Linear(6, 2)}, "string or Encoder"),
        ({"device": "gpu"}, "device='gpu'"),
    ],
)
def test_wrong_parameters_are_named(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        cheap(**wrong).fit(some())


def test_a_rate_that_is_too_high_is_an_error_that_says_so():
    with pytest.raises(DivergedError, match="lower learning_rate"):
        cheap(epochs=5, learning_rate=1e30).fit(some())


def test_a_failed_fit_leaves_the_map_as_it_was():
    X = some()
    model = cheap().fit(X)
    with pytest.raises(ValueError, match="epochs=0"):
        model.set_params(epochs=0).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


SHAPES = [(12,), (1, 8, 8), (1, 7, 10), (3, 5, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "text", ["mlp(16, depth=2)", "model-a(width=20)", "model-a(width=20, norm=true)", "model-b(norm=true)"]
)
def test_the_decoder_leads_from_the_map_to_rows_of_any_shape(text, shape):
    if text.startswith("model-b") and len(shape) == 1:
        shape = (1, 12, 1)
    encoder = ENCODERS.parse(text).build(shape, 2)
    decoder = build_decoder(encoder, shape)
    assert decoder(torch.randn(4, 2)).shape == (4, *shape)


@pytest.mark.parametrize("text", ["mlp(16, depth=2)", "model-a(width=20, norm=true)", "model-b(filters=3/5, norm=true)"])
def test_every_width_of_the_encoder_comes_again_in_reverse(text):
    encoder = ENCODERS.parse(text).build((1, 9, 6), 2)
    decoder = build_decoder(encoder, (1, 9, 6))

    def widths(layers, kind):
        return [m for m in layers if isinstance(m.module, kind)]

    there, back = layers_of(encoder, (1, 9, 6)), layers_of(decoder, (2,))
    for kind in (nn.Linear, nn.Conv2d):
        forwards, backwards = widths(there, kind), widths(back, kind)
        assert [(m.before[0], m.after[0]) for m in forwards] == [(m.after[0], m.before[0]) for m in reversed(backwards)]
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm)
    assert len(widths(there, norms)) == len(widths(back, norms)) > 0
    assert [m.after for m in widths(there, nn.MaxPool2d)] == [m.before for m in reversed(widths(back, nn.Upsample))]


def test_a_convolution_with_strides_is_turned_round_too():
    encoder = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(4 * 5 * 5, 2))
    assert build_decoder(encoder, (1, 9, 9))(torch.randn(3, 2)).shape == (3, 1, 9, 9)


def test_nothing_follows_the_last_layer_so_that_any_value_can_be_reached():
    decoder = build_decoder(ENCODERS.parse("model-b(norm=true)").build((1, 8, 8), 2), (1, 8, 8))
    assert isinstance(decoder[-1], nn.Conv2d)


def test_the_encoder_stays_as_it_was_and_shares_nothing():
    encoder = ENCODERS.parse("model-a(width=8, norm=true)").build((6,), 2)
    encoder(torch.randn(20, 6))  # the norms have seen rows now
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    decoder = build_decoder(encoder, (6,))
    assert encoder.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert not any(module._forward_hooks for module in encoder.modules())
    assert not {id(p) for p in encoder.parameters()} & {id(p) for p in decoder.parameters()}
    assert all(int(m.num_batches_tracked) == 0 for m in decoder.modules() if isinstance(m, nn.BatchNorm1d))


def test_what_can_not_be_turned_round_is_named():
    for text in ("patch-mlp", "mlp(16, n_pcs=3)", "mlp(16, n_pcs=100)"):
        with pytest.raises(ValueError, match=r"PCA front.*can't mirror.*model-a"):
            build_decoder(ENCODERS.parse(text).build((1, 8, 8), 2), (1, 8, 8))
    with pytest.raises(ValueError, match=r"can't mirror PixelShuffle.*model-a"):
        build_decoder(nn.Sequential(nn.PixelShuffle(2), nn.Flatten(), nn.Linear(16, 2)), (4, 2, 2))
