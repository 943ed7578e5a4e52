"""What is trained behind a computed front."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from dre import DRE
from dre.augment import parse_augment
from dre.encoder.filtered import Filtered
from dre.encoder.front import Front
from dre.forward import outputs
from dre.learner import Learner, learner
from dre.rows import ArrayRows

IMAGES = load_digits().images[:300]
ROWS = ArrayRows(torch.from_numpy(IMAGES).float()[:, None] / 5 - 1, torch.device("cpu"))


def learning(augment: str | None) -> Learner:
    network = Filtered(16, front=10).build((1, 8, 8), 2)
    plan = None if augment is None else parse_augment(augment)
    return learner(network, ROWS, plan, torch.zeros(1, 8, 8), torch.Generator().manual_seed(0))


@pytest.mark.parametrize("augment", [None, "noise(0)", "affine(0, shift=0, scale=0, shear=0) + noise(0)"])
def test_the_trained_part_gives_what_the_whole_network_gives(augment) -> None:
    learns = learning(augment)
    ids = torch.tensor([3, 200, 7])
    seen = learns.seen(learns.rows.take(ids), torch.Generator())
    torch.testing.assert_close(learns.trained(seen), learns.whole(ROWS.take(ids)), atol=1e-5, rtol=1e-4)
    for source in ("x", "features", "features.patches", "h1"):
        torch.testing.assert_close(learns.features(source), outputs(learns.whole, ROWS, source), atol=1e-5, rtol=1e-4)


def test_the_front_is_gone_through_once_unless_images_change() -> None:
    assert learning("noise(0.1)").rows.shape == (300, 10)
    assert learning("noise(0.1)").front is None
    moving = learning("flip + noise(0.1)")
    assert moving.rows is ROWS
    assert isinstance(moving.front, Front)
    assert str(moving.before) == "flip(0.5)"
    assert str(moving.after) == "noise(0.1)"


def test_only_what_lies_behind_the_front_is_trained() -> None:
    learns = learning(None)
    names = {name for name, _ in learns.whole.named_parameters()}
    assert names == {name for name, _ in learns.trained.named_parameters()}
    assert not any(name.startswith("features") for name in names)


@pytest.mark.parametrize("augment", ["noise(0.2)", "affine + noise(0.2)", "none"])
def test_a_filtered_network_learns_saves_and_repeats(augment, tmp_path) -> None:
    schedule = "features: gaussian(10) -> kl * 6; h1: gaussian(10) -> kl * 4"
    settings = {"schedule": schedule, "encoder": "filtered(32)", "training": (100, 2e-3), "augment": augment, "random_state": 0}
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
