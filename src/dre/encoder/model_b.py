"""Model B of the paper: for images. Its convolutions have a fused twin for GPUs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn

from dre.encoder import Encoder, check_image, check_positive_ints
from dre.encoder.network import ChannelsLast, Flat, Network, dense_blocks
from dre.runtime import on_device_of, triton_applies

WIDEST = 64  # channels that the kernels keep in registers
LARGEST = 2**31  # numbers in a tensor that they can count


class ConvBlock2d(nn.Module):
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
        if not (self.training and torch.is_grad_enabled() and triton_applies(x)):
            return False
        if not torch.is_autocast_enabled("cuda") or torch.get_autocast_dtype("cuda") != torch.bfloat16:
            return False
        widest = max(self.convolution.in_channels, self.convolution.out_channels)
        return widest <= WIDEST and len(x) * x.shape[2] * x.shape[3] * widest < LARGEST

    def _fused(self, x: Tensor) -> Tensor:
        from dre.encoder.triton.conv_block import conv_block

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
        with on_device_of(x):
            y = conv_block(nhwc, self.convolution.weight, self.convolution.bias, norm, pool=pooled)
        return y.permute(0, 3, 1, 2)


@dataclass(frozen=True)
class ModelB(Encoder, name="model-b"):
    """Two convolutions of 16 filters, pooling, two of 32, pooling; then dense 2000 (h1), 500 (h2), 100 (h3) and the map.

    ``norm`` adds batch norm before every ReLU; the paper has none here.
    """

    _: KW_ONLY
    filters: tuple[int, ...] = (16, 32)
    norm: bool = False

    def __post_init__(self) -> None:
        check_positive_ints(self, "filters")

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        check_image(self.name, shape)
        layers: list[nn.Module] = [ChannelsLast()]
        before = shape[0]
        for width in self.filters:
            layers += [ConvBlock2d(before, width, norm=self.norm), ConvBlock2d(width, width, norm=self.norm, pool=True)]
            before = width
        features = nn.Sequential(*layers, Flat())
        with torch.no_grad():
            size = features.eval()(torch.zeros(1, *shape)).shape[1]
        blocks = dense_blocks([size, 2000, 500, 100], norm=nn.BatchNorm1d if self.norm else None)
        return Network(features.train(), blocks, nn.Linear(100, n_components))
