"""FIt-SNE: t-SNE whose repulsion is interpolated on a grid, with exaggerated attraction at the end of the descent."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from dre.baselines import contract
from dre.baselines.in_sample import refusal
from dre.baselines.libraries import open_tsne
from dre.baselines.vectors import Array, vectors
from dre.data.validation import check_seed

EARLY = (250, 12.0, 0.5)  # iterations, exaggeration and momentum at the start
MOMENTUM = 0.8  # from then on


class FItSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """FIt-SNE, with the interpolation of openTSNE and the phases, rate and momentum of the authors' program; in-sample.

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images[:60]
    >>> FItSNE(exaggeration=4, perplexity=10, n_iter=260, n_jobs=1, random_state=0).fit_transform(X).shape
    (60, 2)

    It embeds no new rows, as published: openTSNE itself could, and ``open-tsne`` does.

    Parameters
    ----------
    exaggeration : float
        Of the attraction from iteration ``late_from`` to the end; 1 is t-SNE, larger makes clusters tighter and wider apart.
    late_from : int
        When the late exaggeration begins. The authors' program starts it where the early one, of 12, ends: after 250. A later
        start leaves the iterations between to plain t-SNE.
    n_iter : int
        All iterations.
    perplexity, n_jobs
        As in ``open-tsne``.

    G. C. Linderman, M. Rachh, J. G. Hoskins, S. Steinerberger, Y. Kluger: Fast interpolation-based t-SNE for improved
    visualization of single-cell RNA-seq data. Nature Methods 16 (2019).
    """

    embeds_new_rows = False
    _n_features_out = 2

    def __init__(
        self,
        exaggeration: float = 1.0,
        *,
        perplexity: float = 30,
        late_from: int = 250,
        n_iter: int = 750,
        n_jobs: int = -1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.exaggeration = exaggeration
        self.perplexity = perplexity
        self.late_from = late_from
        self.n_iter = n_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the rows of X: (n, d), or images, which are flattened."""
        tsne, phases = open_tsne().TSNE, self.phases()
        rows = vectors(self, X, fitting=True, features=2)
        places = tsne(
            perplexity=self.perplexity,
            negative_gradient_method="fft",
            n_jobs=self.n_jobs,
            random_state=check_seed(self.random_state),
        ).prepare_initial(rows)
        for iterations, exaggeration, momentum in phases:
            rate = rate_for(len(rows), exaggeration)
            places = places.optimize(iterations, exaggeration=exaggeration, momentum=momentum, learning_rate=rate)
        self.embedding_: Array = np.asarray(places, dtype=np.float32)
        return self

    def phases(self) -> list[tuple[int, float, float]]:
        """Iterations, exaggeration and momentum, one after the other.

        >>> FItSNE(exaggeration=4, late_from=500).phases()
        [(250, 12.0, 0.5), (250, 1.0, 0.8), (250, 4, 0.8)]
        """
        early, *_ = EARLY
        if self.exaggeration <= 0:
            raise ValueError(f"exaggeration={self.exaggeration}: must be positive; 1 is plain t-SNE")
        if not early <= self.late_from <= self.n_iter:
            raise ValueError(
                f"late_from={self.late_from}, n_iter={self.n_iter}: the late exaggeration starts when the early one ends, at "
                f"iteration {early}, or later, and not after the last"
            )
        plan = [EARLY, (self.late_from - early, 1.0, MOMENTUM), (self.n_iter - self.late_from, self.exaggeration, MOMENTUM)]
        return [phase for phase in plan if phase[0]]

    fit_transform = contract.fit_transform

    def transform(self, X: Any) -> Array:
        """New rows can't be embedded: raises ``NotImplementedError``."""
        raise refusal(self)

    def __sklearn_tags__(self) -> Tags:
        return contract.takes_images(super().__sklearn_tags__())


def rate_for(n: int, exaggeration: float) -> float:
    """The learning rate of a phase: the authors', n / 12 and at least 200, but on small data no more than n / exaggeration.

    Beyond that the rows jump over their places, and strong exaggeration loosens clusters instead of tightening them.

    >>> rate_for(60_000, 4), rate_for(6000, 1), rate_for(300, 4)
    (5000.0, 500.0, 75.0)
    """
    return min(max(200.0, n / 12), n / exaggeration)
