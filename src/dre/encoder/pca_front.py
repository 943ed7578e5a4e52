"""The PCA front: the fixed first part of a network, principal components of the values or of patch responses."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, unfold

from dre.data.rows import Rows

SAMPLE_ROWS, SAMPLE_VALUES = 10_000, 2**25  # of the sample from which the axes are computed
SAMPLE_PER_AXIS = 4  # rows at least, however wide they are: fewer rows than axes leave some axes undetermined
MIN_AXIS_VARIANCE = 1e-10  # of the largest: weaker axes of a sample are rounding, and arbitrary for new rows
SUBSPACE_ITERATIONS = 4
OVERSAMPLING = 16  # axes beyond those that are kept, for faster convergence
PATCH_VALUES = 2**24  # of the patches from which the filters are computed
CACHED_RESPONSES = 2**20  # that a CPU computes at once: more exceed its cache
MIN_FILTER_VARIANCE = 1e-6  # of the strongest: weaker filters are rounding, which must not be amplified


class PCAFront(nn.Module):
    """Principal components of the rows, divided by one number so that their overall standard deviation is 1.

    The network behind it is small and fast, and reads nearly all of the variance. ``fit`` computes the axes once, from a sample
    of the rows. Axes beyond the rank of the sample are zero.

    Parameters
    ----------
    shape : tuple of int
        Shape of one row.
    n_pcs : int
        Number of components; at most the number of values.
    patches : PatchFilters, optional
        Compute the components of its output instead of the values.

    Attributes
    ----------
    axes : Tensor of shape (n_pcs, values)
    offset : Tensor of shape (n_pcs,)
        The projected mean, which is subtracted.

    Examples
    --------
    >>> from dre.data.rows import ArrayRows
    >>> rows = ArrayRows(torch.randn(100, 8, generator=torch.Generator().manual_seed(0)), torch.device("cpu"))
    >>> front = PCAFront((8,), 3)
    >>> front.fit(rows, torch.Generator().manual_seed(0))
    >>> front(rows.read(0, 5)).shape
    torch.Size([5, 3])
    """

    axes: Tensor
    offset: Tensor

    def __init__(self, shape: tuple[int, ...], n_pcs: int, patches: PatchFilters | None = None) -> None:
        super().__init__()
        self.patches = nn.Flatten() if patches is None else patches
        values = self.patches(torch.zeros(1, *shape)).shape[1]
        self.register_buffer("axes", torch.zeros(min(n_pcs, values), values))
        self.register_buffer("offset", torch.zeros(len(self.axes)))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches
        projected = patches.project(x, self.axes) if isinstance(patches, PatchFilters) else patches(x) @ self.axes.T
        return projected - self.offset

    @property
    def is_fitted(self) -> bool:
        """Whether the axes were computed. They are zero before, so that this survives any way of saving them."""
        return bool(self.axes.any())

    def fit(self, rows: Rows, generator: torch.Generator) -> None:
        """Compute the axes, and the filters if there are any, from a random sample.

        Parameters
        ----------
        rows : Rows
        generator : torch.Generator
        """
        widest = max(math.prod(rows.shape[1:]), self.axes.shape[1])
        n = max(SAMPLE_PER_AXIS * len(self.axes), min(SAMPLE_ROWS, SAMPLE_VALUES // widest))
        ids = torch.randperm(rows.shape[0], generator=generator, device=generator.device)[:n]
        sample = rows.take(ids.sort().values)
        if isinstance(self.patches, PatchFilters):
            self.patches.fit(sample)
        values = self.patches(sample)
        mean = values.mean(0)
        axes, variance = principal_axes(values - mean, len(self.axes), generator)
        std = float(variance.mean().sqrt())
        self.axes.copy_((axes / (std or 1.0)).where(variance[:, None] > MIN_AXIS_VARIANCE * variance[0], 0))
        self.offset.copy_(self.axes @ mean)


def principal_axes(x: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The first principal axes of centered rows, by randomized subspace iteration.

    Parameters
    ----------
    x : Tensor of shape (n, d)
    count : int
    generator : torch.Generator
        For the initial subspace.

    Returns
    -------
    axes : Tensor of shape (count, d)
        Of unit length, with the sign that makes the sum of an axis positive.
    variance : Tensor of shape (count,)
        Along each axis, descending.
    """
    width = min(x.shape[1], count + OVERSAMPLING)
    basis = torch.randn(x.shape[1], width, generator=generator, device=generator.device)
    for _ in range(SUBSPACE_ITERATIONS):
        basis = torch.linalg.qr(x.T @ (x @ basis)).Q
    projected = x @ basis
    rotation = torch.linalg.eigh(projected.T @ projected / len(x)).eigenvectors.flip(1)[:, :count]
    # Not the eigenvalues: a small one has the rounding of the largest.
    variance = (projected @ rotation).square().mean(0)
    axes = (basis @ rotation).T
    return axes * axes.sum(1, keepdim=True).sign().where(axes.sum(1, keepdim=True) != 0, 1), variance


class PatchFilters(nn.Module):
    """Mean absolute responses of patch filters in each region of an image, optionally followed by the pixels.

    The filters are the principal components of small patches, scaled to equal variance. Pooling over regions discards where
    exactly a filter responds, so an image moved by a pixel stays nearly the same.

    Parameters
    ----------
    channels : int
        Channels of the images.
    n_filters : int
        Number of filters; fewer if a patch has fewer values.
    patch_size : int, default=5
        Side of a patch in pixels.
    pool_size : int, default=4
        Side of a region in pixels.
    pixel_weight : float, default=0.0
        Append the pixels, scaled so that their total variance is this multiple of that of the responses.

    Attributes
    ----------
    filters : Tensor of shape (n_filters, channels, patch_size, patch_size)
    pixel_scale : Tensor of shape ()
    piecewise : bool, default=True
        Process a batch in pieces that fit the cache. Set it to False before an export, which must not loop over the batch.
    """

    filters: Tensor
    pixel_scale: Tensor

    def __init__(
        self, channels: int, n_filters: int, *, patch_size: int = 5, pool_size: int = 4, pixel_weight: float = 0.0
    ) -> None:
        super().__init__()
        self.pool_size, self.pixel_weight = pool_size, pixel_weight
        self.piecewise = True
        count = min(n_filters, channels * patch_size * patch_size - 1)
        self.register_buffer("pixel_scale", torch.ones(()))
        self.register_buffer("filters", torch.zeros(count, channels, patch_size, patch_size))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self._features(piece) for piece in self._pieces(x)])

    def project(self, x: Tensor, axes: Tensor) -> Tensor:
        """``self(x) @ axes.T``, without concatenating responses and pixels."""
        return torch.cat([self._project(piece, axes) for piece in self._pieces(x)])

    def fit(self, images: Tensor) -> None:
        """Compute the filters.

        Parameters
        ----------
        images : Tensor of shape (n, channels, height, width)
        """
        count, channels, side, _ = self.filters.shape
        n = min(len(images), max(1, PATCH_VALUES // (images[0].numel() * side * side)))
        sample = images[torch.linspace(0, len(images) - 1, n).long()]  # evenly spaced: images may be sorted by content
        patches = unfold(sample, side, padding=side // 2).movedim(1, 2).flatten(0, 1)
        patches = patches - patches.mean(1, keepdim=True)  # the structure of a patch, not its brightness
        variance, axes = torch.linalg.eigh(patches.T @ patches / len(patches))
        variance, axes = variance.flip(0)[:count], axes.flip(1)[:, :count]
        filters = (axes / variance.sqrt()).where(variance > MIN_FILTER_VARIANCE * variance[0], 0)
        self.filters.copy_(filters.T.reshape(count, channels, side, side))
        if self.pixel_weight:
            responses = torch.cat([self._responses(piece) for piece in self._pieces(images)])
            ratio = float(responses.var(0).sum() / images.flatten(1).var(0).sum().clamp_min(1e-30))
            self.pixel_scale.fill_((self.pixel_weight * ratio) ** 0.5)

    def _pieces(self, x: Tensor) -> tuple[Tensor, ...]:
        """The images in pieces whose responses fit a CPU's cache; a GPU takes more."""
        if not self.piecewise:
            return (x,)
        responses = self.filters.shape[0] * x.shape[2] * x.shape[3]
        return x.split(max(1, (CACHED_RESPONSES if x.device.type == "cpu" else 2**6 * CACHED_RESPONSES) // responses))

    def _features(self, x: Tensor) -> Tensor:
        responses = self._responses(x)
        return torch.cat([responses, x.flatten(1) * self.pixel_scale], 1) if self.pixel_weight else responses

    def _project(self, x: Tensor, axes: Tensor) -> Tensor:
        responses = self._responses(x)
        projected = responses @ axes[:, : responses.shape[1]].T
        if self.pixel_weight:
            projected += x.flatten(1) @ (axes[:, responses.shape[1] :] * self.pixel_scale).T
        return projected

    def _responses(self, x: Tensor) -> Tensor:
        responses = conv2d(x, self.filters, padding=self.filters.shape[2] // 2).abs_()
        return avg_pool2d(responses, self.pool_size, ceil_mode=True).flatten(1)
