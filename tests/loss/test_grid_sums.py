"""Sums on a grid, against the exact sums over all pairs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import dre.loss.grid_sums
from dre.loss.curves import Student
from dre.loss.grid_sums import LENGTHS, _quick_length, sum_on_grid

N = 600


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def maps() -> dict[str, Tensor]:
    normal = torch.randn(N, 2, generator=seeded(0))
    centers = 12 * torch.randn(12, 2, generator=seeded(1))
    away = 5 * normal
    away[0] = 70.0
    return {
        "random": 10 * normal,
        "clusters": centers[torch.arange(N) % 12] + 0.4 * normal,
        "far": 30 * normal,
        "an outlier": away,
        "a point": 1e-4 * normal,  # where free coordinates start
        "a line": torch.stack([20 * normal[:, 0], torch.zeros(N)], 1),
        "duplicates": (3 * normal[:120]).repeat(5, 1),
        "off the origin": normal + 40,
    }


def exact(y: Tensor, curve: Student) -> tuple[Tensor, Tensor]:
    apart = y.double()[:, None] - y.double()
    value, slope = curve(apart.square().sum(2))
    return value.sum() - len(y), (slope[:, :, None] * apart).sum(1)


@pytest.fixture(params=[True, False], ids=["numba", "torch"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.loss.grid_sums, "has_numba", lambda: request.param)


@pytest.mark.parametrize("name", maps())
@pytest.mark.parametrize("exponent", [1.0, 0.75, 0.6])
@pytest.mark.usefixtures("kernels")
def test_the_grid_gives_nearly_the_exact_sums(name: str, exponent: float) -> None:
    y, curve = maps()[name], Student(exponent)
    (total, pull), (wanted, of_rows) = sum_on_grid(y, curve), exact(y, curve)
    assert total.item() == pytest.approx(wanted.item(), rel=0.04)
    assert (pull - of_rows).norm() < 0.05 * of_rows.norm()
    # No row is pushed elsewhere: what is wrong is little beside the forces of the map.
    assert (pull - of_rows).norm(dim=1).max() < 0.07 * of_rows.norm(dim=1).max()


@pytest.mark.parametrize("name", ["random", "clusters"])
@pytest.mark.usefixtures("kernels")
def test_a_finer_grid_comes_closer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    y, curve = maps()[name], Student(1.0)
    _, wanted = exact(y, curve)
    errors = []
    for spacing in (1.0, 0.5, 0.25):
        monkeypatch.setattr(dre.loss.grid_sums, "SPACING", spacing)
        errors.append(float((sum_on_grid(y, curve)[1] - wanted).norm()))
    assert errors[0] > 2 * errors[1]
    assert errors[1] > 4 * errors[2]


def test_with_and_without_numba_the_sums_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for y in maps().values():
        results = []
        for numba in (True, False):
            monkeypatch.setattr(dre.loss.grid_sums, "has_numba", lambda numba=numba: numba)
            results.append(sum_on_grid(y, Student(1.0)))
        for ours, theirs in zip(*results, strict=True):
            assert (ours - theirs).norm() < 1e-3 * theirs.norm()


def test_the_forces_cancel_each_other() -> None:
    for y in maps().values():
        _, pull = sum_on_grid(y, Student(1.0))
        assert pull.sum(0).norm() < 1e-4 * pull.norm(dim=1).sum()


@pytest.mark.parametrize("reach", [1e-3, 20.0, 1e6])
def test_the_grid_has_one_of_a_few_sizes_however_large_the_map(reach: float, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    spectra = dre.loss.grid_sums._spectra
    monkeypatch.setattr(dre.loss.grid_sums, "_spectra", lambda nodes, *rest: sizes.append(nodes) or spectra(nodes, *rest))
    monkeypatch.setattr(dre.loss.grid_sums, "LENGTHS", LENGTHS[:6])
    for part in (0.8, 0.9, 1.0):
        sum_on_grid(part * reach * torch.rand(50, 2, generator=seeded(5)), Student(1.0))
    assert set(sizes) <= set(LENGTHS[:6])


@pytest.mark.parametrize("nodes", [1.0, 48.0, 48.5, 200.0, 1151.9, 1e9])
def test_a_quick_length_is_the_next_one_with_small_factors(nodes: float) -> None:
    length = _quick_length(nodes)
    assert length >= min(nodes, LENGTHS[-1])
    assert length <= max(LENGTHS[0], 1.25 * nodes)
    for factor in (2, 3, 5):
        while length % factor == 0:
            length //= factor
    assert length == 1


def test_the_map_is_left_as_it_was() -> None:
    y = maps()["random"]
    before = y.clone()
    sum_on_grid(y, Student(1.0))
    assert torch.equal(y, before)
