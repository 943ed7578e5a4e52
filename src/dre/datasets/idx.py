"""IDX, the format of MNIST, and the sets of four files that come in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre.datasets.dataset import Array, Part
from dre.datasets.files import File, Folder, corrupt, read

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
NAMES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def parse_idx(content: bytes, said: str = "the content") -> Array:
    """The array in an IDX file: two zero bytes, the type, the number of axes, their sizes, the values.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4]))
    array([5, 0, 4], dtype=uint8)

    ``said`` is what an error calls the file.
    """
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES:
        raise corrupt(said, f"an IDX file starts with 0, 0 and a type, this one with {list(content[:4])}")
    axes, dtype = content[3], np.dtype(TYPES[content[2]])
    start = 4 + 4 * axes
    sizes = np.frombuffer(content[4:start], ">u4") if len(content) >= start else None
    values = 0 if sizes is None else int(np.prod(sizes, dtype=np.uint64))
    if sizes is None or len(content) - start != values * dtype.itemsize:
        expected = "more" if sizes is None else f"{start + values * dtype.itemsize:,}"
        raise corrupt(said, f"it has {len(content):,} bytes, and its header announces {expected}")
    return np.frombuffer(content, dtype, offset=start).reshape(sizes.astype(int)).copy()  # a copy can be written to


def four_files(subfolder: str, url: str, md5: tuple[str, ...]) -> tuple[File, ...]:
    """Images and labels of the training part, images and labels of the test part; checksums of what the .gz hold."""
    names = [f"{name}-ubyte.gz" for name in NAMES]
    return tuple(File(n, subfolder, url + n, f"md5:{m}", inside=True) for n, m in zip(names, md5, strict=True))


def two_parts(files: tuple[File, ...], folder: Folder, level: str) -> tuple[Part, Part]:
    """The training and the test part: images uint8 (n, h, w), labels whole numbers."""
    images, labels, test_images, test_labels = (parse_idx(read(file, folder), file.name) for file in files)
    return _part(images, labels, level), _part(test_images, test_labels, level)


def _part(images: Any, labels: Any, level: str) -> Part:
    return Part.of(images, {level: labels.astype(np.int64)})
