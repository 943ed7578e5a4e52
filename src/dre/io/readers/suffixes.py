"""Kinds of files by how their names end: those that the modules of a folder have as ``FORMAT``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any


def formats_in(package: str) -> dict[str, Any]:
    """All of them by their suffixes: a new kind is a new module."""
    path = importlib.import_module(package).__path__
    modules = (importlib.import_module(f"{package}.{module.name}") for module in pkgutil.iter_modules(path))
    known = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return {suffix: format_ for format_ in known for suffix in format_.suffixes}


def suffix_of(name: str, known: Iterable[str]) -> str | None:
    """The longest that is known: .csv.gz before .gz."""
    return max((suffix for suffix in known if name.lower().endswith(suffix)), key=len, default=None)
