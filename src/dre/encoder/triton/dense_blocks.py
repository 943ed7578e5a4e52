"""Dense blocks forward and backward on a GPU: a matrix product for each, and one kernel for all between two of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.encoder.flat_weights import FlatWeights
from dre.runtime import on_device_of

ROWS = 4  # of a program in the backward pass: enough programs for a large GPU, and few enough sums
MAX_COMPONENTS = 8  # of a map that the last kernel computes too
MAX_WIDTH = 8192  # of a row that a program holds
AFFINE = 3  # bias, gain and shift of a block


class _Saved(NamedTuple):
    """What a block keeps for the backward pass."""

    read: Tensor  # (b, inputs)
    product: Tensor  # (b, width), before the bias
    mean: Tensor  # (b,)
    rstd: Tensor


class DenseBlocks:
    """The arithmetic of a dense pass on a GPU.

    Parameters
    ----------
    flat : FlatWeights
    dtype : torch.dtype
        Of the matrix products. Norms, the map and all gradients of weights are in float32.
    """

    def __init__(self, flat: FlatWeights, dtype: torch.dtype) -> None:
        self._flat, self._dtype = flat, dtype
        self._fused = flat.n_components if flat.n_components <= MAX_COMPONENTS else 0  # components that kernels compute
        self._saved: list[_Saved] = []

    def forward(self, x: Tensor) -> Tensor:
        flat, read = self._flat, x.to(self._dtype)
        cast = flat.weights.detach().to(self._dtype)
        self._matrices = [flat.view(cast, block.weight) for block in flat.blocks]
        self._saved, b = [], len(x)
        y = x.new_empty(b, flat.n_components)
        with on_device_of(x):
            for i, (block, matrix) in enumerate(zip(flat.blocks, self._matrices, strict=True)):
                product = torch.mm(read, matrix.T)
                mean, rstd = x.new_empty(b), x.new_empty(b)
                width, out, is_last = block.width, torch.empty_like(product), i + 1 == len(flat.blocks)
                _forward[(b,)](
                    product, flat.weights[block.bias :], out, mean, rstd, y, flat.scale, width, block.eps,
                    WIDE=triton.next_power_of_2(width), C=self._fused if is_last else 0, num_warps=_warps(width),
                )  # fmt: skip
                self._saved.append(_Saved(read, product, mean, rstd))
                read = out
        self._last = read
        if self._fused:
            return y
        weight, bias = flat.out(flat.weights.detach())
        return torch.addmm(bias, read.float(), weight.T).mul_(flat.scale)

    def backward(self, gradient: Tensor) -> None:
        flat, (of_weight, of_bias) = self._flat, self._flat.out(self._flat.gradient)
        gradient = gradient * flat.scale
        torch.sum(gradient, 0, out=of_bias)
        if self._fused:
            passed = gradient.contiguous()
        else:
            torch.mm(gradient.T, self._last.float(), out=of_weight)
            passed = torch.mm(gradient, flat.out(flat.weights.detach())[0]).to(self._dtype)
        for i in reversed(range(len(flat.blocks))):
            block, saved = flat.blocks[i], self._saved[i]
            passed = self._through_norm(i, passed)
            _multiply(passed.T, saved.read, flat.view(flat.gradient, block.weight))
            if i:
                passed = torch.mm(passed, self._matrices[i])

    def inputs(self) -> list[Tensor]:
        """What each linear layer has read in the last step."""
        return [*(saved.read.float() for saved in self._saved), self._last.float()]

    def _through_norm(self, i: int, passed: Tensor) -> Tensor:
        """Return the gradient of the product of a block, and write those of its bias, gain and shift."""
        flat, saved = self._flat, self._saved[i]
        block, b = flat.blocks[i], len(saved.read)
        components = self._fused if i + 1 == len(flat.blocks) else 0
        programs, sums = triton.cdiv(b, ROWS), AFFINE + components
        partial = flat.weights.new_empty(programs, sums * block.width)
        gradient = torch.empty_like(saved.product)
        with on_device_of(passed):
            _backward[(programs,)](
                passed, saved.product, flat.weights[block.bias :], saved.mean, saved.rstd, gradient, partial, b, block.width,
                WIDE=triton.next_power_of_2(block.width), C=components, CP=triton.next_power_of_2(max(1, components)),
                ROWS=ROWS, num_warps=_warps(block.width),
            )  # fmt: skip
        torch.sum(partial, 0, out=flat.gradient[block.bias : block.bias + sums * block.width])
        return gradient


def _warps(width: int) -> int:
    return 4 if width <= 1024 else 8


def _multiply(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Write a b, in the precision of out."""
    if a.dtype == out.dtype:
        torch.mm(a, b, out=out)
    elif hasattr(torch.ops.aten.mm, "dtype_out"):
        torch.mm(a, b, out_dtype=out.dtype, out=out)
    else:
        out.copy_(torch.mm(a, b))


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    product, affine, out, means, rstds, y, scale, width, eps, WIDE: tl.constexpr, C: tl.constexpr
):
    """Bias, layer norm and ReLU of one row; behind the last block, the map as well, in float32."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, WIDE)
    inside = j < width
    value = tl.load(product + row * width + j, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(affine + j, mask=inside, other=0.0)
    mean = tl.sum(value, 0) / width
    apart = tl.where(inside, value - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(apart * apart, 0) / width + eps)
    gain = tl.load(affine + width + j, mask=inside, other=0.0)
    shift = tl.load(affine + 2 * width + j, mask=inside, other=0.0)
    value = apart * rstd * gain + shift
    value = tl.where(value <= 0.0, 0.0, value)  # NaN must reach the loss, which reports it
    tl.store(out + row * width + j, value.to(out.dtype.element_ty), mask=inside)
    tl.store(means + row, mean)
    tl.store(rstds + row, rstd)
    for c in tl.static_range(C):
        weight = tl.load(affine + (3 + c) * width + j, mask=inside, other=0.0)
        bias = tl.load(affine + (3 + C) * width + c)
        tl.store(y + row * C + c, (tl.sum(value * weight, 0) + bias) * tl.load(scale))


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    passed, product, affine, means, rstds, gradient, partial, b, width,
    WIDE: tl.constexpr, C: tl.constexpr, CP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The gradient of some rows, and their sums for bias, gain and shift; of the last block, for the output weights too."""
    first = tl.program_id(0) * ROWS
    j = tl.arange(0, WIDE)
    inside = j < width
    bias = tl.load(affine + j, mask=inside, other=0.0)
    gain = tl.load(affine + width + j, mask=inside, other=0.0)
    shift = tl.load(affine + 2 * width + j, mask=inside, other=0.0)
    of_bias = tl.zeros((WIDE,), tl.float32)
    of_gain = tl.zeros((WIDE,), tl.float32)
    of_shift = tl.zeros((WIDE,), tl.float32)
    c = tl.arange(0, CP)
    of_map = inside[None, :] & (c[:, None] < C)
    if C > 0:
        weight = tl.load(affine + (3 + c[:, None]) * width + j[None, :], mask=of_map, other=0.0)
        of_weight = tl.zeros((CP, WIDE), tl.float32)
    for i in range(ROWS):
        row = (first + i).to(tl.int64)
        real = row < b
        mean = tl.load(means + row, mask=real, other=0.0)
        rstd = tl.load(rstds + row, mask=real, other=0.0)
        value = tl.load(product + row * width + j, mask=inside & real, other=0.0).to(tl.float32)
        normal = tl.where(inside, (value + bias - mean) * rstd, 0.0)
        out = normal * gain + shift
        if C > 0:
            of_row = tl.load(passed + row * C + c, mask=(c < C) & real, other=0.0)
            g = tl.sum(of_row[:, None] * weight, 0)
            of_weight += of_row[:, None] * tl.where(out > 0.0, out, 0.0)[None, :]
        else:
            g = tl.load(passed + row * width + j, mask=inside & real, other=0.0).to(tl.float32)
        g = tl.where(out > 0.0, g, 0.0)
        of_gain += g * normal
        of_shift += g
        g *= gain
        g = rstd * (g - tl.sum(g, 0) / width - normal * (tl.sum(g * normal, 0) / width))
        g = tl.where(inside & real, g, 0.0)
        of_bias += g
        tl.store(gradient + row * width + j, g.to(gradient.dtype.element_ty), mask=inside & real)
    at = partial + tl.program_id(0).to(tl.int64) * (3 + C) * width
    tl.store(at + j, of_bias, mask=inside)
    tl.store(at + width + j, of_gain, mask=inside)
    tl.store(at + 2 * width + j, of_shift, mask=inside)
    if C > 0:
        tl.store(at + (3 + c[:, None]) * width + j[None, :], of_weight, mask=of_map)
