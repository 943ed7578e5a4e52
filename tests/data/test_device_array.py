"""Tensors, and arrays of other libraries through DLPack: read where they lie, and the map goes back there."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from torch.utils.data import TensorDataset

from dre import DRE
from dre.data.device_array import check_finite, open_device_array

X = np.random.default_rng(0).normal(3, 2, (60, 6)).astype(np.float32)


def cheap(**options: object) -> DRE:
    return DRE(schedule="x: gaussian(5) -> kl * 2", encoder="mlp(16)", random_state=0, device="cpu", **options)


class Foreign:
    """An array of another library, which refuses every way to the host but DLPack."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()

    def __array__(self, *arguments: object, **options: object) -> np.ndarray:
        raise AssertionError("a copy through numpy")

    def __iter__(self) -> Any:
        raise AssertionError("a copy through Python")


class Standard(Foreign):
    """As the array API wants it."""

    def __array_namespace__(self, **options: object) -> Any:
        return SimpleNamespace(from_dlpack=lambda array: Standard(torch.from_dlpack(array)))


class Table:
    """A table of cuDF: its columns have names, and its values become an array of CuPy."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self.columns, self.shape = frame.columns, frame.shape

    def head(self, n: int) -> Table:
        return Table(self._frame.head(n))

    def to_cupy(self) -> Standard:
        return Standard(torch.tensor(self._frame.to_numpy().copy()))


# Tensors.


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int16, torch.uint8])
def test_a_tensor_gives_a_tensor_with_the_bits_of_an_array(kind):
    tensor = (torch.from_numpy(X) * 10).abs().to(kind)
    array = tensor.to(torch.float32).numpy() if kind == torch.bfloat16 else tensor.numpy()
    ours, theirs = cheap().fit(tensor), cheap().fit(array)
    found = ours.transform(tensor)
    assert isinstance(found, torch.Tensor)
    assert (found.dtype, found.device, found.requires_grad) == (torch.float32, tensor.device, False)
    np.testing.assert_array_equal(found.numpy(), theirs.transform(array))
    np.testing.assert_array_equal(ours.embedding_, theirs.embedding_)
    assert isinstance(ours.embedding_, np.ndarray)


def test_fit_transform_gives_a_tensor_that_is_not_the_models_own():
    model = cheap()
    found = model.fit_transform(torch.from_numpy(X))
    np.testing.assert_array_equal(found.numpy(), model.embedding_)
    found.zero_()
    assert model.embedding_.any()


@pytest.mark.parametrize("change", ["gradients", "transposed", "negative", "inference"])
def test_any_view_of_a_tensor_is_taken(change):
    model = cheap().fit(X)
    with torch.inference_mode(change == "inference"):
        tensor = torch.from_numpy(X.T.copy()).T if change == "transposed" else torch.from_numpy(X.copy())
    tensor = torch._neg_view(-tensor) if change == "negative" else tensor.requires_grad_(change == "gradients")
    found = model.transform(tensor)
    assert not found.requires_grad
    np.testing.assert_array_equal(found.numpy(), model.transform(X))


def test_images_and_stages_are_tensors_too():
    images = torch.from_numpy(X[:, :4].reshape(60, 2, 2))
    model = cheap().fit(images)
    assert model.transform(images, stage=0).shape == (60, 2)
    with pytest.raises(ValueError, match=r"fitted on \(2, 2\)"):
        model.transform(images[:, :1])


def test_a_dataset_of_tensors_still_gives_an_array():
    assert isinstance(cheap().fit(X).transform(TensorDataset(torch.from_numpy(X))), np.ndarray)


ODD = {
    "sparse": (lambda: torch.from_numpy(X).to_sparse(), "a sparse tensor: pass X.to_dense()"),
    "meta": (lambda: torch.empty(60, 6, device="meta"), "a meta tensor"),
    "complex": (lambda: torch.from_numpy(X).to(torch.complex64), "Complex data not supported"),
    "a row": (lambda: torch.from_numpy(X[0]), "Expected 2D array|1D"),
    "no columns": (lambda: torch.zeros(60, 0), "0 feature|no values"),
    "NaN": (lambda: torch.from_numpy(np.where(X[7, 3] == X, np.nan, X)), r"contains NaN: 1 value\(s\).*row 7 at \[3\]"),
    "too few columns": (lambda: torch.from_numpy(X[:, :3]), "expecting 6 features"),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_tensors_are_refused_as_before(odd):
    make, message = ODD[odd]
    with pytest.raises(ValueError, match=message):
        cheap().fit(X).transform(make())


# set_output.


@pytest.mark.parametrize(("name", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
@pytest.mark.parametrize("make", [torch.from_numpy, lambda rows: Standard(torch.from_numpy(rows)), np.asarray])
def test_set_output_wins(make, name, kind):
    model = cheap().set_output(transform=name)
    for found in (model.fit_transform(make(X)), model.transform(make(X))):
        assert isinstance(found, kind)
        assert list(found.columns) == ["dre1", "dre2"]
        np.testing.assert_array_equal(found.to_numpy(), model.embedding_)
    with sklearn.config_context(transform_output=name):
        assert isinstance(cheap().fit(make(X)).transform(make(X)), kind)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_frame_gives_an_array_as_in_scikit_learn(kind):
    frame = kind({f"c{i}": X[:, i] for i in range(6)})
    assert isinstance(cheap().fit(frame).transform(frame), np.ndarray)


# Other libraries.


def test_an_array_of_another_library_is_read_and_returned_without_numpy():
    model = cheap().fit(Standard(torch.from_numpy(X)))
    found = model.transform(Standard(torch.from_numpy(X)))
    assert type(found) is Standard
    np.testing.assert_array_equal(found._tensor.numpy(), cheap().fit(X).transform(X))
    assert type(cheap().fit_transform(Standard(torch.from_numpy(X)))) is Standard


def test_a_library_without_the_standard_offers_from_dlpack_itself(monkeypatch):
    library = ModuleType("cupyish")
    library.from_dlpack = lambda array: ("cupyish", torch.from_dlpack(array))
    kind = type("ndarray", (Foreign,), {"__module__": "cupyish.core"})
    monkeypatch.setitem(sys.modules, "cupyish", library)
    assert cheap().fit(X).transform(kind(torch.from_numpy(X)))[0] == "cupyish"


def test_a_library_that_reads_no_dlpack_gets_a_tensor():
    assert isinstance(cheap().fit(X).transform(Foreign(torch.from_numpy(X))), torch.Tensor)


def test_what_dlpack_can_not_tell_is_an_error_with_the_remedy():
    class Broken(Foreign):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("no such type")

    with pytest.raises(TypeError, match=r"X is a Broken.*DLPack \(no such type\): convert it"):
        cheap().fit(Broken(torch.from_numpy(X)))


def test_a_table_on_a_device_keeps_the_names_of_its_columns():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = cheap().fit(Table(frame))
    assert list(model.feature_names_in_) == list("abcdef")
    assert type(model.transform(Table(frame))) is Standard
    np.testing.assert_array_equal(model.transform(frame), model.embedding_)
    with pytest.raises(ValueError, match="the model was fitted to"):
        model.transform(Table(frame[list("fedcba")]))
    with pytest.raises(ValueError, match=r"contains infinity.*row 4 in column 'c'"):
        model.transform(Table(frame.where(frame != frame.loc[4, "c"], np.inf)))


def test_the_first_value_that_is_not_finite_is_named_by_chunks(monkeypatch):
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 12)
    bad = torch.from_numpy(X.copy())
    bad[41, 2] = torch.inf
    bad[50, 0] = torch.nan
    check_finite(torch.from_numpy(X))
    with pytest.raises(ValueError, match=r"infinity: 2 value\(s\).*row 41 at \[2\]"):
        check_finite(bad)


def test_other_things_are_no_device_arrays():
    for other in (X, pd.DataFrame(X), pl.DataFrame(X), X.tolist(), None, 3.0, np.float32(1)):
        assert open_device_array(other) is other


class ArrayInterface:
    """Values that numpy can read, and nothing else: neither a shape nor a length."""

    def __init__(self, values: np.ndarray, name: str = "__array_interface__") -> None:
        self._values = values
        setattr(self, name, values.__array_interface__)


def test_the_array_interface_is_enough_for_fit_and_transform():
    model = cheap().fit(ArrayInterface(X))
    np.testing.assert_array_equal(model.embedding_, cheap().fit(X).embedding_)
    np.testing.assert_array_equal(model.transform(ArrayInterface(X)), model.transform(X))


class WithoutLength:
    def __getitem__(self, i):
        return X[i]


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (ArrayInterface(X, "__cuda_array_interface__"), "X is a ArrayInterface in the memory of a GPU.*no __dlpack__: "),
        (WithoutLength(), "X is a WithoutLength with __getitem__, but without __len__: add it"),
    ],
)
def test_what_can_not_be_read_is_an_error_with_the_remedy(odd, message):
    for read in (cheap().fit, cheap().fit(X).transform):
        with pytest.raises(TypeError, match=message):
            read(odd)
