"""The 2×2 windows that a convolution is computed in: how it is cut into products, and where their pixels are. Needs Triton."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

# The products are over windows of 2×2 pixels, those that pooling joins. A window sees 4×4 pixels, and a row of these is 4·cin
# adjacent numbers of an NHWC image: times a matrix (4·cin, 2·cout), it gives what that row adds to two adjacent pixels of the
# output. So a number is read from cache 4 times rather than 9, and the products are large enough for the matrix units, though a
# quarter of each is with zeros. With few channels, all 16 pixels make one row of a product instead of four.
MULTIPROCESSORS = 132  # an H200's; any other number is only slower
MOST_CHANNELS = 32  # of the output in one program, for the sake of registers
NOTHING = tl.constexpr(4)  # the place of a window's largest value where ReLU leaves none


class Cut(NamedTuple):
    """How a convolution is cut into products, by the names that kernels have for it."""

    CIN: int
    COUT: int
    CHANNELS: int  # of the output in one product, which is for two adjacent pixels of each: a chunk
    DEPTH: int  # of a product, a power of 2
    TALL: int  # rows of pixels in one product: all 4 that a window sees, or 1

    @classmethod
    def of(cls, cin: int, cout: int) -> Cut:
        tall = 4 if cin <= 4 else 1
        depth = triton.next_power_of_2(4 * tall * cin)
        channels = max(8, min(triton.next_power_of_2(cout), MOST_CHANNELS, 4096 // depth))
        return cls(cin, cout, channels, depth, tall)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Chunks of channels, for each as many matrices as a filter has rows; or as a window has rows, if these are tall."""
        return triton.cdiv(self.COUT, self.CHANNELS), 2 if self.TALL == 4 else 3, self.DEPTH, 2 * self.CHANNELS


class Launch(NamedTuple):
    """How many programs go through the tiles of windows, for each chunk of channels, and what they are compiled with."""

    programs: int
    WINDOWS: int  # of a tile
    STAGES: int  # tiles whose loads are under way at once
    num_warps: int

    def over(self, x: Tensor) -> Launch:
        """With no more programs than there are tiles in the images x (b, h, w, channels)."""
        windows = x.shape[0] * ((x.shape[1] + 1) // 2) * ((x.shape[2] + 1) // 2)
        return self._replace(programs=min(triton.cdiv(windows, self.WINDOWS), self.programs))

    @property
    def options(self) -> dict[str, int]:
        return {"WINDOWS": self.WINDOWS, "STAGES": self.STAGES, "num_warps": self.num_warps}


def room(x: Tensor, channels: int, *, pool: bool) -> tuple[Tensor, Tensor]:
    """For what a block gives for x (b, h, w, c), and for the places of pooled values in their windows, if it pools."""
    b, h, w, _ = x.shape
    pooled = (b, (h + 1) // 2, (w + 1) // 2, channels)
    return x.new_empty(pooled if pool else (b, h, w, channels)), x.new_empty(pooled if pool else 0, dtype=torch.uint8)


@triton.jit
def corner(window, H: tl.constexpr, W: tl.constexpr):  # type: ignore[no-untyped-def]
    """Image, row and column of a window's first pixel."""
    ACROSS: tl.constexpr = (W + 1) // 2
    EACH: tl.constexpr = (H + 1) // 2 * ACROSS
    return window // EACH, window % EACH // ACROSS * 2, window % ACROSS * 2


@triton.jit
def patch(  # type: ignore[no-untyped-def]
    x, b, image, top, left, H: tl.constexpr, W: tl.constexpr, CIN: tl.constexpr, DEPTH: tl.constexpr, TALL: tl.constexpr
):
    """Four pixels of the row above ``top``, from the column before ``left``; or of four rows."""
    k = tl.arange(0, DEPTH)
    row, column = (top - 1)[:, None] + (k // (4 * CIN))[None, :], (left - 1)[:, None] + (k // CIN % 4)[None, :]
    real = (image < b)[:, None] & (row >= 0) & (row < H) & (column >= 0) & (column < W) & (k < 4 * TALL * CIN)[None, :]
    at = ((image[:, None] * H + row) * W + (left - 1)[:, None]) * CIN + (k % (4 * CIN))[None, :]
    return tl.load(x + at, mask=real, other=0.0)


@triton.jit
def pixel_pairs(  # type: ignore[no-untyped-def]
    b, image, top, left, n, c, H: tl.constexpr, W: tl.constexpr, COUT: tl.constexpr, CHANNELS: tl.constexpr
):
    """Where the upper two pixels of windows are in an image of cout channels, which exist, and which of the lower two."""
    at = ((image * H + top) * W + left)[:, None] * COUT + (n // CHANNELS * COUT + c)[None, :]
    real = (image < b)[:, None] & (left[:, None] + (n // CHANNELS)[None, :] < W) & (c < COUT)[None, :]
    return at, real, real & (top + 1 < H)[:, None]
