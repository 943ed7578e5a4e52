"""Text from files for a terminal: characters that it would obey are escaped."""

from __future__ import annotations

KEPT = "\n\t"


def printable(text: str) -> str:
    r"""Escape what is not printable, such as control sequences and marks that reverse the direction of text.

    >>> printable("size\x1b[2J, Größe\n")
    'size\\x1b[2J, Größe\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in KEPT else ascii(c)[1:-1] for c in text)
