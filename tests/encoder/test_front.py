"""Principal components as a first layer, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn

from dre import DRE
from dre.encoder.front import Front
from dre.encoder.mlp import MLP
from dre.learner import learner
from dre.rows import ArrayRows, Scaling

DIGITS = load_digits().data
CPU = torch.device("cpu")


def rows(X: np.ndarray) -> ArrayRows:
    return ArrayRows(Scaling.of(X).apply(X), CPU)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("components", [1, 5, 20])
def test_it_holds_as_much_of_the_variance_as_principal_components_can(components: int) -> None:
    front = Front((64,), components)
    front.settle(rows(DIGITS), seeded())
    x = rows(DIGITS).read(0, len(DIGITS))
    ours = front(x).var(0).sum() / front.axes[0].square().sum() / x.var(0).sum()
    assert ours.item() == pytest.approx(PCA(components).fit(DIGITS).explained_variance_ratio_.sum(), rel=1e-3)


def test_its_axes_are_those_of_scikit_learn_up_to_their_sign_and_one_length() -> None:
    front = Front((64,), 5)
    front.settle(rows(DIGITS), seeded())
    lengths = front.axes.norm(dim=1)
    torch.testing.assert_close(lengths, lengths[:1].expand(5), rtol=1e-4, atol=0)
    axes = (front.axes / lengths[:, None]).numpy()
    np.testing.assert_allclose(np.abs(axes @ PCA(5).fit(DIGITS).components_.T), np.eye(5), atol=0.02)


def test_what_it_gives_is_centred_with_a_standard_deviation_of_one() -> None:
    front = Front((64,), 10)
    front.settle(ArrayRows(torch.from_numpy(DIGITS).float() + 3, CPU), seeded())
    y = front(torch.from_numpy(DIGITS).float() + 3)
    assert y.mean(0).abs().max() < 1e-4
    assert y.square().mean().sqrt().item() == pytest.approx(1, abs=1e-3)


def test_rows_with_fewer_values_keep_the_proportions_of_their_distances() -> None:
    X = DIGITS[:200, 20:27]
    front = Front((7,), 50)
    front.settle(rows(X), seeded())
    x = rows(X).read(0, 200)
    assert front(x).shape == (200, 7)
    ours, theirs = (torch.pdist(each) for each in (front(x), x))
    torch.testing.assert_close(ours / ours.mean(), theirs / theirs.mean(), atol=1e-4, rtol=1e-4)


def test_rows_that_are_all_alike_do_no_harm() -> None:
    front = Front((6,), 3)
    front.settle(ArrayRows(torch.zeros(10, 6), CPU), seeded())
    assert front.axes.isfinite().all()


def test_it_is_not_trained() -> None:
    network = MLP(8, front=4).build((64,), 2)
    learner(network, rows(DIGITS), None, torch.zeros(64), seeded())
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
