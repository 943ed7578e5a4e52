"""Values that are too large to compute with are named; constant rows have the scale 1."""

from __future__ import annotations

import pickle
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from dre import DRE
from dre.data.metric import transform_rows
from dre.data.range_error import RangeError
from dre.data.scaling import Scaling
from dre.metrics import trustworthiness


def cheap(**others: object) -> DRE:
    return DRE(
        **({"schedule": "x: gaussian(5) -> kl * 1", "encoder": "mlp(4, depth=1)", "random_state": 0, "device": "cpu"} | others)
    )


def some_rows(n: int = 30, d: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


class Stream:
    """Rows that are read in pieces."""

    def __init__(self, X: np.ndarray) -> None:
        self.X, self.shape = X, X.shape

    def read(self, start: int, stop: int) -> torch.Tensor:
        return torch.from_numpy(self.X[start:stop])

    def take(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.X[ids.numpy()])


# Rows too far out for float32.


@pytest.mark.parametrize("value", [1e21, -1e30, 1e40, 1e308])
@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy, Stream, scipy.sparse.csr_array])
def test_a_row_that_float32_cannot_hold_is_named(value, convert, monkeypatch):
    monkeypatch.setattr("dre.encoder.forward.CPU_CHUNK_ROWS", 8)
    X = some_rows()
    model = cheap().fit(X)
    far = X.copy()
    far[[17, 25], 2] = value
    with pytest.raises(ValueError, match=r"X has -?1e\+\d+ in row 17 at \[2\]: .* too many for float32\. Check the units"):
        model.transform(convert(far))
    assert np.isfinite(model.transform(convert(X))).all()


@pytest.mark.parametrize("factor", [1e13, 1e17, 1e30])
def test_sparse_rows_behind_principal_components_are_refused_where_dense_ones_are(factor):
    X = np.where(np.random.default_rng(0).random((60, 40)) < 0.2, 1.5, 0.0)
    model = cheap(encoder="mlp(8, depth=1, n_pcs=5)").fit(scipy.sparse.csr_array(X))
    if factor < 1e15:
        sparse, dense = model.transform(scipy.sparse.csr_array(factor * X)), model.transform(factor * X)
        assert np.allclose(sparse, dense, rtol=1e-3, atol=1e-3)
        return
    for rows in (factor * X, scipy.sparse.csr_array(factor * X)):
        with pytest.raises(ValueError, match="too many for float32"):
            model.transform(rows)


def test_the_column_and_the_place_in_an_image_are_named():
    X = pd.DataFrame(some_rows(), columns=["a", "b", "c"])
    model = cheap(standardize=True).fit(X)
    far = X.copy()
    far.loc[4, "b"] = 1e25
    with pytest.raises(ValueError, match="in row 4 in column 'b'"):
        model.transform(far)
    images = some_rows(30, 12).reshape(30, 4, 3)
    fitted = cheap().fit(images)
    images[6, 3, 1] = 1e25
    with pytest.raises(ValueError, match=r"in row 6 at \[3, 1\]"):
        fitted.transform(images)


def test_ordinary_rows_of_a_broken_network_are_an_error_too():
    model = cheap().fit(some_rows())
    with torch.no_grad():
        model.encoder_.out.weight.fill_(torch.nan)
    with pytest.raises(ValueError, match=r"no finite coordinates for row 0 .*fit the model again"):
        model.transform(some_rows())


def test_the_error_can_be_sent_to_another_process():
    problem = RangeError(3, (1,), 1e21, "too far.").located(columns=["a", "b"], first_row=10)
    assert str(pickle.loads(pickle.dumps(problem))) == str(problem) == "X has 1e+21 in row 13 in column 'b': too far."


# Values too large for float64.


@pytest.mark.parametrize("convert", [np.asarray, Stream])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("other", [1e308, -1.4e308])
def test_values_whose_sums_overflow_are_refused(convert, standardize, other):
    X = some_rows(3)
    X[:, 1] = other, 1.5e308, 1.4e308  # a sum of them overflows, or a deviation from their mean
    with pytest.raises(ValueError, match=r"1\.5e\+308 in row 1 at \[1\]: .*float64\. Divide X by a constant"):
        cheap(standardize=standardize).fit(convert(X))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sparse_values_near_the_limit_of_float64_have_a_map_or_are_refused():
    X = some_rows(3)
    X[:, 1] = 1e308, 1.5e308, -1.4e308
    try:
        found = cheap().fit(scipy.sparse.csr_array(X)).embedding_
    except RangeError:
        return
    assert np.isfinite(found).all()


def test_the_column_of_a_value_too_large_is_named_and_angles_do_not_mind_it():
    X = pd.DataFrame(some_rows(), columns=["a", "b", "c"])
    X.loc[3, "c"] = X.loc[5, "c"] = 1.2e308
    with pytest.raises(ValueError, match="in row 3 in column 'c'"):
        cheap().fit(X)
    assert np.isfinite(cheap(metric="cosine").fit(X).embedding_).all()


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize <= 8, reason="long doubles are doubles here")
def test_long_doubles_are_mapped_unless_float64_cannot_hold_them():
    X = some_rows()
    np.testing.assert_array_equal(cheap().fit(X.astype(np.longdouble)).embedding_, cheap().fit(X).embedding_)
    wide = X.astype(np.longdouble)
    wide[2, 1] = np.longdouble(10) ** 4000
    with pytest.raises(ValueError, match=r"beyond float64 in row 2 at \[1\]: divide X"):
        cheap().fit(wide)


# Arrays and tensors of unusual kinds.


X = some_rows()
MASKED = np.ma.array(X, mask=np.arange(90).reshape(30, 3) == 40)
BIG = X.astype(object)
BIG[0, 0] = 10**400
REFUSED: dict[str, tuple[Any, str]] = {
    "masked": (MASKED, r"masked array with 1 masked value\(s\), the first in row 13\. Drop .*filled"),
    "meta": (torch.zeros(30, 3, device="meta"), "meta tensor.*'cpu'"),
    "sparse tensor": (torch.from_numpy(X).to_sparse(), r"sparse tensor: pass X\.to_dense\(\)"),
    "csr tensor": (torch.eye(5).to_sparse_csr(), r"sparse tensor: pass X\.to_dense\(\)"),
    "nested": (torch.nested.nested_tensor([torch.ones(3), torch.ones(2)]), "nested tensor: pass"),
    "complex": (X + 1j, "real and imaginary parts as separate columns"),
    "complex tensor": (torch.from_numpy(X + 1j), "real and imaginary parts as separate columns"),
    "timedeltas": (X.astype("timedelta64[s]"), "convert or encode"),
    "objects": (np.full((5, 2), timedelta(1), dtype=object), "Convert X to an array of numbers"),
    "large integer": (BIG, "beyond float64.*divide X by a constant"),
    "structured": (np.zeros((5, 2), dtype=[("a", float)]), "pass pandas.DataFrame"),
    "ragged": ([[1.0, 2.0], [3.0]], "the same number of values: pad or cut"),
    "text": (np.array([["a", 1.0], ["b", 2.0]], dtype=object), "could not convert string.*OneHotEncoder"),
    "scalar": (np.float64(3), "Reshape your data"),
    "scalar tensor": (torch.tensor(3.0), "Reshape your data"),
    "twice": (pd.DataFrame(X, columns=["a", "a", "b"]), "several columns called 'a': rename"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_odd_arrays_are_refused_with_a_remedy(kind):
    bad, message = REFUSED[kind]
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        cheap().fit(bad)


@pytest.mark.filterwarnings("ignore:.*quant.*")
def test_a_quantized_tensor_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"quantized tensor: pass X\.dequantize\(\)"):
        cheap().fit(torch.quantize_per_tensor(torch.from_numpy(X).float(), 0.1, 0, torch.qint8))


@pytest.mark.parametrize(
    "same",
    [
        np.ma.array(X),
        np.ma.array(X, mask=np.zeros_like(X, dtype=bool)),
        np.array([[Decimal(repr(float(v))) for v in row] for row in X], dtype=object),
        torch.from_numpy(X - 1j * X).conj().imag,  # a tensor with torch's negative bit
        pd.DataFrame(X),  # columns without names
        pd.DataFrame(X).convert_dtypes(),
        X.astype(">f8"),
    ],
    ids=["masked", "mask", "decimals", "negative", "numbers", "nullable", "big-endian"],
)
def test_odd_arrays_of_the_same_values_give_the_same_map(same):
    model = cheap().fit(X)
    np.testing.assert_array_equal(cheap().fit(same).embedding_, model.embedding_)
    np.testing.assert_array_equal(model.transform(same), model.embedding_)


def test_metrics_refuse_masked_values_and_odd_tensors_too():
    for bad in (MASKED, torch.zeros(30, 3, device="meta")):
        with pytest.raises(ValueError, match="X is a"):
            trustworthiness(bad, X[:, :2], k=5)


# Constant rows.


@pytest.mark.parametrize("n", [2, 30, 37, 1000])
@pytest.mark.parametrize("value", [0.1, 1e10 + 0.1, 1 / 3, 1e-200, 1e300 / 3, -7e20])
@pytest.mark.parametrize("kind", ["array", "standardized", "sparse", "stream", "correlation"])
def test_equal_rows_have_the_scale_1_and_are_scaled_to_zeros(n, value, kind):
    X = np.full((n, 3), value) * ([1, 1, 1] if kind == "correlation" else [1, 0.7, -3])
    data = {"sparse": scipy.sparse.csr_array, "stream": Stream}.get(kind, np.asarray)(X)
    metric = "correlation" if kind == "correlation" else "euclidean"
    scaling = Scaling.fit(data, metric=metric, standardize=kind == "standardized")
    assert float(scaling.scale) == 1
    assert not scaling(torch.from_numpy(X)).any()


def test_a_constant_column_does_not_hide_the_others():
    X = some_rows(37) * 1e-4
    X[:, 1] = 1e20 / 3  # its mean is rounded to thousands
    for data, standardize in ((X, False), (X, True), (scipy.sparse.csr_array(X), False)):
        scaled = Scaling.fit(data, standardize=standardize)(torch.from_numpy(X))
        assert not scaled[:, 1].any()
        assert 0.1 < float(scaled[:, [0, 2]].std()) < 10


def test_rounding_does_not_outweigh_standardized_columns():
    X = some_rows(40)
    X[:, 1] = 1e20 * (1 + 1e-15 * X[:, 1])
    scaled = Scaling.fit(X, standardize=True)(torch.from_numpy(X))
    assert float(scaled[:, 1].abs().max()) < 1e-6
    assert 0.1 < float(scaled[:, 0].std()) < 10


def test_a_row_of_equal_values_has_no_direction_under_the_correlation():
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([[0.1] * 7, [1e10 + 0.1] * 7, [1.0, 2, 3, 4, 5, 6, 7]], dtype=dtype)
        found = transform_rows(x, "correlation")
        assert not found[:2].any()
        assert float(found[2].norm()) == pytest.approx(1)


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e200])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows_are_scaled_as_dense_ones_however_large(factor, metric):
    X = np.where(some_rows(40, 6) > 0, some_rows(40, 6), 0) * factor
    here, there = (Scaling.fit(data, metric=metric) for data in (scipy.sparse.csr_array(X), X))
    assert float(here.scale) == pytest.approx(float(there.scale), rel=1e-6)
    torch.testing.assert_close(here.mean, there.mean, rtol=1e-6, atol=0)


def test_duplicate_entries_of_a_sparse_matrix_are_summed():
    rows, columns, values = np.repeat(np.arange(20), 2), np.zeros(40, dtype=int), some_rows(40, 1).ravel()
    once = scipy.sparse.coo_array((values, (rows, columns)), shape=(20, 3))
    indptr = np.arange(0, 41, 2)
    twice = scipy.sparse.csr_array((values, columns, indptr), shape=(20, 3))
    assert not twice.has_canonical_format
    stored = twice.data.copy()
    for metric in ("euclidean", "cosine"):
        here, there = (Scaling.fit(data, metric=metric) for data in (twice, once.toarray()))
        assert float(here.scale) == pytest.approx(float(there.scale), rel=1e-9)
    np.testing.assert_array_equal(twice.data, stored)
