"""The PCA front: the fixed first part of a network, principal components of the values or of patch responses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv2d, unfold

from dre.data.rows import Rows
from dre.data.scaling import FARTHEST, ScaledRows
from dre.data.sparse import ScaledSparse
from dre.runtime.float64 import near_float64
from dre.runtime.threads import map_in_threads

SAMPLE_ROWS, SAMPLE_VALUES = 10_000, 2**25  # of the sample from which the axes are computed
SAMPLE_PER_AXIS = 4  # rows at least, however wide they are: fewer rows than axes leave some axes undetermined
MIN_AXIS_VARIANCE = 1e-10  # of the largest: weaker axes of a sample are rounding, and arbitrary for new rows
SUBSPACE_ITERATIONS = 4
PART_ROWS = 1024  # of the sample that a thread takes at a time
SPARSE_ITERATIONS = 3  # on all rows
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
        values = math.prod(shape) if patches is None else patches.count_values(shape)
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
        sparse = sparse_of(rows)
        if sparse is not None and not isinstance(self.patches, PatchFilters):
            self._fit_sparse(sparse, rows.shape[0], generator)
            return
        widest = max(math.prod(rows.shape[1:]), self.axes.shape[1])
        n = max(SAMPLE_PER_AXIS * len(self.axes), min(SAMPLE_ROWS, SAMPLE_VALUES // widest))
        ids = torch.randperm(rows.shape[0], generator=generator, device=generator.device)[:n]
        sample = rows.take(ids.sort().values)
        if isinstance(self.patches, PatchFilters):
            self.patches.fit(sample)
        values = torch.cat(list(_map_rows(self.patches, sample)))
        mean = values.mean(0)
        self._set(*principal_axes(values - mean, len(self.axes), generator), mean)

    def _fit_sparse(self, rows: ScaledSparse, n: int, generator: torch.Generator) -> None:
        """Compute the axes from all rows: products with them cost little."""
        width = min(self.axes.shape[1], n, len(self.axes) + OVERSAMPLING)
        basis = torch.randn(self.axes.shape[1], width, generator=generator, device=generator.device).cpu().double()
        for _ in range(SPARSE_ITERATIONS):
            basis = torch.linalg.qr(rows.transposed_times(rows.times(basis, 0, n))).Q
        projected = rows.times(basis, 0, n)
        rotation = _eigh(projected.T @ projected)[1].flip(1)[:, : len(self.axes)]
        axes, variance = _oriented((basis @ rotation).T), (projected @ rotation).square().mean(0)
        missing = len(self.axes) - len(axes)  # fewer rows than axes
        axes, variance = nn.functional.pad(axes, (0, 0, 0, missing)), nn.functional.pad(variance, (0, missing))
        self._set(axes.to(self.axes), variance.to(self.axes), torch.zeros_like(self.axes[0]))  # scaled rows are centered

    def _set(self, axes: Tensor, variance: Tensor, mean: Tensor) -> None:
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
        Along each axis, in descending order.
    """
    width = min(x.shape[1], count + OVERSAMPLING)
    basis = torch.randn(x.shape[1], width, generator=generator, device=generator.device)
    for _ in range(SUBSPACE_ITERATIONS):
        total = torch.zeros_like(basis)
        for product in _map_rows(partial(_gram_product, basis), x):
            total += product
        basis = torch.linalg.qr(near_float64(total)).Q.to(x.device)
    projected = torch.cat(list(_map_rows(lambda part: part @ basis, x)))
    rotation = _eigh(projected.T @ projected / len(x))[1].flip(1)[:, :count]
    # Not the eigenvalues: a small one has the rounding of the largest.
    variance = (projected @ rotation).square().mean(0)
    return _oriented((basis @ rotation).T), variance


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a symmetric matrix; in float64 if float32 does not converge, as with denormal values."""
    near = near_float64(matrix)
    try:
        values, vectors = torch.linalg.eigh(near)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        values, vectors = torch.linalg.eigh(near.double())
    return values.to(matrix), vectors.to(matrix)


def _gram_product(basis: Tensor, x: Tensor) -> Tensor:
    return x.T @ (x @ basis)


def _map_rows(work: Callable[[Tensor], Tensor], x: Tensor) -> Iterator[Tensor]:
    """Yield the result for each part of the rows, which threads of a CPU share; a GPU takes all at once."""
    return map_in_threads(work, x.split(PART_ROWS)) if x.device.type == "cpu" else iter([work(x)])


def _oriented(axes: Tensor) -> Tensor:
    """Give each axis the sign that makes its sum positive."""
    total = axes.sum(1, keepdim=True)
    return axes * total.sign().where(total != 0, 1)


def sparse_of(rows: Rows) -> ScaledSparse | None:
    """Products with rows that are sparse; None for others."""
    return rows.sparse if isinstance(rows, ScaledRows) else None


class ProjectedRows:
    """Sparse rows behind a linear front: what its network reads."""

    def __init__(self, rows: ScaledSparse, n: int, front: PCAFront) -> None:
        self.shape: tuple[int, ...] = (n, len(front.axes))
        self._rows, self._front = rows, front

    def read(self, start: int, stop: int) -> Tensor:
        front = self._front
        found = self._rows.times(front.axes.T, start, stop).to(front.axes) - front.offset
        near = self._rows.are_within(FARTHEST, start, stop).to(front.axes.device)  # else NaN, as Scaling makes of dense rows
        return torch.where(near[:, None], found, torch.nan)

    def take(self, ids: Tensor) -> Tensor:
        raise NotImplementedError("rows behind a front are read in their order")


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

    def count_values(self, shape: tuple[int, ...]) -> int:
        """Return the number of values that an image of this shape becomes."""
        count, _, side, _ = self.filters.shape
        responses = [length + 2 * (side // 2) - side + 1 for length in shape[1:]]
        regions = math.prod(math.ceil(length / self.pool_size) for length in responses)
        return count * regions + (math.prod(shape) if self.pixel_weight else 0)

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
        variance, axes = _eigh(patches.T @ patches / len(patches))
        variance, axes = variance.flip(0)[:count], axes.flip(1)[:, :count]
        filters = (axes / variance.sqrt()).where(variance > MIN_FILTER_VARIANCE * variance[0], 0)
        self.filters.copy_(filters.T.reshape(count, channels, side, side))
        if self.pixel_weight:
            responses = torch.cat(list(_map_rows(self._pooled, images)))
            ratio = float(responses.var(0).sum() / images.flatten(1).var(0).sum().clamp_min(1e-30))
            self.pixel_scale.fill_((self.pixel_weight * ratio) ** 0.5)

    def _pieces(self, x: Tensor) -> tuple[Tensor, ...]:
        """The images in pieces whose responses fit a CPU's cache; a GPU takes more."""
        if not self.piecewise:
            return (x,)
        responses = self.filters.shape[0] * x.shape[2] * x.shape[3]
        at_once = CACHED_RESPONSES if x.device.type == "cpu" else 2**6 * CACHED_RESPONSES
        pieces: tuple[Tensor, ...] = x.split(max(1, at_once // responses))
        return pieces

    def _features(self, x: Tensor) -> Tensor:
        responses = self._responses(x)
        return torch.cat([responses, x.flatten(1) * self.pixel_scale], 1) if self.pixel_weight else responses

    def _project(self, x: Tensor, axes: Tensor) -> Tensor:
        responses = self._responses(x)
        projected = responses @ axes[:, : responses.shape[1]].T
        if self.pixel_weight:
            projected += x.flatten(1) @ (axes[:, responses.shape[1] :] * self.pixel_scale).T
        return projected

    def _pooled(self, x: Tensor) -> Tensor:
        return torch.cat([self._responses(piece) for piece in self._pieces(x)])

    def _responses(self, x: Tensor) -> Tensor:
        responses = conv2d(x, self.filters, padding=self.filters.shape[2] // 2).abs_()
        return avg_pool2d(responses, self.pool_size, ceil_mode=True).flatten(1)
