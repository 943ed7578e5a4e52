"""Fonts for texts of any script: the usual one, then installed fonts that have the characters it lacks."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any

REPLACEMENT = "□"  # of characters that no installed font has
NO_LETTERS = "Last Resort"  # a font with a box for every character


def set_fonts(texts: Iterable[Any]) -> None:
    """Give matplotlib texts the fonts of all their characters; a character that no font has becomes □.

    matplotlib would print a warning for each missing character, and a class can have any name.
    """
    for text in texts:
        content = text.get_text()
        if content.isascii() and content.isprintable():
            continue
        shown, families = _with_fonts(content, _path_of(text))
        text.set_text(shown)
        if families:
            text.set_fontfamily([*text.get_fontfamily(), *families])


def set_figure_fonts(figure: Any) -> None:
    """Give all texts of a figure or of axes the fonts of their characters."""
    from matplotlib.text import Text

    set_fonts(figure.findobj(Text))


def set_tick_labels(axis: Any, places: list[float], names: list[str]) -> None:
    """Label places on an x or y axis with names of any script; ticks write their texts anew whenever they are drawn."""
    axis.set_ticks(places, names)
    labels = axis.get_ticklabels()
    set_fonts(labels)
    axis.set_ticks(places, [label.get_text() for label in labels])


@cache
def _with_fonts(content: str, path: str) -> tuple[str, tuple[str, ...]]:
    """Return the text as it can be drawn, and the fonts that it needs besides the one at ``path``."""
    spaced = content.replace("\t", " ").replace("\r", " ")
    shown = "".join(each for each in spaced if each == "\n" or unicodedata.category(each) not in ("Cc", "Cs"))
    own = _characters(path)
    missing = {each for each in shown if each != "\n" and ord(each) not in own}
    found: list[str] = []
    for name, characters in _installed() if missing else ():
        covered = {each for each in missing if ord(each) in characters}
        if covered:
            found.append(name)
            missing -= covered
    return "".join(REPLACEMENT if each in missing else each for each in shown), tuple(found)


def _path_of(text: Any) -> str:
    from matplotlib.font_manager import findfont

    return str(findfont(text.get_fontproperties()))


@cache
def _installed() -> list[tuple[str, frozenset[int]]]:
    """Return all fonts with their characters, as the regular face has them; sans serif before others."""
    from matplotlib.font_manager import fontManager

    fonts = [each for each in fontManager.ttflist if not each.name.startswith(NO_LETTERS)]
    paths: dict[str, str] = {}
    for each in sorted(fonts, key=lambda each: ("sans" not in each.name.lower(), not _is_regular(each), each.name)):
        paths.setdefault(each.name, str(each.fname))
    return [(name, _characters(path)) for name, path in paths.items()]


def _is_regular(font: Any) -> bool:
    """Whether a face is upright and of normal weight, which matplotlib gives as a number or a word."""
    return font.style == "normal" and str(font.weight) in ("400", "normal")


@cache
def _characters(path: str) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(get_font(path).get_charmap())
    except (OSError, RuntimeError):  # a font that was removed, or that FreeType cannot read
        return frozenset()
