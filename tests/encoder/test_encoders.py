"""The contract of every encoder, the layers of Models A and B, and export."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from dre import DRE
from dre.data.rows import ArrayRows
from dre.encoder import ENCODERS, Encoder
from dre.encoder.mlp import MLP
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ConvBlock, ModelB
from dre.encoder.network import ChannelsLast, FlattenChannelsLast
from dre.encoder.patch_mlp import PatchMLP
from dre.encoder.pca_front import PatchFilters, PCAFront
from dre.encoder.strided import Strided

VECTORS = [(1,), (7,), (50,)]
IMAGES = [(c, h, w) for c, (h, w) in itertools.product((1, 2, 3, 4), ((1, 1), (5, 7), (8, 3), (28, 28)))]
READS_ONLY_IMAGES = {"patch-mlp", "model-b", "strided"}
NAMES = [*sorted(ENCODERS.members()), "mlp(32, n_pcs=5)"]
CASES = [(name, shape) for name in NAMES for shape in IMAGES + ([] if name in READS_ONLY_IMAGES else VECTORS)]


def layers(network: nn.Module, kind: type) -> list[nn.Module]:
    return [module for module in network.modules() if isinstance(module, kind)]


def built(text: str, shape: tuple[int, ...], n_components: int = 2) -> nn.Module:
    """A network with a fitted front: one whose axes are zero would pass any test."""
    network = ENCODERS.parse(text).build(shape, n_components)
    generator = torch.Generator().manual_seed(0)
    for front in layers(network, PCAFront):
        front.fit(ArrayRows(torch.randn(60, *shape, generator=generator), torch.device("cpu")), generator)
        assert front.is_fitted
    return network


def sources(network: nn.Module) -> dict[str, nn.Module]:
    return {name: module for name, module in network.named_children() if name.startswith("h")}


# The contract of every file in the folder.


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_a_row_of_any_shape_becomes_a_point(name, shape):
    network = built(name, shape, 3)
    y = network(torch.randn(4, *shape))
    assert y.shape == (4, 3)
    assert y.dtype == torch.float32
    assert y.isfinite().all()


@pytest.mark.parametrize("n_components", [1, 2, 10])
@pytest.mark.parametrize("name", NAMES)
def test_the_map_has_the_dimensions_that_were_asked_for(name, n_components):
    assert built(name, (2, 6, 5), n_components)(torch.randn(4, 2, 6, 5)).shape == (4, n_components)


@pytest.mark.parametrize("name", NAMES)
def test_one_row_alone_can_be_embedded_and_has_the_place_it_has_among_others(name):
    network = built(name, (1, 6, 5)).eval()
    x = torch.randn(8, 1, 6, 5)
    with torch.no_grad():
        torch.testing.assert_close(network(x[:1]), network(x)[:1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_sources_h1_h2_and_on_are_tensors_with_an_entry_per_row(name):
    network = built(name, (1, 6, 5))
    assert list(sources(network)) == [f"h{i}" for i in range(1, len(sources(network)) + 1)]
    assert "h1" in sources(network)
    seen = []
    for block in sources(network).values():
        block.register_forward_hook(lambda module, args, output: seen.append(output))
    network(torch.randn(4, 1, 6, 5))
    assert len(seen) == len(sources(network))
    assert all(isinstance(y, torch.Tensor) and len(y) == 4 for y in seen)


@pytest.mark.parametrize("name", NAMES)
def test_the_sources_are_read_after_the_activation(name):
    network = built(name, (1, 6, 5))
    for block in sources(network).values():
        assert isinstance(list(block.modules())[-1], (nn.ReLU, nn.GELU))


@pytest.mark.parametrize("name", NAMES)
def test_every_weight_gets_a_gradient(name):
    network = built(name, (1, 9, 8))
    network(torch.randn(16, 1, 9, 8)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in network.parameters())
    assert all(module.training for module in network.modules())


@pytest.mark.parametrize(
    "encoder",
    [
        *(cls() for cls in ENCODERS.members().values()),
        MLP(17),
        MLP(17, depth=1),
        ModelA(norm=True),
        ModelA(width=20, depth=2),
        ModelB(norm=True),
        ModelB(filters=(4, 8, 16)),
        ModelB(filters=(4,)),
        ModelB(filters=(8,)),
        Strided(filters=(8, 16, 32)),
    ],
    ids=str,
)
def test_the_text_of_an_encoder_is_lossless(encoder):
    assert ENCODERS.parse(str(encoder)) == encoder
    assert str(ENCODERS.parse(str(encoder))) == str(encoder)
    assert hash(ENCODERS.parse(str(encoder))) == hash(encoder)


@pytest.mark.parametrize("name", sorted(READS_ONLY_IMAGES))
def test_an_encoder_of_images_refuses_vectors_and_names_others(name):
    with pytest.raises(ValueError, match=f"{name} reads images, but .* 50 values.*reshape X.*model-a"):
        ENCODERS.parse(name).build((50,), 2)


@pytest.mark.parametrize(
    "text",
    [
        *("mlp(0)", "mlp(16, depth=0)", "mlp(-4)", "mlp(16, n_pcs=0)"),
        *("model-a(width=0)", "model-a(depth=0)", "model-b(filters=0/)", "strided(filters=8/0)"),
        *("patch-mlp(0)", "patch-mlp(depth=0)", "patch-mlp(filters=0)", "patch-mlp(n_pcs=0)"),
    ],
)
def test_a_network_without_layers_is_refused_when_it_is_planned(text):
    with pytest.raises(ValueError, match="integer of at least 1"):
        ENCODERS.parse(text)


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [
        (MLP, {"width": math.nan}),
        (MLP, {"depth": math.inf}),
        (MLP, {"n_pcs": 2.5}),
        (ModelA, {"width": math.inf}),
        (ModelB, {"filters": ()}),
        (Strided, {"filters": (8, math.nan)}),
        (PatchMLP, {"filters": math.nan}),
        (PatchMLP, {"pixel_weight": -0.5}),
        (PatchMLP, {"pixel_weight": math.nan}),
        (PatchMLP, {"pixel_weight": math.inf}),
    ],
)
def test_numbers_that_no_network_has_are_refused_by_name(plan, wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}=.*must be"):
        plan(**wrong)


def test_pixels_may_be_left_out():
    assert PatchMLP(pixel_weight=0).build((1, 6, 5), 2)(torch.randn(4, 1, 6, 5)).shape == (4, 2)


def test_a_user_defined_encoder_validates_its_own_fields(monkeypatch):
    monkeypatch.setattr(ENCODERS, "_members", ENCODERS.members())  # other tests must not find this class

    @dataclass(frozen=True)
    class Named(Encoder, name="named-for-this-test"):
        width: str = "narrow"
        depth: int = 0

    assert ENCODERS.parse("named-for-this-test(wide)") == Named("wide")


# The layers of the paper.


@pytest.mark.parametrize("plan", [ModelA(), ModelB(), ModelA(norm=True), ModelB(norm=True)], ids=str)
def test_the_reduction_part_has_2000_then_500_then_100_units(plan):
    network = plan.build((1, 28, 28), 2)
    assert {name: layers(block, nn.Linear)[0].out_features for name, block in sources(network).items()} == {
        "h1": 2000,
        "h2": 500,
        "h3": 100,
    }
    last = layers(network, nn.Linear)[-1]
    assert (last.in_features, last.out_features) == (100, 2)


def test_model_a_has_five_dense_layers_of_500_each_with_relu_and_then_batch_norm():
    kinds = [type(module) for module in ModelA().build((784,), 2).features.children()]
    assert kinds[1:] == [nn.Linear, nn.ReLU, nn.BatchNorm1d] * 5
    assert [layer.out_features for layer in layers(ModelA().build((784,), 2).features, nn.Linear)] == [500] * 5


def test_model_b_has_two_convolutions_of_16_filters_and_two_of_32_each_pair_pooled():
    features = ModelB().build((1, 28, 28), 2).features
    assert [(c.in_channels, c.out_channels, c.kernel_size) for c in layers(features, nn.Conv2d)] == [
        (1, 16, (3, 3)),
        (16, 16, (3, 3)),
        (16, 32, (3, 3)),
        (32, 32, (3, 3)),
    ]
    blocks = layers(features, ConvBlock)
    assert [type(module) for module in features.children()] == [ChannelsLast, *[ConvBlock] * 4, FlattenChannelsLast]
    assert [isinstance(block.pool, nn.MaxPool2d) for block in blocks] == [False, True, False, True]
    assert not layers(features, nn.BatchNorm2d)
    assert len(layers(ModelB(norm=True).build((1, 28, 28), 2).features, nn.BatchNorm2d)) == 4
    assert features(torch.zeros(1, 1, 28, 28)).shape == (1, 32 * 7 * 7)


@pytest.mark.parametrize("plan", [ModelA(), ModelB()], ids=str)
def test_the_paper_has_no_norm_in_the_reduction_part(plan):
    blocks = sources(plan.build((1, 28, 28), 2)).values()
    assert not any(layers(block, nn.BatchNorm1d) for block in blocks)


def test_norm_adds_batch_norm_before_every_relu():
    network = ModelB(norm=True).build((1, 28, 28), 2)
    assert len(layers(network, nn.BatchNorm2d)) == 4
    assert len(layers(network, nn.BatchNorm1d)) == 3
    for block in sources(network).values():
        assert [type(module) for module in block.children()] == [nn.Linear, nn.BatchNorm1d, nn.ReLU]


def test_an_mlp_has_as_many_blocks_as_it_is_deep():
    network = MLP(16, depth=5).build((9,), 2)
    assert list(sources(network)) == ["h1", "h2", "h3", "h4", "h5"]
    assert [layer.out_features for layer in layers(network, nn.Linear)] == [16] * 5 + [2]


def test_strided_convolutions_halve_the_image_and_have_batch_norm_and_gelu():
    features = Strided().build((1, 28, 28), 2).features
    assert [(c.in_channels, c.out_channels, c.stride) for c in layers(features, nn.Conv2d)] == [
        (1, 64, (2, 2)),
        (64, 128, (2, 2)),
    ]
    assert [type(module) for module in features.children()] == [
        ChannelsLast,
        *[nn.Conv2d, nn.BatchNorm2d, nn.GELU] * 2,
        FlattenChannelsLast,
    ]
    assert features(torch.zeros(2, 1, 28, 28)).shape == (2, 128 * 7 * 7)


# Declared abilities.


@pytest.mark.parametrize("encoder", [cls() for cls in ENCODERS.members().values()], ids=str)
def test_every_built_in_encoder_declares_that_its_steps_can_be_captured(encoder):
    assert "capturable" in type(encoder).__dict__
    assert encoder.capturable is True


def test_capturable_is_declared_by_each_class_and_never_inherited(monkeypatch):
    monkeypatch.setattr(ENCODERS, "_members", ENCODERS.members())  # other tests must not find these classes

    class Silent(MLP, name="silent-for-this-test"):
        pass

    class Declared(Silent, name="declared-for-this-test"):
        capturable = True

    assert (Encoder.capturable, Silent().capturable, Declared().capturable) == (False, False, True)


# Export: one graph for any batch size.

EXPORTED = [
    "mlp(16)",
    "mlp(16, n_pcs=5)",
    "patch-mlp(16, n_pcs=8)",
    "model-a(width=20)",
    "model-b",
    "model-b(norm=true)",
    "strided",
]


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_network_gives_the_same_for_any_number_of_rows(name):
    network = built(name, (1, 8, 6)).eval()
    for module in layers(network, PatchFilters):
        module.piecewise = False
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5, 1, 8, 6, generator=generator)
    with torch.no_grad():
        program = torch.export.export(network, (x,), dynamic_shapes={"x": {0: torch.export.Dim("n", min=2)}})
        exported = program.module()
        for n in (2, 5, 133):
            rows = torch.randn(n, 1, 8, 6, generator=generator)
            torch.testing.assert_close(exported(rows), network(rows), rtol=1e-5, atol=1e-6)
    assert not [node.target for node in program.graph.nodes if node.op == "get_attr"]  # no nested graph, as of autocast


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            nn.Linear(6, 9),
            r"Linear returns 9 components, but n_components=2: end it in nn\.Linear\(…, 2\); .*Backbone\(network\)",
        ),
        (nn.Linear(5, 2), r"Linear failed on rows of the shape \(6,\): .*\. Its first layer must read rows of this shape"),
        (nn.Unflatten(1, (1, 2, 3)), r"Unflatten must return a tensor \(rows, components\), not .*\(2, 1, 2, 3\).*Backbone"),
        (nn.LSTM(6, 2), r"LSTM must return a tensor \(rows, components\), not tuple .*Backbone"),
    ],
)
def test_an_encoder_that_does_not_suit_the_rows_is_named_with_the_remedy(encoder, message):
    model = DRE(encoder=encoder, schedule="x: gaussian(5) -> kl * 1", device="cpu")
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(np.eye(40, 6))
