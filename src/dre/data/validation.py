"""Validation of what users pass in: rows, parameters, labels and seeds."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
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

from dre.data.device_array import DeviceArray, check_finite, to_host
from dre.data.distance_matrix import check_finite_distances
from dre.data.metric import PRECOMPUTED
from dre.data.rows import Rows, is_rows, read_all
from dre.runtime import available_bytes
from dre.runtime.caller import level_of_caller

LARGEST_SEED = 2**31 - 1
REMEDIES = {  # by the beginning of an error of scikit-learn
    "could not convert string": "Encode text as numbers first, say with sklearn.preprocessing.OneHotEncoder.",
    "dtype='numeric' is not compatible": "Encode text as numbers first, say with sklearn.preprocessing.OneHotEncoder.",
    "setting an array element with a sequence": "All rows need the same number of values: pad or cut them.",
}
TEXTS = ("could not convert string", "dtype='numeric' is not compatible")  # of which a fit or a model makes numbers
OF_A_FIT = " fit also encodes the categories of a DataFrame."
OF_A_MODEL = " Of a table that a model was fitted to, model.metric_rows(X) are the rows of numbers."
FILLED_BEFORE = "Drop these rows, or fill them in with sklearn.impute.SimpleImputer."
FILLED_BY_FIT = "Drop these rows, or fit with missing='median', which fills them in."
# Options of scikit-learn's validation. Finiteness is checked here, to name the first row that is not finite.
ACCEPTED: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric", "allow_nd": True, "ensure_all_finite": False}


def check_rows(estimator: BaseEstimator, X: Any, *, fitting: bool) -> Any:
    """Return X as an array (n, d) or (n, ...) of numbers, or as Rows, with its values and their order unchanged.

    A ``DeviceArray`` that is not on the host is returned as a tensor on its device. The values of Rows are checked when they
    are read (``dre.data.rows.read_checked``).
    """
    least = 2 if fitting else 1
    are_distances = isinstance(metric := getattr(estimator, "metric", None), str) and metric == PRECOMPUTED
    if are_distances and not fitting:
        _check_distances_to_fitted(estimator, X)
    if is_rows(X):
        _check_stream(estimator, X, least, fitting=fitting)
        return X
    if isinstance(X, DeviceArray):
        if X.columns is not None or not X.tensor.is_cpu:
            return _check_device(estimator, X, least, fitting=fitting)
        X = X.tensor
    X = _to_numpy(X, "X")
    X = _validated(
        lambda: validate_data(estimator, X, reset=fitting, ensure_min_samples=least, **ACCEPTED),
        "X",
        OF_A_FIT if fitting else "",
    )
    if are_distances:
        check_finite_distances(X)
    fills = hasattr(estimator, "missing") and X.ndim == 2 and not scipy.sparse.issparse(X)
    _check_numbers(X, "X", getattr(estimator, "feature_names_in_", None), FILLED_BY_FIT if fills else FILLED_BEFORE)
    return X


def _check_distances_to_fitted(estimator: Any, X: Any) -> None:
    """Raise a ValueError if the columns of X are not the fitted rows."""
    shape, fitted = tuple(getattr(X, "shape", ())), estimator.n_features_in_
    if len(shape) == 2 and shape[1] != fitted:
        raise ValueError(
            f"X has {shape[1]} features, but {type(estimator).__name__} is expecting {fitted} features as input: "
            f"metric='precomputed' takes the distances of each new row to the {fitted} fitted rows, ({shape[0]}, {fitted})"
        )


def check_names(estimator: BaseEstimator, X: Any) -> None:
    """Check the names of the columns of a DataFrame as scikit-learn does, and add the remedy where one line is enough."""
    try:
        validate_data(estimator, X, reset=False, skip_check_array=True)
    except ValueError as problem:
        if set(estimator.feature_names_in_) <= set(X.columns):
            raise ValueError(f"{problem}Select the columns of the fit: X[list(model.feature_names_in_)]") from None
        raise


def _check_device(estimator: BaseEstimator, X: DeviceArray, least: int, *, fitting: bool) -> Any:
    """Check an array where it lies; scikit-learn, which would copy it to the host, is shown its shape alone."""
    if X.columns is None:
        alike = np.broadcast_to(np.complex64(0) if X.tensor.is_complex() else np.float32(0), X.shape)
        _validated(lambda: validate_data(estimator, alike, reset=fitting, ensure_min_samples=least, **ACCEPTED), "X")
    else:
        _check_stream(estimator, X, least, fitting=fitting)
    if 0 in X.shape[1:]:
        raise ValueError(f"rows of the shape {X.shape[1:]} hold no values")
    check_finite(X.tensor, getattr(estimator, "feature_names_in_", None))
    return X.tensor.numpy() if X.tensor.is_cpu else X.tensor


def _check_stream(estimator: BaseEstimator, X: Rows | DeviceArray, least: int, *, fitting: bool) -> None:
    """Check the shape of Rows, and the names of their columns if they have some, as scikit-learn does for an array."""
    alike = np.broadcast_to(np.float32(0), X.shape)  # this needs no memory
    sklearn.utils.check_array(alike, ensure_min_samples=least, input_name="X", estimator=estimator, **ACCEPTED)
    _check_numbers(alike[:1], "X")
    names, fitted = getattr(X, "columns", None), getattr(estimator, "feature_names_in_", None)
    if fitting:
        estimator.n_features_in_ = X.shape[1]
        if fitted is not None:
            del estimator.feature_names_in_
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    if X.shape[1] != estimator.n_features_in_:
        kind = type(estimator).__name__
        raise ValueError(f"X has {X.shape[1]} features, but {kind} is expecting {estimator.n_features_in_} features as input")
    if names is not None and fitted is not None and list(names) != list(fitted):
        raise ValueError(
            f"X has the columns {', '.join(map(repr, names[:5]))}, but the model was fitted to "
            f"{', '.join(map(repr, fitted[:5]))}: select these, in their order"
        )


def check_array(rows: Any, name: str, *, are_distances: bool = False) -> Any:
    """Return rows outside of an estimator as an array (n, d) or (n, ...) of numbers; ``Rows`` are read completely.

    Of distances, an error names the two rows.
    """
    rows = read_all(rows) if is_rows(rows) else _to_numpy(rows, name)
    remedy = OF_A_MODEL if hasattr(rows, "columns") else ""
    rows = _validated(lambda: sklearn.utils.check_array(rows, input_name=name, **ACCEPTED), name, remedy)
    if are_distances:
        check_finite_distances(rows, name)
    _check_numbers(rows, name)
    return rows


def with_gaps(X: Any, name: str) -> Any:
    """Return rows as a dense array whose gaps are filled later: NaN, or None among objects, where a mask hides a value.

    ``Rows`` are read completely, sparse rows are made dense, and tensors are copied to the host. Nothing else is checked.

    >>> with_gaps(np.ma.masked_equal([[1, 2], [9, 4]], 9), "X").tolist()
    [[1.0, 2.0], [nan, 4.0]]
    """
    refuse_path(X, name)
    if is_rows(X):
        return read_all(X, np.float64)
    if scipy.sparse.issparse(X):
        check_memory(X, name, X.dtype)
        return X.toarray()
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        values = np.array(X.data, dtype=np.float64 if X.dtype.kind in "biuf" else object)
        values[np.ma.getmaskarray(X)] = np.nan if values.dtype == np.float64 else None
        return values
    return np.asarray(to_host(X, name))


def refuse_path(X: Any, name: str) -> None:
    """Raise a TypeError with the remedy if X is the path of a file."""
    if isinstance(X, (str, os.PathLike)):
        remedy = f"pass dre.io.readers.open_source({os.fspath(X)!r}).rows"
        raise TypeError(f"{name} is a path or string, {os.fspath(X)!r}, not an array. To read a file, {remedy}.")


def refuse_records(X: Any, name: str) -> None:
    """Raise a ValueError with the remedy if X has columns by name in a form that is neither an array nor a DataFrame."""
    found = None
    if isinstance(X, Mapping) and not scipy.sparse.issparse(X):  # a dok_matrix is both
        found = "a mapping of columns"
    elif isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        found = "a list of records"
    elif isinstance(X, np.ndarray) and X.dtype.names is not None:
        found = "an array of records"
    if found is not None:
        raise ValueError(f"{name} is {found}: pass pandas.DataFrame({name})")


def _to_numpy(X: Any, name: str) -> Any:
    """Return a tensor or a masked array as an array, with the values that it shows; anything else unchanged."""
    refuse_path(X, name)
    refuse_records(X, name)
    if isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            first = int(np.argwhere(np.ma.getmaskarray(X))[0][0]) if X.ndim else 0
            count = int(np.ma.getmaskarray(X).sum())
            raise ValueError(
                f"{name} is a masked array with {count} masked value(s), the first in row {first}. "
                f"Drop these rows, or fill them: {name}.filled(value)."
            )
        return X.data
    return to_host(X, name)


def _validated(validate: Callable[[], Any], name: str, of_texts: str = "") -> Any:
    """Return what scikit-learn's validation returns, and add a remedy to its errors where they have none.

    ``of_texts`` is another remedy of texts.
    """
    try:
        return validate()
    except ValueError as problem:
        text = str(problem)
        if text.startswith("Complex data not supported"):
            remedy = "pass their real and imaginary parts as separate columns"
            raise ValueError(f"Complex data not supported: {name} holds complex numbers, {remedy}") from None
        for beginning, remedy in REMEDIES.items():
            if text.startswith(beginning):
                raise ValueError(f"{text.rstrip('.')}. {remedy}{of_texts if beginning in TEXTS else ''}") from None
        raise
    except TypeError as problem:
        raise TypeError(f"{problem}. Convert {name} to an array of numbers first.") from None
    except OverflowError as problem:  # an integer of Python beyond float64
        raise ValueError(f"{name} holds a number beyond float64 ({problem}): divide {name} by a constant") from None


def _check_numbers(X: Any, name: str, columns: Any = None, remedy: str = FILLED_BEFORE) -> None:
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds {X.dtype}, not real numbers: convert or encode it first")
    if 0 in X.shape[1:]:
        raise ValueError(f"rows of the shape {X.shape[1:]} hold no values")
    _check_finite(X, name, columns, remedy)


def _check_finite(X: Any, name: str, columns: Any, remedy: str) -> None:
    values = X.data if scipy.sparse.issparse(X) else X
    if values.dtype.kind != "f":
        return
    if values.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            too_large = np.isfinite(values) & ~np.isfinite(values.astype(np.float64))
        if too_large.any():
            row, place = _first(X, too_large, columns)
            raise ValueError(f"{name} has a value beyond float64 in row {row} {place}: divide {name} by a constant")
    with np.errstate(over="ignore"):
        total = values.sum(dtype=np.float64)
    if np.isfinite(total) or bool(np.isfinite(values).all()):
        return
    bad = ~np.isfinite(values)
    row, place = _first(X, bad, columns)
    kind = "NaN" if np.isnan(values[bad][0]) else "infinity"
    remedy = remedy if np.isnan(values[bad]).all() else FILLED_BEFORE
    raise ValueError(
        f"Input {name} contains {kind}: {int(bad.sum())} value(s) are NaN or inf, the first in row {row} {place}. {remedy}"
    )


def _first(X: Any, bad: Any, columns: Any) -> tuple[int, str]:
    """Row and place of the first of the values that are marked as bad."""
    first = int(np.flatnonzero(bad.ravel())[0])
    where: tuple[int, ...]
    if scipy.sparse.issparse(X):
        where = (int(np.searchsorted(X.indptr, first, side="right")) - 1, int(X.indices[first]))
    else:
        where = tuple(int(i) for i in np.unravel_index(first, X.shape))
    return where[0], f"at {list(where[1:])}" if columns is None else f"in column {str(columns[where[1]])!r}"


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
    if value is None or (isinstance(value, Integral if integer else Real) and not isinstance(value, bool)):
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
    """Return labels as numbers, for losses that read them: integers and floats as given, other values as class codes.

    A missing label would make the loss NaN, and is an error.
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has the shape {labels.shape}: expected one label for each of the {n} rows, ({n},)")
    if labels.dtype.kind in "fO":
        bad = [row for row, value in enumerate(labels.tolist()) if _is_no_label(value)]
        if bad:
            raise ValueError(
                f"y has {len(bad):,} missing label(s), the first in row {bad[0]}, and a loss reads them: drop these rows, or "
                "label them as a class of their own"
            )
    if labels.dtype.kind not in "biuf":
        labels = np.unique(labels.astype(str), return_inverse=True)[1]
    return torch.from_numpy(np.ascontiguousarray(labels, np.int64 if labels.dtype.kind in "biu" else np.float32))


def _is_no_label(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def warn_of_one_label(labels: Tensor) -> None:
    """Warn if all rows have the same label: a loss that reads labels then learns nothing from them."""
    if bool((labels == labels[0]).all()):
        warnings.warn(
            f"all {len(labels):,} rows have the same label: a loss that reads labels has nothing to learn from them. Pass "
            "labels of two classes or more, or choose a schedule without this loss.",
            stacklevel=level_of_caller(),
        )
