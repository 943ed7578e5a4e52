"""Operators of ATen as steps of row programs, one function each, in the table ``OPERATORS``."""

# ruff: noqa: PLR0917 - the signatures are those of ATen

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dre.model.program_builder import LoweringError, Operand, Out, ProgramBuilder, Value

Ints = list[int]


def _unary(name: str) -> Callable[..., Value]:
    return lambda made, out, x: made.point(name, out, x)


def _binary(name: str) -> Callable[..., Value]:
    def lowered(made: ProgramBuilder, out: Out, x: Operand, y: Operand, *, alpha: float = 1) -> Value:
        return made.point(name, out, x, y if alpha == 1 else _times(made, y, alpha))

    return lowered


def _times(made: ProgramBuilder, x: Operand, factor: float) -> Operand:
    return made.point("mul", Out(x.shape, x.dtype), x, factor) if isinstance(x, Value) else x * factor


def _div(made: ProgramBuilder, out: Out, x: Operand, y: Operand, *, rounding_mode: str | None = None) -> Value:
    found = made.point("div", out, x, y)
    if rounding_mode == "floor":
        return made.point("floor", out, found)
    if rounding_mode is not None:
        raise LoweringError(f"it divides with rounding_mode={rounding_mode!r}")
    return found


def _clamp(made: ProgramBuilder, out: Out, x: Value, least: Operand = None, most: Operand = None) -> Value:
    x = x if least is None else made.point("max", out, x, least)
    return x if most is None else made.point("min", out, x, most)


def _elu(made: ProgramBuilder, out: Out, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    return made.point("elu", out, x, alpha, scale, input_scale)


def _gelu(made: ProgramBuilder, out: Out, x: Value, *, approximate: str = "none") -> Value:
    return made.point("gelu" if approximate == "none" else "gelu-tanh", out, x)


def _copy(made: ProgramBuilder, out: Out, x: Value, *args: Any, **kwargs: Any) -> Value:
    """A conversion, of which memory formats and devices do not matter here."""
    return Value(x.name, out.shape, out.dtype) if x.dtype == out.dtype else made.point("same", out, x)


def _filled(
    made: ProgramBuilder, out: Out, x: Value, value: float = 0.0, *args: Any, of: float | None = None, **kwargs: Any
) -> Tensor:
    return torch.full(out.shape, value if of is None else of, dtype=out.dtype)


def _cat(made: ProgramBuilder, out: Out, parts: list[Operand], dim: int = 0) -> Value:
    """The parts one after the other, and then their values in the order of the result."""
    joined: list[Value | str] = [each if isinstance(each, Value) else made.constant(each.ravel()) for each in parts]
    sizes = [math.prod(each.shape) for each in parts]
    whole = made.step("join", joined, (1, sum(sizes)), out.dtype)
    shapes = [tuple(each.shape) for each in parts]

    def ordered(numbers: Tensor) -> Tensor:
        pieces = numbers.ravel().split(sizes)
        return torch.cat([piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)], dim)

    moved: Value = made.move(whole, ordered)
    return moved


def _stack(made: ProgramBuilder, out: Out, parts: list[Operand], dim: int = 0) -> Value:
    raised = [made.move(each, lambda x: x.unsqueeze(dim)) if isinstance(each, Value) else each.unsqueeze(dim) for each in parts]
    return _cat(made, out, raised, dim)


def _pad(made: ProgramBuilder, out: Out, x: Value, padding: Ints, value: float = 0.0) -> Value:
    return made.pad(x, padding, float(value))


# Sums over axes


def _last(made: ProgramBuilder, x: Value, dims: Any) -> tuple[Value, int]:
    """The values with these axes last, and the number of values along them."""
    axes = list(range(len(x.shape))) if dims is None or dims == [] else [dims] if isinstance(dims, int) else list(dims)
    axes = [axis % max(1, len(x.shape)) for axis in axes]
    others = [axis for axis in range(len(x.shape)) if axis not in axes]
    moved: Value = made.move(x, lambda numbers: numbers.permute([*others, *axes]))
    return moved, math.prod(x.shape[axis] for axis in axes)


def _reduce(name: str) -> Callable[..., Value]:
    def lowered(
        made: ProgramBuilder, out: Out, x: Value, dims: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Value:
        moved, inner = _last(made, x, dims)
        return made.step("reduce", [moved], out.shape, out.dtype, name=name, inner=inner)

    return lowered


def _var(
    made: ProgramBuilder, out: Out, x: Value, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Value:
    moved, inner = _last(made, x, dims)
    return made.step(
        "reduce", [moved], out.shape, out.dtype, name="var", inner=inner, correction=1.0 if correction is None else correction
    )


def _vector_norm(
    made: ProgramBuilder, out: Out, x: Value, order: float = 2, dims: Any = None, *args: Any, **kwargs: Any
) -> Value:
    names = {1: "sum", 2: "norm", math.inf: "max"}
    if order not in names:
        raise LoweringError(f"it takes a norm of order {order}")
    same = Out(x.shape, x.dtype)
    moved, inner = _last(made, x if order == 2 else made.point("abs", same, x), dims)
    return made.step("reduce", [moved], out.shape, out.dtype, name=names[order], inner=inner)


def _softmax(made: ProgramBuilder, out: Out, x: Value, dim: int, *args: Any, log: bool = False) -> Value:
    moved, inner = _last(made, x, [dim])
    found = made.step("softmax", [moved], moved.shape, out.dtype, inner=inner)
    back: Value = made.move(found, lambda numbers: numbers.movedim(-1, dim))
    return made.point("log", out, back) if log else back


# Norms


def _affine(made: ProgramBuilder, out: Out, x: Value, weight: Tensor | None, bias: Tensor | None) -> Value:
    x = x if weight is None else made.point("mul", out, x, weight)
    return x if bias is None else made.point("add", out, x, bias)


def _layer_norm(
    made: ProgramBuilder, out: Out, x: Value, shape: Ints, weight: Any, bias: Any, eps: float
) -> tuple[Value, None, None]:
    found = made.step("norm", [x], x.shape, out.dtype, inner=math.prod(shape), eps=eps)
    return _affine(made, out, found, weight, bias), None, None


def _group_norm(
    made: ProgramBuilder, out: Out, x: Value, weight: Any, bias: Any, n: int, c: int, area: int, groups: int, eps: float
) -> tuple[Value, None, None]:
    found = made.step("norm", [x], x.shape, out.dtype, inner=c * area // groups, eps=eps)
    return _affine(made, out, found, *(_by_channel(each, x) for each in (weight, bias))), None, None


def _batch_norm(
    made: ProgramBuilder, out: Out, x: Value, weight: Any, bias: Any, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> tuple[Value, None, None]:
    scale = (1 if weight is None else weight.double()) / (var.double() + eps).sqrt()
    shift = (0 if bias is None else bias.double()) - mean.double() * scale
    return _affine(made, out, x, *(_by_channel(each, x) for each in (scale, shift))), None, None


def _by_channel(values: Tensor | None, x: Value) -> Tensor | None:
    return None if values is None else values.reshape(-1, *[1] * (len(x.shape) - 2))


# Products


def _mm(made: ProgramBuilder, out: Out, x: Operand, y: Operand) -> Value:
    if isinstance(x, Value) and isinstance(y, Tensor):
        return _dense(made, out, x, y.T, torch.zeros(y.shape[1], dtype=y.dtype))
    return _product(made, out, x, y)


def _dense(made: ProgramBuilder, out: Out, x: Value, weight: Tensor, bias: Tensor) -> Value:
    options = {"weight": made.constant(weight.contiguous()), "bias": made.constant(bias)}
    return made.step("dense", [x], out.shape, out.dtype, rows=math.prod(x.shape[:-1]), **options)


def _addmm(
    made: ProgramBuilder, out: Out, bias: Operand, x: Operand, y: Operand, *, beta: float = 1, alpha: float = 1
) -> Value:
    is_dense = isinstance(x, Value) and isinstance(y, Tensor) and isinstance(bias, Tensor) and bias.shape[-1:] == y.shape[1:]
    if is_dense and bias.ndim == 1 and beta == alpha == 1:
        return _dense(made, out, x, y.T, bias)
    found = _times(made, _mm(made, out, x, y), alpha)
    return made.point("add", out, found, _times(made, bias, beta))


def _product(made: ProgramBuilder, out: Out, x: Operand, y: Operand) -> Value:
    """Of (batch, m, k) and (batch, k, p), of which at least one depends on the rows."""
    turned = partial(torch.transpose, dim0=-1, dim1=-2)
    y = made.move(y, turned) if isinstance(y, Value) else turned(y).contiguous()
    batch, inner = math.prod(out.shape[:-2]), int(x.shape[-1])
    inputs: list[Value | str] = [each if isinstance(each, Value) else made.constant(each.ravel()) for each in (x, y)]
    return made.step("product", inputs, out.shape, out.dtype, batch=batch, inner=inner)


# Windows


def _windows(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, shape: tuple[int, ...]) -> Tensor:
    """Positions in a plane of the values of each window, (positions, values of a window), -1 beyond its edges."""
    height, width = size
    plane = torch.arange(1, height * width + 1, dtype=torch.double).reshape(1, 1, height, width)
    ends = [
        (count - 1) * step + spread * (side - 1) + 1
        for count, step, spread, side in zip(shape[-2:], stride, dilation, kernel, strict=True)
    ]
    bottom, right = (max(0, end - length - before) for end, length, before in zip(ends, size, padding, strict=True))
    padded = nn.functional.pad(plane, (padding[1], right, padding[0], bottom))[:, :, : ends[0], : ends[1]]
    found = nn.functional.unfold(padded, tuple(kernel), dilation=tuple(dilation), stride=tuple(stride))
    return (found[0].T - 1).to(torch.int32).contiguous()


def _pair(value: Any, default: Any = None) -> Ints:
    values = list(value) if isinstance(value, tuple | list) else [value]
    values = values or list(default)
    return [*values, *values] if len(values) == 1 else values


def _convolution(
    made: ProgramBuilder, out: Out, x: Value, weight: Operand, bias: Operand, stride: Ints, padding: Ints, dilation: Ints,
    transposed: bool, output_padding: Ints, groups: int,
) -> Value:  # fmt: skip
    if transposed or len(x.shape) not in (3, 4):
        what = "a transposed convolution" if transposed else f"a convolution of {len(x.shape) - 2} axes"
        raise LoweringError(f"it has {what}, which row programs lack")
    weight, along = made.tensor(weight), x.shape[2:]
    if len(along) == 1:  # a signal is an image of one line
        weight, along = weight[:, :, None], (1, *along)
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    places = (1, *out.shape[2:]) if len(out.shape) == 3 else out.shape[2:]
    windows = _windows(list(along), list(weight.shape[2:]), _pair(stride), _pair(padding), _pair(dilation), places)
    bias = torch.zeros(len(weight), dtype=weight.dtype) if bias is None else made.tensor(bias)
    return made.step(
        "conv", [x], out.shape, out.dtype, weight=made.constant(weight.flatten(1).contiguous()), bias=made.constant(bias),
        windows=made.constant(windows.ravel()), positions=len(windows), groups=groups, planes=x.shape[1],
    )  # fmt: skip


def _max_pool(
    made: ProgramBuilder,
    out: Out,
    x: Value,
    kernel: Ints,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Value, None]:
    kernel = _pair(kernel)
    windows = _windows(list(x.shape[-2:]), kernel, _pair(stride, kernel), _pair(padding), _pair(dilation), out.shape)
    return _pool(made, out, x, "max", windows, torch.ones(len(windows))), None


def _avg_pool(
    made: ProgramBuilder, out: Out, x: Value, kernel: Ints, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Value:  # fmt: skip
    kernel, size = _pair(kernel), list(x.shape[-2:])
    stride = _pair(stride, kernel)
    windows = _windows(size, kernel, stride, _pair(padding), [1, 1], out.shape)
    averages = torch.ops.aten.avg_pool2d(
        torch.ones(1, 1, *size, dtype=torch.double),
        kernel,
        stride,
        _pair(padding),
        ceil_mode,
        count_include_pad,
        divisor_override,
    )
    divisors = (windows >= 0).sum(1) / averages.ravel()
    return _pool(made, out, x, "mean", windows, divisors)


def _adaptive_pool(made: ProgramBuilder, out: Out, x: Value, size: Ints) -> Value:
    if any(length % wanted for length, wanted in zip(x.shape[-2:], size, strict=True)):
        raise LoweringError(f"it pools {tuple(x.shape[-2:])} to {tuple(size)}, in windows of different sizes")
    return _avg_pool(made, out, x, [length // wanted for length, wanted in zip(x.shape[-2:], size, strict=True)])


def _pool(made: ProgramBuilder, out: Out, x: Value, name: str, windows: Tensor, divisors: Tensor) -> Value:
    options = {"windows": made.constant(windows.ravel()), "divisors": made.constant(divisors.double())}
    planes = math.prod(x.shape[:-2])
    return made.step("pool", [x], out.shape, out.dtype, name=name, positions=len(windows), planes=planes, **options)


OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: _unary(name) for name in (
        "relu", "sigmoid", "erf", "abs", "neg", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "sin",
        "cos", "floor", "ceil", "round",
    )},
    **{name: _binary(name) for name in ("add", "sub", "mul", "pow", "gt", "ge", "lt", "le", "eq", "ne")},
    "sign": _unary("sign"), "sgn": _unary("sign"), "logical_not": _unary("not"), "bitwise_not": _unary("not"),
    "logical_and": _binary("and"), "bitwise_and": _binary("and"), "logical_or": _binary("or"), "bitwise_or": _binary("or"),
    "maximum": _binary("max"), "minimum": _binary("min"), "div": _div,
    "where": lambda made, out, x, y, z: made.point("where", out, x, y, z), "clamp": _clamp,
    "clamp_min": _clamp, "clamp_max": lambda made, out, x, most: _clamp(made, out, x, None, most),
    "hardtanh": lambda made, out, x, least=-1.0, most=1.0: _clamp(made, out, x, least, most),
    "leaky_relu": lambda made, out, x, slope=0.01: made.point("leaky", out, x, slope), "elu": _elu, "gelu": _gelu,
    "_prelu_kernel": lambda made, out, x, slope: made.point("leaky", out, x, slope),
    "_to_copy": _copy, "to": _copy,
    "full_like": _filled, "zeros_like": partial(_filled, of=0.0), "ones_like": partial(_filled, of=1.0),
    "cat": _cat, "stack": _stack, "constant_pad_nd": _pad,
    "sum": _reduce("sum"), "mean": _reduce("mean"), "amax": _reduce("max"), "amin": _reduce("min"), "all": _reduce("min"),
    "any": _reduce("max"), "var": _var, "linalg_vector_norm": _vector_norm,
    "_softmax": _softmax, "_log_softmax": partial(_softmax, log=True),
    "native_layer_norm": _layer_norm, "native_group_norm": _group_norm, "_native_batch_norm_legit_no_training": _batch_norm,
    "mm": _mm, "bmm": _product, "addmm": _addmm, "convolution": _convolution,
    "max_pool2d_with_indices": _max_pool, "avg_pool2d": _avg_pool, "_adaptive_avg_pool2d": _adaptive_pool,
}  # fmt: skip
