"""Datasets by name, with training and test rows and labels; local copies first, downloads otherwise."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from dre.datasets.dataset import Dataset, DatasetSplit
from dre.datasets.files import CorruptFileError, DatasetNotFoundError, Folder
from dre.notation import unknown

if TYPE_CHECKING:
    from dre.datasets.infinite_mnist import infimnist as infimnist

# The module and function of each dataset, imported on use: some need libraries that others do not.
_LOADERS = {
    "digits": ("digits", "load_digits"),
    "mnist": ("mnist", "load_mnist"),
    "fashion-mnist": ("mnist", "load_fashion_mnist"),
    "imdb": ("imdb", "load_imdb"),
    "tasic2018": ("tasic2018", "load_tasic2018"),
    "pbmc": ("scrna", "load_pbmc"),
    "cbmc": ("scrna", "load_cbmc"),
    "infimnist": ("infinite_mnist", "load_infimnist"),
}
NAMES = tuple(_LOADERS)

__all__ = ["NAMES", "CorruptFileError", "Dataset", "DatasetNotFoundError", "DatasetSplit", "infimnist", "load"]


def load(name: str, *, folder: Folder = None, **options: Any) -> Dataset:
    """Load a dataset by name.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    folder : path, default=None
        Folder with the files of the dataset, or with a subfolder that has them. Then $DRE_DATA is searched in the same
        way, then the cache ($DRE_CACHE, or that of the system). Missing files are downloaded into the cache, unless
        $DRE_OFFLINE is set. Checksums are verified.
    **options
        Options of the dataset, such as ``images=True`` of the digits.

    Returns
    -------
    dataset : Dataset

    Raises
    ------
    DatasetNotFoundError
        If a file is missing and cannot be downloaded.
    CorruptFileError
        If a file differs from the published one.

    Examples
    --------
    >>> data = load("digits", images=True)
    >>> data.train.rows.shape, data.test.labels[:5]
    ((1347, 8, 8), array([2, 0, 4, 9, 4]))
    """
    if name not in _LOADERS:
        raise ValueError(unknown("dataset", name, list(NAMES)))
    module, function = _LOADERS[name]
    loader = getattr(importlib.import_module(f"dre.datasets.{module}"), function)
    known = [option for option in inspect.signature(loader).parameters if option != "folder"]
    for option in options:
        if option not in known:
            raise TypeError(unknown(f"option of the dataset {name!r}", option, known))
    dataset: Dataset = loader(folder, **options)
    return dataset


def __getattr__(name: str) -> Any:
    if name == "infimnist":
        return importlib.import_module("dre.datasets.infinite_mnist").infimnist
    raise AttributeError(f"module 'dre.datasets' has no attribute {name!r}")
