"""What users hand in, checked: rows and parameters of any kind in, what the core expects out, or one clear error."""

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

from dre.data.rows import is_rows, read_all
from dre.runtime import available_bytes

LARGEST_SEED = 2**31 - 1
# How scikit-learn is to look at rows; whether they are finite we check ourselves, to say where they are not.
ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric", "allow_nd": True, "ensure_all_finite": False}


def check_rows(estimator: BaseEstimator, X: Any, *, fitting: bool) -> Any:
    """X as an array (n, d) or (n, ...) of numbers, or as Rows; its values and its order are never changed.

    The values of Rows are looked at when they are read (``dre.data.rows.read_checked``).
    """
    least = 2 if fitting else 1
    if is_rows(X):
        alike = np.broadcast_to(np.float32(0), X.shape)  # of that shape, and without memory: all that scikit-learn needs to see
        validate_data(estimator, alike, reset=fitting, ensure_min_samples=least, **ACCEPTED)
        _check_numbers(alike[:1], "X")
        return X
    X = validate_data(estimator, _from_torch(X), reset=fitting, ensure_min_samples=least, **ACCEPTED)
    _check_numbers(X, "X")
    if fitting and scipy.sparse.issparse(X):
        check_memory(X, "X", np.float32)
    return X


def check_array(rows: Any, name: str) -> Any:
    """Rows that are not an estimator's, as an array (n, d) or (n, ...) of numbers; ``Rows`` are read whole."""
    rows = read_all(rows) if is_rows(rows) else _from_torch(rows)
    try:
        rows = sklearn.utils.check_array(rows, input_name=name, **ACCEPTED)
    except ValueError as problem:
        if not str(problem).startswith("Complex data not supported"):
            raise
        remedy = "pass their real and imaginary parts as columns of their own"  # scikit-learn prints the numbers instead
        raise ValueError(f"{name} holds complex numbers: {remedy}") from None
    _check_numbers(rows, name)
    return rows


def _from_torch(X: Any) -> Any:
    if not isinstance(X, torch.Tensor):
        return X
    X = X.detach().cpu()
    return (X.float() if X.dtype == torch.bfloat16 else X).numpy()  # numpy has no bfloat16


def _check_numbers(X: Any, name: str) -> None:
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {X.dtype}, not real numbers: convert or encode it first")
    if 0 in X.shape[1:]:
        raise ValueError(f"rows of the shape {X.shape[1:]} hold no values")
    _check_finite(X, name)


def _check_finite(X: Any, name: str) -> None:
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
    raise ValueError(
        f"Input {name} contains {kind}: {int(bad.sum())} value(s) are NaN or inf, "
        f"the first in row {where[0]} at {list(where[1:])}. "
        "Drop these rows, or fill them in with sklearn.impute.SimpleImputer."
    )


def check_memory(X: Any, name: str, dtype: Any) -> None:
    """Sparse rows are worked on as dense ones; say so before the machine runs out of memory."""
    needed = np.dtype(dtype).itemsize * X.shape[0] * X.shape[1]
    available = available_bytes()
    if available is not None and needed > available / 2:
        raise ValueError(
            f"the sparse {name} would need {needed / 2**30:.1f} GiB as dense {np.dtype(dtype).name}, more than half of the "
            f"{available / 2**30:.1f} GiB available. Reduce it first, say with sklearn.decomposition.TruncatedSVD(100)."
        )


def read(name: str, value: Any, parse: Callable[[str], Any], *kinds: type) -> Any:
    """A parameter that may be a text, an object of these kinds, or None."""
    value = _plain(value)
    if isinstance(value, str):
        return parse(value)
    if value is None or isinstance(value, kinds):
        return value
    hint = f"; this is the class itself, pass {value.__name__}()" if isinstance(value, type) else ""
    raise TypeError(f"{name}={value!r}: expected a text or {' or '.join(kind.__name__ for kind in kinds)}{hint}")


def number(name: str, value: Any, *, whole: bool = False) -> Any:
    """A parameter that may be a number, of numpy too, or None."""
    value = _plain(value)
    if value is None or isinstance(value, Integral if whole else Real):
        return value
    raise TypeError(f"{name}={value!r}: expected a {'whole ' if whole else ''}number")


def two(pair: Any, form: str) -> tuple[Any, Any]:
    """A parameter that groups two, or None."""
    if pair is None:
        return None, None
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(f"expected {form}, either of which may be None, not {pair!r}")
    return pair[0], pair[1]


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's own, which have a text."""
    return value.item() if isinstance(value, np.generic) else value


def check_seed(random_state: Any) -> int:
    """A seed for generators from scikit-learn's ``random_state``: a number, a RandomState, or None."""
    if random_state is None:  # fresh entropy: scikit-learn's own reading would advance numpy's global state
        return int(np.random.default_rng().integers(LARGEST_SEED))
    return int(check_random_state(random_state).randint(LARGEST_SEED))
