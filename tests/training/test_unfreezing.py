"""A backbone is frozen until a stage unfreezes it: its features are cached before, its weights learn after."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from torch import nn

from dre import DRE, Backbone, ModelFileError, Schedule, Stage
from dre.affinity.gaussian import Gaussian
from dre.data.rows import ArrayRows
from dre.data.scaling import ScaledRows
from dre.encoder.backbone_front import BackboneFeatures
from dre.loss.kl import KL
from dre.model.checkpoint import CheckpointError
from dre.plan.recipe import Recipe
from dre.training.events import EpochEnded, StageBegan

X = load_digits().images[:200].astype(np.uint8) * 15
FROZEN = "features: gaussian(5) -> kl * 2 follow 1 against bank"
UNFROZEN = "features: gaussian(5) -> kl * 2 @ 0.001 against bank unfreeze"
THREE = f"{FROZEN}; {UNFROZEN}; h1: gaussian(5) -> kl * 2"
PREFIX = "features.backbone.module."


def cnn(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Dropout(0.3), nn.Conv2d(6, 8, 3))


def model(schedule: str = THREE, module: nn.Module | None = None, **options) -> DRE:
    backbone = Backbone(module or cnn(), "mlp(12, depth=2)", n_pcs=6)
    return DRE(encoder=backbone, schedule=schedule, batch_size=50, random_state=0, device="cpu", **options)


class Calls:
    """Counts the images that a backbone reads, and its state at the start of each stage."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.images, self.at_stage, self.optimized = 0, [], []
        features = BackboneFeatures._features

        def counted(part: BackboneFeatures, x: torch.Tensor) -> torch.Tensor:
            self.images += len(x)
            return features(part, x)

        monkeypatch.setattr(BackboneFeatures, "_features", counted)

    def __call__(self, event: object) -> None:
        if isinstance(event, StageBegan):
            self.at_stage.append(self.images)
        if isinstance(event, EpochEnded):
            weights = sum(one.weight.numel() for one in event.run.optimizer._moments)
            self.optimized.append((event.run.stage, weights))


def test_weights_keep_their_bits_until_they_are_unfrozen_and_after() -> None:
    own = cnn()
    before = {name: value.clone() for name, value in own.state_dict().items()}
    stages = model(module=own).fit(X).stages_
    for name, value in before.items():
        kept, learned, last = (stage[PREFIX + name] for stage in stages)
        assert torch.equal(kept, value)
        assert torch.equal(last, learned)
        is_statistic = "running" in name or "num_batches" in name
        assert torch.equal(learned, value) == is_statistic, name
        assert torch.equal(own.state_dict()[name], value)  # the user's module


@pytest.mark.parametrize("augment", ["noise(0.1)", "affine + noise(0.1)", "local-noise(0.5)"])
def test_fit_and_transform_agree_also_with_augmented_images(augment) -> None:
    fitted = model(augment=augment).fit(X)
    np.testing.assert_array_equal(fitted.transform(X), fitted.embedding_)
    assert torch.equal(fitted.stages_[0][f"{PREFIX}0.weight"], cnn()[0].weight)
    assert not torch.equal(fitted.stages_[1][f"{PREFIX}0.weight"], cnn()[0].weight)


def test_frozen_features_are_computed_once_and_the_optimizer_knows_only_what_learns(monkeypatch) -> None:
    calls = Calls(monkeypatch)
    model(THREE).fit(X, observers=[calls])
    of_tries = 50  # images on which sources are tried, and features counted
    first, second, third = calls.at_stage
    assert 200 <= first <= 200 + of_tries  # once
    assert 200 <= second - first <= 200 + of_tries  # the neighbors of the second stage; the first read the cache alone
    assert third - second >= 200 + 2 * 200 + 200  # the bank, two epochs, and the features by the new weights
    own = sum(weight.numel() for weight in cnn().parameters())
    sizes = dict(calls.optimized)
    assert sizes[1] == sizes[0] + own
    assert sizes[2] == sizes[0]


def test_frozen_steps_are_those_of_an_mlp_on_features() -> None:
    alone = model(FROZEN, augment="none").fit(X)
    features = alone.encoder_.features
    with torch.no_grad():
        read = features(alone._map.scaling(torch.from_numpy(X))).numpy()
    again = DRE(
        schedule=FROZEN.replace("features", "x"), encoder="mlp(12, depth=2)", augment="none", batch_size=50, random_state=0,
        device="cpu",
    ).fit(read)  # fmt: skip
    assert np.corrcoef(pdist(alone.embedding_), pdist(again.embedding_))[0, 1] > 0.95


def test_a_fit_that_was_interrupted_while_unfrozen_ends_in_the_same_bits(tmp_path) -> None:
    whole = model().fit(X)

    for stopped_at in (1, 2):

        def end(event: object, stage: int = stopped_at) -> None:
            if isinstance(event, EpochEnded) and event.run.stage == stage and event.run.epoch == 0:
                raise KeyboardInterrupt

        folder = tmp_path / str(stopped_at)
        with pytest.raises(KeyboardInterrupt):
            model().fit(X, observers=[end], checkpoint=folder, checkpoint_minutes=0)
        resumed = model().fit(X, checkpoint=folder, resume=True)
        np.testing.assert_array_equal(resumed.embedding_, whole.embedding_)


def test_a_fit_is_not_resumed_with_another_backbone(tmp_path) -> None:
    whole = model(FROZEN).fit(X, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="is that of another fit:\n- backbone: the values differ"):
        model(FROZEN, module=cnn(seed=9)).fit(X, checkpoint=tmp_path, resume=True)
    resumed = model(FROZEN).fit(X, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(resumed.embedding_, whole.embedding_)


def test_features_are_those_that_the_head_reads() -> None:
    fitted = model().fit(X)
    found = fitted.features(X)
    assert found.shape == (200, 6)
    front = fitted.encoder_.features
    with torch.no_grad():
        expected = front(fitted._map.scaling(torch.from_numpy(X)))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert fitted.features(X, "h2").shape == (200, 12)
    assert not np.allclose(fitted.features(X, stage=0), found)
    with pytest.raises(ValueError, match=r"unknown source 'h3'; known: x, .*h1, .*h2"):
        fitted.features(X, "h3")


def test_a_saved_model_needs_the_module_and_has_its_weights(tmp_path) -> None:
    fitted = model().fit(X)
    fitted.save(tmp_path / "m.safetensors")
    other = cnn(seed=9)
    for encoder in (other, Backbone(other)):
        same = DRE.load(tmp_path / "m.safetensors", encoder=encoder)
        np.testing.assert_array_equal(same.transform(X), fitted.embedding_)
        np.testing.assert_array_equal(same.transform(X, stage=0), fitted.transform(X, stage=0))
        assert same.schedule_ == fitted.schedule_
        assert str(same.recipe_.encoder) == str(fitted.recipe_.encoder)
    with pytest.raises(ModelFileError, match=r"a module of your own, torch.nn.modules.container.Sequential: pass it"):
        DRE.load(tmp_path / "m.safetensors")
    with pytest.raises(ModelFileError, match="do not fit the encoder"):
        DRE.load(tmp_path / "m.safetensors", encoder=nn.Sequential(nn.Conv2d(3, 8, 3)))


@pytest.mark.slow  # torch's exporter takes seconds
@pytest.mark.parametrize("size", [None, 16, (6, 5)])
def test_a_map_with_a_backbone_is_exported(tmp_path, size) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    backbone = Backbone(cnn(), "mlp(12, depth=2)", n_pcs=6, size=size, mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2))
    fitted = DRE(encoder=backbone, schedule=FROZEN, batch_size=50, random_state=0, device="cpu").fit(X)
    fitted.to_onnx(tmp_path / "m.onnx", dtype="uint8")  # compared with transform


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (UNFROZEN, UNFROZEN),
        ("features: gaussian(5) -> kl * 2 unfreeze @ 1e-3 against bank", UNFROZEN),
        ("features: gaussian(5) -> kl * 2 against bank unfreeze @ 0.001", UNFROZEN),
    ],
)
def test_unfreezing_is_a_word_of_the_schedule(text, canonical) -> None:
    schedule = Schedule.parse(text)
    assert str(schedule) == canonical
    assert Schedule.parse(str(schedule)) == schedule
    assert schedule[0] == Stage("features", Gaussian(5), KL(), 2, lr=0.001, against="bank", unfreeze=True)
    assert not Schedule.parse(FROZEN)[0].unfreeze


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("features: gaussian(5) -> kl * 2 unfreeze", "needs a learning rate of its own, such as '@ 0.0001'"),
        ("features: gaussian(5) -> kl * 2 unfreeze @ 0.1 unfreeze", "may follow, each once"),
        ("features: gaussian(5) -> kl * 2 @ 0.1 unfreeze @ 0.2", "may follow, each once"),
        ("features: gaussian(5) -> kl * 2 unfroze", "'@ learning rate' and refresh, .*optional, unfreeze may follow"),
    ],
)
def test_a_wrong_word_is_pointed_at(text, message) -> None:
    with pytest.raises(ValueError, match=message):
        Schedule.parse(text)


def test_what_can_not_be_unfrozen_is_refused_before_a_fit() -> None:
    for encoder in ("mlp(8)", cnn()):
        with pytest.raises(ValueError, match=r"has no backbone: pass encoder=Backbone\(module\)"):
            Recipe(UNFROZEN, encoder, "shuffled(50)", "adam(0.01)")
    with pytest.raises(ValueError, match="no weight of the backbone requires a gradient"):
        model(module=cnn().requires_grad_(False)).plan(X.shape)
    with pytest.raises(TypeError, match="unfreeze=1: expected True or False"):
        Stage("features", Gaussian(5), KL(), 2, lr=0.1, unfreeze=1)


@pytest.mark.parametrize(("schedule", "held"), [(FROZEN, False), (f"{FROZEN}; {UNFROZEN}", True)])
def test_rows_that_an_unfrozen_backbone_reads_in_each_step_are_scaled_once(schedule: str, held: bool) -> None:
    kinds = set()
    model(schedule).fit(X, observers=[lambda event: kinds.add(type(event.run.learner.input_rows))])
    assert kinds == {ArrayRows if held else ScaledRows}
