"""Styles color the whole figure, and a missing matplotlib is an error with a remedy."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from dre import plot
from dre.plot.style import DARK, LIGHT


@pytest.mark.parametrize(("style", "paper"), [("light", LIGHT.background), ("dark", DARK.background)])
def test_the_ground_is_that_of_the_style_all_over(style: str, paper: str) -> None:
    axis = plot.scatter([[0, 0], [1, 1]], ["a", "b"], style=style, title="x")
    axis.figure.canvas.draw()
    pixels = np.asarray(axis.figure.canvas.buffer_rgba())[..., :3] / 255
    assert (np.abs(pixels - to_rgb(paper)).max(2) < 0.01).mean() > 0.9
    contrast = abs(np.mean(to_rgb(axis.title.get_color())) - np.mean(to_rgb(paper)))
    assert contrast > 0.7


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="known: light, dark"):
        plot.scatter([[0, 0], [1, 1]], style="drak")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_matplotlib(name: str, *rest: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(ImportError, match=r"pip install 'deep-recursive-embedding\[plot\]'"):
        plot.scatter([[0, 0], [1, 1]])
