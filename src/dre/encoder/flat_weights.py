"""The weights of a network of dense blocks in one buffer, and their gradients in another."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dre.encoder.network import Network

PER_BLOCK = 4  # weight and bias of the linear layer, gain and shift of the norm, in this order


class MatrixSlice(NamedTuple):
    """Where a matrix lies in the buffer."""

    start: int
    shape: tuple[int, int]


class BlockLayout(NamedTuple):
    """Where the weights of a dense block lie: the matrix, and from ``bias`` on its bias, gain and shift in a row."""

    weight: MatrixSlice
    bias: int
    eps: float

    @property
    def width(self) -> int:
        return self.weight.shape[0]


class FlatWeights:
    """The parameters of a network become views of one buffer, until ``release``.

    Parameters
    ----------
    network : Network
        Of dense blocks with layer norm and ReLU.

    Attributes
    ----------
    weights : nn.Parameter of shape (number of weights,)
        What an optimizer moves.
    gradient : Tensor
        What a backward pass writes.
    blocks : list of BlockLayout
    scale : Tensor of shape ()
        Factor of the network's output.
    """

    def __init__(self, network: Network) -> None:
        self._parameters = list(network.parameters())
        self.scale = network.scale
        self.weights = nn.Parameter(torch.cat([p.detach().ravel() for p in self._parameters]))
        self.gradient = torch.zeros_like(self.weights.detach())
        starts = [0]
        for parameter in self._parameters:
            starts.append(starts[-1] + parameter.numel())
        self.blocks = []
        for i, name in enumerate(network.hidden):
            weight, norm = self._parameters[PER_BLOCK * i], network.get_submodule(f"{name}.1")
            part = MatrixSlice(starts[PER_BLOCK * i], (weight.shape[0], weight.shape[1]))
            self.blocks.append(BlockLayout(part, starts[PER_BLOCK * i + 1], norm.eps))  # type: ignore[arg-type]
        out = self._parameters[-2]
        self._out, self.n_components = MatrixSlice(starts[-3], (out.shape[0], out.shape[1])), out.shape[0]
        with torch.no_grad():
            parts = self.weights.detach().split([p.numel() for p in self._parameters])
            for parameter, part in zip(self._parameters, parts, strict=True):
                parameter.data = part.view(parameter.shape)

    def view(self, buffer: Tensor, part: MatrixSlice) -> Tensor:
        """The matrix of a block, in the weights, their gradients, or a copy of them."""
        rows, columns = part.shape
        return buffer[part.start : part.start + rows * columns].view(rows, columns)

    def affine(self, buffer: Tensor, block: BlockLayout) -> Tensor:
        """Bias, gain and shift of a block, as rows."""
        return buffer[block.bias : block.bias + 3 * block.width].view(3, block.width)

    def out(self, buffer: Tensor) -> tuple[Tensor, Tensor]:
        """Weight and bias of the output layer."""
        return self.view(buffer, self._out), buffer[-self.n_components :]

    def release(self) -> None:
        """Give the network parameters of their own again."""
        with torch.no_grad():
            for parameter in self._parameters:
                parameter.data = parameter.data.clone()
