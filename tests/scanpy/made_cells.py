"""Made-up cells of three types: counts of genes with names, as in an AnnData that a user reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

pd = pytest.importorskip("pandas", reason="pandas is not installed")
anndata = pytest.importorskip("anndata", reason="anndata is not installed")

OPTIONS: dict[str, Any] = {"schedule": "x: gaussian(5) -> kl * 3", "encoder": "mlp(16, depth=1)", "device": "cpu"}
TYPES = np.array(["B", "NK", "T"], dtype=object)


def make_cells(n: int = 240, genes: int = 120, seed: int = 0) -> Any:
    """Counts, sparse, of genes GENE0, GENE1, …; a third of the genes marks each type."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n)
    rates = np.where(np.arange(genes) % 3 == kinds[:, None], 6.0, 1.0) * rng.uniform(0.5, 2, (n, 1))
    counts = scipy.sparse.csr_matrix(rng.poisson(rates).astype(np.float32))
    obs = pd.DataFrame(
        {"cell_type": pd.Categorical.from_codes(kinds, pd.Index(TYPES, dtype=object))},
        index=pd.Index([f"cell{seed}-{i}" for i in range(n)], dtype=object),
    )
    var = pd.DataFrame(index=pd.Index([f"GENE{i}" for i in range(genes)], dtype=object))
    return anndata.AnnData(counts, obs=obs, var=var)


def log_normalized(adata: Any, target_sum: float = 1e4) -> Any:
    """As ``sc.pp.normalize_total`` and ``sc.pp.log1p`` do, on a copy."""
    done = adata.copy()
    totals = np.asarray(done.X.sum(1)).ravel()
    done.X = scipy.sparse.csr_matrix(scipy.sparse.diags_array(target_sum / totals) @ done.X).log1p()
    done.uns["log1p"] = {"base": None}
    return done
