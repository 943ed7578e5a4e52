"""The images of a torch dataset as rows: items of Pillow, arrays or tensors, those of different sizes resized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import Subset

from dre.data.image_layout import channels_first, image_layout
from dre.data.pictures import COLOR, GRAY, Header, PictureArray, Size, common_size, describe, sizes_message, to_pixels
from dre.data.random_transforms import check_transforms
from dre.data.rows import HostRows
from dre.data.subsample import evenly_spaced_ids
from dre.progress.activity import activity
from dre.runtime.threads import map_in_threads

Array = np.ndarray[Any, Any]
LOOKED_AT = 10_000  # items, evenly spaced, whose sizes and modes are looked at before all are read
READ_AGAIN, READS = 8, 4  # items that must be the same each time they are read
LABELS = ("targets", "labels", "_labels")  # attributes of datasets of torchvision


class Items(NamedTuple):
    """How the items of a dataset become rows of one shape."""

    shape: tuple[int, ...]  # of a row
    dtype: Any
    messages: list[str]


class ImageItems:
    """Rows that are the images of a map-style dataset, such as ``ImageFolder`` or ``CIFAR10`` of torchvision.

    An item is an image, or a tuple or list that begins with one: an image of Pillow, an array or a tensor. Images of Pillow are
    read as uint8, gray or in color. Images of different sizes are cropped in the middle and resized to ``size``, or to the size
    that most have, or else to 64 × 64 pixels; ``messages`` tells how many.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Its transform must not change items at random: an augmentation does that in training alone.
    size : int or (height, width), optional
    row_shape : tuple of int, optional
        The shape of the rows of a model, to which images are resized where they can be.

    Examples
    --------
    >>> rows = ImageItems([(np.zeros((20, 30, 3), np.uint8), 0), (np.ones((40, 30, 3), np.uint8), 1)], size=8)
    >>> rows.shape, rows.labels.tolist()
    ((2, 8, 8, 3), [0, 1])
    """

    def __init__(
        self, dataset: Any, size: int | tuple[int, int] | None = None, *, row_shape: tuple[int, ...] | None = None
    ) -> None:
        check_transforms(dataset)
        self._dataset = dataset
        n = len(dataset)
        if n == 0:
            raise ValueError(f"{type(dataset).__name__} has no items")
        self._is_safe = _reads_files(dataset)
        items = self._look(evenly_spaced_ids(n, LOOKED_AT).tolist(), _as_size(size), row_shape)
        self.shape, self.messages = (n, *items.shape), items.messages
        self._rows = HostRows(PictureArray(self.shape, items.dtype, self._load, in_threads=self._is_safe))
        self.in_blocks = True

    def place(self, row: int) -> str:
        """Name a row for messages."""
        return f"item {row} of {type(self._dataset).__name__}"

    def read(self, start: int, stop: int) -> Tensor:
        """Read consecutive rows."""
        return self._rows.read(start, stop)

    def take(self, ids: Tensor) -> Tensor:
        """Read rows in any order; each is read once."""
        unique, inverse = np.unique(ids.cpu().numpy(), return_inverse=True)
        return self._rows.take(torch.from_numpy(unique))[torch.from_numpy(inverse)]

    @property
    def labels(self) -> Array | None:
        """The labels of the items, by name where the dataset names its classes; None if it has none."""
        return dataset_labels(self._dataset)

    def _look(self, ids: list[int], size: Size | None, row_shape: tuple[int, ...] | None) -> Items:
        """Look at some items, and decide what rows are made of all."""
        found = []
        with activity(f"looking at the images of {type(self._dataset).__name__}", len(ids)) as looking:
            each_item = map_in_threads(self._item, ids) if self._is_safe else map(self._item, ids)
            for i, image in zip(ids, each_item, strict=True):
                found.append(Header.of(image) if _is_picture(image) else self._check(i, image))
                looking.advance(1)
        self._check_repeatable(ids[:: max(1, len(ids) // READ_AGAIN)])
        headers = [each for each in found if isinstance(each, Header)]
        if headers and len(headers) < len(found):
            raise TypeError(f"{type(self._dataset).__name__} has items of Pillow and others: convert all to tensors")
        if headers:
            return _picture_items(headers, size, row_shape)
        return self._array_items(ids, found, size, row_shape)  # type: ignore[arg-type]

    def _item(self, i: int) -> Any:
        item = self._dataset[i]
        return item[0] if isinstance(item, tuple | list) and len(item) else item

    def _check(self, i: int, x: Any) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of an item that is an array."""
        if isinstance(x, dict):
            raise TypeError(f"{self.place(i)} is a dict of {', '.join(map(str, x))}: return the image, or (image, label)")
        row = as_array(x)
        if row.ndim == 0:
            raise ValueError(f"item {i} of {type(self._dataset).__name__} is a single number: expected a vector or an image")
        return row.shape, row.dtype

    def _check_repeatable(self, ids: list[int]) -> None:
        for i in ids:
            first = np.asarray(as_array(self._item(i)))
            others = (np.asarray(as_array(self._item(i))) for _ in range(READS - 1))
            if not all(np.array_equal(first, other, equal_nan=first.dtype.kind == "f") for other in others):
                raise ValueError(
                    f"{self.place(i)} is another one each time it is read: leave random changes out of its transform, and pass "
                    "them as augment='flip + crop', which acts in training alone"
                )

    def _array_items(
        self, ids: list[int], found: list[tuple[tuple[int, ...], Any]], size: Size | None, row_shape: tuple[int, ...] | None
    ) -> Items:
        shapes, dtype = [shape for shape, _ in found], found[0][1]
        if size is None and len(set(shapes)) == 1 and len(found) == len(self._dataset):
            return Items(shapes[0], dtype, [])
        layouts = {image_layout(shape) for shape in shapes}
        if layouts == {"d"} or (size is None and len(set(shapes)) == 1):
            return Items(shapes[0], dtype, [])
        if len(layouts) > 1 or len({_channels(shape) for shape in shapes}) > 1:
            other = next(i for i, shape in zip(ids, shapes, strict=True) if _kind(shape) != _kind(shapes[0]))
            raise ValueError(
                f"{self.place(other)} has the shape {shapes[ids.index(other)]}, item {ids[0]} has {shapes[0]}: convert all to "
                "gray or all to color"
            )
        sizes = [_size_of(shape) for shape in shapes]
        if row_shape is not None and _kind(row_shape) == _kind(shapes[0]):
            size = size or _size_of(row_shape)
        size = size or common_size(sizes)
        return Items(_with_size(shapes[0], size), dtype, [sizes_message(sizes, size)] if {*sizes} != {size} else [])

    def _load(self, i: int) -> Array:
        """One row. An item that was not looked at may have another size than all others, and is resized too."""
        image, shape = self._item(i), self.shape[1:]
        if _is_picture(image):
            return to_pixels(image, COLOR if len(shape) == 3 else GRAY, (shape[1], shape[0]))
        row = as_array(image)
        if row.shape == shape:
            return row
        if row.ndim < 2 or _kind(row.shape) != _kind(shape):
            raise ValueError(f"item {i} has the shape {row.shape}, item 0 has {shape}: resize them")
        return resized(row, shape)


def _picture_items(headers: list[Header], size: Size | None, row_shape: tuple[int, ...] | None) -> Items:
    mode = COLOR if any(header.mode == COLOR for header in headers) else GRAY
    if row_shape is not None and (len(row_shape) == 2 or (len(row_shape) == 3 and row_shape[2] == len(COLOR))):
        size, mode = size or (row_shape[1], row_shape[0]), COLOR if len(row_shape) == 3 else GRAY
    size = size or common_size([header.size for header in headers])
    return Items((size[1], size[0], *((3,) if mode == COLOR else ())), np.uint8, describe(headers, mode, size))


def is_list_of_images(X: Any) -> bool:
    """Whether X is a list of images of Pillow, or of arrays or tensors of several sizes, of which numpy makes no array.

    >>> is_list_of_images([np.zeros((2, 3)), np.zeros((3, 3))]), is_list_of_images([[1.0, 2.0], [3.0, 4.0]])
    (True, False)
    """
    if not isinstance(X, list | tuple) or not X:
        return False
    images = [item[0] if isinstance(item, list | tuple) and len(item) else item for item in X]
    if _is_picture(images[0]):
        return True
    are_arrays = all(isinstance(image, np.ndarray | Tensor) and image.ndim >= 2 for image in images)
    return are_arrays and len({tuple(image.shape) for image in images}) > 1


def image_rows(dataset: Any, row_shape: tuple[int, ...] | None = None) -> Any:
    """Return the array that a dataset reads its items from, if they are its items unchanged; else ImageItems."""
    check_transforms(dataset)
    array = _array_behind(dataset)
    return ImageItems(dataset, row_shape=row_shape) if array is None else array


def _array_behind(dataset: Any) -> Any:
    """The attribute ``data`` of datasets such as CIFAR10 and MNIST, for all items at once; None for others."""
    if type(dataset) is Subset:
        whole = _array_behind(dataset.dataset)
        return None if whole is None else whole[np.asarray(dataset.indices)]
    data = getattr(dataset, "data", None)
    if not isinstance(data, np.ndarray | Tensor) or data.ndim < 2 or len(data) != len(dataset) or len(data) == 0:
        return None
    for i in {0, len(data) // 2, len(data) - 1}:
        item = dataset[i]
        x = as_array(item[0] if isinstance(item, tuple | list) else item)
        expected = np.asarray(data[i])
        if x.shape != expected.shape or x.dtype != expected.dtype or not np.array_equal(x, expected):
            return None  # a transform changes them, or they have another layout
    return data


def dataset_labels(dataset: Any) -> Array | None:
    """Return the labels of a torch dataset: names of its classes where it has them, else numbers; None if it has none.

    Parameters
    ----------
    dataset : Dataset, Subset or DataLoader of torch

    Examples
    --------
    >>> dataset_labels([(np.zeros((2, 2)), 3), (np.ones((2, 2)), 5)])
    array([3, 5])
    """
    if hasattr(dataset, "dataset") and not hasattr(dataset, "indices"):  # a loader
        dataset = dataset.dataset
    if type(dataset) is Subset:
        whole = dataset_labels(dataset.dataset)
        return None if whole is None else whole[np.asarray(dataset.indices)]
    found = _numbers_of(dataset)
    classes = getattr(dataset, "classes", None)
    if found is None or not isinstance(classes, Sequence) or found.dtype.kind not in "iu":
        return found
    is_named = len(found) and found.min() >= 0 and found.max() < len(classes)
    return np.array([str(name) for name in classes])[found] if is_named else found


def _numbers_of(dataset: Any) -> Array | None:
    """One label per item, as the dataset stores them."""
    n = len(dataset)
    if getattr(dataset, "target_transform", None) is None:
        for name in LABELS:
            values = getattr(dataset, name, None)
            stored = None if values is None else np.asarray(values)
            if stored is not None and stored.shape == (n,):
                return stored
    first = dataset[0] if n else None
    if not isinstance(first, tuple | list) or len(first) < 2 or np.ndim(first[1]) != 0:
        return None
    return np.asarray([np.asarray(dataset[i][1]).item() for i in range(n)])


def as_array(x: Any) -> Array:
    """Return an image or a vector as an array."""
    return x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)


def resized(image: Array, shape: tuple[int, ...]) -> Array:
    """Crop an image in the middle to the proportions of a shape, and resize it; values keep their type.

    >>> resized(np.ones((20, 30, 3), np.uint8), (8, 8, 3)).shape
    (8, 8, 3)
    """
    layout = image_layout(image.shape)
    x = channels_first(torch.from_numpy(np.ascontiguousarray(image))[None], layout).double()
    (width, height), (wide, high) = _size_of(shape), (x.shape[3], x.shape[2])
    kept = min(wide / width, high / height)
    across, down = min(wide, max(1, round(kept * width))), min(high, max(1, round(kept * height)))
    left, top = (wide - across) // 2, (high - down) // 2
    x = interpolate(x[:, :, top : top + down, left : left + across], size=(height, width), mode="bilinear", antialias=True)
    row = x[0].movedim(0, -1) if layout == "hwc" else x[0, 0] if layout == "hw" else x[0]
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        row = row.round().clamp(int(limits.min), int(limits.max))
    return row.numpy().astype(image.dtype)


def _as_size(size: int | tuple[int, int] | None) -> Size | None:
    """Width and height of a number of pixels, or of (height, width)."""
    if size is None:
        return None
    sides = (size, size) if isinstance(size, int | np.integer) else tuple(size)
    if len(sides) != 2 or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
        raise ValueError(f"size={size!r}: expected a number of pixels, such as 64, or (height, width)")
    return int(sides[1]), int(sides[0])


def _is_picture(x: Any) -> bool:
    """Whether x is an image of Pillow that holds no fractions."""
    return any(kind.__module__ == "PIL.Image" for kind in type(x).__mro__) and x.mode != "F"


def _reads_files(dataset: Any) -> bool:
    """Whether several threads may read items: those of torchvision that open a file for each."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return hasattr(dataset, "samples") and callable(getattr(dataset, "loader", None))


def _kind(shape: tuple[int, ...]) -> tuple[str, int]:
    return image_layout(shape), _channels(shape)


def _channels(shape: tuple[int, ...]) -> int:
    layout = image_layout(shape)
    return {"hwc": shape[-1], "chw": shape[0]}.get(layout, 1)


def _size_of(shape: tuple[int, ...]) -> Size:
    """Width and height."""
    height, width = shape[1:] if image_layout(shape) == "chw" else shape[:2]
    return width, height


def _with_size(shape: tuple[int, ...], size: Size) -> tuple[int, ...]:
    width, height = size
    return {"hw": (height, width), "hwc": (height, width, shape[-1])}.get(image_layout(shape), (shape[0], height, width))
