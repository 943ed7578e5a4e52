"""Dense blocks forward and backward on a CPU: torch's matrix products, and one pass over memory for all between two of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dre.encoder.flat_weights import BlockLayout, FlatWeights
from dre.encoder.numba import norm_relu

MAX_BUFFERS = 4  # batch sizes for which memory is kept; two in a run, since batches differ by a row


class CPUDenseBlocks:
    """The arithmetic of a dense pass on a CPU, in float32.

    On 250 rows and six blocks of 128 units a step takes about half as long as with torch's autograd.

    Parameters
    ----------
    flat : FlatWeights
    """

    def __init__(self, flat: FlatWeights) -> None:
        self._flat = flat
        self._blocks = [_Weights(flat, block) for block in flat.blocks]
        self._out, self._of_out = flat.out(flat.weights.detach()), flat.out(flat.gradient)
        self._buffers: dict[int, list[_Buffers]] = {}

    def forward(self, x: Tensor) -> Tensor:
        self._x = before = x
        for block, buffers in zip(self._blocks, self._buffers_for(len(x)), strict=True):
            torch.addmm(block.bias, before, block.weight.T, out=buffers.normal)
            normal, out, _, rstd = buffers.arrays
            norm_relu.forward(normal, *block.affine, block.eps, rstd, out)
            before = buffers.out
        return torch.addmm(self._out[1], before, self._out[0].T).mul_(self._flat.scale)

    def backward(self, gradient: Tensor) -> None:
        buffers = self._buffers_for(len(gradient))
        gradient = gradient * self._flat.scale
        torch.mm(gradient.T, buffers[-1].out, out=self._of_out[0])
        torch.sum(gradient, 0, out=self._of_out[1])
        torch.mm(gradient, self._out[0], out=buffers[-1].gradient)
        for i in reversed(range(len(self._blocks))):
            block, own = self._blocks[i], buffers[i]
            normal, out, of_out, rstd = own.arrays
            norm_relu.backward(of_out, out, normal, rstd, block.affine[0], *block.of_affine)
            torch.mm(own.gradient.T, buffers[i - 1].out if i else self._x, out=block.of_weight)
            if i:
                torch.mm(own.gradient, block.weight, out=buffers[i - 1].gradient)

    def inputs(self) -> list[Tensor]:
        """What each linear layer has read in the last step."""
        return [self._x, *(each.out for each in self._buffers_for(len(self._x)))]

    def _buffers_for(self, b: int) -> list[_Buffers]:
        if b not in self._buffers:
            if len(self._buffers) == MAX_BUFFERS:
                self._buffers.clear()
            self._buffers[b] = [_Buffers(b, block.width) for block in self._flat.blocks]
        return self._buffers[b]


class _Weights:
    """The weights of a block, its gradients, and those that kernels read as arrays."""

    def __init__(self, flat: FlatWeights, block: BlockLayout) -> None:
        weights = flat.weights.detach()
        self.weight, self.of_weight = flat.view(weights, block.weight), flat.view(flat.gradient, block.weight)
        self.bias, *affine = flat.affine(weights, block)
        self.affine = [part.numpy() for part in affine]  # gain and shift of the norm
        of_bias, *of_affine = flat.affine(flat.gradient, block)
        self.of_affine = [part.numpy() for part in (*of_affine, of_bias)]
        self.eps = np.float32(block.eps)


class _Buffers:
    """What a block computes for b rows."""

    def __init__(self, b: int, width: int) -> None:
        self.normal, self.out, self.gradient = (torch.empty(b, width) for _ in range(3))  # normal: before gain and shift
        self.arrays = [part.numpy() for part in (self.normal, self.out, self.gradient, torch.empty(b))]  # the last: 1/std
