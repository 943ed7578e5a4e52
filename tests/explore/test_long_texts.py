"""One long text among many rows: numpy would pad all others to its length, several GiB."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from dre.explore.build import build_explorer

N, LONG = 5000, "x" * 200_000
Y = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)
NAMES = [LONG, *(f"r{i}" for i in range(N - 1))]
KINDS = [LONG, *(f"kind {i % 5}" for i in range(N - 1))]


@pytest.mark.parametrize("as_array", [list, lambda texts: np.array(texts, dtype=object)], ids=["list", "objects"])
@pytest.mark.parametrize("given", [{"names": NAMES}, {"kind": KINDS}, {"text": NAMES}], ids=["names", "classes", "texts"])
def test_a_long_text_takes_its_own_memory_only(given: dict[str, Any], as_array: Any) -> None:
    given = {name: as_array(texts) for name, texts in given.items()}
    tracemalloc.start()
    try:
        build_explorer([("map", Y)], title="a", **(given if "names" in given else {"metadata": given}))
        assert tracemalloc.get_traced_memory()[1] < 2**29
    finally:
        tracemalloc.stop()
