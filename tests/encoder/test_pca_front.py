"""Principal components as a first layer, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn

from dre import DRE
from dre.data.rows import ArrayRows
from dre.data.scaling import Scaling
from dre.encoder.mlp import MLP
from dre.encoder.pca_front import PCAFront
from dre.training.learner import make_learner

DIGITS = load_digits().data
CPU = torch.device("cpu")


def rows(X: np.ndarray) -> ArrayRows:
    return ArrayRows(Scaling.fit(X)(torch.from_numpy(X)), CPU)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("components", [1, 5, 20])
def test_it_holds_as_much_of_the_variance_as_principal_components_can(components: int) -> None:
    front = PCAFront((64,), components)
    front.fit(rows(DIGITS), seeded())
    x = rows(DIGITS).read(0, len(DIGITS))
    ours = front(x).var(0).sum() / front.axes[0].square().sum() / x.var(0).sum()
    assert ours.item() == pytest.approx(PCA(components).fit(DIGITS).explained_variance_ratio_.sum(), rel=1e-3)


def test_its_axes_are_those_of_scikit_learn_up_to_their_sign_and_one_length() -> None:
    front = PCAFront((64,), 5)
    front.fit(rows(DIGITS), seeded())
    lengths = front.axes.norm(dim=1)
    torch.testing.assert_close(lengths, lengths[:1].expand(5), rtol=1e-4, atol=0)
    axes = (front.axes / lengths[:, None]).numpy()
    np.testing.assert_allclose(np.abs(axes @ PCA(5).fit(DIGITS).components_.T), np.eye(5), atol=0.02)


def test_what_it_gives_is_centered_with_a_standard_deviation_of_one() -> None:
    front = PCAFront((64,), 10)
    front.fit(ArrayRows(torch.from_numpy(DIGITS).float() + 3, CPU), seeded())
    y = front(torch.from_numpy(DIGITS).float() + 3)
    assert y.mean(0).abs().max() < 1e-4
    assert y.square().mean().sqrt().item() == pytest.approx(1, abs=1e-3)


def test_rows_with_fewer_values_keep_the_proportions_of_their_distances() -> None:
    X = DIGITS[:200, 20:27]
    front = PCAFront((7,), 50)
    front.fit(rows(X), seeded())
    x = rows(X).read(0, 200)
    assert front(x).shape == (200, 7)
    ours, theirs = (torch.pdist(each) for each in (front(x), x))
    torch.testing.assert_close(ours / ours.mean(), theirs / theirs.mean(), atol=1e-4, rtol=1e-4)


def test_axes_beyond_the_directions_that_the_rows_have_are_zero_and_new_rows_show_nothing_along_them() -> None:
    flat = torch.randn(500, 3, generator=seeded()) @ torch.randn(3, 64, generator=seeded(1))  # all in three directions
    front = PCAFront((64,), 10)
    front.fit(ArrayRows(flat, CPU), seeded())
    assert front.axes[:3].any(1).all()
    assert not front.axes[3:].any()
    new = front(torch.randn(20, 64, generator=seeded(2)))
    assert new[:, :3].all()
    assert not new[:, 3:].any()


@pytest.mark.parametrize(("values", "components"), [(64, 10), (300, 200)])
def test_fewer_rows_than_components_give_as_many_axes_as_they_have_directions(values: int, components: int) -> None:
    front = PCAFront((values,), components)
    front.fit(ArrayRows(torch.randn(6, values, generator=seeded()), CPU), seeded())
    assert int(front.axes.any(1).sum()) == 5  # the mean is taken from six


def test_a_direction_that_dwarfs_the_others_does_not_make_them_faint() -> None:
    x = torch.randn(800, 12, generator=seeded())
    x[:, 4] = torch.where(torch.rand(800, generator=seeded(1)) < 0.02, -99_999.0, 0.0)  # what some write for a missing value
    front = PCAFront((12,), 12)
    front.fit(ArrayRows(x, CPU), seeded())
    assert front.axes.any(1).all()


@pytest.mark.parametrize("components", [5, 40])
def test_however_wide_rows_are_the_sample_has_a_few_for_each_component(components: int, monkeypatch) -> None:
    class Counted(ArrayRows):
        def take(self, ids: torch.Tensor) -> torch.Tensor:
            sizes.append(len(ids))
            return super().take(ids)

    sizes: list[int] = []
    monkeypatch.setattr("dre.encoder.pca_front.SAMPLE_VALUES", 64 * 30)
    PCAFront((64,), components).fit(Counted(torch.from_numpy(DIGITS).float(), CPU), seeded())
    assert sizes == [max(30, 4 * components)]


def test_rows_that_are_all_alike_do_no_harm() -> None:
    front = PCAFront((6,), 3)
    front.fit(ArrayRows(torch.zeros(10, 6), CPU), seeded())
    assert front.axes.isfinite().all()


def test_it_is_not_trained() -> None:
    network = MLP(8, n_pcs=4).build((64,), 2)
    make_learner(network, rows(DIGITS), None, torch.zeros(64), seeded())
    assert not any(name.startswith("features") for name, _ in network.named_parameters())
    assert isinstance(network.features, PCAFront)
    assert next(layer.in_features for layer in network.modules() if isinstance(layer, nn.Linear)) == 4


def test_a_model_with_a_front_reads_it_as_a_source_and_survives_its_file(tmp_path) -> None:
    schedule = "features: gaussian(10) -> kl * 3; h1: gaussian(10) -> kl * 2"
    model = DRE(schedule=schedule, encoder="mlp(16, n_pcs=10)", random_state=0).fit(DIGITS[:300])
    again = DRE(schedule=schedule, encoder="mlp(16, n_pcs=10)", random_state=0).fit(DIGITS[:300])
    assert (model.embedding_ == again.embedding_).all()
    model.save(tmp_path / "model")
    assert (DRE.load(tmp_path / "model", device="cpu").transform(DIGITS[300:]) == model.transform(DIGITS[300:])).all()
