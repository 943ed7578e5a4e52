"""Arrays and texts as a page carries them: little-endian, compressed, in base64, which a browser unpacks by itself."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LEVEL = 6
# What could end the element that holds a text, or start another. In JSON they stand only inside of texts.
UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def packed(values: Array) -> str:
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return _base64(gzip.compress(little.tobytes(), LEVEL, mtime=0))


def packed_texts(values: list[str]) -> str:
    return _base64(gzip.compress(json.dumps(values).encode(), LEVEL, mtime=0))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def in_a_page(value: Any) -> str:
    """JSON that stays text wherever in a page it stands.

    >>> in_a_page(["</script>"])
    '["\\\\u003c/script\\\\u003e"]'
    """
    return json.dumps(value, allow_nan=False).translate(UNSAFE)
