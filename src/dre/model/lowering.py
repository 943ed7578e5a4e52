"""From a module to a row program: ``torch.export`` traces one row, and each operator becomes steps with constants.

What depends on no row is computed here, once. What only moves values, such as a permutation or padding, becomes their
positions, which the operator itself gives for a row of numbered values. An operator that is not known is refused by name.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node
from torch.utils._pytree import tree_flatten

from dre.model.operators import OPERATORS
from dre.model.program_builder import LoweringError, Out, ProgramBuilder, TracingError, Value
from dre.model.quiet import quiet
from dre.model.row_program import INPUT, RowProgram

MOVES = {
    "alias", "clone", "contiguous", "detach", "lift_fresh_copy", "view", "reshape", "_unsafe_view", "view_copy",
    "permute", "permute_copy", "transpose", "t", "movedim", "expand", "expand_copy", "slice", "slice_copy", "select",
    "select_copy", "narrow", "unsqueeze", "unsqueeze_copy", "squeeze", "squeeze_copy", "flatten", "unflatten", "flip",
    "roll", "repeat", "index_select", "index", "split", "split_with_sizes", "split_with_sizes_copy", "chunk", "unbind",
    "unbind_copy", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "diagonal", "as_strided",
    "upsample_nearest1d", "upsample_nearest2d", "im2col",
}  # fmt: skip


def lower(module: nn.Module, row: Tensor) -> RowProgram:
    """Return the program of a module, traced with one raw row (1, ...) of float64.

    Examples
    --------
    >>> program = lower(nn.Linear(2, 1).double(), torch.zeros(1, 2, dtype=torch.double))
    >>> [step.op for step in program.steps]
    ['dense']
    """
    exported = _exported(module, row)
    signature = exported.graph_signature
    held: Mapping[str, Any] = {**exported.constants, **exported.state_dict}
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    builder = ProgramBuilder()
    known: dict[Node, Any] = {}
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            known[node] = held[names[node.name]].detach() if node.name in names else Value(INPUT, tuple(row.shape), row.dtype)
        elif node.op == "call_function":
            known[node] = _call(builder, node, known)
        elif node.op == "output":
            (output,) = torch.fx.node.map_arg(node.args[0], lambda each: known[each])
    if not isinstance(output, Value):
        raise LoweringError("its result does not depend on the rows")
    return RowProgram(row.numel(), builder.steps, builder.constants, output.name)


def _exported(module: nn.Module, row: Tensor) -> torch.export.ExportedProgram:
    try:
        with quiet():
            exported: torch.export.ExportedProgram = torch.export.export(module, (row,)).run_decompositions()
            return exported
    except Exception as problem:  # of many kinds, also those that the module itself raises
        reason = str(problem).strip().partition("\n")[0].rstrip(".") or type(problem).__name__
        raise TracingError(f"torch.export can't trace it: {reason}") from problem


def _call(builder: ProgramBuilder, node: Node, known: Mapping[Node, Any]) -> Any:
    """What a node of the graph gives: a value, a tensor that no row changes, or several of them."""
    args: Any
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: known[each])
    target: Any = node.target
    if target is operator.getitem:
        return args[0][args[1]]
    name = str(getattr(target, "overloadpacket", target)).removeprefix("aten.")
    if torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()):
        raise LoweringError(f"its operator aten.{name} draws at random")
    if not any(isinstance(each, Value) for each in tree_flatten((args, kwargs))[0]):
        return target(*args, **kwargs)
    if name.startswith(("_assert", "sym_")):
        return None
    if name in MOVES:
        return builder.move(args[0], lambda x: target(x, *args[1:], **kwargs))
    if name not in OPERATORS:
        raise LoweringError(f"its operator aten.{name} is not among those of row programs")
    out = node.meta["val"]
    out = out[0] if isinstance(out, tuple | list) else out
    return OPERATORS[name](builder, Out(tuple(map(int, out.shape)), out.dtype), *args, **kwargs)
