"""The mirrored decoder leads back from the map to the shape of the rows, through the same widths."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dre.baselines.mirror import layers_of, mirrored
from dre.encoder import ENCODERS

SHAPES = [(12,), (1, 8, 8), (1, 7, 10), (3, 5, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "text", ["mlp(16, depth=2)", "model-a(width=20)", "model-a(width=20, norm=true)", "model-b(norm=true)"]
)
def test_the_decoder_leads_from_the_map_to_rows_of_any_shape(text, shape):
    if text.startswith("model-b") and len(shape) == 1:
        shape = (1, 12, 1)
    encoder = ENCODERS.parse(text).build(shape, 2)
    decoder = mirrored(encoder, shape)
    assert decoder(torch.randn(4, 2)).shape == (4, *shape)


@pytest.mark.parametrize("text", ["mlp(16, depth=2)", "model-a(width=20, norm=true)", "model-b(filters=3/5, norm=true)"])
def test_every_width_of_the_encoder_comes_again_in_reverse(text):
    encoder = ENCODERS.parse(text).build((1, 9, 6), 2)
    decoder = mirrored(encoder, (1, 9, 6))

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
    assert mirrored(encoder, (1, 9, 9))(torch.randn(3, 2)).shape == (3, 1, 9, 9)


def test_nothing_follows_the_last_layer_so_that_any_value_can_be_reached():
    decoder = mirrored(ENCODERS.parse("model-b(norm=true)").build((1, 8, 8), 2), (1, 8, 8))
    assert isinstance(decoder[-1], nn.Conv2d)


def test_the_encoder_stays_as_it_was_and_shares_nothing():
    encoder = ENCODERS.parse("model-a(width=8, norm=true)").build((6,), 2)
    encoder(torch.randn(20, 6))  # the norms have seen rows now
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    decoder = mirrored(encoder, (6,))
    assert encoder.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert not any(module._forward_hooks for module in encoder.modules())
    assert not {id(p) for p in encoder.parameters()} & {id(p) for p in decoder.parameters()}
    assert all(int(m.num_batches_tracked) == 0 for m in decoder.modules() if isinstance(m, nn.BatchNorm1d))


def test_what_can_not_be_turned_round_is_named():
    for text in ("patch-mlp", "mlp(16, n_pcs=3)", "mlp(16, n_pcs=100)"):
        with pytest.raises(ValueError, match=r"computed front.*can't turn it round.*model-a"):
            mirrored(ENCODERS.parse(text).build((1, 8, 8), 2), (1, 8, 8))
    with pytest.raises(ValueError, match=r"PixelShuffle.*can't turn it round.*model-a"):
        mirrored(nn.Sequential(nn.PixelShuffle(2), nn.Flatten(), nn.Linear(16, 2)), (4, 2, 2))
