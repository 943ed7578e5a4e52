"""Dots and windows: many rows are shaded, zooms go to the heart of a class and to its border."""

from __future__ import annotations

import made_up
import numpy as np
import pytest

from paper.panels import DRAWN_UP_TO, Viewport, border, colors_of_rows, draw_dots, full_view, inside, shaded


def test_inside_is_where_the_class_is_alone_and_the_border_where_it_meets_another() -> None:
    labels = np.repeat(np.arange(10), 2000)
    embedding = made_up.blobs(labels)  # 4 and 9 touch
    is_nine = labels == 9
    heart, edge = inside(embedding, is_nine), border(embedding, is_nine)
    in_heart, at_edge = heart.holds(embedding), edge.holds(embedding)
    assert is_nine[in_heart].mean() > 0.9
    assert 0.3 < is_nine[at_edge].mean() < 0.7
    assert set(labels[at_edge]) == {4, 9}


def test_classes_that_never_meet_have_a_border_between_them() -> None:
    rng = np.random.default_rng(0)
    embedding = np.concatenate([rng.normal((x, 0), 0.1, (500, 2)) for x in (0, 5)])
    found = border(embedding, np.arange(1000) < 500)
    assert 0.5 < found.x < 4.5


def test_a_few_rows_far_out_do_not_make_the_rest_small() -> None:
    embedding = np.random.default_rng(0).normal(size=(10_000, 2))
    far = np.concatenate([embedding, [[500.0, 0.0]]])
    assert full_view(far).side < 1.5 * full_view(embedding).side


def test_many_rows_are_shaded_each_pixel_in_the_mean_colour_of_its_rows() -> None:
    rng = np.random.default_rng(0)
    embedding = np.concatenate([rng.uniform((0, 0), (1, 1), (20_000, 2)), rng.uniform((2, 0), (3, 1), (20_000, 2))])
    tints = colors_of_rows(np.repeat([0, 1], 20_000), ["#ff0000", "#0000ff"])
    window = Viewport(1.5, 0.5, 3.0)
    image = shaded(embedding, tints, window)
    side = len(image)
    left, middle, right = (image[side // 2, int(side * x / 3)] for x in (0.5, 1.5, 2.5))
    assert left[:3] == pytest.approx((1, 0, 0))
    assert right[:3] == pytest.approx((0, 0, 1))
    assert middle[3] == 0
    assert image[..., 3].max() <= 1
    assert left[3] > 0.35


def test_shading_begins_where_dots_would_cover_each_other() -> None:
    from matplotlib.figure import Figure as Canvas

    embedding = np.random.default_rng(0).normal(size=(DRAWN_UP_TO + 1000, 2)).astype(np.float32)
    few, many = Canvas().subplots(1, 2)
    draw_dots(few, embedding[:1000], None, full_view(embedding))
    draw_dots(many, embedding, None, full_view(embedding))
    assert (len(few.collections), len(few.images)) == (1, 0)
    assert (len(many.collections), len(many.images)) == (0, 1)
