"""Other systems that make maps, as scikit-learn estimators: what the method is compared with.

To add one, write a file here with an estimator like those beside it, and a line in ``BASELINES``. What is common to all:
``fit(X)`` for X (n, d) or images (n, h, w), ``embedding_`` (n, 2) as float32, ``fit_transform``, and ``transform`` for new
rows. Those that can't embed new rows have ``embeds_new_rows = False``, and their ``transform`` says so.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dre.baselines.ours import OURS
from dre.notation import unknown


@dataclass(frozen=True)
class Entry:
    """Where a baseline lives, and which options its name stands for."""

    module: str
    kind: str  # the estimator's class
    preset: Mapping[str, Any] = field(default_factory=dict)


BASELINES: dict[str, Entry] = {
    "pca": Entry("dre.baselines.pca", "PCA"),
    "autoencoder": Entry("dre.baselines.autoencoder", "AutoEncoder"),
    "eigenmaps": Entry("dre.baselines.eigenmaps", "LaplacianEigenmaps"),
    "bh-tsne": Entry("dre.baselines.bh_tsne", "BarnesHutTSNE"),
    "fit-sne": Entry("dre.baselines.fit_sne", "FItSNE"),
    "open-tsne": Entry("dre.baselines.open_tsne", "OpenTSNE"),
    "umap": Entry("dre.baselines.umap", "UMAP"),
    "parametric-tsne": Entry("dre.baselines.parametric_tsne", "ParametricTSNE"),
    "dl-tsne": Entry("dre.baselines.dl_projection", "DLProjection", {"teacher": "tsne"}),
    "dl-umap": Entry("dre.baselines.dl_projection", "DLProjection", {"teacher": "umap"}),
    **{name: Entry("dre.model.estimator", "DRE", preset) for name, preset in OURS.items()},
}
NAMES = tuple(BASELINES)


def make(name: str, *, random_state: Any = None, device: str = "auto", **options: Any) -> Any:
    """The estimator of that name, not yet fitted.

    >>> make("pca").fit_transform([[0, 1, 2], [3, 5, 4], [8, 6, 7]]).shape
    (3, 2)
    >>> make("fit-sne", exaggeration=4, random_state=0)
    FItSNE(exaggeration=4, random_state=0)

    ``options`` are the parameters of its class. ``device`` says where networks are trained; the others compute on the CPU.
    """
    if name not in BASELINES:
        raise ValueError(unknown("baseline", name, list(NAMES)))
    entry = BASELINES[name]
    kind = getattr(importlib.import_module(entry.module), entry.kind)
    parameters = list(inspect.signature(kind).parameters)
    known = [parameter for parameter in parameters if parameter not in ("random_state", "device")]
    for option in options:
        if option not in known:
            raise TypeError(unknown(f"option of {name}", option, known))
    where = {"device": device} if "device" in parameters else {}
    return kind(**{**entry.preset, **options}, **where, random_state=random_state)
