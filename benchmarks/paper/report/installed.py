"""What the report needs beside the package itself, and the remedy where it is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

LIBRARIES = {"jinja2": "jinja2", "matplotlib.figure": "matplotlib"}  # what is imported, and what it is a part of
INSTALL = "pip install 'deep-recursive-embedding[bench]'"


def needed(module: str) -> Any:
    """The module, imported."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise ImportError(f"{LIBRARIES[module]} is needed for the report and its figures: {INSTALL}") from problem


def check_installed() -> None:
    """Raise an ImportError, before hours of work, where the report that ends them could not be written."""
    for module in LIBRARIES:
        needed(module)
