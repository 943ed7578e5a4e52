"""Steps and constants of a row program while it is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dre.model.row_program import Array, RowStep

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.bool: "bool"}
Operand = Any  # a Value, a Tensor, or a number


class LoweringError(ValueError):
    """A module that can't become a row program; the message names the operator."""


class TracingError(LoweringError):
    """A module that ``torch.export`` can't trace, which then can't become a file of another format either."""


@dataclass(frozen=True)
class Value:
    """What a step makes of a row: its name, and its shape with a first axis of one row."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Out:
    """Shape and type of what an operator gives for one row."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass
class ProgramBuilder:
    """The steps and constants of a program while it is made."""

    steps: list[RowStep] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    _known: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def constant(self, values: Any) -> str:
        """Name an array, once if it occurs again; its values are stored as the types that pages have."""
        array = np.ascontiguousarray(values.detach().cpu().numpy() if isinstance(values, Tensor) else values)
        if array.dtype == np.bool_:
            array = array.astype(np.uint8)
        elif array.dtype.kind in "iu" and array.dtype != np.int32:
            array = array.astype(np.float64)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"c{len(self.constants)}"
            self.constants[self._known[key]] = array.ravel() if array.ndim != 2 else array
        return self._known[key]

    def step(self, op: str, inputs: list[Value | str], shape: tuple[int, ...], dtype: torch.dtype, **options: Any) -> Value:
        """Append a step; return what it makes."""
        if dtype not in DTYPES:
            raise LoweringError(f"it computes in {str(dtype).removeprefix('torch.')}, which row programs lack")
        made = Value(f"v{len(self.steps)}", shape, dtype)
        names = tuple(each.name if isinstance(each, Value) else each for each in inputs)
        self.steps.append(RowStep(op, names, made.name, made.size, DTYPES[dtype], options))
        return made

    def point(self, name: str, out: Out, *operands: Operand) -> Value:
        """A function of operands that are broadcast to a shape."""
        inputs: list[Value | str] = []
        maps: list[str | None] = []
        for each in operands:
            shape = each.shape if isinstance(each, Value | Tensor) else ()
            size = int(np.prod(shape, dtype=np.int64))
            inputs.append(each if isinstance(each, Value) else self.constant(torch.as_tensor(each).double().ravel()))
            if isinstance(each, Tensor) and each.dtype in DTYPES:
                inputs[-1] = self.constant(each.ravel())
            order = torch.arange(size, dtype=torch.int32).reshape(tuple(shape)).broadcast_to(out.shape).ravel()
            same = size == out.size and bool((order == torch.arange(size)).all())
            maps.append(None if same or size == 1 else self.constant(order))
        return self.step("point", inputs, out.shape, out.dtype, name=name, maps=maps)

    def move(self, x: Value, moved: Callable[[Tensor], Any]) -> Any:
        """Values in another order or shape, as ``moved`` orders numbers from 1 up; where it puts a zero is ``fill``."""
        numbers = torch.arange(1, x.size + 1, dtype=torch.double).reshape(x.shape)
        found = moved(numbers)
        if isinstance(found, tuple | list):
            return tuple(self._take(x, each) for each in found)
        return self._take(x, found)

    def _take(self, x: Value, numbers: Tensor, fill: float = 0.0) -> Value:
        positions = numbers.ravel().to(torch.int32) - 1
        if len(positions) == x.size and bool((positions == torch.arange(x.size)).all()):
            return Value(x.name, tuple(numbers.shape), x.dtype)
        return self.step("take", [x], tuple(numbers.shape), x.dtype, map=self.constant(positions), fill=fill)

    def pad(self, x: Value, padding: list[int], fill: float) -> Value:
        if not math.isfinite(fill):
            raise LoweringError(f"it pads with {fill}, and row programs pad with finite numbers")
        numbers = torch.arange(1, x.size + 1, dtype=torch.double).reshape(x.shape)
        return self._take(x, nn.functional.pad(numbers, padding), fill)

    def tensor(self, x: Operand) -> Tensor:
        """An operand that must not depend on the rows."""
        if isinstance(x, Value):
            raise LoweringError("it has weights that depend on the rows")
        return torch.as_tensor(x)
