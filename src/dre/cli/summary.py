"""A fitted model on one screen: what it learned from, its stages, and how far its map can be trusted."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from dre.data.subsample import FEWEST, SCORED, evenly_spaced_ids, to_array

if TYPE_CHECKING:
    from dre.model.estimator import DRE
    from dre.plan.schedule import Schedule


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
    from dre.metrics.evaluation import quick_scores

    some = evenly_spaced_ids(rows.shape[0], SCORED)
    if len(some) < FEWEST:
        return ["Too few rows to say how far the map can be trusted."]
    classes = None if labels is None else ("labels", np.asarray(labels)[some])
    found = quick_scores(to_array(rows, some), model.embedding_[some], classes)
    told = [f"{name} {value:.3f}" for name, value in found.items()]
    return [*told, f"of {len(some):,} of the rows that were fitted; new rows score lower"]
