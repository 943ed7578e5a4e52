"""Arrays and strings as text inside a page: gzip and base64, which browsers decode without a library."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
GZIP_LEVEL = 6
# Characters that could end the element around a text, or start another. In JSON they occur only inside strings.
UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def encode_array(values: Array) -> str:
    """Encode an array in little-endian order: the first bytes of all values, then the second bytes, and so on.

    Bytes of the same significance are alike, so they compress better side by side.
    """
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).reshape(-1)
    return _compress(little.view(np.uint8).reshape(-1, little.itemsize).T.tobytes())


def encode_strings(values: list[str]) -> str:
    return _compress(json.dumps(values).encode())


def _compress(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, GZIP_LEVEL, mtime=0)).decode("ascii")


def to_json(value: Any) -> str:
    """JSON that is safe inside an HTML element.

    >>> to_json(["</script>"])
    '["\\\\u003c/script\\\\u003e"]'
    """
    return json.dumps(value, allow_nan=False).translate(UNSAFE)


def element(name: str, text: str) -> str:
    """An element that browsers treat as plain text."""
    return f'<script type="text/plain" id="{name}">{text}</script>'


def smallest_unsigned(count: int) -> Any:
    """The smallest type for codes from 0 to ``count`` - 1.

    >>> smallest_unsigned(256), smallest_unsigned(257)
    (<class 'numpy.uint8'>, <class 'numpy.uint16'>)
    """
    return next(kind for kind in (np.uint8, np.uint16, np.uint32) if count <= np.iinfo(kind).max + 1)
