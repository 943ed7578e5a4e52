"""A convolution with what follows it, which a GPU can do in one go."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dre.gpu import kernels_apply, launched_at

WIDEST = 64  # channels that the kernels keep in registers
LARGEST = 2**31  # numbers in a tensor that they can count


class Convolved(nn.Module):
    """3x3 convolution, batch norm if asked for, ReLU, and pooling by 2 if asked for; images stay images."""

    def __init__(self, before: int, after: int, *, norm: bool = False, pool: bool = False) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, 3, padding=1)
        self.norm = nn.BatchNorm2d(after) if norm else nn.Identity()
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, ceil_mode=True) if pool else nn.Identity()  # the smallest image keeps a pixel

    def forward(self, x: Tensor) -> Tensor:
        if self._is_fused(x):
            return self._fused(x)
        y: Tensor = self.pool(self.relu(self.norm(self.convolution(x))))
        return y

    def _is_fused(self, x: Tensor) -> bool:
        """In training alone, where eight bits are enough: what is embedded is computed in full."""
        if not (self.training and torch.is_grad_enabled() and kernels_apply(x)):
            return False
        if not torch.is_autocast_enabled("cuda") or torch.get_autocast_dtype("cuda") != torch.bfloat16:
            return False
        widest = max(self.convolution.in_channels, self.convolution.out_channels)
        return widest <= WIDEST and len(x) * x.shape[2] * x.shape[3] * widest < LARGEST

    def _fused(self, x: Tensor) -> Tensor:
        from dre.gpu.conv import conv_block

        assert self.convolution.bias is not None
        norm = None
        if isinstance(self.norm, nn.BatchNorm2d):
            its = self.norm
            assert its.running_mean is not None
            assert its.running_var is not None
            assert its.momentum is not None
            norm = (its.weight, its.bias, its.running_mean, its.running_var, its.momentum, its.eps)
        pooled = isinstance(self.pool, nn.MaxPool2d)
        nhwc = x.to(torch.bfloat16).permute(0, 2, 3, 1)
        with launched_at(x):
            y = conv_block(nhwc, self.convolution.weight, self.convolution.bias, norm, pool=pooled)
        return y.permute(0, 3, 1, 2)
