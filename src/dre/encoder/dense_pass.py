"""Dense blocks forward and backward in one piece, where torch's autograd costs more than the arithmetic."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from dre.encoder.flat_weights import PER_BLOCK, FlatWeights
from dre.encoder.network import LayerNorm, Network
from dre.optimizer.whitening import LinearStep
from dre.runtime import has_numba, triton_applies

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class _DenseBlocks(Protocol):
    """The arithmetic on one kind of device. The gradients of the weights go to the buffer of the flat weights."""

    def forward(self, x: Tensor) -> Tensor: ...

    def backward(self, gradient: Tensor) -> None: ...

    def inputs(self) -> list[Tensor]: ...


class DensePass:
    """A network of dense blocks with layer norm and ReLU, whose weights lie in one buffer, as do their gradients.

    The network keeps working: its parameters become views of the buffer, until ``release``.

    Parameters
    ----------
    network : Network
        One that ``applies`` accepts.
    precision : {"float32", "bfloat16"}
        Of matrix products.

    Attributes
    ----------
    weights : nn.Parameter of shape (number of weights,)
        What an optimizer moves.
    """

    def __init__(self, network: Network, precision: str = "float32") -> None:
        self._flat = FlatWeights(network)
        self.weights = self._flat.weights
        self._blocks = _blocks_for(self._flat, DTYPES[precision])

    @staticmethod
    def applies(network: nn.Module, precision: str = "float32") -> bool:
        """Whether a network has this structure, is trained as a whole, and lies on a device with kernels for it."""
        if type(network) is not Network or not isinstance(network.features, (nn.Identity, nn.Flatten)):
            return False
        blocks, parameters = [network.get_submodule(name) for name in network.hidden], list(network.parameters())
        dense = bool(blocks) and all(_is_dense(block) for block in blocks) and type(network.out) is nn.Linear
        each_once = len(parameters) == PER_BLOCK * len(blocks) + 2  # an output layer without bias, or shared blocks, have fewer
        if not dense or not each_once or not all(p.requires_grad and p.dtype == torch.float32 for p in parameters):
            return False
        if all(p.is_cpu for p in parameters):
            return has_numba() and precision == "float32"
        return triton_applies(parameters[0]) and _fits(network)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the network's output; its gradient goes to ``weights``."""
        y: Tensor = _Pass.apply(self.weights, x.flatten(1).contiguous(), self)  # type: ignore[no-untyped-call]
        return y

    def release(self) -> None:
        """Give the network parameters of their own again."""
        self._flat.release()

    def forward(self, x: Tensor) -> Tensor:
        return self._blocks.forward(x)

    def backward(self, gradient: Tensor) -> None:
        self._blocks.backward(gradient)
        self.weights.grad = self._flat.gradient  # where the optimizer looks, without a copy

    def layers(self) -> list[LinearStep]:
        """Return the linear layers of the last step, with their gradients."""
        flat = self._flat
        gradients = [*(flat.view(flat.gradient, block.weight) for block in flat.blocks), flat.out(flat.gradient)[0]]
        return [LinearStep(gradient, read) for gradient, read in zip(gradients, self._blocks.inputs(), strict=True)]


def _blocks_for(flat: FlatWeights, dtype: torch.dtype) -> _DenseBlocks:
    if flat.weights.is_cpu:
        from dre.encoder.numba import dense_blocks as of_cpu

        return of_cpu.CPUDenseBlocks(flat)
    from dre.encoder.triton import dense_blocks as of_gpu

    return of_gpu.DenseBlocks(flat, dtype)


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, x: Tensor, dense: DensePass) -> Tensor:
        ctx.dense = dense
        return dense.forward(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        ctx.dense.backward(grads[0])
        return None, None, None


def _fits(network: Network) -> bool:
    """Whether the kernels can hold a row of each block."""
    from dre.encoder.triton.dense_blocks import MAX_WIDTH

    return all(network.get_submodule(f"{name}.0").out_features <= MAX_WIDTH for name in network.hidden)  # type: ignore[operator]


def _is_dense(block: nn.Module) -> bool:
    """Whether a block is a linear layer with bias, a layer norm with gain and shift, and a ReLU."""
    if not isinstance(block, nn.Sequential) or [type(part) for part in block] != [nn.Linear, LayerNorm, nn.ReLU]:
        return False
    return block[0].bias is not None and block[1].weight is not None and block[1].bias is not None
