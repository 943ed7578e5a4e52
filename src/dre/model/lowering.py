"""From a module to a row program: ``torch.export`` traces one row, and each operator becomes steps with constants.

What depends on no row is computed here, once. What only moves values, such as a permutation or padding, becomes their positions,
which the operator itself gives for a row of numbered values. An operator that is not known is refused by name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.fx import Node
from torch.utils._pytree import tree_flatten

from dre.model.row_program import INPUT, Array, RowProgram, Step

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.bool: "bool"}


class LoweringError(ValueError):
    """A module that can't become a row program; the message names the operator."""


@dataclass(frozen=True)
class Value:
    """What a step makes of a row: its name, and its shape with a first axis of one row."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


Operand = Any  # a Value, a Tensor, or a number


def lower(module: nn.Module, row: Tensor) -> RowProgram:
    """Return the program of a module, traced with one raw row (1, ...) of float64.

    Examples
    --------
    >>> program = lower(nn.Linear(2, 1).double(), torch.zeros(1, 2, dtype=torch.double))
    >>> [step.op for step in program.steps]
    ['dense']
    """
    exported = torch.export.export(module, (row,)).run_decompositions()
    signature = exported.graph_signature
    held: Mapping[str, Any] = {**exported.constants, **exported.state_dict}
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    lowering = Lowering()
    known: dict[Node, Any] = {}
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            known[node] = held[names[node.name]].detach() if node.name in names else Value(INPUT, tuple(row.shape), row.dtype)
        elif node.op == "call_function":
            known[node] = lowering.call(node, known)
        elif node.op == "output":
            (output,) = torch.fx.node.map_arg(node.args[0], lambda each: known[each])
    if not isinstance(output, Value):
        raise LoweringError("its result does not depend on the rows")
    return RowProgram(row.numel(), lowering.steps, lowering.constants, output.name)


@dataclass
class Lowering:
    """The steps and constants of a program while it is made."""

    steps: list[Step] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    _known: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def call(self, node: Node, known: Mapping[Node, Any]) -> Any:
        """What a node of the graph gives: a value, a tensor that no row changes, or several of them."""
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: known[each])
        if node.target is operator.getitem:
            return args[0][args[1]]
        name = str(getattr(node.target, "overloadpacket", node.target)).removeprefix("aten.")
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise LoweringError(f"its operator aten.{name} draws at random")
        if not any(isinstance(each, Value) for each in tree_flatten((args, kwargs))[0]) and callable(node.target):
            return node.target(*args, **kwargs)
        if name.startswith(("_assert", "sym_")):
            return None
        if name in MOVES:
            return self.move(args[0], lambda x: node.target(x, *args[1:], **kwargs))  # type: ignore[operator]
        from dre.model.operators import OPERATORS  # which need this class

        if name not in OPERATORS:
            raise LoweringError(f"its operator aten.{name} is not among those of row programs")
        out = node.meta["val"]
        out = out[0] if isinstance(out, tuple | list) else out
        return OPERATORS[name](self, Out(tuple(map(int, out.shape)), out.dtype), *args, **kwargs)

    # Parts of programs

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
        self.steps.append(Step(op, names, made.name, made.size, DTYPES[dtype], options))
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
        numbers = torch.arange(1, x.size + 1, dtype=torch.double).reshape(x.shape)
        return self._take(x, nn.functional.pad(numbers, padding), fill)

    def tensor(self, x: Operand) -> Tensor:
        """An operand that must not depend on the rows."""
        if isinstance(x, Value):
            raise LoweringError("it has weights that depend on the rows")
        return torch.as_tensor(x)


@dataclass(frozen=True)
class Out:
    """Shape and type of what an operator gives for one row."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


MOVES = {
    "alias", "clone", "contiguous", "detach", "lift_fresh_copy", "view", "reshape", "_unsafe_view", "view_copy", "permute",
    "permute_copy", "transpose", "t", "movedim", "expand", "expand_copy", "slice", "slice_copy", "select", "select_copy", "narrow",
    "unsqueeze", "unsqueeze_copy", "squeeze", "squeeze_copy", "flatten", "unflatten", "flip", "roll", "repeat", "index_select",
    "index", "split", "split_with_sizes", "split_with_sizes_copy", "chunk", "unbind", "unbind_copy", "pixel_shuffle",
    "pixel_unshuffle", "channel_shuffle", "diagonal", "as_strided", "upsample_nearest1d", "upsample_nearest2d", "im2col",
}  # fmt: skip
