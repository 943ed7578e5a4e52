"""New cells normalized as a reference was: from counts, or from logarithms of another total or to another base."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dre.data.gene_pca import CountNormalization, GenePCA, row_totals
from dre.progress.display import say
from dre.scanpy.expression import find_logarithm, normalized_counts

Array = np.ndarray[Any, Any]
OTHER_TOTAL = 0.9  # ratio of two totals that differ


def from_counts(X: Any, pca: GenePCA, columns: Array, target_sum: float | None) -> Any:
    """Normalize counts. ``columns`` are those of X that hold the genes of the model, -1 for absent ones."""
    known = _known(pca, target_sum)
    if known.target_sum is None:
        raise ValueError(
            "adata holds counts, and the total to which the reference was normalized can't be told from its X: pass "
            "target_sum=10_000 or what sc.pp.normalize_total was called with, or normalize adata alike"
        )
    found, totals = _for_genes(known, X, pca, columns)
    genes = "those of the reference" if found.over_genes else "all genes of adata"
    say(f"dre: adata holds counts: normalized to {found.target_sum:,.6g} over {genes} and logged, as the reference")
    return found(X.astype(np.float64), totals)


def from_logarithms(X: Any, pca: GenePCA, columns: Array, target_sum: float | None, stated: float | None) -> Any:
    """Give logarithms the total and the base of the reference, where theirs can be told."""
    known = _known(pca, target_sum)
    unit, total = find_logarithm(X, stated, known.unit)
    is_same_base, own, theirs = bool(np.isclose(unit, known.unit)), np.exp(unit), np.exp(known.unit)
    if not is_same_base:
        say(f"dre: adata holds logarithms to the base {own:.4g}: converted to {theirs:.4g}, as the reference")
    if total is None or known.target_sum is None:
        return X if is_same_base else X * (unit / known.unit)
    counts = normalized_counts(X, unit)
    found, totals = _for_genes(known, counts, pca, columns)
    ratio = float(np.median(totals)) / (found.target_sum or 1.0)
    if not OTHER_TOTAL < ratio < 1 / OTHER_TOTAL:
        say(
            f"dre: adata was normalized to {total:,.6g} counts per cell, the reference to {known.target_sum:,.6g}: normalized "
            "again, as the reference"
        )
    return found(counts, totals)


def _known(pca: GenePCA, target_sum: float | None) -> CountNormalization:
    """Return the normalization of a reference, to the total that the user knows."""
    assert pca.normalization is not None
    return pca.normalization if target_sum is None else replace(pca.normalization, target_sum=float(target_sum))


def _for_genes(known: CountNormalization, X: Any, pca: GenePCA, columns: Array) -> tuple[CountNormalization, Array]:
    """Return the normalization of cells that may lack genes, and the total of each cell over the genes that it counts."""
    if not known.over_genes or known.target_sum is None:
        return known, row_totals(X)
    present = columns >= 0
    target_sum = known.target_sum * _share_of_counts(pca, present)
    return replace(known, target_sum=target_sum), row_totals(X[:, columns[present]])


def _share_of_counts(pca: GenePCA, present: Array) -> float:
    """Return which share of the reference's counts belongs to these genes."""
    if pca.levels is None:
        return 1.0
    levels = pca.levels.double().numpy()
    return float(levels[present].sum() / max(levels.sum(), np.finfo(np.float64).tiny))
