"""Backbones: what their module reads, what becomes of its features, and when it is refused."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from dre import DRE, Backbone
from dre.data.scaling import Scaling
from dre.encoder import ENCODERS
from dre.encoder.backbone_front import BackboneFeatures
from dre.encoder.mlp import MLP
from dre.encoder.network import Network

GENERATOR = np.random.default_rng(0)
PIXELS = GENERATOR.integers(256, size=(50, 9, 7, 3), dtype=np.uint8)


class Seen(nn.Module):
    """Remembers what it read, and returns the mean of each channel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Seen.last = x
        return x.mean((2, 3))


def cnn(channels: int = 3) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(channels, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5))


def features_of(images: np.ndarray, module: nn.Module | None = None, **options) -> BackboneFeatures:
    """Features that know how these images were scaled."""
    scaling = Scaling.fit(images)
    shape = tuple(scaling(torch.from_numpy(images[:1])).shape[1:])
    features = BackboneFeatures(module or Seen(), shape, **options)
    features.undo_scaling(scaling.mean_image(), float(scaling.scale))
    features.scaled = scaling(torch.from_numpy(images))
    return features


@pytest.mark.parametrize("factor", [1, 1 / 255, 257], ids=["8 bits", "fractions", "16 bits"])
def test_the_module_reads_pixels_from_0_to_1_whatever_the_values_of_the_images(factor) -> None:
    images = PIXELS * factor if factor != 257 else (PIXELS.astype(np.int32) * 257)
    features = features_of(images)
    features(features.scaled)
    expected = torch.from_numpy(PIXELS.astype(np.float32) / 255).movedim(-1, 1)
    torch.testing.assert_close(Seen.last, expected, atol=1e-5, rtol=0)


def test_pixels_are_normalized_by_channel_and_white_can_be_said() -> None:
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.25, 2.0)
    features = features_of(PIXELS, mean=mean, std=std, white=510.0)
    features(features.scaled)
    raw = torch.from_numpy(PIXELS.astype(np.float32) / 510).movedim(-1, 1)
    expected = (raw - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    torch.testing.assert_close(Seen.last, expected, atol=1e-5, rtol=0)


def test_images_that_would_be_nearly_black_ask_for_their_white() -> None:
    dark = PIXELS % 17  # as the digits of scikit-learn: white is 16
    with pytest.warns(UserWarning, match=r"dark if white is 255.*Pass the value that white has in them"):
        features_of(dark)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features_of(dark, white=16)
        features_of(PIXELS / 127.5 - 1)


@pytest.mark.parametrize("size", [(18, 14), (4, 5), (9, 7)])
def test_images_are_resized_for_the_module(size) -> None:
    features = features_of(np.full_like(PIXELS, 51), size=size)
    features(features.scaled)
    assert Seen.last.shape == (50, 3, *size)
    torch.testing.assert_close(Seen.last, torch.full_like(Seen.last, 0.2), atol=1e-5, rtol=0)


def test_gray_images_get_the_channels_that_the_module_reads() -> None:
    features = features_of(PIXELS[..., 0], cnn(3))
    assert features(features.scaled).shape == (50, 8)
    repeated = features_of(np.repeat(PIXELS[..., :1], 3, 3), cnn(3))
    torch.testing.assert_close(features(features.scaled), repeated(repeated.scaled), atol=1e-4, rtol=1e-4)


def test_maps_of_features_are_averaged_and_pieces_do_not_matter(monkeypatch) -> None:
    features = features_of(PIXELS, cnn())
    with torch.no_grad():
        whole = features(features.scaled)
        monkeypatch.setattr("dre.encoder.backbone_front.PIECE_VALUES", 9 * 7 * 3 * 7)
        torch.testing.assert_close(features(features.scaled), whole)
    assert whole.shape == (50, 8)


def test_the_module_stays_in_eval_mode_and_is_not_the_users() -> None:
    own = cnn().train()
    features = features_of(PIXELS, own)
    features.train()
    before = copy.deepcopy(features.module.state_dict())
    torch.testing.assert_close(features(features.scaled), features(features.scaled))  # dropout would differ
    assert all(torch.equal(value, before[name]) for name, value in features.module.state_dict().items())
    assert own.training
    assert all(weight.requires_grad for weight in own.parameters())


def test_frozen_weights_get_no_gradient_and_those_that_the_user_froze_never_do() -> None:
    own = cnn()
    own[0].bias.requires_grad_(False)
    features = features_of(PIXELS, own)
    assert not any(weight.requires_grad for weight in features.parameters())
    features.unfreeze()
    features(features.scaled).square().sum().backward()
    assert features.module[0].weight.grad.any()
    assert features.module[0].bias.grad is None
    features.freeze()
    assert not any(weight.requires_grad for weight in features.parameters())


def test_the_network_is_the_front_and_the_head() -> None:
    network = Backbone(cnn(), "mlp(16, depth=2)", n_pcs=5).build((3, 9, 7), 3)
    assert isinstance(network, Network)
    assert network.hidden == ["h1", "h2"]
    assert network.features.pca.axes.shape == (5, 8)
    assert network(torch.zeros(4, 3, 9, 7)).shape == (4, 3)
    assert Backbone(cnn(), n_pcs=50).count_features((3, 9, 7)) == 8


def test_the_head_is_that_of_the_recipe_unless_it_is_said() -> None:
    shape = (3000, 28, 28, 3)
    vectors = DRE().plan((3000, 50))
    planned = DRE(encoder=Backbone(nn.Sequential(nn.Conv2d(3, 50, 3)))).plan(shape)
    assert planned.encoder.head == vectors.encoder == MLP(128, depth=6)
    assert [stage.source for stage in vectors.schedule] == ["x", "x+h1"]
    assert [stage.source for stage in planned.schedule] == ["features", "features+h1"]
    assert [replace(stage, source="x") for stage in planned.schedule] == [replace(s, source="x") for s in vectors.schedule]
    assert (planned.optimizer, planned.batches, planned.augment) == (vectors.optimizer, vectors.batches, vectors.augment)
    assert str(DRE(encoder=Backbone(cnn(), "mlp(7)")).plan(shape).encoder.head) == "mlp(7)"
    assert DRE("paper", encoder=Backbone(cnn())).plan(shape).schedule[0].source == "features"


def test_a_backbone_is_not_among_the_texts() -> None:
    assert "backbone" not in ENCODERS.members()
    assert not Backbone(cnn()).has_text
    assert str(Backbone(cnn(), mean=(0.5,), size=32)) == "backbone(Sequential, n_pcs=100, mean=0.5/, size=32)"
    assert repr(Backbone(cnn(), "mlp(7)", size=32)) == "Backbone(Sequential(…), head='mlp(7)', n_pcs=100, size=32)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": nn.Identity}, r"expected an nn\.Module: pass Identity\(\)"),
        ({"module": "resnet18"}, r"expected an nn\.Module: pass a network, such as torchvision"),
        ({"size": "224"}, "size='224': must be"),
        ({"head": "model-a"}, "head=model-a: expected an mlp without n_pcs"),
        ({"head": "mlp(5, n_pcs=3)"}, "expected an mlp without n_pcs"),
        ({"n_pcs": 0}, "n_pcs=0: must be an integer of at least 1"),
        ({"size": 0}, "size=0: must be"),
        ({"std": (0.5, 0.0)}, "std=.*expected a number for each channel"),
        ({"mean": (0.5,) * 3, "std": (1.0,)}, "expected 3 numbers"),
        ({"white": -1}, "white=-1: must be a positive number"),
    ],
)
def test_what_no_backbone_has_is_refused(options, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Backbone(**{"module": cnn(), **options})


class Tokens(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(2)


class MeanOfFirst(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:1].flatten(1)


@pytest.mark.parametrize(
    ("backbone", "shape", "message"),
    [
        (Backbone(cnn()), (60, 20), "a backbone reads images"),
        (Backbone(cnn(3)), (60, 8, 8, 4), "have 4 channels, the backbone Sequential reads 3"),
        (
            Backbone(cnn(), mean=(0.4, 0.4)),
            (60, 8, 8),
            r"backbone Sequential failed on rows of the shape \(2, 8, 8\): .*channels",
        ),
        (Backbone(cnn(), size=2), (60, 8, 8), r"backbone Sequential failed on rows of the shape \(3, 2, 2\): .*size"),
        (Backbone(MeanOfFirst()), (60, 8, 8), r"backbone MeanOfFirst returns 1 row\(s\) of features for 2 images"),
        (Backbone(Tokens()), (60, 8, 8), r"must return features.*not a tensor of the shape \(2, 1, 64\).*wrap it"),
    ],
)
def test_images_that_do_not_fit_are_named_before_a_fit(backbone, shape, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        DRE(encoder=backbone).plan(shape)


@pytest.mark.parametrize("options", [{"metric": "cosine"}, {"metric": "manhattan"}, {"standardize": True}])
def test_distances_between_pixels_are_refused(options) -> None:
    with pytest.raises(ValueError, match="behind a backbone neighbors are those of its features"):
        DRE(encoder=Backbone(cnn(), "mlp(8)"), **options).fit(PIXELS)


class Scripted(nn.Module):
    """Mean colors, but for images whose first pixel is white."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3)).where(x[:, :1, 0, 0] < 1, self.value)


SCHEDULE = "features: gaussian(5) -> kl * 1"


@pytest.mark.parametrize(("value", "kind"), [(float("nan"), "NaN"), (float("inf"), "infinity")])
def test_the_first_image_without_finite_features_is_named_in_fit_and_in_transform(value, kind) -> None:
    images = PIXELS // 2
    model = DRE(encoder=Backbone(Scripted(value), "mlp(8)", white=255), schedule=SCHEDULE, device="cpu").fit(images)
    odd = images.copy()
    odd[[7, 20], 0, 0] = 255
    with pytest.raises(ValueError, match=f"backbone Scripted returns {kind} for 2 of 50 images, the first in row 7"):
        model.fit(odd)
    with pytest.raises(ValueError, match=f"backbone Scripted returns {kind} .* the first in row 7"):
        model.transform(odd)


def test_the_same_features_for_all_images_get_a_warning() -> None:
    model = DRE(encoder=Backbone(Scripted(3.0), "mlp(8)", white=1), schedule=SCHEDULE, device="cpu")
    with pytest.warns(UserWarning, match="backbone Scripted returns the same features for all images"):
        model.fit(np.maximum(PIXELS, 1))


def test_statistics_of_another_range_and_images_that_are_normalized_already_get_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"mean=\(123\.0, 117\.0, 104\.0\) is that of pixels to 255: divide"):
        features_of(PIXELS, mean=(123.0, 117.0, 104.0), std=(58.0, 57.0, 57.0))
    normalized = (PIXELS / 255 - 0.5) / 0.25
    with pytest.warns(UserWarning, match="negative values, as after Normalize"):
        features_of(normalized, mean=(0.5,) * 3, std=(0.25,) * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features_of(normalized)
        features_of(PIXELS, mean=(0.5,) * 3, std=(0.25,) * 3)
        features_of(PIXELS, mean=(123.0,) * 3, white=1)  # for a module that reads 0 to 255


def test_normalized_images_keep_their_values() -> None:
    normalized = np.concatenate([PIXELS[..., :2] / 255 + 1, PIXELS[..., 2:] / 255 - 1], 3)  # means of 1.5 and of -0.5
    features = features_of(normalized)
    features(features.scaled)
    torch.testing.assert_close(Seen.last, torch.from_numpy(normalized).float().movedim(-1, 1), atol=1e-5, rtol=0)
