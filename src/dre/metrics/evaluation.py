"""All that can be said of a map in one call, with the distances computed once."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.metrics.centroids import CENTROID_CORRELATION
from dre.metrics.labels import first_level, levels
from dre.metrics.nearest_neighbor import NEAREST_NEIGHBOR, read_train
from dre.metrics.neighborhood_hit import NEIGHBORHOOD_HIT, NEIGHBORHOOD_HIT_BY_LEVEL
from dre.metrics.points import HIGH, LOW, Device, check_k, check_row_names, one_of, two_spaces
from dre.metrics.question import PROTOCOLS, Question
from dre.metrics.shepard import METHODS, SHEPARD_GOODNESS
from dre.metrics.silhouette import SILHOUETTE
from dre.metrics.stress import NORMALIZED_STRESS
from dre.metrics.study import Study
from dre.metrics.trustworthiness import CONTINUITY, TRUSTWORTHINESS

Array = np.ndarray[Any, Any]


# In the order of the table. What is not one number, such as the recall of neighbours, is a function of its own.
MEASURES = (
    NEAREST_NEIGHBOR,
    NEIGHBORHOOD_HIT,
    TRUSTWORTHINESS,
    CONTINUITY,
    SHEPARD_GOODNESS,
    NORMALIZED_STRESS,
    SILHOUETTE,
    CENTROID_CORRELATION,
    NEIGHBORHOOD_HIT_BY_LEVEL,
)


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Any]):
    """Scores by the names of their functions: ``dict(result)``, ``result["continuity"]``; printed, a table."""

    scores: dict[str, Any]
    remarks: dict[str, str]
    per_point: dict[str, Array]  # of those scores that are means over the points: where the map lies
    title: str

    def __getitem__(self, name: str) -> Any:
        return self.scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __str__(self) -> str:
        rows = list(self._rows())
        width = max(len(name) for name, _, _ in rows)
        lines = [f"{name:<{width}s}{value:9.4f}  {remark}".rstrip() for name, value, remark in rows]
        return "\n".join([self.title, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [(name, f"{value:.4f}", remark) for name, value, remark in self._rows()]
        rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in cells]
        return f"<table><caption>{html.escape(self.title)}</caption>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def _rows(self) -> Iterator[tuple[str, float, str]]:
        for name, value in self.scores.items():
            if isinstance(value, dict):
                yield from (
                    (f"{name.removesuffix('_by_level')}, {level}", each, self.remarks[name]) for level, each in value.items()
                )
            else:
                yield name, value, self.remarks[name]


def evaluate(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    k: int = 7,
    protocol: str = "standard",
    train: tuple[Any, Any] | None = None,
    shepard: str = "auto",
    device: Device = "auto",
) -> Evaluation:
    """Score a map Y (n, 2) of the rows X (n, d) by all measures that apply.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> result = evaluate(X, X[:, :2], labels=X[:, 0] > 0)
    >>> round(result["neighborhood_hit"], 2)
    0.89
    >>> sorted(result)[:3]
    ['continuity', 'nearest_neighbor', 'neighborhood_hit']

    Always ``trustworthiness``, ``continuity``, ``shepard_goodness`` and ``normalized_stress``; with labels also
    ``nearest_neighbor``, ``neighborhood_hit``, ``silhouette`` and, from 3 classes on, ``centroid_correlation``. Each is a
    function of ``dre.metrics`` with its equation in its docstring.

    ``k`` neighbours are looked at, fewer than half the rows; ``device`` is where. ``labels``: one per row, or several levels by
    name, {"cluster": …, "class": …}, of which the first is used and all appear in ``neighborhood_hit_by_level``; with so many
    classes that they can't be labels, some scores are left out. ``protocol="paper"`` counts as the paper's tables do.
    ``train=(Y_train, labels_train)`` makes the 1-NN accuracy that of held-out rows instead of leave-one-out. ``shepard`` is the
    method of ``shepard_goodness``. ``result.per_point`` has the trustworthiness and continuity, and the other scores that are
    means, of every point.
    """
    one_of("protocol", protocol, PROTOCOLS)
    one_of("shepard", shepard, METHODS)
    if train is not None and labels is None:
        raise ValueError("train=(Y_train, labels_train) is for the 1-NN accuracy, which needs labels as well")
    study = Study(two_spaces(X, Y, device), "evaluate")
    check_row_names(Y=Y, labels=labels)
    check_row_names(X=X, labels=labels)
    by_level = {} if labels is None else levels(labels, study.n)
    known = None if train is None else read_train(train, first_level(labels), study.spaces[LOW])
    question = Question(study.n, check_k(k, study.n), protocol, shepard, by_level, known)
    measures = [measure for measure in MEASURES if measure.applies(question)]
    study.find(*(part for measure in measures for part in measure.parts(question)))
    found = {measure.name: measure.score(question, study) for measure in measures}
    return Evaluation(
        {name: score.value for name, score in found.items()},
        {name: score.remark for name, score in found.items()},
        {name: score.per_point.cpu().numpy() for name, score in found.items() if score.per_point is not None},
        _title(question, study),
    )


def _title(question: Question, study: Study) -> str:
    columns = " → ".join(str(study.spaces[space].shape[1]) for space in (HIGH, LOW))
    level = f", labels: {next(iter(question.levels))}" if len(question.levels) > 1 else ""
    return f"{question.n:,} rows × {columns}, k = {question.k}, {question.protocol} protocol{level}"
