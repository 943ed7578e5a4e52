"""Every command reads a model whose rows are principal components of genes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from dre import DRE
from dre.data.gene_pca import CountNormalization, GenePCA
from dre.data.preparation import Prepared

Run = Callable[..., int]
N, GENES, COMPONENTS = 60, 12, 4


def made_counts() -> Any:
    rng = np.random.default_rng(0)
    return rng.poisson(np.where(np.arange(GENES) % 3 == rng.integers(0, 3, N)[:, None], 20, 3)).astype(np.float32)


def fitted(counts: Any) -> DRE:
    """A model from counts of genes to the map, by way of their logarithms and principal components."""
    normalization = CountNormalization(1e4)
    logs = normalization(counts.astype(np.float64), counts.sum(1))
    loadings = np.linalg.svd(logs - logs.mean(0), full_matrices=False)[2][:COMPONENTS].T
    genes = [f"GENE{i}" for i in range(GENES)]
    pca = GenePCA(
        genes, torch.from_numpy(logs.mean(0)), torch.arange(GENES), torch.from_numpy(loadings.copy()).float(), normalization
    )
    known = {"schedule": "x: gaussian(5) -> kl * 3", "encoder": "mlp(16)", "random_state": 0, "device": "cpu"}
    return DRE(**known).fit(Prepared(counts, pca))


@pytest.mark.parametrize("kind", ["csv", pytest.param("h5ad", marks=pytest.mark.slow)])
def test_every_command_reads_genes(dre: Run, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = made_counts()
    model = fitted(counts)
    model.save("m.safetensors")
    names = ",".join(f"GENE{i}" for i in range(GENES))
    np.savetxt("cells.csv", counts, delimiter=",", header=names, comments="", fmt="%d")
    if kind == "h5ad":
        anndata = pytest.importorskip("anndata", reason="anndata is not installed")
        pd = pytest.importorskip("pandas", reason="pandas is not installed")
        var = pd.DataFrame(index=pd.Index(names.split(","), dtype=object))
        obs = pd.DataFrame(index=pd.Index([f"cell{i}" for i in range(N)], dtype=object))
        anndata.AnnData(scipy.sparse.csr_matrix(counts), obs=obs, var=var).write_h5ad("cells.h5ad")
    data = "cells.csv" if kind == "csv" else "cells.h5ad:X"
    assert dre("transform", "m.safetensors", data, "-o", "map.npy") == 0
    assert "spread" not in capsys.readouterr().err
    np.testing.assert_allclose(np.load("map.npy"), model.transform(counts), atol=1e-4)
    assert dre("explore", "m.safetensors", data, "-o", "map.html") == 0
    assert Path("map.html").stat().st_size > 0
    assert dre("evaluate", data, "m.safetensors") == 0
    assert dre("plot", "m.safetensors", data, "-o", "map.png") == 0
