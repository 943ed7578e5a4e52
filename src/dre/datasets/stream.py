"""The endless stream of deformed digits, any index of which is computed when it is asked for.

    v = x − (field[k1]·∂x/∂u − field[k2]·∂x/∂v), then moved by at most one pixel

Whole numbers alone are added and multiplied, so that an image has the same bits on every device, in every range and on any
number of threads. Which fields and which move an index gets is as in the published stream. Its fields are not to be had; ours
are smoothed noise from a fixed seed, so that the digits are of the kind of those of MNIST8M, and not the same ones.
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
from dre.datasets import mnist
from dre.datasets.dataset import Array
from dre.datasets.files import Folder
from dre.runtime import resolve_device

SIDE = 28
FIELDS = 1522
SEED = 1522
WIDTH = 4.0  # of the smoothing, in pixels: narrower frays strokes of 2 to 3 pixels, wider does little but move the whole digit
PEAK = 2.5  # the largest displacement of a field, in pixels (rms 1.0): to first order, more leaves ghosts beside the strokes
BITS = 8  # of a field, behind the point
NO_FIELD, NO_MOVE = FIELDS, 8  # what an image that stays as it is gets
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0))  # (down, right), chosen by k1 mod 9
LARGEST = 2**46  # indices stay below: times 131071 they still fit 63 bits
CHUNK = {"cpu": 512, "gpu": 2**14}  # images at a time: few stay in a processor's cache, many keep a GPU busy


@dataclass(frozen=True, eq=False)
class Digits:
    """What the stream repeats: images (n, 28, 28) of uint8 and their labels, of which the first ``tests`` are never deformed.

    >>> digits = Digits(np.zeros((12, 28, 28), np.uint8), np.arange(12) % 10, tests=2)
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
                f"{len(self.images)} images, {len(self.labels)} labels, {self.tests} of them test images: "
                "pass one label for each image, and at least one image that is not a test image"
            )

    @classmethod
    def of_mnist(cls, folder: Folder = None) -> Digits:
        data = mnist.load(folder)
        images, labels = [data.test.rows, data.train.rows], [data.test.labels, data.train.labels]
        return cls(np.concatenate(images), np.concatenate(labels), tests=len(data.test.labels))

    def source(self, i: Tensor) -> Tensor:
        """Which image stands at each index of the stream, or is deformed to give it."""
        return torch.where(i < self.tests, i, self.tests + (i - self.tests) % (len(self.images) - self.tests))


class InfiMNIST:
    """Images at some indices of the stream, as ``Rows``; nothing is held but the digits that are deformed, and the fields.

    >>> digits = Digits(np.full((12, 28, 28), 200, np.uint8), np.arange(12) % 10, tests=2)
    >>> rows = InfiMNIST(digits, range(2, 10**9))
    >>> rows.shape, rows[:14].labels.tolist()
    ((999999998, 28, 28), [2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5])
    >>> rows.take(torch.tensor([10**6, 3])).shape
    torch.Size([2, 28, 28])

    ``rows[a:b]`` and ``rows[ids]`` are the images at fewer indices, and share what is held; ``rows[i]`` is one image, of
    float32 like all that is read. ``np.asarray(rows)`` makes all of them.
    """

    def __init__(self, digits: Digits, indices: range | Array, *, device: str | torch.device = "auto") -> None:
        self.device = resolve_device(device)
        self._digits = digits
        self._framed = torch.from_numpy(np.pad(digits.images, ((0, 0), (1, 1), (1, 1)))).to(self.device)  # (n, 30, 30)
        self._fields = torch.from_numpy(fields()).to(self.device)
        self._moves = torch.tensor(MOVES, device=self.device)
        self._hold(indices)

    @classmethod
    def of(cls, indices: range | Array, *, folder: Folder = None, device: str | torch.device = "auto") -> InfiMNIST:
        """The images at any indices of the stream, in any order."""
        return cls(Digits.of_mnist(folder), indices, device=device)

    def _hold(self, indices: range | Array) -> None:
        self.indices = indices if isinstance(indices, range) else _whole_numbers(indices, "indices")
        ends = indices[:: max(1, len(indices) - 1)] if isinstance(indices, range) else self.indices
        if len(ends) and not 0 <= np.min(ends) <= np.max(ends) < LARGEST:
            raise ValueError(f"indices from {np.min(ends)} to {np.max(ends)}: the stream goes from 0 to {LARGEST - 1}")
        self.shape: tuple[int, ...] = (len(self.indices), SIDE, SIDE)
        self._held = self.indices if isinstance(self.indices, range) else torch.from_numpy(self.indices).to(self.device)

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
        ids = _whole_numbers(which, "ids")
        self._check(torch.from_numpy(ids))
        return self.at(self.indices.start + self.indices.step * ids if isinstance(self.indices, range) else self.indices[ids])

    def _image(self, i: int) -> Tensor:
        """The one at i, counted from the end where i is negative."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"row {i}, but there are {len(self)}, counted from 0")
        return self.read(i % len(self), i % len(self) + 1)[0]

    def __iter__(self) -> Iterator[Tensor]:
        """One image after the other, of which a chunk is made at a time."""
        for start in range(0, len(self), self._chunk):
            yield from self.read(start, min(len(self), start + self._chunk))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an array of images that are made when asked for is always a new one: leave out copy=False")
        return read_all(self, np.float32 if dtype is None else dtype)

    def at(self, indices: range | Array) -> InfiMNIST:
        """The images at other indices of the stream."""
        other = copy.copy(self)
        other._hold(indices)
        return other

    def __repr__(self) -> str:
        return f"InfiMNIST({self.indices!r}, device={str(self.device)!r})"

    @property
    def labels(self) -> Array:
        """Those of the digits that are deformed, (n,)."""
        indices = torch.from_numpy(np.asarray(self.indices, dtype=np.int64))
        return self._digits.labels[self._digits.source(indices).numpy()]  # type: ignore[no-any-return]

    def images(self, start: int, stop: int) -> Tensor:
        """(stop - start, 28, 28) of uint8."""
        return self._made(self._positions(start, stop), torch.uint8)

    def read(self, start: int, stop: int) -> Tensor:
        return self._made(self._positions(start, stop), torch.float32)

    def take(self, ids: Tensor) -> Tensor:
        if ids.device.type == "cpu":  # those on a GPU are trusted: to look at them is to wait for them
            self._check(ids)
        return self._made(ids.to(self.device, torch.long), torch.float32)

    def _positions(self, start: int, stop: int) -> Tensor:
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"rows {start} to {stop}, but there are {len(self)}, counted from 0")
        return torch.arange(start, stop, device=self.device)

    def _check(self, ids: Tensor) -> None:
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(self):
            raise IndexError(f"ids from {int(ids.min())} to {int(ids.max())}, but there are {len(self)} rows, counted from 0")

    def _made(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        out = torch.empty(len(ids), SIDE, SIDE, dtype=dtype, device=self.device)
        step = self._chunk
        for start in range(0, len(ids), step):
            out[start : start + step] = self._deformed(self._index(ids[start : start + step]))
        return out

    @property
    def _chunk(self) -> int:
        return CHUNK["cpu" if self.device.type == "cpu" else "gpu"]

    def _index(self, ids: Tensor) -> Tensor:
        """Where in the stream these rows are."""
        held = self._held
        return held.start + held.step * ids if isinstance(held, range) else held[ids]

    def _deformed(self, i: Tensor) -> Tensor:
        """The images at these indices of the stream, (n, 28, 28); the host never waits for the device."""
        k1 = (i * 131071 & 0xFFFFFFFF) % (FIELDS - 1)
        k2 = (k1 + 1 + 2 * i) % FIELDS  # k1 + k2 is odd, which makes the sign of the deformation −1
        as_it_is = i < len(self._digits.images)
        down, right = self._moves[torch.where(as_it_is, NO_MOVE, k1 % len(MOVES))].unbind(1)
        field1, field2 = (self._fields[torch.where(as_it_is, NO_FIELD, k)] for k in (k1, k2))  # (n, 28, 28) of int16

        x = self._framed[self._digits.source(i)].int()  # (n, 30, 30)
        inside = x[:, 1:-1, 1:-1]
        v = inside << (BITS + 1)  # twice, as the differences are
        v.addcmul_(x[:, 1:-1, 2:] - x[:, 1:-1, :-2], field1.int(), value=-1)
        v.addcmul_(x[:, 2:, 1:-1] - x[:, :-2, 1:-1], field2.int())
        inside.copy_(v.clamp_(0, 255 << (BITS + 1)) >> (BITS + 1))
        windows = x.unfold(1, SIDE, 1).unfold(2, SIDE, 1)  # (n, 3, 3, 28, 28): the image in all places that it may be moved to
        return windows[torch.arange(len(i), device=i.device), 1 - down, 1 - right]


def fields() -> Array:
    """Smooth displacements, (1523, 28, 28) of int16, in 1/256 pixel; the last one is zero everywhere.

    >>> made = fields()
    >>> made.shape, int(np.abs(made).max()), int(np.abs(made[:-1]).max((1, 2)).min())
    ((1523, 28, 28), 640, 640)
    """
    reach = math.ceil(3 * WIDTH)
    side = SIDE + 2 * reach
    raw = np.random.PCG64(SEED).random_raw(-(-FIELDS * side * side // 8))  # bits, which numpy promises never to change
    noise = raw.astype("<u8").view(np.uint8)[: FIELDS * side * side].reshape(FIELDS, side, side) * 2.0 - 255
    bell = np.rint(4096 * np.exp(-0.5 * (np.arange(-reach, reach + 1) / WIDTH) ** 2))
    smoothing = np.zeros((SIDE, side))
    for row in range(SIDE):
        smoothing[row, row : row + 2 * reach + 1] = bell
    smooth = smoothing @ noise @ smoothing.T  # whole numbers below 2**53, which floats add exactly in any order
    largest = np.abs(smooth).max((1, 2), keepdims=True)
    out = np.zeros((FIELDS + 1, SIDE, SIDE), np.int16)
    out[:FIELDS] = np.rint(smooth * (PEAK * 2**BITS) / largest)
    return out


def _whole_numbers(values: Any, name: str) -> Array:
    if np.ndim(values) != 1 or np.asarray(values).dtype.kind not in "iu":
        raise TypeError(f"{name}={values!r}: pass a range or slice, or whole numbers (n,)")
    return np.array(values, dtype=np.int64)
