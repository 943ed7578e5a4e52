"""Principal components as a first layer, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn

from dre import DRE
from dre.encoder.front import Front, settle
from dre.encoder.mlp import MLP
from dre.rows import ArrayRows, Scaling

DIGITS = load_digits().data
CPU = torch.device("cpu")


def rows(X: np.ndarray) -> ArrayRows:
    return ArrayRows(Scaling.of(X).apply(X), CPU)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("components", [1, 5, 20])
def test_it_holds_as_much_of_the_variance_as_principal_components_can(components: int) -> None:
    front = Front(64, components)
    front.settle(rows(DIGITS), seeded())
    x = rows(DIGITS).read(0, len(DIGITS))
    ours = front(x).var(0).sum() / x.var(0).sum()
    assert ours.item() == pytest.approx(PCA(components).fit(DIGITS).explained_variance_ratio_.sum(), rel=1e-3)


def test_its_axes_are_those_of_scikit_learn_up_to_their_sign() -> None:
    front = Front(64, 5)
    front.settle(rows(DIGITS), seeded())
    along = np.abs((front.axes.numpy() * PCA(5).fit(DIGITS).components_).sum(1))
    assert along.min() > 0.999
    assert torch.allclose(front.axes @ front.axes.T, torch.eye(5), atol=1e-5)


def test_rows_with_fewer_values_keep_all_their_distances() -> None:
    X = DIGITS[:200, 20:27]
    front = Front(7, 50)
    front.settle(rows(X), seeded())
    x = rows(X).read(0, 200)
    assert front(x).shape == (200, 7)
    ours, theirs = (torch.cdist(each, each, compute_mode="donot_use_mm_for_euclid_dist") for each in (front(x), x))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_rows_that_are_all_alike_do_no_harm() -> None:
    front = Front(6, 3)
    front.settle(ArrayRows(torch.zeros(10, 6), CPU), seeded())
    assert front.axes.isfinite().all()


def test_it_is_not_trained() -> None:
    network = MLP(8, front=4).build((64,), 2)
    settle(network, rows(DIGITS), seeded())
    assert not any(name.startswith("features") for name, _ in network.named_parameters())
    assert isinstance(network.features, Front)
    assert next(layer.in_features for layer in network.modules() if isinstance(layer, nn.Linear)) == 4


def test_a_model_with_a_front_reads_it_as_a_source_and_survives_its_file(tmp_path) -> None:
    schedule = "features: gaussian(10) -> kl * 3; h1: gaussian(10) -> kl * 2"
    model = DRE(schedule=schedule, encoder="mlp(16, front=10)", random_state=0).fit(DIGITS[:300])
    again = DRE(schedule=schedule, encoder="mlp(16, front=10)", random_state=0).fit(DIGITS[:300])
    assert (model.embedding_ == again.embedding_).all()
    model.save(tmp_path / "model")
    assert (DRE.load(tmp_path / "model", device="cpu").transform(DIGITS[300:]) == model.transform(DIGITS[300:])).all()
