"""Arrays that need not lie on the host: torch tensors, and those of other libraries, such as CuPy, through DLPack.

They are read where they lie, and the map goes back to their library and their device.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn import get_config
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from dre.data.rows import chunk_length, is_rows

NUMPY_FLOATS = (torch.float16, torch.float32, torch.float64)  # numpy has no bfloat16, and no floats of 8 bits


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """Rows as a tensor on their device, and the names of their columns if they are a table."""

    tensor: Tensor
    columns: list[str] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)


def is_device_array(X: Any) -> bool:
    """Whether X is a tensor, an array with ``__dlpack__``, or a table with ``to_cupy``, as cuDF has it.

    >>> is_device_array(torch.zeros(3, 2)), is_device_array(np.zeros((3, 2)))
    (True, False)
    """
    if isinstance(X, Tensor):
        return True
    return not isinstance(X, np.ndarray | np.generic) and not is_rows(X) and (_is_table(X) or hasattr(X, "__dlpack__"))


def _is_table(X: Any) -> bool:
    return callable(getattr(X, "to_cupy", None)) and hasattr(X, "columns")


def open_device_array(X: Any) -> Any:
    """Return a tensor, or an array or table of another library that needs no copy on the host, as a DeviceArray.

    What has the array interface alone becomes a numpy array. Anything else is returned unchanged.

    >>> open_device_array(torch.zeros(3, 2)).shape
    (3, 2)
    """
    if not is_device_array(X):
        return _host_array(X)
    columns = [str(name) for name in X.columns] if _is_table(X) else None
    return DeviceArray(plain_tensor(_tensor_of(X), "X"), columns)


def _host_array(X: Any) -> Any:
    """Return what has the array interface and nothing else as a numpy array, which scikit-learn can count; others unchanged."""
    if isinstance(X, type) or hasattr(X, "shape") or hasattr(X, "__array__"):
        return X
    if hasattr(X, "__array_interface__"):
        return np.asarray(X)
    if hasattr(X, "__cuda_array_interface__"):
        remedy = "pass torch.as_tensor(X, device='cuda')" if torch.cuda.is_available() else "copy it to a numpy array first"
        raise TypeError(f"X is a {type(X).__name__} in the memory of a GPU, which has no __dlpack__: {remedy}")
    if hasattr(type(X), "__getitem__") and not hasattr(type(X), "__len__"):
        raise TypeError(f"X is a {type(X).__name__} with __getitem__, but without __len__: add it, to be read as a dataset")
    return X


def give_back(Y: Tensor, X: Any) -> Any:
    """Return coordinates as an array of the library that X comes from, on the device of X; else as a numpy array."""
    if not is_device_array(X):
        return Y.cpu().numpy()
    like = X.head(1).to_cupy() if _is_table(X) else X
    Y = Y.to(_tensor_of(like).device)
    return Y if isinstance(X, Tensor) else _to_library(Y, like)


def to_host(X: Any, name: str) -> Any:
    """Return a tensor, or an array or table of another library, as a numpy array; anything else unchanged."""
    return plain_tensor(_tensor_of(X), name).cpu().numpy() if is_device_array(X) else X


def _tensor_of(X: Any) -> Tensor:
    return X if isinstance(X, Tensor) else _from_dlpack(X.to_cupy() if _is_table(X) else X)


def _from_dlpack(X: Any) -> Tensor:
    try:
        return from_dlpack(X)
    except Exception as problem:
        raise TypeError(
            f"X is a {type(X).__name__}, whose values torch can't read through DLPack ({problem}): "
            "convert it to an array of numbers, or to a torch tensor"
        ) from problem


def _to_library(Y: Tensor, X: Any) -> Any:
    """Return a tensor as an array of the library that X comes from; itself if the library can't read it."""
    namespace = X.__array_namespace__() if hasattr(X, "__array_namespace__") else _package(X)
    read = getattr(namespace, "from_dlpack", None)
    return Y if read is None else read(Y)


def _package(X: Any) -> Any:
    return sys.modules.get(type(X).__module__.split(".", maxsplit=1)[0])


def plain_tensor(X: Tensor, name: str) -> Tensor:
    """Return a strided tensor without gradients, whose values are as it shows them, or raise a ValueError with the remedy."""
    for is_odd, kind, remedy in (
        (X.is_meta, "a meta tensor without values", "create it on a device that holds values, such as 'cpu'"),
        (X.is_nested, "a nested tensor", f"pass {name}.to_padded_tensor(0.0)"),
        (X.is_quantized, "a quantized tensor", f"pass {name}.dequantize()"),
        (X.layout != torch.strided, "a sparse tensor", f"pass {name}.to_dense(), or a scipy.sparse.csr_array"),
    ):
        if is_odd:
            raise ValueError(f"{name} is {kind}: {remedy}")
    X = X.detach().resolve_conj().resolve_neg()
    if X.is_floating_point() and X.dtype not in NUMPY_FLOATS:
        return X.float()
    return X.to(torch.complex128) if X.is_complex() and X.is_cpu else X


def check_finite(X: Tensor, columns: Any = None) -> None:
    """Raise a ValueError that names the first value that is NaN or infinite. All is computed where the tensor lies."""
    if not X.is_floating_point() or bool(torch.stack([part.isfinite().all() for part in _parts(X)]).all()):
        return
    flags = torch.cat([~part.isfinite() for part in _parts(X)])
    first = int(flags.flatten().long().argmax())
    place = tuple(int(i) for i in np.unravel_index(first, X.shape))
    kind = "NaN" if bool(X[place].isnan()) else "infinity"
    where = f"at {list(place[1:])}" if columns is None else f"in column {str(columns[place[1]])!r}"
    raise ValueError(
        f"Input X contains {kind}: {int(flags.sum())} value(s) are NaN or inf, the first in row {place[0]} {where}. "
        "Drop these rows, or fill them in with sklearn.impute.SimpleImputer."
    )


def _parts(X: Tensor) -> tuple[Tensor, ...]:
    parts: tuple[Tensor, ...] = X.split(chunk_length(tuple(X.shape[1:])))
    return parts


def wants_container(estimator: Any) -> bool:
    """Whether the user has asked scikit-learn for DataFrames by ``set_output``, which are made of arrays on the host."""
    own = getattr(estimator, "_sklearn_output_config", {})
    return bool(own.get("transform", get_config()["transform_output"]) != "default")
