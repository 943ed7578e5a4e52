"""What each stage of a map scores, from some of its rows: what stands beside the slider."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SCORED = 3000  # rows at most, from end to end


def scores(rows: Array | None, places: Array, classes: tuple[str, Array] | None) -> dict[str, float]:
    """Of a few thousand rows and their places: trust in the map where there are rows, 1-NN where there are classes."""
    from dre.metrics import continuity, nearest_neighbor, trustworthiness

    found: dict[str, float] = {}
    if rows is not None:
        found |= {"trustworthiness": float(trustworthiness(rows, places)), "continuity": float(continuity(rows, places))}
    if classes is not None:
        found[f"1-NN, {classes[0]}"] = float(nearest_neighbor(places, classes[1]))
    return found
