"""InfiMNIST: the endless stream of deformed MNIST digits, any image of which is computed on demand.

    v = x − (field[k1]·∂x/∂u − field[k2]·∂x/∂v), then shifted by at most one pixel

All arithmetic is on integers, so an image has the same bits on every device, in every range and with any number of threads.
An index gets the fields and the shift of the published stream (Loosli, Canu and Bottou 2007). The published fields are not
available; this module smooths noise from a fixed seed instead, so the digits resemble those of MNIST8M without being the same.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from dre.data.rows import read_all
from dre.datasets.dataset import Array, Dataset, DatasetSplit
from dre.datasets.files import Folder
from dre.datasets.mnist import MNIST_DESCRIPTION, load_mnist
from dre.runtime import resolve_device

SIDE = 28
FIELDS = 1522
SEED = 1522
WIDTH = 4.0  # of the smoothing, in pixels: less frays strokes of 2 to 3 pixels, more only shifts the digit
PEAK = 2.5  # largest displacement in pixels (rms 1.0): more leaves ghosts beside the strokes, as v is of first order
BITS = 8  # fraction bits of a field
NO_FIELD, NO_SHIFT = FIELDS, 8  # for images that are not deformed
SHIFTS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0))  # (down, right), by k1 mod 9
LARGEST = 2**46  # bound of the indices: times 131071 they still fit 63 bits
CHUNK = {"cpu": 512, "gpu": 2**14}  # images at a time: few fit a CPU's cache, many keep a GPU busy

FIRST_TRAIN, FIRST_TEST = 70_000, 10_000_000  # training images never reach the test images
FIRST_ORIGINAL, ROUND, ROUND_TRAIN = 10_000, 60_000, 50_000  # MNIST's test set; its training set, and the part to train on
BASES = {
    "shared": "Training and test images deform the same 60,000 digits.",
    "disjoint": "Training images deform the first 50,000 of the 60,000 digits, test images the last 10,000.",
    "overlapping": "The test images are the beginning of the stream, and the training images the first of them.",
    "originals": "No image is deformed: the training images are MNIST's test set, the test images its training set.",
}
DESCRIPTION = (
    "MNIST's training digits without end, each deformed by smooth random fields and shifted by up to a pixel: the stream of "
    "Loosli, Canu and Bottou (2007), which begins with MNIST8M. The published fields are not available; these are "
    f"noise smoothed over {WIDTH:g} pixels, of at most {PEAK:g} pixels, from a fixed seed. "
)

Indices = range | Array


@dataclass(frozen=True, eq=False)
class BaseDigits:
    """The digits that the stream repeats and deforms.

    Parameters
    ----------
    images : array of shape (n, 28, 28), uint8
    labels : array of shape (n,)
    tests : int
        Number of test images; they come first and are never deformed.

    Examples
    --------
    >>> digits = BaseDigits(np.zeros((12, 28, 28), np.uint8), np.arange(12) % 10, tests=2)
    >>> digits.source(torch.tensor([0, 11, 12, 13, 22])).tolist()
    [0, 11, 2, 3, 2]
    """

    images: Array
    labels: Array
    tests: int

    def __post_init__(self) -> None:
        if self.images.shape[1:] != (SIDE, SIDE) or self.images.dtype != np.uint8:
            raise ValueError(f"images {self.images.shape} of {self.images.dtype}: pass (n, {SIDE}, {SIDE}) of uint8")
        if len(self.images) != len(self.labels) or not 0 <= self.tests < len(self.images):
            raise ValueError(
                f"{len(self.images)} images, {len(self.labels)} labels, {self.tests} test images: "
                "pass one label per image, and at least one image that is not a test image"
            )

    @classmethod
    def from_mnist(cls, folder: Folder = None) -> BaseDigits:
        """Take MNIST's test set, then its training set."""
        data = load_mnist(folder)
        images, labels = [data.test.rows, data.train.rows], [data.test.labels, data.train.labels]
        return cls(np.concatenate(images), np.concatenate(labels), tests=len(data.test.labels))

    def source(self, i: Tensor) -> Tensor:
        """Return which digit stands at each index of the stream, deformed or not."""
        return torch.where(i < self.tests, i, self.tests + (i - self.tests) % (len(self.images) - self.tests))


class InfiMNIST:
    """Images at some indices of the stream, as `Rows`; only the digits and the fields are held in memory.

    ``rows[a:b]`` and ``rows[ids]`` are the images at fewer indices and share that memory; ``rows[i]`` is one image, float32.
    ``np.asarray(rows)`` computes all of them.

    Parameters
    ----------
    digits : BaseDigits
    indices : range or array of int
    device : str or torch.device, default="auto"
        Where the images are computed.

    Examples
    --------
    >>> digits = BaseDigits(np.full((12, 28, 28), 200, np.uint8), np.arange(12) % 10, tests=2)
    >>> rows = InfiMNIST(digits, range(2, 10**9))
    >>> rows.shape, rows[:14].labels.tolist()
    ((999999998, 28, 28), [2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5])
    >>> rows.take(torch.tensor([10**6, 3])).shape
    torch.Size([2, 28, 28])
    """

    def __init__(self, digits: BaseDigits, indices: Indices, *, device: str | torch.device = "auto") -> None:
        self.device = resolve_device(device)
        self._digits = digits
        self._framed = torch.from_numpy(np.pad(digits.images, ((0, 0), (1, 1), (1, 1)))).to(self.device)  # (n, 30, 30)
        self._fields = torch.from_numpy(displacement_fields()).to(self.device)
        self._shifts = torch.tensor(SHIFTS, device=self.device)
        self._set_indices(indices)

    def _set_indices(self, indices: Indices) -> None:
        self.indices = indices if isinstance(indices, range) else _check_integers(indices, "indices")
        ends = indices[:: max(1, len(indices) - 1)] if isinstance(indices, range) else self.indices
        if len(ends) and not 0 <= np.min(ends) <= np.max(ends) < LARGEST:
            raise ValueError(f"indices {np.min(ends)} to {np.max(ends)} are out of range: choose from 0 to {LARGEST - 1}")
        self.shape: tuple[int, ...] = (len(self.indices), SIDE, SIDE)
        self._on_device = self.indices if isinstance(self.indices, range) else torch.from_numpy(self.indices).to(self.device)

    def at(self, indices: Indices) -> InfiMNIST:
        """Return the images at other indices of the stream, in any order."""
        other = copy.copy(self)
        other._set_indices(indices)
        return other

    def __len__(self) -> int:
        return self.shape[0]

    @overload
    def __getitem__(self, which: int) -> Tensor: ...

    @overload
    def __getitem__(self, which: slice | Array) -> InfiMNIST: ...

    def __getitem__(self, which: int | slice | Array) -> InfiMNIST | Tensor:
        if isinstance(which, slice):
            return self.at(self.indices[which])
        if isinstance(which, int | np.integer) and not isinstance(which, bool):
            return self._image(int(which))
        ids = _check_integers(which, "ids")
        self._check_ids(torch.from_numpy(ids))
        return self.at(self.indices.start + self.indices.step * ids if isinstance(self.indices, range) else self.indices[ids])

    def _image(self, i: int) -> Tensor:
        if not -len(self) <= i < len(self):
            raise IndexError(f"row {i} is out of range: there are {len(self)} rows")
        return self.read(i % len(self), i % len(self) + 1)[0]

    def __iter__(self) -> Iterator[Tensor]:
        for start in range(0, len(self), self._chunk):
            yield from self.read(start, min(len(self), start + self._chunk))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("images are computed on demand, so an array of them is always new: leave out copy=False")
        return read_all(self, np.float32 if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"InfiMNIST({self.indices!r}, device={str(self.device)!r})"

    @property
    def labels(self) -> Array:
        """Labels of the deformed digits, (n,)."""
        indices = torch.from_numpy(np.asarray(self.indices, dtype=np.int64))
        return self._digits.labels[self._digits.source(indices).numpy()]  # type: ignore[no-any-return]

    def images(self, start: int, stop: int) -> Tensor:
        """Compute consecutive images, uint8 (stop - start, 28, 28)."""
        return self._compute(self._positions(start, stop), torch.uint8)

    def read(self, start: int, stop: int) -> Tensor:
        """Compute consecutive images, float32."""
        return self._compute(self._positions(start, stop), torch.float32)

    def take(self, ids: Tensor) -> Tensor:
        """Compute images in any order, float32."""
        if ids.device.type == "cpu":  # checking ids on a GPU would synchronize with it
            self._check_ids(ids)
        return self._compute(ids.to(self.device, torch.long), torch.float32)

    def _positions(self, start: int, stop: int) -> Tensor:
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"rows {start} to {stop} are out of range: there are {len(self)} rows")
        return torch.arange(start, stop, device=self.device)

    def _check_ids(self, ids: Tensor) -> None:
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(self):
            raise IndexError(f"ids {int(ids.min())} to {int(ids.max())} are out of range: there are {len(self)} rows")

    def _compute(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        out = torch.empty(len(ids), SIDE, SIDE, dtype=dtype, device=self.device)
        step = self._chunk
        for start in range(0, len(ids), step):
            out[start : start + step] = self._deform(self._stream_index(ids[start : start + step]))
        return out

    @property
    def _chunk(self) -> int:
        return CHUNK["cpu" if self.device.type == "cpu" else "gpu"]

    def _stream_index(self, ids: Tensor) -> Tensor:
        indices = self._on_device
        return indices.start + indices.step * ids if isinstance(indices, range) else indices[ids]

    def _deform(self, i: Tensor) -> Tensor:
        """Compute the images at these indices of the stream, (n, 28, 28), without host synchronization."""
        k1 = (i * 131071 & 0xFFFFFFFF) % (FIELDS - 1)
        k2 = (k1 + 1 + 2 * i) % FIELDS  # k1 + k2 is odd, which makes the sign of the deformation −1
        is_original = i < len(self._digits.images)
        down, right = self._shifts[torch.where(is_original, NO_SHIFT, k1 % len(SHIFTS))].unbind(1)
        field1, field2 = (self._fields[torch.where(is_original, NO_FIELD, k)] for k in (k1, k2))  # (n, 28, 28) int16

        x = self._framed[self._digits.source(i)].int()  # (n, 30, 30)
        inside = x[:, 1:-1, 1:-1]
        v = inside << (BITS + 1)  # doubled, like the central differences
        v.addcmul_(x[:, 1:-1, 2:] - x[:, 1:-1, :-2], field1.int(), value=-1)
        v.addcmul_(x[:, 2:, 1:-1] - x[:, :-2, 1:-1], field2.int())
        inside.copy_(v.clamp_(0, 255 << (BITS + 1)) >> (BITS + 1))
        windows = x.unfold(1, SIDE, 1).unfold(2, SIDE, 1)  # (n, 3, 3, 28, 28): the image under every shift
        return windows[torch.arange(len(i), device=i.device), 1 - down, 1 - right]


def displacement_fields() -> Array:
    """Compute smooth displacements, int16 (1523, 28, 28), in 1/256 pixel; the last field is zero.

    Returns
    -------
    fields : array

    Examples
    --------
    >>> fields = displacement_fields()
    >>> fields.shape, int(np.abs(fields).max()), int(np.abs(fields[:-1]).max((1, 2)).min())
    ((1523, 28, 28), 640, 640)
    """
    radius = math.ceil(3 * WIDTH)
    side = SIDE + 2 * radius
    raw = np.random.PCG64(SEED).random_raw(-(-FIELDS * side * side // 8))  # numpy guarantees these bits for ever
    noise = raw.astype("<u8").view(np.uint8)[: FIELDS * side * side].reshape(FIELDS, side, side) * 2.0 - 255
    kernel = np.rint(4096 * np.exp(-0.5 * (np.arange(-radius, radius + 1) / WIDTH) ** 2))
    smoothing = np.zeros((SIDE, side))
    for row in range(SIDE):
        smoothing[row, row : row + 2 * radius + 1] = kernel
    smooth = smoothing @ noise @ smoothing.T  # integers below 2**53, which floats add exactly in any order
    largest = np.abs(smooth).max((1, 2), keepdims=True)
    out = np.zeros((FIELDS + 1, SIDE, SIDE), np.int16)
    out[:FIELDS] = np.rint(smooth * (PEAK * 2**BITS) / largest)
    return out


def _check_integers(values: Any, name: str) -> Array:
    if np.ndim(values) != 1 or np.asarray(values).dtype.kind not in "iu":
        raise TypeError(f"{name}={values!r}: pass a range or slice, or integers of shape (n,)")
    return np.array(values, dtype=np.int64)


def infimnist(start: int, stop: int, *, folder: Folder = None, device: str | torch.device = "auto") -> InfiMNIST:
    """Return images ``start`` to ``stop`` of the stream; 0–9,999 are MNIST's test set, 10,000–69,999 its training set.

    Each call reads MNIST: to go through the stream, take one long range and slice it.

    Parameters
    ----------
    start, stop : int
        Index of the first image, and one past the last.
    folder : path, default=None
        Folder with MNIST, see `dre.datasets.load`.
    device : str or torch.device, default="auto"
        Where the images are computed.

    Returns
    -------
    rows : InfiMNIST

    Examples
    --------
    >>> rows = infimnist(70_000, 10**9)  # doctest: +SKIP
    >>> rows[:60_000].images(0, 5).shape, rows[:5].labels  # doctest: +SKIP
    (torch.Size([5, 28, 28]), array([5, 0, 4, 1, 9], dtype=uint8))
    """
    if not 0 <= start <= stop:
        raise ValueError(f"infimnist({start}, {stop}): expected 0 <= start <= stop")
    return InfiMNIST(BaseDigits.from_mnist(folder), range(start, stop), device=device)


def load_infimnist(
    folder: Folder = None,
    *,
    n_train: int = 100_000,
    n_test: int = 1_000_000,
    bases: str = "shared",
    device: str | torch.device = "auto",
) -> Dataset:
    """Load ranges of the stream: from 70,000 on to train, from 10,000,000 on to test; both are `Rows`.

    Parameters
    ----------
    folder : path, default=None
        Folder with MNIST, see `dre.datasets.load`.
    n_train : int, default=100_000
        Number of training images.
    n_test : int, default=1_000_000
        Number of test images.
    bases : {"shared", "disjoint", "overlapping", "originals"}, default="shared"
        ``"disjoint"`` deforms other digits in the test images than in the training images; of the ``n_test`` images of the
        stream it keeps about a sixth, from the 20,000th on. ``"overlapping"`` (both splits from the beginning of the stream)
        and ``"originals"`` (digits before any deformation) are what published results fit.
    device : str or torch.device, default="auto"
        Where the images are computed.

    Returns
    -------
    dataset : Dataset
    """
    if bases not in BASES:
        raise ValueError(f"bases={bases!r}; known: {', '.join(BASES)}")
    if n_train < 1 or n_test < 1:
        raise ValueError(f"n_train={n_train}, n_test={n_test}: choose at least one image of each")
    train_indices, test_indices = _split_indices(bases, n_train, n_test)
    rows = InfiMNIST(BaseDigits.from_mnist(folder), train_indices, device=device)
    splits = [DatasetSplit.from_levels(split, {"digit": split.labels}) for split in (rows, rows.at(test_indices))]
    description = f"{DESCRIPTION}{BASES[bases]}\nMade from {MNIST_DESCRIPTION}"
    return Dataset("infimnist", "InfiMNIST", splits[0], splits[1], description)


def _split_indices(bases: str, n_train: int, n_test: int) -> tuple[Indices, Indices]:
    if bases == "overlapping":
        return range(n_train), range(n_test)
    if bases == "originals":
        if n_train > FIRST_ORIGINAL or n_test > ROUND:
            limits = f"{FIRST_ORIGINAL:,} and {ROUND:,} digits"
            raise ValueError(f"n_train={n_train}, n_test={n_test}: there are {limits} before any deformation")
        return range(n_train), range(FIRST_ORIGINAL, FIRST_ORIGINAL + n_test)
    train_indices: Indices = range(FIRST_TRAIN, FIRST_TRAIN + n_train)
    test_indices: Indices = range(FIRST_TEST, FIRST_TEST + n_test)
    if bases == "disjoint":
        rounds, position = np.divmod(np.arange(n_train), ROUND_TRAIN)  # each round of 60,000 without its last 10,000
        train_indices = FIRST_TRAIN + rounds * ROUND + position
        i = np.arange(FIRST_TEST, FIRST_TEST + n_test)
        test_indices = i[(i - FIRST_TRAIN) % ROUND >= ROUND_TRAIN]
        if not len(test_indices):
            raise ValueError(f"n_test={n_test}: none of these deforms one of the last 10,000 digits; choose more than 20,000")
    if train_indices[-1] >= FIRST_TEST:
        raise ValueError(f"n_train={n_train} reaches the test images, which begin at {FIRST_TEST:,}: choose fewer")
    return train_indices, test_indices
