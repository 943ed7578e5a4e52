"""Where free coordinates start."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import Tensor

from dre.coordinates.start import SYMMETRY, principal_components

DIGITS = torch.from_numpy(load_digits().data[:500]).float()


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("components", [1, 2, 3])
def test_the_coordinates_are_the_principal_components_of_scikit_learn(components: int) -> None:
    found = principal_components(DIGITS, components, 10.0).numpy()
    wanted = PCA(components).fit_transform(DIGITS.numpy())
    for c in range(components):
        assert abs(np.corrcoef(found[:, c], wanted[:, c])[0, 1]) > 0.999
    # One factor for all components.
    np.testing.assert_allclose(found.std(0) / found[:, 0].std(), wanted.std(0) / wanted[:, 0].std(), rtol=1e-2)


@pytest.mark.parametrize("std", [1e-4, 10.0])
def test_the_first_component_has_the_standard_deviation_that_was_asked_for(std: float) -> None:
    coordinates = principal_components(DIGITS * 1e3, 2, std)
    assert coordinates[:, 0].std(correction=0).item() == pytest.approx(std, rel=1e-2)
    assert coordinates[:, 1].std(correction=0) < coordinates[:, 0].std(correction=0)


def test_they_do_not_depend_on_a_seed_and_leave_the_random_state_alone() -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one = principal_components(DIGITS, 2, 10.0)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(one, principal_components(DIGITS, 2, 10.0))


def test_neither_where_the_rows_lie_nor_their_unit_matters() -> None:
    here = principal_components(DIGITS, 2, 10.0)
    torch.testing.assert_close(principal_components(DIGITS * 128 + 1024, 2, 10.0), here, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("rows", "components"),
    [
        (torch.ones(30, 4), 2),
        (torch.zeros(2, 1), 3),
        (torch.arange(20.0)[:, None], 2),  # fewer columns than components
        (torch.randn(3, 50, generator=seeded(0)), 5),  # fewer rows than components
        (torch.randn(4, 6, generator=seeded(0)).repeat(10, 1), 2),  # duplicates
        (torch.randn(40, 6, generator=seeded(0)) * 1e-20, 2),
        (torch.randn(40, 6, generator=seeded(0)) * 1e15, 2),
    ],
    ids=["constant", "two alike", "one column", "few rows", "duplicates", "tiny", "huge"],
)
def test_every_row_gets_a_place_of_its_own_within_the_map(rows: Tensor, components: int) -> None:
    coordinates = principal_components(rows, components, 10.0)
    assert coordinates.shape == (len(rows), components)
    assert coordinates.isfinite().all()
    assert len(coordinates.unique(dim=0)) == len(rows)
    assert coordinates.abs().max() < 100


def test_rows_that_coincide_stay_close() -> None:
    coordinates = principal_components(DIGITS[:50].repeat(2, 1), 2, 10.0)
    assert 0 < (coordinates[:50] - coordinates[50:]).abs().max() < 10 * SYMMETRY * 10.0


def test_the_rows_are_left_as_they_were() -> None:
    rows = DIGITS.clone()
    principal_components(rows, 2, 10.0)
    assert torch.equal(rows, DIGITS)
