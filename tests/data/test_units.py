"""Columns in different units: those that outweigh all others are found, and nothing else is."""

import numpy as np
import pytest
from sklearn import datasets

from dre.data.units import dominant_columns

TABLES = {"wine": (12,), "breast_cancer": (23, 3), "iris": None, "digits": None, "diabetes": None}


@pytest.mark.parametrize(("name", "columns"), TABLES.items())
def test_columns_in_wider_units_are_found_in_real_tables(name, columns):
    found = dominant_columns(getattr(datasets, f"load_{name}")().data.var(0))
    assert (None if found is None else found.columns) == columns


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_the_unit_of_all_columns_does_not_matter(factor):
    variances = factor * np.array([3.0, 1, 2, 400, 1])
    assert dominant_columns(variances).columns == (3,)


def test_a_few_of_many_columns_may_share_the_weight():
    variances = np.ones(40)
    variances[[7, 30]] = 5000, 3000
    found = dominant_columns(variances)
    assert found.columns == (7, 30)
    assert found.describe() == "columns 7, 30 make up 99 % of all squared distances"
    assert dominant_columns(np.append(np.ones(10), [99.0] * 10)) is None  # half of the columns are not a few


def test_principal_components_have_one_unit():
    assert dominant_columns([5000.0, 20, 5, 2, 1, 0.5]) is None


@pytest.mark.parametrize("variances", [[], [1.0], [0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0]])
def test_where_there_is_nothing_to_compare_nothing_is_found(variances):
    assert dominant_columns(variances) is None
