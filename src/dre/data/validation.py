"""Validation of what users pass in: rows, parameters, labels and seeds."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
import sklearn.utils
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor

from dre.data.rows import is_rows, read_all
from dre.runtime import available_bytes

LARGEST_SEED = 2**31 - 1
# Options of scikit-learn's validation. Finiteness is checked here, to name the first row that is not finite.
ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric", "allow_nd": True, "ensure_all_finite": False}


def check_rows(estimator: BaseEstimator, X: Any, *, fitting: bool) -> Any:
    """Return X as an array (n, d) or (n, ...) of numbers, or as Rows, with its values and their order unchanged.

    The values of Rows are checked when they are read (``dre.data.rows.read_checked``).
    """
    least = 2 if fitting else 1
    if is_rows(X):
        alike = np.broadcast_to(np.float32(0), X.shape)  # scikit-learn looks at the shape; this needs no memory
        validate_data(estimator, alike, reset=fitting, ensure_min_samples=least, **ACCEPTED)
        _check_numbers(alike[:1], "X")
        return X
    X = validate_data(estimator, _from_torch(X), reset=fitting, ensure_min_samples=least, **ACCEPTED)
    _check_numbers(X, "X", getattr(estimator, "feature_names_in_", None))
    return X


def check_array(rows: Any, name: str) -> Any:
    """Return rows outside of an estimator as an array (n, d) or (n, ...) of numbers; ``Rows`` are read completely."""
    rows = read_all(rows) if is_rows(rows) else _from_torch(rows)
    try:
        rows = sklearn.utils.check_array(rows, input_name=name, **ACCEPTED)
    except ValueError as problem:
        if not str(problem).startswith("Complex data not supported"):
            raise
        remedy = "pass their real and imaginary parts as separate columns"  # scikit-learn's message has no remedy
        raise ValueError(f"{name} holds complex numbers: {remedy}") from None
    _check_numbers(rows, name)
    return rows


def _from_torch(X: Any) -> Any:
    if not isinstance(X, torch.Tensor):
        return X
    X = X.detach().cpu()
    return (X.float() if X.dtype == torch.bfloat16 else X).numpy()  # numpy has no bfloat16


def _check_numbers(X: Any, name: str, columns: Any = None) -> None:
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {X.dtype}, not real numbers: convert or encode it first")
    if 0 in X.shape[1:]:
        raise ValueError(f"rows of the shape {X.shape[1:]} hold no values")
    _check_finite(X, name, columns)


def _check_finite(X: Any, name: str, columns: Any = None) -> None:
    sparse = scipy.sparse.issparse(X)
    values = X.data if sparse else X
    if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64)) or bool(np.isfinite(values).all()):
        return
    bad = ~np.isfinite(values)
    first = int(np.flatnonzero(bad.ravel())[0])
    where: tuple[int, ...]
    if sparse:
        where = (int(np.searchsorted(X.indptr, first, side="right")) - 1, int(X.indices[first]))
    else:
        where = tuple(int(i) for i in np.unravel_index(first, X.shape))
    kind = "NaN" if np.isnan(values.ravel()[first]) else "infinity"
    place = f"at {list(where[1:])}" if columns is None else f"in column {str(columns[where[1]])!r}"
    raise ValueError(
        f"Input {name} contains {kind}: {int(bad.sum())} value(s) are NaN or inf, "
        f"the first in row {where[0]} {place}. "
        "Drop these rows, or fill them in with sklearn.impute.SimpleImputer."
    )


def check_memory(X: Any, name: str, dtype: Any) -> None:
    """Raise a ValueError if sparse rows, which are made dense, would not fit into memory."""
    needed = np.dtype(dtype).itemsize * X.shape[0] * X.shape[1]
    available = available_bytes()
    if available is not None and needed > available / 2:
        raise ValueError(
            f"the sparse {name} would need {needed / 2**30:.1f} GiB as dense {np.dtype(dtype).name}, more than half of the "
            f"{available / 2**30:.1f} GiB available. Reduce it first, say with sklearn.decomposition.TruncatedSVD(100)."
        )


def parse_param(name: str, value: Any, parse: Callable[[str], Any], *kinds: type) -> Any:
    """Check a parameter that may be a string, which is parsed, an object of these kinds, or None."""
    value = _as_python(value)
    if isinstance(value, str):
        return parse(value)
    if value is None or isinstance(value, kinds):
        return value
    hint = f"; this is the class itself, pass {value.__name__}()" if isinstance(value, type) else ""
    raise TypeError(f"{name}={value!r}: expected a string or {' or '.join(kind.__name__ for kind in kinds)}{hint}")


def check_number(name: str, value: Any, *, integer: bool = False) -> Any:
    """Check a parameter that may be a number, also one of numpy, or None."""
    value = _as_python(value)
    if value is None or isinstance(value, Integral if integer else Real):
        return value
    raise TypeError(f"{name}={value!r}: expected {'an integer' if integer else 'a number'}")


def _as_python(value: Any) -> Any:
    """Convert numpy scalars, which have no notation, to Python numbers."""
    return value.item() if isinstance(value, np.generic) else value


def check_seed(random_state: Any) -> int:
    """Return a seed from scikit-learn's ``random_state``: a number, a RandomState, or None."""
    if random_state is None:  # fresh entropy: check_random_state(None) would advance numpy's global state
        return int(np.random.default_rng().integers(LARGEST_SEED))
    return int(check_random_state(random_state).randint(LARGEST_SEED))


def check_labels(y: Any, n: int) -> Tensor:
    """Return labels as numbers, for losses that read them: integers and floats as given, other values as class codes."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has the shape {labels.shape}: expected one label for each of the {n} rows, ({n},)")
    if labels.dtype.kind not in "biuf":
        labels = np.unique(labels.astype(str), return_inverse=True)[1]
    return torch.from_numpy(np.ascontiguousarray(labels, np.int64 if labels.dtype.kind in "biu" else np.float32))
