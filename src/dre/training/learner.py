"""What of an encoder is trained, and what it reads: a computed front is gone through once, not in every step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dre.augment import Augment
from dre.augment.augmentation import augmented, split_augment
from dre.data.rows import ArrayRows, Rows, RowSubset
from dre.encoder import Encoder
from dre.encoder.forward import INPUT, outputs
from dre.encoder.network import Network
from dre.encoder.pca_front import Front
from dre.runtime import full_float32

FEATURES = "features"  # the source that is the front's output


@dataclass(frozen=True)
class Learner:
    """Rows of a batch, by ``rows``, through ``seen`` into ``trained``."""

    whole: nn.Module
    raw: Rows
    trained: nn.Module
    rows: Rows
    before: Augment | None  # changes rows as they were handed in
    front: Front | None  # that each step goes through
    after: Augment | None  # changes what the trained part reads
    mean: Tensor  # of the rows before they were centred, at their scale

    def seen(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """What the trained part is shown of the rows x of a batch."""
        if self.before is not None:
            x = augmented(self.before, x, self.mean, generator)
        if self.front is not None:
            x = self.front(x)
        return x if self.after is None else augmented(self.after, x, self.mean, generator)

    def features(self, source: str, ids: Tensor | None = None) -> Tensor:
        """What a source gives for all rows, or for those with these ids, from the network as it stands."""
        if self.rows is self.raw or source == INPUT or source.startswith(f"{FEATURES}."):
            return outputs(self.whole, _some(self.raw, ids), source)
        return outputs(self.trained, _some(self.rows, ids), INPUT if source == FEATURES else source)


def _some(rows: Rows, ids: Tensor | None) -> Rows:
    return rows if ids is None else RowSubset(rows, ids)


def uses_cached_front(encoder: Encoder | nn.Module, augment: Augment | None) -> bool:
    """Whether a step of training never reads the rows themselves, but what a front has made of them."""
    return isinstance(encoder, Encoder) and encoder.first_source == FEATURES and split_augment(augment)[0] is None


def learner(encoder: nn.Module, rows: Rows, augment: Augment | None, mean: Tensor, generator: torch.Generator) -> Learner:
    """Compute what of the encoder is computed from the rows, and say what is left to train.

    A front that was settled before is left as it is: the network behind it has learned what its axes mean.
    """
    front = encoder.features if isinstance(encoder, Network) else None
    if not isinstance(encoder, Network) or not isinstance(front, Front):
        return Learner(encoder, rows, encoder, rows, augment, None, None, mean)
    if not front.is_fitted:
        with torch.no_grad(), full_float32():
            front.fit(rows, generator)
    before, after = split_augment(augment)
    if before is not None:
        return Learner(encoder, rows, encoder.behind(), rows, before, front, after, mean)
    behind = ArrayRows(outputs(encoder, rows, FEATURES), mean.device)
    return Learner(encoder, rows, encoder.behind(), behind, None, None, after, mean)
