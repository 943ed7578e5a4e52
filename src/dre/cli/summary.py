"""A fitted model on one screen: what it learned from, its stages, and how far its map can be trusted."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from dre.sample import spread, taken

if TYPE_CHECKING:
    from dre.estimator import DRE
    from dre.schedule import Schedule

SCORED = 3000  # rows at most, from end to end: all would take longer than some fits


def summary(model: DRE, rows: Any, labels: Any = None) -> str:
    """What is said after a fit."""
    shape = " × ".join(f"{size:,}" for size in rows.shape)
    learned = f"{shape} values to {model.embedding_.shape[1]} components by {model.recipe_.encoder}"
    return "\n".join([learned, "", *stages(model.history_, model.schedule_), "", *_trust(model, rows, labels)])


def stages(history: list[dict[str, Any]], schedule: Schedule) -> list[str]:
    """One line for each that was carried out."""
    told = []
    for number, records in groupby(history, lambda record: int(record["stage"])):
        epochs = list(records)
        seconds = sum(record["seconds"] for record in epochs)
        told.append(f"stage {number}  {schedule[number]}  loss {epochs[-1]['loss']:.4g}  {seconds:.1f} s")
    return told


def _trust(model: DRE, rows: Any, labels: Any) -> list[str]:
    from dre.metrics import continuity, nearest_neighbor, trustworthiness

    some = spread(rows.shape[0], SCORED)
    if len(some) < 20:
        return ["Too few rows to say how far the map can be trusted."]
    x, y = taken(rows, some), model.embedding_[some]
    told = [f"trustworthiness {trustworthiness(x, y):.3f}  continuity {continuity(x, y):.3f}"]
    if labels is not None:
        told.append(f"1-NN {nearest_neighbor(y, np.asarray(labels)[some]):.3f} (each row's nearest other has its label)")
    return [*told, f"of {len(some):,} of the rows that were fitted; new rows score lower"]
