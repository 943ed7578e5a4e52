"""Results that take long are kept in the cache: under a name that their settings and their input make, or computed anew."""

from __future__ import annotations

import hashlib
import json
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dre.datasets.dataset import Array
from dre.datasets.files import CACHE, cache_folder, whole
from dre.datasets.turns import turn


def remembered(stem: str, settings: dict[str, Any], compute: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """What ``compute`` gives. ``settings`` (JSON) hold all that it depends on: a digest of the input, options, versions.

    Of several processes that ask for the same, one computes it and the others wait for that.
    """
    cache = cache_folder()
    if cache is None:
        return compute()
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    path = cache / "computed" / f"{stem}-{key}.npz"
    arrays = _stored(path)
    if arrays is None:
        with turn(path):
            arrays = _stored(path)  # another process may have made it in the meantime
            if arrays is None:
                arrays = compute()
                _store(path, arrays)
    return arrays


def _stored(path: Path) -> dict[str, Array] | None:
    """None where there is no file, or one that is truncated or damaged: the checksums in it say so."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def _store(path: Path, arrays: dict[str, Array]) -> None:
    """A cache that can't be written to costs time, not the result."""
    try:
        with whole(path) as partial, partial.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stubs take the arrays for allow_pickle
    except OSError as problem:
        warnings.warn(f"{path} can't be written ({problem}): this is computed anew every time; set {CACHE}", stacklevel=3)
