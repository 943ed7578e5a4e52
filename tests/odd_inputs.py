"""Odd inputs: values, dtypes, layouts, containers and parameters that users may pass, as Hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
import torch
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]
TINY = {"schedule": "x: gaussian(5) -> kl * 1", "encoder": "mlp(4, depth=1)", "batch_size": "shuffled(64)"}


@dataclass
class Case:
    """Rows of some kind for a model, and how to make the same kind of object of any of these rows."""

    kind: str
    values: Array | None  # None where no rows can be told apart
    convert: Callable[[Array], Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    must_refuse: bool = False

    @property
    def X(self) -> Any:
        return self.convert(self.values) if self.values is not None else self.convert(np.empty(0))


class Stream:
    """Rows that are read in pieces."""

    def __init__(self, X: Array) -> None:
        self.X, self.shape = torch.tensor(X), X.shape

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self.X[start:stop]

    def take(self, ids: torch.Tensor) -> torch.Tensor:
        return self.X[ids]


# Values.


def _mixed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.normal(size=shape) * 10.0 ** rng.integers(-300, 300, shape)


VALUES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "integers": lambda rng, shape: rng.integers(-5, 200, shape).astype(float),
    "zeros": lambda rng, shape: np.zeros(shape),
    "constant": lambda rng, shape: np.full(shape, rng.choice([0.1, 1e10 + 0.1, -1 / 3, 1e300, 5e-324])),
    "few rows": lambda rng, shape: rng.normal(size=shape)[rng.integers(0, min(2, shape[0]), shape[0])],
    "one column": lambda rng, shape: np.broadcast_to(rng.normal(size=(shape[0], *[1] * (len(shape) - 1))), shape).copy(),
    "constant column": lambda rng, shape: np.where(np.arange(shape[-1]) == 0, 1e20 / 3, rng.normal(size=shape)),
    "huge": lambda rng, shape: rng.normal(size=shape) * rng.choice([1e200, 1e300, 3e307]),
    "tiny": lambda rng, shape: rng.normal(size=shape) * rng.choice([1e-200, 1e-300, 1e-310, 1e-322]),
    "mixed": _mixed,
    "units": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-30, 30, shape[-1]),
    "offset": lambda rng, shape: 10.0 ** rng.integers(3, 18) + rng.normal(size=shape),
    "outlier": lambda rng, shape: np.where(rng.random(shape) < 0.02, 1e30, rng.normal(size=shape)),
    "sparse": lambda rng, shape: np.where(rng.random(shape) < 0.2, rng.poisson(3, shape), 0).astype(float),
    "NaN": lambda rng, shape: np.where(rng.random(shape) < 0.2, np.nan, rng.normal(size=shape)),
    "infinity": lambda rng, shape: np.where(rng.random(shape) < 0.2, np.inf, rng.normal(size=shape)),
}

# Arrays.

DTYPES = ["f2", "f4", "f8", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f4", ">f8", ">i4", ">u2", "O"]
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "reversed": lambda X: X[::-1].copy()[::-1],
    "strided": lambda X: np.repeat(X, 2, axis=-1)[..., ::2],
    "read-only": lambda X: _read_only(X.copy()),
    "masked": np.ma.array,
}


def _read_only(X: Array) -> Array:
    X.flags.writeable = False
    return X


def cast(X: Array, dtype: str) -> Array:
    """Convert to a dtype; integers are cut to its range, without the gaps that they can't have."""
    kind = np.dtype(dtype)
    with np.errstate(all="ignore"):
        if kind.kind in "iu":
            info = np.iinfo(kind)
            low, high = max(info.min, -(2**62)), min(info.max, 2**62)
            return np.clip(np.nan_to_num(X), low, high).astype(kind)
        return X.astype(kind)


# Containers.


def _unsorted(X: Array) -> Any:
    matrix = sp.csr_array(X)
    for a, b in zip(matrix.indptr, matrix.indptr[1:], strict=False):
        matrix.indices[a:b], matrix.data[a:b] = matrix.indices[a:b][::-1].copy(), matrix.data[a:b][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def _duplicates(X: Array) -> Any:
    """Every value stored as two halves."""
    matrix = sp.csr_array(X)
    halves = np.repeat(matrix.data / 2, 2)
    return sp.csr_array((halves, np.repeat(matrix.indices, 2), matrix.indptr * 2), shape=X.shape)


def _explicit_zeros(X: Array) -> Any:
    n, d = X.shape
    return sp.csr_array((X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=X.shape)


def _int64_indices(X: Array) -> Any:
    matrix = sp.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


SPARSE: dict[str, Callable[[Array], Any]] = {
    "csr": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "bsr": sp.bsr_array,
    "lil": sp.lil_array,
    "unsorted": _unsorted,
    "duplicates": _duplicates,
    "explicit zeros": _explicit_zeros,
    "int64 indices": _int64_indices,
}


def _named(X: Array) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])


ODD_NAMES = ["", "ä\n", "x" * 300, "\x1b[2J"]
FRAMES: dict[str, Callable[[Array], Any]] = {
    "pandas": _named,
    "numbered columns": pd.DataFrame,
    "nullable": lambda X: _named(X).convert_dtypes(),
    "odd names": lambda X: pd.DataFrame(
        X, columns=[["", "ä\n", "x" * 300, "\x1b[2J"][i % 4] + str(i) for i in range(X.shape[1])]
    ),
    "polars": lambda X: pl.from_numpy(X, schema=[f"c{i}" for i in range(X.shape[1])]),
    "odd index": lambda X: _named(X).set_index(pd.Index(["a"] * len(X))),
}
BAD_FRAMES: dict[str, Callable[[Array], Any]] = {
    "text column": lambda X: _named(X).assign(text=[f"text {i}" for i in range(len(X))]),
    "dates": lambda X: _named(X).assign(date=pd.Timestamp("2020-01-01")),
    "categories": lambda X: _named(X).assign(kind=pd.Categorical([None] * len(X), categories=["a"])),
    "vectors": lambda X: _named(X).assign(vector=[[1.0, 2.0]] * len(X)),
    "same names": lambda X: pd.DataFrame(np.c_[X, X], columns=["a"] * (2 * X.shape[1])),
    "mixed names": lambda X: pd.DataFrame(np.c_[X, X], columns=["a", *range(2 * X.shape[1] - 1)]),
    "missing": lambda X: _named(X).assign(gap=pd.array([None] * len(X), dtype="Int64")),
    "polars text": lambda X: pl.DataFrame({"a": [1.0] * len(X), "b": [f"text {i}" for i in range(len(X))]}),
}
TENSORS: dict[str, Callable[[Array], Any]] = {
    "float32": lambda X: torch.tensor(X, dtype=torch.float32),
    "float64": lambda X: torch.tensor(X, dtype=torch.float64),
    "bfloat16": lambda X: torch.tensor(X, dtype=torch.bfloat16),
    "requires_grad": lambda X: torch.tensor(X, requires_grad=True),
    "transposed": lambda X: torch.tensor(np.moveaxis(X, 0, -1).copy()).movedim(-1, 0),
}
JUNK: dict[str, Callable[[Array], Any]] = {
    "None": lambda X: None,
    "text": lambda X: "rows.csv",
    "texts": lambda X: np.array([["a", "b"], ["c", "d"]]),
    "objects": lambda X: np.array([[{}, 1], [2, 3]], dtype=object),
    "ragged": lambda X: [[1.0, 2.0], [3.0]],
    "dict": lambda X: {"a": [1.0, 2.0]},
    "scalar": lambda X: np.float64(3),
    "vector": lambda X: np.ones(9),
    "5 axes": lambda X: np.ones((4, 2, 2, 2, 2)),
    "no rows": lambda X: np.ones((0, 3)),
    "no columns": lambda X: np.ones((9, 0)),
    "complex": lambda X: np.ones((9, 3)) * 1j,
    "dates": lambda X: np.full((9, 3), "2020-01-01", dtype="datetime64[D]"),
    "timedelta": lambda X: np.ones((9, 3), dtype="timedelta64[s]"),
    "structured": lambda X: np.zeros((9, 2), dtype=[("a", float)]),
    "masked values": lambda X: np.ma.array(np.ones((9, 3)), mask=np.eye(9, 3)),
    "matrix": lambda X: np.matrix(np.eye(9)),
    "meta tensor": lambda X: torch.ones(9, 3, device="meta"),
    "sparse tensor": lambda X: torch.eye(9).to_sparse(),
    "generator": lambda X: (row for row in np.eye(4)),
    "large integers": lambda X: [[10**400, 1], [2, 3]],
}


# Strategies.

CONTAINERS = ["array"] * 4 + ["sparse"] * 3 + ["frame"] * 2 + ["tensor", "stream", "list", "bad frame", "junk"]


@st.composite
def parameters(draw: st.DrawFn, *, images: bool) -> dict[str, Any]:
    """Parameters of a quick model, mostly; a few have the recipes of users."""
    if draw(st.integers(0, 59)) == 0:
        chosen: dict[str, Any] = {"recipe": draw(st.sampled_from(["fast", "auto"]))}
    else:
        chosen = dict(TINY)
        encoders = ["mlp(4, depth=1)"] * 3 + ["mlp(4, depth=2, n_pcs=2)", "model-a(width=4)"]
        chosen["encoder"] = draw(
            st.sampled_from([*encoders, "patch-mlp(4, depth=1, filters=2, n_pcs=3)"] if images else encoders)
        )
        chosen["schedule"] = draw(st.sampled_from([TINY["schedule"]] * 4 + ["x: fuzzy(4) -> ce * 1"]))
        if chosen["schedule"] == TINY["schedule"]:
            chosen["perplexity"] = draw(st.sampled_from([None, None, 1, 500]))
    chosen["metric"] = draw(st.sampled_from(["euclidean", "euclidean", "cosine", "correlation"]))
    chosen["standardize"] = draw(st.booleans())
    chosen["n_components"] = draw(st.sampled_from([2, 2, 2, 1, 3, 7]))
    chosen["random_state"] = draw(st.sampled_from([0, 2**32 - 1, None]))
    return chosen


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One odd input with parameters."""
    container = draw(
        st.sampled_from(["array"] * 4 + ["sparse"] * 3 + ["frame"] * 2 + ["tensor", "stream", "list", "bad frame", "junk"])
    )
    if container == "junk":
        name = draw(st.sampled_from(sorted(JUNK)))
        return Case("junk", None, JUNK[name], dict(TINY), must_refuse=True)
    images = container in ("array", "tensor", "stream") and draw(st.integers(0, 3)) == 0
    n = draw(st.sampled_from([1, 2, 2, 3, 5, 20, 40]))
    side = st.integers(1, 6)
    shape = (
        n,
        *draw(
            st.one_of(st.tuples(side, side), st.tuples(side, side, side))
            if images
            else st.tuples(st.sampled_from([1, 2, 3, 8, 101]))
        ),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    name = draw(st.sampled_from(sorted(VALUES)))
    with np.errstate(all="ignore"):
        values = VALUES[name](rng, shape)
    chosen = draw(parameters(images=images))
    bad = n < 2
    if container == "array":
        dtype, layout = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(sorted(LAYOUTS)))
        values = cast(values, dtype)
        convert = LAYOUTS[layout]
    elif container == "stream":
        values = cast(values, draw(st.sampled_from(["f4", "f8"])))
        convert = Stream
    elif container == "list":
        convert = np.ndarray.tolist  # type: ignore[assignment]
    else:
        tables = {"sparse": SPARSE, "frame": FRAMES, "bad frame": BAD_FRAMES, "tensor": TENSORS}[container]
        convert = tables[draw(st.sampled_from(sorted(tables)))]
        bad = bad or container == "bad frame"
        if container == "tensor" and convert is TENSORS["bfloat16"]:
            values = torch.tensor(values, dtype=torch.bfloat16).double().numpy()
        elif container == "tensor" and convert is TENSORS["float32"]:
            values = cast(values, "f4")
    with np.errstate(all="ignore"):
        bad = bad or not np.isfinite(values.astype(np.float64)).all()
    kind = f"{container}, images" if images else container
    return Case(kind, values, convert, chosen, must_refuse=bad)
