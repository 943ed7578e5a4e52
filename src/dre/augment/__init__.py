"""Augmentations: random changes to the rows of a training batch, never in targets or in ``transform``.

To add one, write a file here with a frozen dataclass like the others. Any callable from rows to rows works too.
"""

from dre.augment.augmentation import AUGMENTS, Augment, CallableAugment, Chain, parse_augment
from dre.augment.color import Color
from dre.augment.noise import Dropout, LocalNoise, Noise
from dre.augment.warp import Affine, Crop, Elastic, Flip

__all__ = [
    "AUGMENTS",
    "Affine",
    "Augment",
    "CallableAugment",
    "Chain",
    "Color",
    "Crop",
    "Dropout",
    "Elastic",
    "Flip",
    "LocalNoise",
    "Noise",
    "parse_augment",
]
