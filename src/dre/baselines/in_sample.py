"""Methods that place the rows of one set together, and have no rule for a row that comes later."""

from __future__ import annotations

from sklearn.base import BaseEstimator

INSTEAD = "open-tsne, umap, dl-tsne, dl-umap, parametric-tsne and dre"


def refusal(estimator: BaseEstimator) -> NotImplementedError:
    """What ``transform`` of such a method raises."""
    return NotImplementedError(
        f"{type(estimator).__name__} embeds no new rows: it places the rows that it is fitted to, all at once. "
        f"fit_transform(X) and embedding_ give their map; for new rows use one that learns to embed them ({INSTEAD})."
    )
