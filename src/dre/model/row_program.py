"""Row programs: the learned map as a short list of steps with constants, which a page in a browser can run.

A program takes one raw row to its coordinates. All values are flat, and every step treats the rows alike, so whoever runs it
may take many rows at once. ``lowering.py`` makes a program of a module, ``explore/page/program.js`` runs it in a browser, and
`RowProgram.run` says what each step means.

============  ============================================================================================================
step          result, for each row
============  ============================================================================================================
``point``     a function of the values at the same place; ``maps`` say where the operands that are smaller repeat
``take``      values by their positions; ``fill`` where the position is -1
``join``      the inputs one after the other
``reduce``    sum, mean, max, min, variance or norm of each ``inner`` values
``norm``      each ``inner`` values with mean 0 and variance 1
``softmax``   the softmax of each ``inner`` values
``dense``     (rows, k) times weight (columns, k) transposed, plus bias
``product``   (batch, m, k) times (batch, p, k) transposed, of two values
``conv``      values of each window times weight (channels, ...), plus bias, by groups of planes
``pool``      mean or maximum of each window of each plane
============  ============================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
INPUT = "x"
FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class RowStep:
    """One step: its name, its inputs, and the value that it makes.

    Parameters
    ----------
    op : str
    inputs : tuple of str
        Names of values, or of constants, which are the same for all rows.
    out : str
    size : int
        Values of each row.
    dtype : {"float32", "float64", "bool"}
        Steps are computed in float64 and rounded to this type.
    options : dict
        What else the step needs, as JSON; arrays are names of constants.
    """

    op: str
    inputs: tuple[str, ...]
    out: str
    size: int
    dtype: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RowProgram:
    """Steps from a raw row of ``size`` values to its coordinates, and the constants that they name."""

    size: int
    steps: list[RowStep]
    constants: dict[str, Array]
    output: str

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.constants.values())

    def run(self, rows: Array) -> Array:
        """Compute the coordinates (n, components) of raw rows (n, ...), slowly and plainly: for checks.

        Examples
        --------
        >>> double = RowStep("point", ("x", "c0"), "v0", 2, "float64", {"name": "mul", "maps": [None, None]})
        >>> RowProgram(2, [double], {"c0": np.array([2.0])}, "v0").run(np.array([[1.0, 3.0]])).tolist()
        [[2.0, 6.0]]
        """
        values: dict[str, Array] = {INPUT: np.asarray(rows, np.float64).reshape(len(rows), self.size)}
        for step in self.steps:
            inputs = [values[name] if name in values else self.constants[name][None] for name in step.inputs]
            given = {name: self._constant(value) for name, value in step.options.items()}
            with np.errstate(all="ignore"):
                found = RUN[step.op]([each.astype(np.float64) for each in inputs], **given)
                values[step.out] = found.reshape(len(rows), step.size).astype(step.dtype)
        return values[self.output]

    def _constant(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._constant(each) for each in value]
        return self.constants[value] if isinstance(value, str) and value in self.constants else value


def _where(condition: Array, x: Any, y: Any) -> Array:
    found: Array = np.where(condition, x, y)
    return found


def _erf(x: Array) -> Array:
    from scipy.special import erf

    found: Array = erf(x)
    return found


POINTS: dict[str, Callable[..., Array]] = {
    "same": lambda x: x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "max": np.maximum,
    "min": np.minimum,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": lambda x, y: (x != 0) & (y != 0),
    "or": lambda x, y: (x != 0) | (y != 0),
    "not": lambda x: x == 0,
    "where": lambda x, y, z: _where(x != 0, y, z),
    "relu": lambda x: _where(x < 0, 0, x),
    "leaky": lambda x, slope: _where(x > 0, x, x * slope),
    "elu": lambda x, alpha, scale, inner: _where(x > 0, x * scale, alpha * scale * np.expm1(x * inner)),
    "gelu": lambda x: 0.5 * x * (1 + _erf(x * math.sqrt(0.5))),
    "gelu-tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": _erf,
    "abs": np.abs,
    "neg": np.negative,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,  # half to even
}
REDUCTIONS: dict[str, Callable[..., Array]] = {
    "sum": lambda x, correction: x.sum(2),
    "mean": lambda x, correction: x.mean(2),
    "max": lambda x, correction: x.max(2),
    "min": lambda x, correction: x.min(2),
    "norm": lambda x, correction: np.sqrt((x * x).sum(2)),
    "var": lambda x, correction: ((x - x.mean(2, keepdims=True)) ** 2).sum(2) / (x.shape[2] - correction),
}


def _point(inputs: list[Array], name: str, maps: list[Array | None]) -> Array:
    return POINTS[name](*(each if map_ is None else each[:, map_] for each, map_ in zip(inputs, maps, strict=True)))


def _take(inputs: list[Array], map: Array, fill: float) -> Array:  # noqa: A002 - as the step names it
    return _where(map >= 0, inputs[0][:, map], fill)


def _join(inputs: list[Array]) -> Array:
    n = max(map(len, inputs))
    return np.concatenate([np.broadcast_to(each, (n, each.shape[1])) for each in inputs], 1)


def _reduce(inputs: list[Array], name: str, inner: int, correction: float = 0.0) -> Array:
    return REDUCTIONS[name](inputs[0].reshape(len(inputs[0]), -1, inner), correction)


def _norm(inputs: list[Array], inner: int, eps: float) -> Array:
    x = inputs[0].reshape(len(inputs[0]), -1, inner)
    found: Array = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + eps)
    return found


def _softmax(inputs: list[Array], inner: int) -> Array:
    x = inputs[0].reshape(len(inputs[0]), -1, inner)
    powers = np.exp(x - x.max(2, keepdims=True))
    found: Array = powers / powers.sum(2, keepdims=True)
    return found


def _dense(inputs: list[Array], weight: Array, bias: Array, rows: int) -> Array:
    found: Array = inputs[0].reshape(len(inputs[0]), rows, -1) @ weight.astype(np.float64).T + bias
    return found


def _product(inputs: list[Array], batch: int, inner: int) -> Array:
    a, b = (each.reshape(len(each), batch, -1, inner) for each in inputs)
    found: Array = a @ b.swapaxes(2, 3)
    return found


def _windows(x: Array, windows: Array, fill: float) -> Array:
    """Values of planes (n, planes, values) in each window: (n, planes, positions, values of a window)."""
    found: Array = np.where(windows >= 0, x[:, :, windows], fill)
    return found


def _conv(
    inputs: list[Array], *, weight: Array, bias: Array, windows: Array, positions: int, groups: int, planes: int
) -> Array:
    x = inputs[0].reshape(len(inputs[0]), planes, -1)
    seen = _windows(x, windows.reshape(positions, -1), 0.0)
    seen = seen.reshape(len(x), groups, planes // groups, positions, -1).swapaxes(2, 3).reshape(len(x), groups, positions, -1)
    weights = weight.astype(np.float64).reshape(groups, -1, seen.shape[-1])
    found: Array = (weights @ seen.swapaxes(2, 3)).reshape(len(x), -1, positions) + bias[:, None]
    return found


def _pool(inputs: list[Array], *, name: str, windows: Array, positions: int, planes: int, divisors: Array) -> Array:
    x, windows = inputs[0].reshape(len(inputs[0]), planes, -1), windows.reshape(positions, -1)
    found: Array = _windows(x, windows, -np.inf).max(3) if name == "max" else _windows(x, windows, 0.0).sum(3) / divisors
    return found


RUN: dict[str, Callable[..., Array]] = {
    "point": _point,
    "take": _take,
    "join": _join,
    "reduce": _reduce,
    "norm": _norm,
    "softmax": _softmax,
    "dense": _dense,
    "product": _product,
    "conv": _conv,
    "pool": _pool,
}
