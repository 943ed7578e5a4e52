"""Colors can be told apart on either background, stay the same when classes are added, and follow the labels."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dre.plot.colors import (
    MAX_COLORS,
    Categorical,
    Continuous,
    as_classes,
    class_colors,
    color_by,
    hex_colors,
    oklab,
    scale_of,
    srgb,
    to_rgb,
)
from dre.plot.style import DARK, LIGHT

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("count", "least"), [(2, 0.2), (10, 0.12), (20, 0.09), (50, 0.08), (150, 0.045)])
def test_any_two_colors_differ_to_the_eye(count: int, least: float) -> None:
    assert pdist(oklab(np.array(class_colors(count)))).min() > least


def test_neighbors_in_the_list_differ_clearly() -> None:
    found = oklab(np.array(class_colors(30)))
    assert np.sqrt((np.diff(found, axis=0) ** 2).sum(1)).min() > 0.13


def luminance(color: tuple[float, float, float]) -> float:
    """Of the guidelines for accessible pages, WCAG 2."""
    parts = np.array(color)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(("paper", "least"), [(LIGHT.background, 1.75), (DARK.background, 2.5)])
def test_every_color_stands_out_from_the_paper(paper: str, least: float) -> None:
    ground = luminance(to_rgb(paper))
    for color in class_colors(MAX_COLORS):
        lighter, darker = sorted((luminance(color), ground), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= least


def test_none_is_gray_which_is_for_rows_without_a_label() -> None:
    assert np.hypot(*oklab(np.array(class_colors(MAX_COLORS)))[:, 1:].T).min() > 0.04


def test_the_first_stay_the_same_and_beyond_the_last_they_come_again() -> None:
    assert hex_colors(300)[:7] == hex_colors(7)
    assert len(set(hex_colors(MAX_COLORS))) == MAX_COLORS
    assert hex_colors(MAX_COLORS + 1)[-1] == hex_colors(1)[0]


def test_oklab_is_left_and_entered_without_loss_and_has_white_at_its_top() -> None:
    colors = np.random.default_rng(0).random((50, 3))
    assert np.allclose(srgb(oklab(colors)), colors, atol=1e-6)
    assert np.allclose(oklab(np.ones(3)), [1, 0, 0], atol=1e-3)


def test_no_picture_library_is_needed_for_colors() -> None:
    program = "import sys; from dre.plot.colors import hex_colors; hex_colors(150); assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.arange(200) % 7, Categorical),
        (np.arange(200), Continuous),
        (np.linspace(0, 1, 200), Continuous),
        (np.arange(200) % 3 * 1.0, Categorical),
        ([True, False] * 100, Categorical),
        ([f"row {i}" for i in range(200)], Categorical),
    ],
)
def test_numbers_with_many_values_are_a_scale_and_all_else_is_classes(labels: Any, kind: type) -> None:
    assert isinstance(color_by(labels, 200), kind)


def test_a_value_far_out_does_not_take_the_colors_of_the_others() -> None:
    values = RNG.normal(size=1000)
    values[3], values[5] = 1e6, np.nan
    found = color_by(values, 1000)
    assert isinstance(found, Continuous)
    assert found.ends.high < 10
    assert found.extend == "both"


def test_dates_are_a_scale_in_days() -> None:
    found = color_by(["2026-01-02", "", "2026-01-12T12:00"], 3)
    assert isinstance(found, Continuous)
    assert found.is_date
    assert found.values[2] - found.values[0] == 10.5
    assert np.isnan(found.values[1])
    assert found.ends.scale == "linear"
    alone = color_by(np.array(["2026-01-02"] * 3), 3)
    assert isinstance(alone, Continuous)
    assert alone.ends.low == 20455.0 < alone.ends.high


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (10 ** RNG.normal(size=2000), "log"),
        (RNG.normal(size=2000), "linear"),
        (RNG.normal(size=2000) + 100, "linear"),
        (np.append(10 ** RNG.normal(size=2000), 0.0), "linear"),  # zero has no logarithm
        (np.append(np.linspace(1, 2, 2000), 1e9), "linear"),  # one outlier is beyond the end
        (np.ones(5), "linear"),
    ],
)
def test_skewed_positive_numbers_have_a_logarithmic_scale(values: np.ndarray, scale: str) -> None:
    found = scale_of(values)
    assert found.scale == scale
    assert found.low < found.high
    ends = found.relative(np.array([found.low, found.high]))
    assert np.allclose(ends, [0, 1])


def test_labels_can_be_classes_whatever_they_are() -> None:
    labels = np.array([7, 500, 7, 900])
    assert as_classes(np.tile(labels, 50)).names == ["7", "500", "900"]
    assert as_classes(np.linspace(0, 1, 200)).codes.tolist() == list(range(200))
