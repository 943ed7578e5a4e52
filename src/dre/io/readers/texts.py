"""Texts as an array: whatever a library hands out for them, and nothing where a value is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from dre.io.readers.source import Array

LONGEST = 256  # characters: numpy gives every text the room of the longest


def texts(values: Iterable[Any]) -> Array:
    """An array (n,) of str, or of objects where some are long; bytes are UTF-8, and what is missing is empty.

    >>> texts([b"B cell", "NK", None]).tolist()
    ['B cell', 'NK', '']
    """
    known = [_text(value) for value in values]
    return np.array(known, dtype=str if max(map(len, known), default=0) <= LONGEST else object)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if is_missing else str(value)


def plain(values: Any) -> Array:
    """Numbers as they are, and all else as texts."""
    found = np.asarray(values)
    return found if found.dtype.kind in "biuf" else texts(found.tolist())
