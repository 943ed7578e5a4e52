"""Libraries that do the work of some baselines, imported when they are needed; one that is missing is named."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

INSTALL = "pip install 'deep-recursive-embedding[baselines]'"


def open_tsne() -> Any:
    try:
        import openTSNE
    except ImportError as problem:
        raise ImportError(f"openTSNE is needed for open-tsne, fit-sne and dl-tsne: {INSTALL}") from problem
    return openTSNE


def umap_learn() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImportWarning)  # TensorFlow is missing, and not needed for what is used here
            import umap
    except ImportError as problem:
        raise ImportError(f"umap-learn is needed for umap and dl-umap: {INSTALL}") from problem
    return umap


def has_pyamg() -> bool:
    """Whether scikit-learn's multigrid solver can be used."""
    return find_spec("pyamg") is not None
