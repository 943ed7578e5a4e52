"""Filters that are computed from images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch.nn.functional import unfold

from dre.encoder import pca_front as module
from dre.encoder.pca_front import PatchFilters

IMAGES = torch.from_numpy(load_digits().images).float()[:200, None] / 5 - 1


def fitted(count: int = 6, images: torch.Tensor = IMAGES) -> PatchFilters:
    patches = PatchFilters(images.shape[1], count, patch_size=3, pool_size=4)
    patches.fit(images)
    return patches


def test_filters_are_the_principal_components_of_patches_without_their_mean() -> None:
    cut = unfold(IMAGES, 3, padding=1).movedim(1, 2).flatten(0, 1)
    theirs = PCA(6).fit((cut - cut.mean(1, keepdim=True)).numpy()).components_
    ours = fitted().filters.flatten(1)
    ours = ours / ours.norm(dim=1, keepdim=True)
    assert np.linalg.svd(ours.numpy() @ theirs.T, compute_uv=False).min() > 0.99  # the same space: pairs of them may turn


def test_all_filters_answer_equally_strongly() -> None:
    patches = fitted()
    cut = unfold(IMAGES, 3, padding=1).movedim(1, 2).flatten(0, 1)
    answers = (cut - cut.mean(1, keepdim=True)) @ patches.filters.flatten(1).T
    torch.testing.assert_close(answers.square().mean(0), torch.ones(6), atol=1e-3, rtol=0)


def test_an_image_and_its_negative_give_the_same() -> None:
    patches = fitted()
    torch.testing.assert_close(patches(IMAGES), patches(-IMAGES))
    assert patches(IMAGES).shape == (200, 6 * 2 * 2)


def test_a_move_by_a_pixel_changes_less_than_it_changes_the_pixels() -> None:
    moved = IMAGES.roll(1, 3)
    patches = fitted()
    change = (patches(moved) - patches(IMAGES)).norm() / (patches(IMAGES) - patches(IMAGES).mean(0)).norm()
    assert change < 0.8 * (moved - IMAGES).norm() / (IMAGES - IMAGES.mean(0)).norm()


def test_pieces_give_what_the_whole_gives(monkeypatch) -> None:
    patches = fitted()
    whole = patches(IMAGES)
    monkeypatch.setattr(module, "CACHED_RESPONSES", 1000)
    torch.testing.assert_close(patches(IMAGES), whole)


@pytest.mark.parametrize("pixel_weight", [0.0, 1.0])
def test_the_whole_batch_at_once_gives_what_pieces_give(monkeypatch, pixel_weight: float) -> None:
    patches = PatchFilters(1, 6, patch_size=3, pixel_weight=pixel_weight)
    patches.fit(IMAGES)
    axes = torch.randn(5, patches(IMAGES).shape[1], generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(module, "CACHED_RESPONSES", 5000)
    assert len(patches._pieces(IMAGES)) > 1
    in_pieces = patches(IMAGES), patches.project(IMAGES, axes)
    patches.piecewise = False
    assert len(patches._pieces(IMAGES)) == 1
    at_once = patches(IMAGES), patches.project(IMAGES, axes)
    for one, other in zip(in_pieces, at_once, strict=True):
        assert (one - other).abs().max() <= 1e-6 * one.abs().max()
    assert not any("piecewise" in name for name in patches.state_dict())


@pytest.mark.parametrize("pixel_weight", [0.0, 1.0])
def test_what_lies_along_axes_is_what_a_product_with_them_gives(pixel_weight: float) -> None:
    patches = PatchFilters(1, 6, patch_size=3, pixel_weight=pixel_weight)
    patches.fit(IMAGES)
    described = patches(IMAGES)
    axes = torch.randn(5, described.shape[1])
    torch.testing.assert_close(patches.project(IMAGES, axes), described @ axes.T, rtol=1e-4, atol=1e-4)


def test_channels_images_smaller_than_a_patch_and_images_without_anything_on_them_do_no_harm() -> None:
    colour = torch.randn(20, 3, 2, 5)
    assert fitted(count=4, images=colour)(colour).shape == (20, 4 * 1 * 2)
    assert fitted(images=torch.zeros(5, 1, 8, 8)).filters.isfinite().all()


def test_what_no_image_shows_has_no_filter_and_is_not_answered_in_new_images() -> None:
    grey = torch.randn(50, 1, 1, 8, generator=torch.Generator().manual_seed(0)).repeat(1, 3, 1, 1)  # a line, as colour
    patches = fitted(8, grey)
    assert patches.filters.flatten(1).any(1).tolist() == [True] * 3 + [False] * 5
    answers = patches(torch.randn(20, 3, 1, 8)).view(20, 8, -1)
    assert answers[:, :3].all()
    assert not answers[:, 3:].any()


def test_images_sorted_by_what_they_show_give_filters_for_all_of_them(monkeypatch) -> None:
    stripes = torch.zeros(400, 1, 8, 8)
    stripes[:200, :, ::2] = 1  # first all that lie, then all that stand
    stripes[200:, :, :, ::2] = 1
    of_all, of_half = seen_by(stripes), seen_by(stripes[:200])
    assert not torch.allclose(of_all, of_half, atol=0.1)
    for looked_at in (20, 210, 390):
        monkeypatch.setattr(module, "PATCH_VALUES", looked_at * 64 * 9)
        torch.testing.assert_close(seen_by(stripes), of_all, rtol=0, atol=1e-3)


def seen_by(images: torch.Tensor) -> torch.Tensor:
    """The plane that two filters span: they may turn within it."""
    filters = fitted(2, images).filters.flatten(1)
    return filters.T @ filters
