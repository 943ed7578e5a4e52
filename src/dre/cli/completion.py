"""What Tab completes: names of recipes, devices, methods and data sets. Nothing here imports torch, so that Tab is quick."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

RECIPES = ("auto", "fast", "paper", "paper-tsne", "paper-umap", "deep-tsne", "deep-umap")
DEVICES = ("auto", "cpu", "cuda")
PROTOCOLS = ("standard", "paper")


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def several_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Between commas: what stands before the last of them stays."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        said = before.split(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last) and name not in said]

    return complete


def rows(incomplete: str) -> list[str]:
    """Data sets, and beside them the files that are here; where no data set is called so, the shell completes files itself."""
    from dre.datasets import NAMES

    named = [name for name in NAMES if name.startswith(incomplete)]
    here = [path for path in sorted(Path().iterdir()) if path.name.startswith(incomplete) and not path.name.startswith(".")]
    return [*named, *(f"{path}/" if path.is_dir() else str(path) for path in here)] if named else []
