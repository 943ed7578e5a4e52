"""Recipes by name: the default, its variants, and the paper's."""

from __future__ import annotations

from collections.abc import Callable

from dre.plan.recipe import DataSpec, Recipe
from dre.plan.recipes.default import auto, deep_tsne, deep_umap, fast
from dre.plan.recipes.paper import paper, paper_tsne, paper_umap

RECIPES: dict[str, Callable[[DataSpec, int | None], Recipe]] = {
    "auto": auto,
    "paper": paper,
    "paper-tsne": paper_tsne,
    "paper-umap": paper_umap,
    "deep-tsne": deep_tsne,
    "deep-umap": deep_umap,
    "fast": fast,
}
