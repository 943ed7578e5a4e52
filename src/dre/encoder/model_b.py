"""Model B of the paper: a convolutional network for images, with fused convolutions on a GPU."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn

from dre.encoder import Encoder, check_image, check_positive_ints, halved_area
from dre.encoder.network import ChannelsLast, FlattenChannelsLast, Network, dense_blocks
from dre.runtime import on_device_of, triton_applies

MAX_CHANNELS = 64  # that the kernels keep in registers
MAX_ELEMENTS = 2**31  # of a tensor: the kernels index it with 32 bits


@dataclass(frozen=True)
class ModelB(Encoder, name="model-b"):
    """Two convolutions of 16 filters, pooling, two of 32, pooling; then dense 2000 (h1), 500 (h2), 100 (h3) and the output.

    Parameters
    ----------
    filters : tuple of int, default=(16, 32)
        Filters of each pair of convolutions.
    norm : bool, default=False
        Add batch norm before every ReLU; the paper has none here.

    Examples
    --------
    >>> str(ModelB(filters=(16, 32, 64)))
    'model-b(filters=16/32/64)'
    """

    _: KW_ONLY
    filters: tuple[int, ...] = (16, 32)
    norm: bool = False

    capturable = True

    def __post_init__(self) -> None:
        check_positive_ints(self, "filters")

    def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
        check_image(self.name, shape)
        layers: list[nn.Module] = [ChannelsLast()]
        before = shape[0]
        for width in self.filters:
            layers += [ConvBlock(before, width, norm=self.norm), ConvBlock(width, width, norm=self.norm, pool=True)]
            before = width
        features = nn.Sequential(*layers, FlattenChannelsLast())
        size = before * halved_area(shape[1:], len(self.filters))
        blocks = dense_blocks([size, 2000, 500, 100], norm=nn.BatchNorm1d if self.norm else None)
        return Network(features, blocks, nn.Linear(100, n_components))


class ConvBlock(nn.Module):
    """A 3×3 convolution with optional batch norm, ReLU and optional 2×2 max pooling.

    Parameters
    ----------
    before, after : int
        Channels of the input and of the output.
    norm : bool, default=False
    pool : bool, default=False
    """

    def __init__(self, before: int, after: int, *, norm: bool = False, pool: bool = False) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, 3, padding=1)
        self.norm = nn.BatchNorm2d(after) if norm else nn.Identity()
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, ceil_mode=True) if pool else nn.Identity()  # the smallest image keeps a pixel

    def forward(self, x: Tensor) -> Tensor:
        if self._kernels_apply(x):
            return self._fused(x)
        y: Tensor = self.pool(self.relu(self.norm(self.convolution(x))))
        return y

    def _kernels_apply(self, x: Tensor) -> bool:
        """In training in bfloat16 only: embeddings are computed in float32."""
        if not (self.training and torch.is_grad_enabled() and triton_applies(x)):
            return False
        if not torch.is_autocast_enabled("cuda") or torch.get_autocast_dtype("cuda") != torch.bfloat16:
            return False
        channels = max(self.convolution.in_channels, self.convolution.out_channels)
        return channels <= MAX_CHANNELS and len(x) * x.shape[2] * x.shape[3] * channels < MAX_ELEMENTS

    def _fused(self, x: Tensor) -> Tensor:
        from dre.encoder.triton.conv_block import fused_conv_block

        assert self.convolution.bias is not None
        norm = None
        if isinstance(self.norm, nn.BatchNorm2d):
            batch_norm = self.norm
            running_mean, running_var, momentum = batch_norm.running_mean, batch_norm.running_var, batch_norm.momentum
            assert running_mean is not None
            assert running_var is not None
            assert momentum is not None
            norm = (batch_norm.weight, batch_norm.bias, running_mean, running_var, momentum, batch_norm.eps)
        nhwc = x.to(torch.bfloat16).permute(0, 2, 3, 1)
        with on_device_of(x):
            y = fused_conv_block(
                nhwc, self.convolution.weight, self.convolution.bias, norm, pool=isinstance(self.pool, nn.MaxPool2d)
            )
        return y.permute(0, 3, 1, 2)
