"""Colours can be told apart, on either ground, and stay the same when classes are added."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dre.plot.look import DARK, LIGHT
from dre.plot.palette import MOST, class_colours, hexes, oklab, rgb, srgb


@pytest.mark.parametrize(("count", "least"), [(2, 0.2), (10, 0.12), (20, 0.09), (50, 0.08), (150, 0.045)])
def test_any_two_colours_differ_to_the_eye(count: int, least: float) -> None:
    assert pdist(oklab(np.array(class_colours(count)))).min() > least


def test_neighbours_in_the_list_differ_clearly() -> None:
    found = oklab(np.array(class_colours(30)))
    assert np.sqrt((np.diff(found, axis=0) ** 2).sum(1)).min() > 0.13


def luminance(colour: tuple[float, float, float]) -> float:
    """Of the guidelines for accessible pages, WCAG 2."""
    parts = np.array(colour)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(("paper", "least"), [(LIGHT.paper, 1.75), (DARK.paper, 2.5)])
def test_every_colour_stands_out_from_the_paper(paper: str, least: float) -> None:
    ground = luminance(rgb(paper))
    for colour in class_colours(MOST):
        lighter, darker = sorted((luminance(colour), ground), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= least


def test_none_is_grey_which_is_for_rows_without_a_label() -> None:
    assert np.hypot(*oklab(np.array(class_colours(MOST)))[:, 1:].T).min() > 0.04


def test_the_first_stay_the_same_and_beyond_the_last_they_come_again() -> None:
    assert hexes(300)[:7] == hexes(7)
    assert len(set(hexes(MOST))) == MOST
    assert hexes(MOST + 1)[-1] == hexes(1)[0]


def test_oklab_is_left_and_entered_without_loss_and_has_white_at_its_top() -> None:
    colours = np.random.default_rng(0).random((50, 3))
    assert np.allclose(srgb(oklab(colours)), colours, atol=1e-6)
    assert np.allclose(oklab(np.ones(3)), [1, 0, 0], atol=1e-3)


def test_no_picture_library_is_needed_for_colours() -> None:
    program = "import sys; from dre.plot.palette import hexes; hexes(150); assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
