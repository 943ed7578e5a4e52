"""Datasets by name: rows to train on and to test on, with labels; local copies first, downloads where there are none."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from dre.datasets.dataset import Dataset, Part
from dre.datasets.files import CorruptFileError, DatasetNotFoundError, Folder
from dre.notation import unknown

if TYPE_CHECKING:
    from dre.datasets.infinite_mnist import infimnist as infimnist

# One file per dataset, imported when it is asked for: some need libraries that others do not.
_PLACES = {
    "digits": "dre.datasets.digits",
    "mnist": "dre.datasets.mnist",
    "fashion-mnist": "dre.datasets.fashion_mnist",
    "imdb": "dre.datasets.imdb",
    "tasic2018": "dre.datasets.tasic2018",
    "pbmc": "dre.datasets.pbmc",
    "cbmc": "dre.datasets.cbmc",
    "infimnist": "dre.datasets.infinite_mnist",
}
NAMES = tuple(_PLACES)

__all__ = ["NAMES", "CorruptFileError", "Dataset", "DatasetNotFoundError", "Part", "infimnist", "load"]


def load(name: str, *, folder: Folder = None, **options: Any) -> Dataset:
    """The dataset of that name; ``options`` are those of its file.

    >>> data = load("digits", images=True)
    >>> data.train.rows.shape, data.test.labels[:5]
    ((1347, 8, 8), array([2, 0, 4, 9, 4]))

    Its files are looked for in ``folder`` (and a subfolder of it), in $DRE_DATA likewise, and in the cache; where they are
    in none of these they are downloaded into the cache ($DRE_CACHE, or the system's). Checksums are verified.
    """
    if name not in _PLACES:
        raise ValueError(unknown("dataset", name, list(NAMES)))
    loader = importlib.import_module(_PLACES[name]).load
    known = [option for option in inspect.signature(loader).parameters if option != "folder"]
    for option in options:
        if option not in known:
            raise TypeError(unknown(f"option of the dataset {name!r}", option, known))
    dataset: Dataset = loader(folder, **options)
    return dataset


def __getattr__(name: str) -> Any:
    if name == "infimnist":
        return importlib.import_module(_PLACES[name]).infimnist
    raise AttributeError(f"module 'dre.datasets' has no attribute {name!r}")
