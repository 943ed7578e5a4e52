"""Characters that the usual font lacks come from another installed font, or become a box; nothing warns."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.font_manager import findfont, get_font

from dre import plot
from dre.plot.fonts import REPLACEMENT, set_fonts

NOWHERE = "\U0010fffd"  # a character for private use that fonts do not have
RNG = np.random.default_rng(0)


def only_in_another_font() -> str:
    """A letter of STIX, which comes with matplotlib, that DejaVu Sans lacks."""
    usual, other = (set(get_font(findfont(name)).get_charmap()) for name in ("DejaVu Sans", "STIXGeneral"))
    return chr(min(code for code in other - usual if chr(code).isalpha()))


def test_a_character_comes_from_a_font_that_has_it() -> None:
    letter = only_in_another_font()
    text = plt.figure().text(0, 0, f"a{letter}")
    set_fonts([text])
    assert text.get_text() == f"a{letter}"
    added = text.get_fontfamily()[-1]
    assert ord(letter) in get_font(findfont(added)).get_charmap()


def test_a_character_that_no_font_has_becomes_a_box_and_control_characters_vanish() -> None:
    text = plt.figure().text(0, 0, f"a{NOWHERE}\tb\x07\nc")
    set_fonts([text])
    assert text.get_text() == f"a{REPLACEMENT} b\nc"


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_no_name_prints_a_warning(suffix: str, tmp_path: Path) -> None:
    names = ["日本語", "العربية", "हिन्दी", "🧬😀", NOWHERE, "tab\there\x00", "Ünïcode"]
    name = " ".join(names)
    Y = RNG.normal(size=(60, 2))
    labels = [names[i % len(names)] for i in range(60)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for placement in ("map", "legend"):
            axis = plot.scatter(Y, labels, title=name, label_name=name, label_placement=placement)
            plot.save(axis, tmp_path / f"{placement}{suffix}")
        plot.save(plot.scatter(Y, Y[:, 0], title=name, label_name=name), tmp_path / f"bar{suffix}")
        plot.save(plot.stages([Y], labels, titles=[name], title=name), tmp_path / f"stages{suffix}")
        plot.save(plot.silhouette(Y[:, 0], labels, title=name), tmp_path / f"silhouette{suffix}")
        plot.save(plot.recall({name: [0.5, 0.4]}), tmp_path / f"recall{suffix}")
