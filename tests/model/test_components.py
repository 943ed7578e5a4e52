"""Maps in 5, 10 and 50 dimensions: fit, transform, file, ONNX, and more than principal components keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from dre import DRE
from dre.metrics import nearest_neighbor, neighbor_recall

Array = np.ndarray[Any, Any]
HELD_OUT = 400
COMPONENTS = pytest.mark.parametrize("components", [5, 10, 50])


@pytest.fixture(scope="module")
def rows() -> tuple[Array, Array]:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


@COMPONENTS
def test_a_map_is_saved_and_exported(rows: tuple[Array, Array], components: int, tmp_path: Path) -> None:
    X = rows[0][:700]
    schedule = "x: gaussian(10) -> kl * 2 from pca free 50 follow 3 against bank"
    model = DRE(n_components=components, metric="cosine", schedule=schedule, random_state=0, device="cpu").fit(X)
    assert model.embedding_.shape == (700, components)
    assert list(model.get_feature_names_out())[-1] == f"dre{components}"
    model.save(tmp_path / "model.safetensors")
    again = DRE.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.transform(X[:50]), model.transform(X[:50]))
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    model.to_onnx(tmp_path / "map.onnx")  # compares itself with transform


@pytest.mark.slow
@COMPONENTS
def test_held_out_rows_lie_better_than_by_principal_components(rows: tuple[Array, Array], components: int) -> None:
    (X, y), fitted = rows, slice(HELD_OUT, None)
    model = DRE(n_components=components, random_state=0, device="cpu").fit(X[fitted])
    pca = PCA(components).fit(X[fitted])
    found = [
        nearest_neighbor(each.transform(X[:HELD_OUT]), y[:HELD_OUT], reference=(each.transform(X[fitted]), y[fitted]))
        for each in (model, pca)
    ]
    assert found[0] > 0.96
    assert found[0] > found[1] - 0.01
    plane = DRE(random_state=0, device="cpu").fit(X[fitted])
    recall = [neighbor_recall(X[:HELD_OUT], each.transform(X[:HELD_OUT]), k=15)[-1] for each in (model, plane)]
    assert recall[0] > recall[1]  # more room keeps more neighbors


@pytest.mark.parametrize("components", [0, -1, 2.5, "5"])
def test_a_number_of_components_must_be_one(components: Any, rows: tuple[Array, Array]) -> None:
    with pytest.raises(ValueError, match="whole number from 1 up"):
        DRE("fast", n_components=components, device="cpu").fit(rows[0][:60])


def test_more_components_than_columns_are_computed(rows: tuple[Array, Array]) -> None:
    Y = DRE("fast", n_components=10, random_state=0, device="cpu").fit_transform(rows[0][:600, 20:24])
    assert Y.shape == (600, 10)
    assert np.isfinite(Y).all()
