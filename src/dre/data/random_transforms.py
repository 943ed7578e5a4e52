"""Finds transforms of torch datasets that change images at random, by the names and the chances that they declare."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

BEGINNINGS = ("Random", "Rand")  # of the names of random transforms in torchvision, kornia and albumentations
NAMES = ("AugMix", "AutoAugment", "ColorJitter", "TrivialAugmentWide")  # those without such a name
DEEPEST = 10  # of nested transforms and datasets
TRANSFORMS = ("transform", "transforms")  # attributes that hold those of a dataset or of another transform


def check_transforms(dataset: Any) -> None:
    """Raise a ValueError if a dataset, or one inside it, declares a random transform.

    Items that are read twice show most of them, but not one that acts on one image in fifty.

    >>> class RandomHorizontalFlip:
    ...     p = 0.02
    >>> class Images(list):
    ...     transform = RandomHorizontalFlip()
    >>> check_transforms(Images())
    Traceback (most recent call last):
    ValueError: the transform of Images has RandomHorizontalFlip, which changes images at random: leave it out, and pass ...
    """
    for each in _datasets(dataset, DEEPEST):
        for transform in _transforms(each, DEEPEST):
            if _is_random(transform):
                raise ValueError(
                    f"the transform of {type(each).__name__} has {type(transform).__name__}, which changes images at random: "
                    "leave it out, and pass augment='flip + crop', for example, which acts in training alone"
                )


def _datasets(dataset: Any, depth: int) -> Iterator[Any]:
    """Yield a dataset and those that it is made of, as Subset and ConcatDataset are."""
    yield dataset
    inner = [getattr(dataset, "dataset", None), *_several(getattr(dataset, "datasets", None))]
    for each in inner if depth else []:
        if each is not None:
            yield from _datasets(each, depth - 1)


def _transforms(holder: Any, depth: int) -> Iterator[Any]:
    """Yield the transforms of a dataset, or those inside a transform, such as the steps of Compose."""
    found = [getattr(holder, name, None) for name in TRANSFORMS]
    children = getattr(holder, "children", None)  # of nn.Sequential
    steps = [step for each in found for step in (_several(each) or [each])]
    for step in [*steps, *(children() if callable(children) else [])] if depth else []:
        if step is not None:
            yield step
            yield from _transforms(step, depth - 1)


def _several(x: Any) -> list[Any]:
    return list(x) if isinstance(x, list | tuple) else []


def _is_random(transform: Any) -> bool:
    """Whether a transform has a chance between 0 and 1, or has none but the name of a random one."""
    chance = getattr(transform, "p", None)
    if isinstance(chance, Real):
        return 0 < float(chance) < 1
    return type(transform).__name__.startswith(BEGINNINGS) or type(transform).__name__ in NAMES
