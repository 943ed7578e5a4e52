"""Texts that a spreadsheet would run as formulas: text tables have an apostrophe before them, which is not part of the value.

A text is dangerous if it begins with ``=``, ``+``, ``-``, ``@``, their full-width forms, a tab or the end of a line, unless it
is a number. Apostrophes at its beginning do not count, so that `restore` gives back every text. The readers restore a value and
then treat it as any other: they keep neither white space around it nor empty lines within, and read a carriage return as a line
feed.
"""

from __future__ import annotations

import re

STARTS = "=+\\-@\t\r\n＝＋－＠"  # within brackets of a pattern
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
DEFUSED = rf"^'('*[{STARTS}])"  # what is read; its group takes the place of the match
_DANGEROUS = re.compile(rf"(?!{NUMBER}\Z)'*[{STARTS}]")
_DEFUSED = re.compile(DEFUSED)


def defuse(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run.

    >>> defuse("=1+1"), defuse("-1.5"), defuse("T cell")
    ("'=1+1", '-1.5', 'T cell')
    """
    return f"'{text}" if _DANGEROUS.match(text) else text


def restore(text: str) -> str:
    """Take away the apostrophe that `defuse` has put before a text.

    >>> restore("'=1+1"), restore("'tis"), restore(defuse("'=1+1"))
    ('=1+1', "'tis", "'=1+1")
    """
    return _DEFUSED.sub(r"\1", text, count=1) if text.startswith("'") else text


def may_have_defused(text: bytes) -> bool:
    """Whether a table may hold such an apostrophe, before its cells are looked at."""
    starts = [*STARTS.replace("\\", ""), "'"]
    return b"'" in text and any(f"'{start}".encode() in text for start in starts)
