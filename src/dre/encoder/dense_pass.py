"""Dense blocks forward and backward in one piece, on a CPU, where torch's autograd costs more than the arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dre.encoder.network import LayerNorm, Network
from dre.optimizer.whitening import LinearStep
from dre.runtime import has_numba

MAX_BUFFERS = 4  # batch sizes for which memory is kept; two in a run, since batches differ by a row


class DensePass:
    """A network of dense blocks with layer norm and ReLU, whose weights lie in one buffer, as do their gradients.

    The network keeps working: its parameters become views of the buffer, until ``release``. On 250 rows and six blocks of 128
    units a step takes about half the time.

    Parameters
    ----------
    network : Network
        One that ``applies`` accepts.

    Attributes
    ----------
    weights : nn.Parameter of shape (number of weights,)
        What an optimizer moves.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._parameters = list(network.parameters())
        self.weights = nn.Parameter(torch.cat([p.detach().ravel() for p in self._parameters]))
        self._gradient = torch.zeros_like(self.weights)
        with torch.no_grad():
            views = self._split(self.weights.detach())
            for parameter, view in zip(self._parameters, views, strict=True):
                parameter.data = view
        of_views = self._split(self._gradient)
        blocks = [network.get_submodule(name) for name in network.hidden]
        self._blocks = [
            _Block(views[4 * i : 4 * i + 4], of_views[4 * i : 4 * i + 4], block[1].eps)  # type: ignore[index]
            for i, block in enumerate(blocks)
        ]
        self._out, self._of_out = views[-2:], of_views[-2:]
        self._buffers: dict[int, list[_Buffers]] = {}

    @staticmethod
    def applies(network: nn.Module) -> bool:
        """Whether a network has this structure, lies on a CPU and is trained as a whole."""
        if type(network) is not Network or not isinstance(network.features, (nn.Identity, nn.Flatten)) or not has_numba():
            return False
        blocks, parameters = [network.get_submodule(name) for name in network.hidden], list(network.parameters())
        dense = bool(blocks) and all(_is_dense(block) for block in blocks) and type(network.out) is nn.Linear
        each_once = len(parameters) == 4 * len(blocks) + 2  # an output layer without bias, or blocks that share, have fewer
        return dense and each_once and all(p.requires_grad and p.dtype == torch.float32 and p.is_cpu for p in parameters)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the network's output; its gradient goes to ``weights``."""
        y: Tensor = _Pass.apply(self.weights, x.flatten(1), self)  # type: ignore[no-untyped-call]
        return y

    def release(self) -> None:
        """Give the network parameters of their own again."""
        with torch.no_grad():
            for parameter in self._parameters:
                parameter.data = parameter.data.clone()

    def forward(self, x: Tensor) -> Tensor:
        from dre.encoder.numba import norm_relu

        before = x
        for block, buffers in zip(self._blocks, self._buffers_for(len(x)), strict=True):
            torch.addmm(block.bias, before, block.weight.T, out=buffers.normal)
            normal, out, _, rstd = buffers.arrays
            norm_relu.forward(normal, *block.affine, block.eps, rstd, out)
            before = buffers.out
        return torch.addmm(self._out[1], before, self._out[0].T).mul_(self._network.scale)

    def backward(self, x: Tensor, gradient: Tensor) -> None:
        from dre.encoder.numba import norm_relu

        buffers = self._buffers_for(len(x))
        gradient = gradient * self._network.scale
        torch.mm(gradient.T, buffers[-1].out, out=self._of_out[0])
        torch.sum(gradient, 0, out=self._of_out[1])
        torch.mm(gradient, self._out[0], out=buffers[-1].gradient)
        for i in reversed(range(len(self._blocks))):
            block, own = self._blocks[i], buffers[i]
            normal, out, of_out, rstd = own.arrays
            norm_relu.backward(of_out, out, normal, rstd, block.affine[0], *block.of_arrays)
            torch.mm(own.gradient.T, buffers[i - 1].out if i else x, out=block.of_weight)
            if i:
                torch.mm(own.gradient, block.weight, out=buffers[i - 1].gradient)
        self.weights.grad = self._gradient
        self._last = buffers, x

    def layers(self) -> list[LinearStep]:
        """Return the linear layers of the last step, with their gradients."""
        buffers, x = self._last
        inputs = [x, *(each.out for each in buffers)]
        gradients = [*(block.of_weight for block in self._blocks), self._of_out[0]]
        return [LinearStep(gradient, read) for gradient, read in zip(gradients, inputs, strict=True)]

    def _split(self, flat: Tensor) -> list[Tensor]:
        parts = flat.split([p.numel() for p in self._parameters])
        return [part.view(p.shape) for part, p in zip(parts, self._parameters, strict=True)]

    def _buffers_for(self, b: int) -> list[_Buffers]:
        if b not in self._buffers:
            if len(self._buffers) == MAX_BUFFERS:
                self._buffers.clear()
            widths = [len(block.bias) for block in self._blocks]
            self._buffers[b] = [_Buffers(b, width) for width in widths]
        return self._buffers[b]


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, x: Tensor, dense: DensePass) -> Tensor:
        ctx.x, ctx.dense = x.contiguous(), dense
        return dense.forward(ctx.x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        ctx.dense.backward(ctx.x, grads[0])  # it has put the gradient where the optimizer looks, without a copy
        return None, None, None


class _Block:
    """The weights of a block, its gradients, and those that kernels read as arrays."""

    def __init__(self, weights: list[Tensor], gradients: list[Tensor], eps: float) -> None:
        self.weight, self.bias = weights[:2]
        self.of_weight = gradients[0]
        self.affine = [part.numpy() for part in weights[2:]]  # gain and shift of the norm
        self.of_arrays = [gradients[i].numpy() for i in (2, 3, 1)]  # of gain, shift and bias
        self.eps = np.float32(eps)


class _Buffers:
    """What a block computes for b rows."""

    def __init__(self, b: int, width: int) -> None:
        self.normal, self.out, self.gradient = (torch.empty(b, width) for _ in range(3))  # normal: before gain and shift
        self.arrays = [part.numpy() for part in (self.normal, self.out, self.gradient, torch.empty(b))]  # the last: 1/std


def _is_dense(block: nn.Module) -> bool:
    """Whether a block is a linear layer with bias, a layer norm with gain and shift, and a ReLU."""
    if not isinstance(block, nn.Sequential) or [type(part) for part in block] != [nn.Linear, LayerNorm, nn.ReLU]:
        return False
    return block[0].bias is not None and block[1].weight is not None and block[1].bias is not None
