"""t-SNE by other programs: Barnes-Hut t-SNE (scikit-learn), FIt-SNE and openTSNE (both by openTSNE)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.manifold import TSNE
from sklearn.utils import Tags

from dre.baselines import sklearn_api
from dre.baselines.sklearn_api import Array, import_open_tsne, no_transform, vectors
from dre.data.validation import check_seed

EARLY = (250, 12.0, 0.5)  # FIt-SNE: iterations, exaggeration and momentum of the early exaggeration
MOMENTUM = 0.8  # FIt-SNE: after the early exaggeration


class BarnesHutTSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Barnes-Hut t-SNE by scikit-learn, initialized with principal components; in-sample.

    Parameters
    ----------
    perplexity : float, default=30
        Perplexity of the Gaussian affinities.
    max_iter : int, default=1000
        Iterations of gradient descent.
    n_jobs : int or None, default=None
        Threads of the neighbor search, -1 for one per core. The gradient descent uses all OpenMP threads.
    random_state : int, RandomState or None, default=None
        Seed.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The embedding of the training rows, float32.
    row_shape_ : tuple of int
        Shape of one training row.
    n_iter_ : int
        Iterations that were run.

    References
    ----------
    L. van der Maaten: Accelerating t-SNE using tree-based algorithms. Journal of Machine Learning Research 15 (2014).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> BarnesHutTSNE(perplexity=10, max_iter=250, random_state=0).fit_transform(load_digits().images[:60]).shape
    (60, 2)
    """

    embeds_new_rows = False
    _n_features_out = 2

    def __init__(
        self,
        *,
        perplexity: float = 30,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.perplexity = perplexity
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the rows of X: vectors (n, d), or images, which are flattened."""
        rows = vectors(self, X, fitting=True, features=2)
        model = TSNE(
            2,
            perplexity=self.perplexity,
            max_iter=self.max_iter,
            init="pca",
            method="barnes_hut",
            n_jobs=self.n_jobs,
            random_state=check_seed(self.random_state),
        )
        self.embedding_: Array = np.asarray(model.fit_transform(rows), dtype=np.float32)
        self.n_iter_ = model.n_iter_
        return self

    fit_transform = sklearn_api.fit_transform

    def transform(self, X: Any) -> Array:
        """Raise ``NotImplementedError``: the method can't embed new rows."""
        raise no_transform(self)

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


class FItSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """FIt-SNE: openTSNE's interpolation with the phases, learning rate and momentum of the authors' program; in-sample.

    As published, it does not embed new rows; ``open-tsne`` does.

    Parameters
    ----------
    exaggeration : float, default=1
        Late exaggeration, from iteration ``start_late_exaggeration`` to the end. 1 is t-SNE; larger values make clusters
        tighter and further apart.
    perplexity : float, default=30
        Perplexity of the Gaussian affinities.
    start_late_exaggeration : int, default=250
        First iteration of the late exaggeration. The authors' program starts it where the early exaggeration (12) ends, after
        250 iterations. A later start leaves the iterations in between to plain t-SNE.
    n_iter : int, default=750
        Iterations in total.
    n_jobs : int, default=-1
        Threads, -1 for one per core.
    random_state : int, RandomState or None, default=None
        Seed.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The embedding of the training rows, float32.
    row_shape_ : tuple of int
        Shape of one training row.

    References
    ----------
    G. C. Linderman, M. Rachh, J. G. Hoskins, S. Steinerberger, Y. Kluger: Fast interpolation-based t-SNE for improved
    visualization of single-cell RNA-seq data. Nature Methods 16 (2019).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images[:60]
    >>> FItSNE(exaggeration=4, perplexity=10, n_iter=260, n_jobs=1, random_state=0).fit_transform(X).shape
    (60, 2)
    """

    embeds_new_rows = False
    _n_features_out = 2

    def __init__(
        self,
        exaggeration: float = 1.0,
        *,
        perplexity: float = 30,
        start_late_exaggeration: int = 250,
        n_iter: int = 750,
        n_jobs: int = -1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.exaggeration = exaggeration
        self.perplexity = perplexity
        self.start_late_exaggeration = start_late_exaggeration
        self.n_iter = n_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the rows of X: vectors (n, d), or images, which are flattened."""
        tsne, phases = import_open_tsne().TSNE, self.phases()
        rows = vectors(self, X, fitting=True, features=2)
        embedding = tsne(
            perplexity=self.perplexity,
            negative_gradient_method="fft",
            n_jobs=self.n_jobs,
            random_state=check_seed(self.random_state),
        ).prepare_initial(rows)
        for iterations, exaggeration, momentum in phases:
            lr = learning_rate_for(len(rows), exaggeration)
            embedding = embedding.optimize(iterations, exaggeration=exaggeration, momentum=momentum, learning_rate=lr)
        self.embedding_: Array = np.asarray(embedding, dtype=np.float32)
        return self

    def phases(self) -> list[tuple[int, float, float]]:
        """Return iterations, exaggeration and momentum of each phase, in order.

        >>> FItSNE(exaggeration=4, start_late_exaggeration=500).phases()
        [(250, 12.0, 0.5), (250, 1.0, 0.8), (250, 4, 0.8)]
        """
        (early, *_), start = EARLY, self.start_late_exaggeration
        if self.exaggeration <= 0:
            raise ValueError(f"exaggeration={self.exaggeration}: must be positive; 1 is plain t-SNE")
        if not early <= start <= self.n_iter:
            raise ValueError(
                f"start_late_exaggeration={start}, n_iter={self.n_iter}: the late exaggeration must start between iteration "
                f"{early}, where the early one ends, and n_iter"
            )
        phases = [EARLY, (start - early, 1.0, MOMENTUM), (self.n_iter - start, self.exaggeration, MOMENTUM)]
        return [phase for phase in phases if phase[0]]

    fit_transform = sklearn_api.fit_transform

    def transform(self, X: Any) -> Array:
        """Raise ``NotImplementedError``: the method can't embed new rows."""
        raise no_transform(self)

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


class OpenTSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """t-SNE by openTSNE, with its defaults; it chooses Barnes-Hut or interpolation by the number of rows.

    New rows are initialized between their nearest neighbors and move under the attraction of these and the repulsion of all
    training rows, which stay fixed.

    Parameters
    ----------
    perplexity : float, default=30
        Perplexity of the Gaussian affinities.
    metric : str, default="euclidean"
        Distance between rows, by its name in openTSNE.
    n_iter : int, default=500
        Iterations after the 250 of the early exaggeration.
    n_jobs : int, default=-1
        Threads, -1 for one per core. From 1,000 rows on, where neighbors are approximate, the embedding depends on it.
    random_state : int, RandomState or None, default=None
        Seed.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, 2)
        The embedding of the training rows, float32.
    model_ : openTSNE.TSNEEmbedding
        The fitted embedding, centered.
    row_shape_ : tuple of int
        Shape of one training row.

    References
    ----------
    P. G. Poličar, M. Stražar, B. Zupan: openTSNE: a modular Python library for t-SNE dimensionality reduction and embedding.
    Journal of Statistical Software 109 (2024).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().images
    >>> OpenTSNE(perplexity=10, n_iter=50, n_jobs=1, random_state=0).fit(X[:60]).transform(X[60:65]).shape
    (5, 2)
    """

    embeds_new_rows = True
    _n_features_out = 2

    def __init__(
        self,
        *,
        perplexity: float = 30,
        metric: str = "euclidean",
        n_iter: int = 500,
        n_jobs: int = -1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.perplexity = perplexity
        self.metric = metric
        self.n_iter = n_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed the rows of X: vectors (n, d), or images, which are flattened."""
        tsne = import_open_tsne().TSNE
        rows = vectors(self, X, fitting=True, features=2)
        model = tsne(
            perplexity=self.perplexity,
            metric=self.metric,
            n_iter=self.n_iter,
            n_jobs=self.n_jobs,
            random_state=check_seed(self.random_state),
        )
        embedding = model.fit(rows)
        # The library centers the embedding when it first embeds new rows. Centered here, old and new rows agree.
        embedding -= (embedding.max(0) + embedding.min(0)) / 2
        self.model_ = embedding
        self.embedding_: Array = np.asarray(embedding, dtype=np.float32)
        return self

    def transform(self, X: Any) -> Array:
        """Embed the rows of X among the training rows, float32."""
        rows = vectors(self, X, fitting=False)
        old = self.model_
        # A copy: the library writes into the embedding that it works on, and the next call must find the same.
        copied = type(old)(np.array(old), old.affinities, random_state=old.random_state, **old.gradient_descent_params)
        return np.asarray(copied.transform(rows), dtype=np.float32)

    fit_transform = sklearn_api.fit_transform  # not transform(X), which would embed the training rows a second time

    def __sklearn_tags__(self) -> Tags:
        return sklearn_api.set_image_tags(super().__sklearn_tags__())


def learning_rate_for(n: int, exaggeration: float) -> float:
    """Return the learning rate of a phase: the authors', max(200, n / 12), but at most n / exaggeration.

    Beyond that limit rows overshoot on small data, and strong exaggeration loosens clusters instead of tightening them.

    >>> learning_rate_for(60_000, 4), learning_rate_for(6000, 1), learning_rate_for(300, 4)
    (5000.0, 500.0, 75.0)
    """
    return min(max(200.0, n / 12), n / exaggeration)
