"""The table of backbones, from results/backbone.json."""

from __future__ import annotations

from collections.abc import Callable

from result_text import load, table

TITLES = {
    "pixels": "pixels: the default, `patch-mlp`",
    "Fashion-MNIST, frozen": "backbone that has learned the classes from other images of Fashion-MNIST, frozen",
    "Fashion-MNIST, unfrozen": "the same, unfrozen for the last 5 epochs",
    "MNIST, frozen": "backbone that has learned the digits of MNIST, frozen",
    "MNIST, unfrozen": "the same, unfrozen for the last 5 epochs",
}


def backbone() -> str:
    """Held-out neighborhood hit of maps from pixels and from features."""
    content = load("backbone")
    means, images = content["results"]["means"], content["images"]
    rows = [[title, f"{means[name]['neighborhood_hit']:.3f}"] for name, title in TITLES.items()]
    return (
        table(["what the map reads", "neighborhood hit"], rows)
        + f"\n`python benchmarks/backbone.py --data FOLDER`: {images['fitted']:,} images of Fashion-MNIST fitted, "
        f"{images['scored']:,} others scored, means of {len(content['seeds'])} seeds; the backbone has seen "
        f"{images['pretrained']:,} other images with their labels.\n"
    )


TABLES: dict[str, Callable[[], str]] = {"backbone": backbone}
