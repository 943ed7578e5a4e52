"""What a matrix of genes holds: counts, their normalized logarithm, or genes scaled after that."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from dre.data.gene_pca import CountNormalization, holds_counts, row_totals

Array = np.ndarray[Any, Any]
EXAMINED = 2_000  # cells
LARGEST_LOGARITHM = 20.0  # of normalized counts: 10,000 has 9.2
SAME_TOTAL = 0.01  # relative deviation of totals that are meant to be equal
FEWEST_OF_TOTAL = 5  # cells: the totals of fewer may be the same by chance
ROUND = 1e-3  # relative distance to a round number


class Scale(NamedTuple):
    """Mean and standard deviation of each gene, from ``sc.pp.scale``, and where it clipped."""

    mean: Array
    std: Array
    largest: float | None


def sample_cells(X: Any, n: int = EXAMINED) -> Any:
    """Return up to n cells of a matrix, evenly spread, as an array or CSR in memory."""
    step = max(1, -(-X.shape[0] // n))
    part = X[slice(0, X.shape[0], step)]
    return part.tocsr() if scipy.sparse.issparse(part) else np.asarray(part)


def kind_of(X: Any) -> str:
    """Return "counts", "log", "negative" or "other" for a sample of cells."""
    part = sample_cells(X)
    values = part.data if scipy.sparse.issparse(part) else part
    if not values.size or float(values.min()) < 0:
        return "negative" if values.size else "counts"
    totals = row_totals(part)
    if holds_counts(part)[totals > 0].all():
        return "counts"
    return "log" if float(values.max()) <= LARGEST_LOGARITHM else "other"


def find_normalization(adata: Any, X: Any) -> CountNormalization | None:
    """Find how the counts of a reference were normalized, from X and ``adata.raw``; None if X is no logarithm of counts."""
    unit = stated_unit(adata) or 1.0
    base = None if unit == 1.0 else float(np.exp(unit))
    is_log = kind_of(X) == "log"
    raw = None if adata.raw is None else adata.raw.X
    if is_log and (total := common_total(X, unit)) is not None:
        return CountNormalization(total, True, base)
    if raw is not None and kind_of(raw) == "log" and (total := common_total(raw, unit)) is not None:
        return CountNormalization(total, False, base)
    return CountNormalization(None, False, base) if is_log or "log1p" in adata.uns else None


def common_total(X: Any, unit: float) -> float | None:
    """Return the total of normalized counts, if all cells have the same."""
    totals = row_totals(normalized_counts(sample_cells(X), unit))
    totals = totals[totals > 0]
    if not len(totals) or totals.std() > SAME_TOTAL * totals.mean():
        return None
    total = float(np.median(totals))
    near = float(f"{total:.1g}")  # 10,000 rather than 9,999.98
    return near if abs(near - total) <= ROUND * total else total


def stated_unit(adata: Any) -> float | None:
    """Return what ``sc.pp.log1p`` divided natural logarithms by, as ``adata`` tells; None if it does not."""
    if "log1p" not in adata.uns:
        return None
    base = (adata.uns["log1p"] or {}).get("base")
    return 1.0 if base is None else float(np.log(float(base)))


def find_logarithm(X: Any, stated: float | None, likely: float) -> tuple[float, float | None]:
    """Return what natural logarithms were divided by, and the total that all cells have; None if they have none in common.

    A common total tells the base, too: with another base, the totals differ.
    """
    units = [likely, 1.0, float(np.log(2)), float(np.log(10))] if stated is None else [stated]
    if X.shape[0] >= FEWEST_OF_TOTAL:
        for unit in units:
            if (total := common_total(X, unit)) is not None:
                return unit, total
    return units[0], None


def gene_levels(X: Any, unit: float) -> Array:
    """Return the mean of the normalized counts of each gene, float32, from their logarithms."""
    return np.asarray(normalized_counts(sample_cells(X), unit).mean(0), np.float32).ravel()


def normalized_counts(X: Any, unit: float) -> Any:
    """Return the normalized counts of which X holds the logarithms, float64."""
    found = X.astype(np.float64)  # a copy
    if not scipy.sparse.issparse(found):
        return np.expm1(found * unit)
    found.data = np.expm1(found.data * unit)
    return found


def find_scale(adata: Any, X: Any) -> Scale | None:
    """Return how ``sc.pp.scale`` has scaled the genes of X, if it has."""
    if not {"mean", "std"} <= set(adata.var.columns):
        return None
    mean, std = (np.asarray(adata.var[name], np.float64) for name in ("mean", "std"))
    part = sample_cells(X)
    part = part.toarray() if scipy.sparse.issparse(part) else part
    found, varies = part.std(0), part.std(0) > 0
    if not varies.any() or np.median(abs(found - 1)[varies]) > np.median(abs(found - std)[varies]):
        return None  # the deviations of X are those before scaling
    largest = float(abs(part).max())
    clipped = int((abs(part) == largest).any(0).sum()) > 1  # several genes do not reach the same value otherwise
    centered = float(part.min()) < 0
    return Scale(mean if centered else np.zeros_like(mean), np.where(std > 0, std, 1.0), largest if clipped else None)
