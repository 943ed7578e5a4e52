"""What is trained behind a computed front."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from dre import DRE
from dre.augment import Augment, parse_augment
from dre.augment.noise import Noise
from dre.data.rows import ArrayRows
from dre.encoder.forward import outputs
from dre.encoder.patch_mlp import PatchMLP
from dre.encoder.pca_front import PCAFront
from dre.training.learner import Learner, make_learner

IMAGES = load_digits().images[:300]
ROWS = ArrayRows(torch.from_numpy(IMAGES).float()[:, None] / 5 - 1, torch.device("cpu"))


def learning(augment: str | None) -> Learner:
    network = PatchMLP(16, n_pcs=10).build((1, 8, 8), 2)
    plan = None if augment is None else parse_augment(augment)
    return make_learner(network, ROWS, plan, torch.zeros(1, 8, 8), torch.Generator().manual_seed(0))


@pytest.mark.parametrize("augment", [None, "noise(0)", "affine(0, shift=0, scale=0, shear=0) + noise(0)"])
def test_the_trained_part_gives_what_the_whole_network_gives(augment) -> None:
    learns = learning(augment)
    ids = torch.tensor([3, 200, 7])
    seen = learns.prepare(learns.rows.take(ids), torch.Generator())
    torch.testing.assert_close(learns.trained(seen), learns.encoder(ROWS.take(ids)), atol=1e-5, rtol=1e-4)
    for source in ("x", "features", "h1"):
        torch.testing.assert_close(learns.features(source), outputs(learns.encoder, ROWS, source), atol=1e-5, rtol=1e-4)


def test_the_front_is_gone_through_once_unless_images_change() -> None:
    assert learning("noise(0.1)").rows.shape == (300, 10)
    assert learning("noise(0.1)").front is None
    moving = learning("flip + noise(0.1)")
    assert moving.rows is ROWS
    assert isinstance(moving.front, PCAFront)
    assert str(moving.before) == "flip(0.5)"
    assert str(moving.after) == "noise(0.1)"


def test_an_augmentation_of_the_users_own_is_shown_images() -> None:
    class Mirrored(Augment):
        def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
            return x.flip(3)

    network = PatchMLP(16, n_pcs=10).build((1, 8, 8), 2)
    learns = make_learner(network, ROWS, Mirrored() + Noise(0), torch.zeros(1, 8, 8), torch.Generator())
    x = ROWS.read(0, 5)
    torch.testing.assert_close(learns.prepare(x, torch.Generator()), network.features(x.flip(3)))


def test_a_front_that_was_settled_keeps_its_axes_and_is_the_source_that_it_was() -> None:
    network = learning(None).encoder
    before = {name: value.clone() for name, value in network.features.state_dict().items()}
    others = ArrayRows(1 - 2 * ROWS.read(100, 300), torch.device("cpu"))
    wanted = outputs(network, others, "features")
    for augment in (None, parse_augment("flip")):
        learns = make_learner(network, others, augment, torch.zeros(1, 8, 8), torch.Generator())
        assert all(torch.equal(value, before[name]) for name, value in network.features.state_dict().items())
        torch.testing.assert_close(learns.features("features"), wanted)


@pytest.mark.parametrize("encoder", ["patch-mlp(16)", "mlp(16, n_pcs=20)"])
def test_a_trained_network_is_trained_further_behind_the_front_that_it_has(encoder, tmp_path) -> None:
    settings = {
        "schedule": "features: gaussian(10) -> kl * 2",
        "batch_size": 100,
        "learning_rate": 1e-3,
        "random_state": 0,
        "device": "cpu",
    }
    model = DRE(encoder=encoder, **settings).fit(IMAGES[:150])
    model.save(tmp_path / "model")
    for network in (model.encoder_, DRE.load(tmp_path / "model", device="cpu").encoder_):
        further = DRE(encoder=network, **settings).fit(IMAGES[150:]).encoder_
        for name, value in model.encoder_.state_dict().items():
            assert torch.equal(further.state_dict()[name], value) == (name.startswith("features") or name == "scale"), name


def test_a_network_that_was_only_built_has_its_front_computed() -> None:
    network = PatchMLP(16, n_pcs=10).build((1, 8, 8), 2)
    schedule = "features: gaussian(10) -> kl * 2"
    model = DRE(encoder=network, schedule=schedule, batch_size=100, learning_rate=1e-3, random_state=0, device="cpu").fit(
        IMAGES
    )
    assert model.encoder_.features.is_fitted
    assert not network.features.is_fitted  # what was handed in stays as it was


def test_a_front_is_computed_in_full_precision_whatever_is_allowed_around_it() -> None:
    wanted = learning(None).encoder.features.state_dict()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = learning(None).encoder.features.state_dict()
    assert all(torch.equal(found[name], value) for name, value in wanted.items())


def test_only_what_lies_behind_the_front_is_trained() -> None:
    learns = learning(None)
    names = {name for name, _ in learns.encoder.named_parameters()}
    assert names == {name for name, _ in learns.trained.named_parameters()}
    assert not any(name.startswith("features") for name in names)


@pytest.mark.parametrize("augment", ["noise(0.2)", "affine + noise(0.2)", "none"])
def test_a_filtered_network_learns_saves_and_repeats(augment, tmp_path) -> None:
    schedule = "features: gaussian(10) -> kl * 6; h1: gaussian(10) -> kl * 4"
    settings = {
        "schedule": schedule,
        "encoder": "patch-mlp(32)",
        "batch_size": 100,
        "learning_rate": 2e-3,
        "augment": augment,
        "random_state": 0,
    }
    model, again = (DRE(**settings, device="cpu").fit(IMAGES) for _ in range(2))
    assert (model.embedding_ == again.embedding_).all()
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.transform(IMAGES), model.transform(IMAGES))
    np.testing.assert_array_equal(model.transform(IMAGES), model.embedding_)


def test_images_that_may_not_be_written_to_are_fitted_without_a_warning(recwarn) -> None:
    images = IMAGES.copy()
    images.flags.writeable = False
    DRE("fast", device="cpu", random_state=0).fit(images[:120])
    assert not [warning for warning in recwarn if "writable" in str(warning.message)]
