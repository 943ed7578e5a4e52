"""All that can be said of a map in one call, with the distances computed once."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.metrics.centroids import CENTROID_CORRELATION
from dre.metrics.nearest_neighbor import NEAREST_NEIGHBOR, read_train
from dre.metrics.neighborhood_hit import BY_LEVEL, NEIGHBORHOOD_HIT
from dre.metrics.points import LOW, Device, check_k, first_level, levels, one_of, two_spaces
from dre.metrics.protocol import PROTOCOLS
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
    BY_LEVEL,
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
        lines = [f"{name:<28s}{value:8.4f}  {remark}".rstrip() for name, value, remark in self._lines()]
        return "\n".join([self.title, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:.4f}", remark) for name, value, remark in self._lines()]
        cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
        return f"<table><caption>{self.title}</caption>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

    def _lines(self) -> Iterator[tuple[str, float, str]]:
        for name, value in self.scores.items():
            if isinstance(value, dict):
                yield from ((f"neighborhood_hit, {level}", each, "") for level, each in value.items())
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

    ``labels``: one per row, or several levels by name, {"cluster": …, "class": …}, of which the first is used and all appear in
    ``neighborhood_hit_by_level``. ``protocol="paper"`` counts as the paper's tables do. ``train=(Y_train, labels_train)``
    makes the 1-NN accuracy that of held-out rows instead of leave-one-out. ``shepard`` is the method of ``shepard_goodness``.
    ``result.per_point`` has the trustworthiness and continuity, and the other scores that are means, of every point.
    """
    one_of("protocol", protocol, PROTOCOLS)
    one_of("shepard", shepard, METHODS)
    spaces = two_spaces(X, Y, device)
    study = Study(spaces, check_k(k, len(spaces[LOW])), protocol=protocol, shepard=shepard, title="evaluate")
    if labels is not None:
        study.levels = levels(labels, study.n)
    if train is not None:
        if labels is None:
            raise ValueError("train=(Y_train, labels_train) is for the 1-NN accuracy, which needs labels as well")
        study.train = read_train(train, first_level(labels), study.spaces[LOW])
    measures = [measure for measure in MEASURES if measure.applies(study)]
    study.find(*(part for measure in measures for part in measure.parts(study)))
    found = {measure.name: measure.score(study) for measure in measures}
    return Evaluation(
        {name: score.value for name, score in found.items()},
        {name: score.remark for name, score in found.items()},
        {name: score.per_point.cpu().numpy() for name, score in found.items() if score.per_point is not None},
        f"{study.n:,} rows, k = {study.k}, {protocol} protocol",
    )
