"""What ``dre fit`` prints at its end: the stages, and scores of a sample of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dre.io.readers import Source
    from dre.model.estimator import DRE


def summary(model: DRE, source: Source, labels: tuple[str, Any] | None = None) -> str:
    from dre.cli.info import stage_lines
    from dre.progress.counted import counted

    rows = source.rows
    shape = " × ".join(f"{size:,}" for size in rows.shape)
    embedded = f"{shape} values embedded in {counted(model.embedding_.shape[1], 'dimension')} by {model.recipe_.encoder}"
    stages = stage_lines(model.history_, model.schedule_, len(model.stages_))
    if model.sample_indices_ is not None:
        embedded += f"; fitted to {len(model.sample_indices_):,} rows, sampled at random"
    return "\n".join([embedded, "", *stages, "", *_quality(model, source, labels)])


def _quality(model: DRE, source: Source, labels: tuple[str, Any] | None) -> list[str]:
    import numpy as np

    from dre.cli.data import model_rows
    from dre.data.distance_matrix import DistanceRows
    from dre.data.metric import row_metric
    from dre.data.subsample import FEWEST, SCORED, evenly_spaced_ids, to_array
    from dre.metrics.evaluation import quick_scores
    from dre.progress.counted import counted

    rows = source.rows
    ids = evenly_spaced_ids(rows.shape[0], SCORED)
    if len(ids) < FEWEST:
        return [f"No scores: {counted(len(ids), 'row', 'are')} too few, at least {FEWEST} are needed."]
    classes = None if labels is None else (labels[0], np.asarray(labels[1])[ids])
    metric = row_metric(model.metric, model.metric_kwds)
    if metric.is_precomputed:
        measured = to_array(DistanceRows(rows), ids)
    else:
        measured = model.metric_rows(model_rows(source.preparation, to_array(rows, ids)))
    values = quick_scores(measured, model.embedding_[ids], classes, metric=metric)
    lines = [f"{name} {value:.3f}" for name, value in values.items()]
    scored = "training rows; expect less on new data" if model.sample_indices_ is None else "rows, fitted and embedded ones"
    under = "" if metric.name == "euclidean" else f" under the {metric} metric"
    return [*lines, f"Computed{under} on {len(ids):,} {scored}."]
