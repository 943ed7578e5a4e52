"""MNIST and Fashion-MNIST: 70,000 images of 28 × 28 pixels, in the IDX format."""

from __future__ import annotations

import numpy as np

from dre.datasets.dataset import Array, Dataset, DatasetSplit
from dre.datasets.files import Folder, RemoteFile, corrupt, read_file

IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
IDX_FILES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def _remote_files(subfolder: str, url: str, md5: tuple[str, ...]) -> tuple[RemoteFile, ...]:
    """Images and labels to train, then images and labels to test; the checksums are of the decompressed content."""
    names = [f"{name}-ubyte.gz" for name in IDX_FILES]
    return tuple(
        RemoteFile(name, subfolder, url + name, f"md5:{checksum}", checks_content=True)
        for name, checksum in zip(names, md5, strict=True)
    )


MNIST_FILES = _remote_files(
    "mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ),
)
FASHION_MNIST_FILES = _remote_files(
    "fashion-mnist",
    "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
    (
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "9018921c3c673c538a1fc5bad174d6f9",
        "8181f5470baa50b63fa0f6fddb340f0a",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ),
)
GARMENTS = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
MNIST_DESCRIPTION = """MNIST (LeCun, Cortes, Burges 1998): handwritten digits, 60,000 to train and 10,000 to test, 28 × 28
pixels of 0 to 255, as published; no preprocessing. Labels: the digit. Commonly listed as CC BY-SA 3.0."""
FASHION_MNIST_DESCRIPTION = f"""Fashion-MNIST (Xiao, Rasul, Vollgraf 2017): garments, 60,000 to train and 10,000 to test,
28 × 28 pixels of 0 to 255, as published; no preprocessing. Labels:
{", ".join(f"{i} {name}" for i, name in enumerate(GARMENTS))}. MIT license, (c) 2017 Zalando SE."""


def load_mnist(folder: Folder = None) -> Dataset:
    """Load MNIST: images uint8 (60000, 28, 28) and (10000, 28, 28), labels 0 to 9.

    Parameters
    ----------
    folder : path, default=None
        See `dre.datasets.load`.

    Returns
    -------
    dataset : Dataset
    """
    return Dataset("mnist", "MNIST", *_load_splits(MNIST_FILES, folder, "digit"), MNIST_DESCRIPTION)


def load_fashion_mnist(folder: Folder = None) -> Dataset:
    """Load Fashion-MNIST: images uint8 (60000, 28, 28) and (10000, 28, 28), labels 0 to 9 with their names.

    Parameters
    ----------
    folder : path, default=None
        See `dre.datasets.load`.

    Returns
    -------
    dataset : Dataset
    """
    train, test = _load_splits(FASHION_MNIST_FILES, folder, "garment")
    return Dataset("fashion-mnist", "Fashion-MNIST", train, test, FASHION_MNIST_DESCRIPTION, label_names=GARMENTS)


def _load_splits(files: tuple[RemoteFile, ...], folder: Folder, level: str) -> tuple[DatasetSplit, DatasetSplit]:
    images, labels, test_images, test_labels = (parse_idx(read_file(file, folder), file.name) for file in files)
    train = DatasetSplit.from_levels(images, {level: labels.astype(np.int64)})
    return train, DatasetSplit.from_levels(test_images, {level: test_labels.astype(np.int64)})


def parse_idx(content: bytes, name: str = "the content") -> Array:
    """Parse an IDX file: two zero bytes, the type, the number of axes, their sizes, the values.

    Parameters
    ----------
    content : bytes
    name : str, default="the content"
        Name of the file in errors.

    Returns
    -------
    array : array
        A writable copy.

    Examples
    --------
    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4]))
    array([5, 0, 4], dtype=uint8)
    """
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise corrupt(name, f"an IDX file starts with 0, 0 and a type, this one with {list(content[:4])}")
    axes, dtype = content[3], np.dtype(IDX_TYPES[content[2]])
    start = 4 + 4 * axes
    sizes = np.frombuffer(content[4:start], ">u4") if len(content) >= start else None
    values = 0 if sizes is None else int(np.prod(sizes, dtype=np.uint64))
    if sizes is None or len(content) - start != values * dtype.itemsize:
        expected = "more" if sizes is None else f"{start + values * dtype.itemsize:,}"
        raise corrupt(name, f"it has {len(content):,} bytes, its header requires {expected}")
    return np.frombuffer(content, dtype, offset=start).reshape(sizes.astype(int)).copy()
