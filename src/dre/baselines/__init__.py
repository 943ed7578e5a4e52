"""Baselines: other embedding methods as scikit-learn estimators, by name.

To add one, write a module here with an estimator like those beside it, and add a line to ``BASELINES``. Every estimator has
``fit(X)`` for vectors (n, d) or images (n, h, w), ``embedding_``, float32 (n, 2), ``fit_transform``, and ``transform`` for new
rows. Methods that can't embed new rows have ``embeds_new_rows = False``, and their ``transform`` raises
``NotImplementedError``.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dre.baselines.paper_methods import DRE_PRESETS
from dre.notation import unknown


@dataclass(frozen=True)
class Baseline:
    """Module and class of a baseline, and the parameters that its name stands for."""

    module: str
    estimator: str
    preset: Mapping[str, Any] = field(default_factory=dict)


BASELINES: dict[str, Baseline] = {
    "pca": Baseline("dre.baselines.spectral", "PCA"),
    "autoencoder": Baseline("dre.baselines.autoencoder", "AutoEncoder"),
    "eigenmaps": Baseline("dre.baselines.spectral", "LaplacianEigenmaps"),
    "bh-tsne": Baseline("dre.baselines.tsne", "BarnesHutTSNE"),
    "fit-sne": Baseline("dre.baselines.tsne", "FItSNE"),
    "open-tsne": Baseline("dre.baselines.tsne", "OpenTSNE"),
    "umap": Baseline("dre.baselines.umap", "UMAP"),
    "parametric-tsne": Baseline("dre.baselines.parametric_tsne", "ParametricTSNE"),
    "dl-tsne": Baseline("dre.baselines.distillation", "DLProjection", {"teacher": "tsne"}),
    "dl-umap": Baseline("dre.baselines.distillation", "DLProjection", {"teacher": "umap"}),
    **{name: Baseline("dre.model.estimator", "DRE", preset) for name, preset in DRE_PRESETS.items()},
}
NAMES = tuple(BASELINES)


def methods_for_new_rows() -> list[str]:
    """Return the baselines whose ``transform`` embeds new rows.

    >>> [name for name in NAMES if name not in methods_for_new_rows()]
    ['eigenmaps', 'bh-tsne', 'fit-sne']
    """
    return [name for name, entry in BASELINES.items() if getattr(_estimator_class(entry), "embeds_new_rows", True)]


def _estimator_class(entry: Baseline) -> Any:
    return getattr(importlib.import_module(entry.module), entry.estimator)


def options_of(name: str) -> list[str]:
    """Return the parameters of a baseline's estimator.

    >>> options_of("pca")
    ['random_state']
    """
    return list(inspect.signature(_estimator_class(BASELINES[name])).parameters)


def make(name: str, *, random_state: Any = None, device: str = "auto", **options: Any) -> Any:
    """Return the estimator of that name, unfitted.

    Parameters
    ----------
    name : str
        One of ``dre.baselines.NAMES``.
    random_state : int, RandomState or None, default=None
        Seed of the estimator.
    device : str, default="auto"
        Where networks are trained. The other methods compute on the CPU.
    **options : Any
        Parameters of the estimator's class.

    Returns
    -------
    estimator
        A scikit-learn transformer.

    Examples
    --------
    >>> make("pca").fit_transform([[0, 1, 2], [3, 5, 4], [8, 6, 7]]).shape
    (3, 2)
    >>> make("fit-sne", exaggeration=4, random_state=0)
    FItSNE(exaggeration=4, random_state=0)
    """
    if name not in BASELINES:
        raise ValueError(unknown("baseline", name, list(NAMES)))
    entry = BASELINES[name]
    estimator = _estimator_class(entry)
    parameters = list(inspect.signature(estimator).parameters)
    known = [parameter for parameter in parameters if parameter not in ("random_state", "device")]
    for option in options:
        if option not in known:
            raise TypeError(unknown(f"option of {name}", option, known))
    where = {"device": device} if "device" in parameters else {}
    return estimator(**{**entry.preset, **options}, **where, random_state=random_state)
