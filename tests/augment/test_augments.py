"""The contract of every augmentation, what each of them does, and which can be captured."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from dre import DRE
from dre.augment import AUGMENTS, Augment, CallableAugment, Chain, parse_augment
from dre.augment.augmentation import apply_augment, split_augment
from dre.augment.color import Color
from dre.augment.noise import Dropout, LocalNoise, Noise
from dre.augment.warp import Affine, Crop, Elastic, Flip
from dre.data.scaling import Scaling
from dre.model.fitted import to_model_rows
from dre.notation import NotationError

EACH = [cls() for cls in AUGMENTS.members().values()]
SHAPES = [(1, 28, 28), (3, 9, 14), (2, 1, 1)]
SCHEDULE = "x: gaussian(5) -> kl * 2"


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(n: int, shape: tuple[int, ...] = (1, 28, 28)) -> Tensor:
    return torch.randn(n, *shape, generator=seeded(7))


def change(augment: Augment, x: Tensor, generator: torch.Generator) -> Tensor:
    """Change rows whose tenth neighbors are at a distance of 1."""
    return augment.change(x, generator, torch.ones(len(x)))


def blob(side: int = 41) -> Tensor:
    """A bright spot, right of the middle."""
    y, x = torch.meshgrid(torch.arange(side) - side // 2, torch.arange(side) - side // 2, indexing="ij")
    return torch.exp(-((x - 8) ** 2 + y**2) / 8.0)[None, None]


def middle(x: Tensor) -> tuple[Tensor, Tensor]:
    """Where the brightness of each image lies, in pixels to the right of and below the middle."""
    h, w = x.shape[2:]
    mass = x.sum((1, 2, 3))
    right, down = torch.arange(w) - (w - 1) / 2, torch.arange(h) - (h - 1) / 2
    return (x.sum((1, 2)) @ right.float()) / mass, (x.sum((1, 3)) @ down.float()) / mass


# The contract of every file in the folder.


@pytest.mark.parametrize("augment", EACH, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_images_stay_images_of_finite_numbers(augment: Augment, shape: tuple[int, ...]) -> None:
    augment.check(shape)
    changed = change(augment, images(6, shape), seeded())
    assert changed.shape == (6, *shape)
    assert changed.dtype == torch.float32
    assert changed.isfinite().all()


@pytest.mark.parametrize("augment", EACH, ids=str)
def test_rows_are_changed_each_in_its_own_way_and_the_batch_is_left_alone(augment: Augment) -> None:
    x = images(1).expand(40, -1, -1, -1).clone()
    changed = change(augment, x, seeded())
    assert torch.equal(x, images(1).expand(40, -1, -1, -1))
    assert len({row.numpy().tobytes() for row in changed}) == (2 if isinstance(augment, Flip) else 40)


@pytest.mark.parametrize("augment", EACH, ids=str)
def test_what_is_drawn_comes_from_the_generator_alone(augment: Augment) -> None:
    torch.manual_seed(0)
    first = change(augment, images(9), seeded(3))
    before = torch.get_rng_state()
    assert torch.equal(change(augment, images(9), seeded(3)), first)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(change(augment, images(9), seeded(4)), first)


@pytest.mark.parametrize("augment", EACH, ids=str)
def test_vectors_are_changed_too_or_refused_with_what_would_help(augment: Augment) -> None:
    if augment.reads_images:
        with pytest.raises(ValueError, match=r"changes images, but the rows are vectors of 50 values: .*noise or dropout"):
            augment.check((50,))
    else:
        augment.check((50,))
        assert change(augment, torch.randn(4, 50), seeded()).shape == (4, 50)


@pytest.mark.parametrize(
    "augment", [*EACH, Affine(5.0, shift=0.0), Flip(0.1) + Noise(0.2), Crop() + Flip() + Color(0.1, contrast=0.0)], ids=str
)
def test_its_text_is_lossless(augment: Augment) -> None:
    assert parse_augment(str(augment)) == augment


@pytest.mark.parametrize(
    "text", ["flip +", "+ flip", "flip noise", "flp", "affine(scale=1)", "crop(0)", "dropout(1)", "elastic(-1)"]
)
def test_what_makes_no_sense_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(NotationError):
        parse_augment(text)


class Sorted(Augment):
    """A user-defined augmentation that needs the rows, not features."""

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return x.sort(-1).values


class Doubled(Noise):
    """A user-defined subclass of a built-in one."""


def test_noise_and_dropout_alone_may_be_applied_behind_a_front() -> None:
    assert {str(augment) for augment in EACH if augment.on_features} == {str(Noise()), str(LocalNoise()), str(Dropout())}
    assert split_augment(None) == (None, None)
    assert split_augment(Noise(0.1)) == (None, Noise(0.1))
    assert split_augment(Flip() + Dropout(0.1) + Noise(0.1)) == (Flip(), Dropout(0.1) + Noise(0.1))


@pytest.mark.parametrize("own", [Sorted(), Doubled(), CallableAugment(torch.tanh)], ids=["class", "subclass", "function"])
def test_one_of_the_users_own_sees_the_rows_unless_it_says_that_any_values_will_do(own: Augment) -> None:
    assert split_augment(own) == (own, None)
    assert split_augment(Noise(0.1) + own + Flip()) == (own + Flip(), Noise(0.1))

    class OnFeatures(Sorted, on_features=True):
        pass

    assert isinstance(split_augment(OnFeatures())[1], OnFeatures)


# What each of them does.


def test_a_turned_spot_keeps_its_distance_from_the_middle_and_stays_within_the_angle() -> None:
    right, down = middle(Affine(30.0, shift=0.0, scale=0.0, shear=0.0)(blob().expand(200, -1, -1, -1), seeded()))
    angle = torch.atan2(down, right).rad2deg()
    assert (torch.hypot(right, down) - 8).abs().max() < 0.1
    assert 28 < angle.max() <= 30.5
    assert -30.5 <= angle.min() < -28


def test_turning_keeps_its_distances_in_an_image_that_is_not_square() -> None:
    wide = torch.nn.functional.pad(blob(), (20, 20))
    right, down = middle(Affine(40.0, shift=0.0, scale=0.0, shear=0.0)(wide.expand(100, -1, -1, -1), seeded()))
    assert (torch.hypot(right, down) - 8).abs().max() < 0.1


def test_a_moved_spot_moves_by_at_most_the_share_of_a_side() -> None:
    right, down = middle(Affine(0.0, shift=0.1, scale=0.0, shear=0.0)(blob().expand(300, -1, -1, -1), seeded()))
    assert 3.9 < (right - 8).abs().max() <= 4.15
    assert 3.9 < down.abs().max() <= 4.15


def test_an_enlarged_image_has_its_spot_further_out_and_larger() -> None:
    changed = Affine(0.0, shift=0.0, scale=0.2, shear=0.0)(blob().expand(300, -1, -1, -1), seeded())
    right, down = middle(changed)
    assert down.abs().max() < 0.01
    assert 9.4 < right.max() <= 9.7
    assert 6.3 <= right.min() < 6.6
    size = (changed.sum((1, 2, 3)) / blob().sum()).sqrt()
    assert torch.allclose(size, right / 8, atol=0.02)


def test_a_crop_shows_a_window_that_lies_inside_the_image() -> None:
    ramp = torch.linspace(-1, 1, 101).expand(1, 1, 101, 101)
    changed = Crop(0.5)(ramp.expand(500, -1, -1, -1), seeded())
    left, end = changed[:, 0, 50, 0], changed[:, 0, 50, -1]
    assert left.min() >= -1
    assert end.max() <= 1
    assert 0.49 < ((end - left) / 2).min() < 0.53
    assert (changed[:, 0, :1] - changed[:, 0]).abs().max() < 1e-5  # rows of a ramp stay equal: the window is not turned


def test_flips_mirror_their_share_and_leave_the_others() -> None:
    x = images(400)
    changed = Flip(0.25)(x, seeded())
    mirrored = (changed == x.flip(3)).flatten(1).all(1)
    assert (mirrored | (changed == x).flatten(1).all(1)).all()
    assert 70 <= mirrored.sum() <= 130


def test_an_elastic_field_moves_places_by_about_its_strength_and_smoothly() -> None:
    ramp = torch.linspace(-1, 1, 60).expand(200, 1, 60, 60)
    moved = (Elastic(0.02)(ramp, seeded()) - ramp)[:, 0, 10:-10, 10:-10] / 2  # of a side
    assert 0.008 < moved.std() < 0.02
    assert (moved.diff(dim=2).abs().mean() / moved.abs().mean()) < 0.15


def test_color_stretches_and_moves_channels() -> None:
    x = images(300, (3, 16, 16))
    changed = Color(0.5, contrast=0.1)(x, seeded())
    mean, std = changed.mean((2, 3)), changed.std((2, 3)) / x.std((2, 3))
    assert 0.45 < (mean - x.mean((2, 3))).abs().max() < 0.6
    assert std.min() + 1e-4 >= 0.9
    assert std.max() <= 1.1 + 1e-4
    assert mean.std(1).min() > 0


def test_dropout_sets_its_share_to_the_mean() -> None:
    changed = Dropout(0.3)(torch.ones(200, 100), seeded())
    assert set(changed.unique().tolist()) == {0.0, 1.0}
    assert abs((changed == 0).float().mean().item() - 0.3) < 0.02


@pytest.mark.parametrize("dim", [4, 400])
def test_local_noise_is_as_long_as_its_share_of_the_radius_whatever_the_number_of_columns(dim: int) -> None:
    radius = torch.tensor([0.1, 1.0, 10.0]).repeat_interleave(2000)
    x = torch.randn(len(radius), dim, generator=seeded(1))
    length = (LocalNoise(0.5).change(x, seeded(), radius) - x).square().sum(1).reshape(3, -1).mean(1).sqrt()
    torch.testing.assert_close(length, torch.tensor([0.05, 0.5, 5.0]), rtol=0.05, atol=0)


def test_local_noise_says_that_it_needs_a_radius() -> None:
    for call in (lambda: LocalNoise()(images(2), seeded()), lambda: (Flip() + LocalNoise())(images(2), seeded())):
        with pytest.raises(TypeError, match=r"local-noise\(0.5\).*tenth neighbor.*change"):
            call()
    with pytest.raises(ValueError, match="must not be negative"):
        LocalNoise(-0.1)


def test_a_chain_reads_the_radius_if_a_link_does() -> None:
    assert (Flip() + LocalNoise()).reads_radius
    assert not (Flip() + Noise()).reads_radius
    x, radius = images(5), torch.rand(5, generator=seeded(2))
    generator = seeded()
    wanted = LocalNoise(0.1).change(Flip()(x, generator), generator, radius)
    assert torch.equal((Flip() + LocalNoise(0.1)).change(x, seeded(), radius), wanted)
    assert torch.equal(apply_augment(Flip() + LocalNoise(0.1), x, torch.zeros(1, 28, 28), seeded(), radius), wanted)


def test_a_chain_applies_one_after_the_other() -> None:
    x = images(5)
    generator = seeded()
    wanted = Noise(0.1)(Flip()(x, generator), generator)
    assert torch.equal((Flip() + Noise(0.1))(x, seeded()), wanted)


# In a model.


def test_a_function_of_the_users_own_is_called_with_scaled_rows_in_training_and_never_else() -> None:
    seen: list[Tensor] = []

    def doubled(x: Tensor) -> Tensor:
        seen.append(x)
        return 2 * x

    X = torch.randn(60, 8).numpy() * 5 + 3
    model = DRE(schedule=SCHEDULE, encoder="mlp(8)", augment=doubled, random_state=0).fit(X)
    steps = len(seen)
    assert steps == 2
    assert abs(torch.cat(seen).std().item() - 1) < 0.05
    model.transform(X)
    assert len(seen) == steps
    plain = DRE(schedule=SCHEDULE, encoder="mlp(8)", augment="none", random_state=0).fit(X)
    assert not (plain.embedding_ == model.embedding_).all()


def test_a_function_that_changes_the_shape_is_refused_by_name() -> None:
    def halved(x: Tensor) -> Tensor:
        return x[:, ::2]

    with pytest.raises(TypeError, match=r"augment=halved: returned \(60, 4\) for rows \(60, 8\)"):
        DRE(schedule=SCHEDULE, encoder="mlp(8)", augment=halved, random_state=0).fit(torch.randn(60, 8).numpy())


def test_a_model_with_such_a_function_is_saved_without_it(tmp_path) -> None:
    X = torch.randn(60, 8).numpy()
    model = DRE(schedule=SCHEDULE, encoder="mlp(8)", augment=torch.tanh, random_state=0).fit(X)
    model.save(tmp_path / "model")
    assert (DRE.load(tmp_path / "model", device="cpu").transform(X) == model.transform(X)).all()


def test_a_chain_is_asked_about_the_rows_before_anything_is_trained() -> None:
    with pytest.raises(ValueError, match="changes images"):
        DRE(schedule=SCHEDULE, encoder="mlp(8)", augment="flip + noise", random_state=0).fit(torch.randn(60, 8).numpy())
    model = DRE(schedule=SCHEDULE, encoder="mlp(8)", augment="affine + flip", random_state=0).fit(torch.randn(60, 6, 6).numpy())
    assert isinstance(model.recipe_.augment, Chain)


@pytest.mark.parametrize("shape", [(9, 9), (9, 9, 3)], ids=str)
def test_images_are_moved_without_the_mean_image(shape: tuple[int, ...]) -> None:
    """A step reads the image flipped and then centered, as if it had been flipped before the fit."""
    ramp = np.arange(9.0).reshape(1, 1, 9, *[1] * (len(shape) - 2))  # a mean image that flipping would show
    X = np.random.default_rng(0).normal(size=(50, *shape)) + ramp
    scaling = Scaling.fit(X)
    mean, x = scaling.scaled_mean(), to_model_rows(X, scaling, torch.device("cpu")).read(0, 50)
    seen = apply_augment(Flip(1.0) + Dropout(0.0), x, mean, seeded())
    wanted = to_model_rows(X[:, :, ::-1].copy(), scaling, torch.device("cpu")).read(0, 50)
    assert torch.allclose(seen, wanted, atol=1e-5)


def test_local_noise_is_measured_by_each_rows_own_neighborhood() -> None:
    """Rows in a tight group are moved less than others, and by their share of the distance to their tenth neighbor."""
    seen: list[tuple[Tensor, Tensor]] = []

    class Watched(LocalNoise):
        def change(self, x: Tensor, generator: torch.Generator, radius: Tensor | None) -> Tensor:
            assert radius is not None
            seen.append((x, radius))
            return super().change(x, generator, radius)

    tight, wide = np.random.default_rng(0).normal(size=(2, 30, 4)) * [[[0.01]], [[1.0]]]
    DRE(schedule=SCHEDULE, encoder="mlp(8)", augment=Watched(), random_state=0).fit(np.concatenate([tight, wide + 9]))
    x, radius = seen[0]
    assert len(x) == 60
    torch.testing.assert_close(radius, torch.cdist(x.double(), x.double()).sort(1).values[:, 10].float(), rtol=1e-3, atol=0)
    assert radius.max() > 30 * radius.min()


def test_a_function_has_a_name_to_be_shown_by() -> None:
    assert str(CallableAugment(math.sin)) == "sin"


# Capture in CUDA graphs.


@pytest.mark.parametrize("augment", EACH, ids=str)
def test_every_built_in_augmentation_declares_that_it_can_be_captured(augment: Augment) -> None:
    assert "capturable" in type(augment).__dict__
    assert augment.capturable is True


def test_capturable_is_declared_by_each_class_and_never_inherited() -> None:
    class Declared(Doubled):
        capturable = True

    assert (Augment.capturable, Sorted().capturable, Doubled().capturable, Declared().capturable) == (False, False, False, True)


def test_a_chain_can_be_captured_if_all_of_its_links_can() -> None:
    assert (Flip() + Noise(0.1)).capturable is True
    assert (Flip() + Sorted()).capturable is False
    assert (CallableAugment(torch.tanh) + Noise(0.1)).capturable is False


def test_a_function_declares_by_an_attribute_that_it_can_be_captured() -> None:
    def doubled(x: Tensor) -> Tensor:
        return 2 * x

    assert CallableAugment(doubled).capturable is False
    doubled.capturable = True
    assert CallableAugment(doubled).capturable is True
