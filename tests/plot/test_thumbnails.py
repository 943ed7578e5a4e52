"""Images lie at their points without covering each other."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from dre import plot
from dre.plot.colors import class_colors
from dre.plot.style import DARK
from dre.plot.thumbnails import spaced_rows

RNG = np.random.default_rng(0)


def clusters(n: int, count: int) -> tuple[Any, Any]:
    labels = RNG.integers(count, size=n)
    return RNG.normal(size=(count, 2))[labels] * 10 + RNG.normal(size=(n, 2)), labels


@pytest.mark.parametrize("shape", [(8, 8), (6, 9), (8, 8, 3), (3, 8, 8)])
def test_images_lie_at_their_coordinates_without_covering_each_other(shape: tuple[int, ...]) -> None:
    embedding, labels = clusters(800, 5)
    images = RNG.integers(256, size=(800, *shape), dtype=np.uint8)
    axis = plot.scatter(embedding, labels, images=images)
    extents = np.array([image.get_extent() for image in axis.images])
    assert 10 < len(extents) < 800
    centers = np.stack([extents[:, :2].mean(1), extents[:, 2:].mean(1)], axis=1)
    rows = [int(np.abs(embedding - center).sum(1).argmin()) for center in centers]
    assert np.allclose(embedding[rows], centers)
    for (a, b, c, d), (e, f, g, h) in combinations(extents, 2):
        assert b <= e or f <= a or d <= g or h <= c
    frames = axis.collections[-1].get_edgecolor()
    assert np.allclose(frames[:, :3], [class_colors(5)[labels[row]] for row in rows], atol=1e-6)


def test_where_there_is_room_for_one_more_image_there_is_one() -> None:
    embedding = RNG.random((3000, 2))
    chosen = embedding[spaced_rows(embedding, 0.1)]
    gaps = np.abs(embedding[:, None] - chosen[None]).max(2).min(1)
    assert gaps.max() < 0.1 + 0.1 / 6
    between = np.abs(chosen[:, None] - chosen[None]).max(2)
    assert between[~np.eye(len(chosen), dtype=bool)].min() >= 0.1


@pytest.mark.parametrize(("ground", "alpha"), [(0, 0.0), (255, 0.0)])
def test_strokes_on_an_empty_ground_let_the_map_through(ground: int, alpha: float) -> None:
    images = np.full((2, 5, 5), ground, np.uint8)
    images[:, 2, 2] = 255 - ground
    axis = plot.scatter([[0, 0], [1, 1]], images=images, style="dark")
    shown = axis.images[0].get_array()
    assert shown[0, 0, 3] == alpha
    assert shown[2, 2, 3] == 1
    assert np.allclose(shown[2, 2, :3], to_rgb(DARK.text), atol=1e-6)


@pytest.mark.parametrize(("shape", "remedy"), [((4, 64), "expected"), ((3, 8, 8), "one for each row")])
def test_what_are_no_images_of_the_rows_is_refused(shape: tuple[int, ...], remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        plot.scatter(RNG.normal(size=(4, 2)), images=np.zeros(shape))
