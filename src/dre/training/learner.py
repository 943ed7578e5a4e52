"""Splits an encoder into a front, whose output is cached, and the part that is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from dre.augment import Augment
from dre.augment.augmentation import apply_augment, split_augment
from dre.data.cached_rows import array_of, without_blocks
from dre.data.rows import ArrayRows, Rows, RowSlice, RowSubset, describe_row, is_stream
from dre.encoder import Encoder
from dre.encoder.backbone_front import BackboneFront
from dre.encoder.forward import INPUT, outputs
from dre.encoder.network import Network
from dre.encoder.pca_front import SAMPLE_ROWS, PCAFront
from dre.progress.activity import activity
from dre.runtime import full_float32
from dre.runtime.ranks import ALONE, Ranks
from dre.runtime.window import Window

FEATURES = "features"  # the source that is the front's output


@dataclass(frozen=True)
class Learner:
    """An encoder split into a front and a trained part.

    A step takes its rows from ``rows``, passes them through ``prepare`` and trains ``trained`` on the result; a backbone that
    is not frozen learns in ``prepare``.
    """

    encoder: nn.Module
    input_rows: Rows
    trained: nn.Module
    rows: Rows  # what a step reads: the input rows, or the cached output of the front
    before: Augment | None  # applied to input rows
    front: PCAFront | BackboneFront | None  # applied in every step, behind ``before``; None if its output is cached
    after: Augment | None  # applied to what the trained part reads
    mean: Tensor  # of the rows before centering, at their scale: augmentations of images need it

    @property
    def reads_radius(self) -> bool:
        """Whether the augmentation needs the distance of each row to its tenth neighbor, among what the trained part reads."""
        return any(augment is not None and augment.reads_radius for augment in (self.before, self.after))

    @property
    def window(self) -> Window | None:
        """The window within which rows are shuffled, where steps read a large stream."""
        return Window.of(self.rows.shape[0], 4 * math.prod(self.rows.shape[1:])) if is_stream(self.rows) else None

    @property
    def first_source(self) -> str:
        """The source that is what the trained part reads."""
        return INPUT if self.trained is self.encoder else FEATURES

    def prepare(self, x: Tensor, generator: torch.Generator, radius: Tensor | None = None) -> Tensor:
        """Augment the rows x of a batch, and pass them through the front where it is not cached."""
        if self.before is not None:
            x = apply_augment(self.before, x, self.mean, generator, radius)
        if self.front is not None:
            x = self.front(x)
        return x if self.after is None else apply_augment(self.after, x, self.mean, generator, radius)

    def embedding(self, ids: Tensor | None = None) -> Tensor:
        """Embedding of all rows, or of those with these ids, by the current weights: (n, n_components)."""
        if self.front is None:
            return outputs(self.trained, _subset(self.rows, ids))
        return outputs(self.encoder, _subset(self.input_rows, ids))

    @property
    def input_features(self) -> Rows:
        """The rows between which losses measure distances in the input: those of the data, or features of a backbone."""
        if not isinstance(self.encoder, Network) or not isinstance(self.encoder.features, BackboneFront):
            return self.input_rows
        return self.rows if self.front is None else ArrayRows(self.features(FEATURES), self.mean.device)

    @property
    def n_components(self) -> int:
        return outputs(self.encoder, self.input_rows, limit=2).shape[1]

    def features(self, source: str, ids: Tensor | slice | None = None) -> Tensor:
        """Output of a source for all rows, for those with these ids, or for a range of them, by the current weights.

        Several sources, ``x+h1``, lie side by side, each scaled to the same total variance.
        """
        if "+" in source:
            return joined_sources([self.features(part, ids) for part in source.split("+")])
        if self.rows is self.input_rows or source == INPUT or source.startswith(f"{FEATURES}."):
            return outputs(self.encoder, _subset(self.input_rows, ids), source)
        return outputs(self.trained, _subset(self.rows, ids), INPUT if source == FEATURES else source)


def joined_sources(outputs_of: Sequence[Tensor]) -> Tensor:
    """Put the outputs of several sources side by side, each scaled to the same total variance; a single one is unchanged."""
    if len(outputs_of) == 1:
        return outputs_of[0]
    return torch.cat([part / part.var(0, correction=0).sum().sqrt().clamp_min(1e-30) for part in outputs_of], 1)


def _subset(rows: Rows, ids: Tensor | slice | None) -> Rows:
    if isinstance(ids, slice):
        return RowSlice(rows, ids.start, ids.stop)
    return rows if ids is None else RowSubset(rows, ids)


def uses_cached_front(encoder: Encoder | nn.Module, augment: Augment | None, *, unfreeze: bool = False) -> bool:
    """Whether training steps read the cached output of a front, and never the rows themselves, as an unfrozen backbone does."""
    is_front = isinstance(encoder, Encoder) and encoder.first_source == FEATURES
    return is_front and not unfreeze and split_augment(augment)[0] is None


def make_learner(
    encoder: nn.Module,
    rows: Rows,
    augment: Augment | None,
    mean: Tensor,
    generator: torch.Generator,
    *,
    ranks: Ranks = ALONE,
    unfreeze: bool = False,
) -> Learner:
    """Fit the encoder's front to the rows, unless it was fitted before, and split the encoder behind it.

    A front that was fitted before keeps its axes: the network behind it has learned what they mean. Of several ranks, the
    first one fits it: its rows are a random sample of all. With ``unfreeze`` the weights of a backbone are trained, too.
    """
    front = encoder.features if isinstance(encoder, Network) else None
    if isinstance(encoder, Network) and isinstance(front, BackboneFront):
        return _with_backbone(encoder, front, rows, augment, mean, generator=generator, ranks=ranks, unfreeze=unfreeze)
    if not isinstance(encoder, Network) or not isinstance(front, PCAFront):
        rows = without_blocks(rows, mean.device)
        return Learner(encoder, rows, encoder, rows, augment, None, None, mean)
    before, after = split_augment(augment)
    if before is not None:
        rows = without_blocks(rows, mean.device)
    if not front.is_fitted:
        with torch.no_grad(), full_float32(), activity("computing principal components"):
            if ranks.is_first:
                front.fit(rows, generator)
            ranks.copy_first(list(front.buffers()))
    if before is not None:
        return Learner(encoder, rows, encoder.without_features(), rows, before, front, after, mean)
    cached = array_of(rows, outputs(encoder, rows, FEATURES), mean.device)
    return Learner(encoder, rows, encoder.without_features(), cached, None, None, after, mean)


def _with_backbone(
    encoder: Network,
    front: BackboneFront,
    rows: Rows,
    augment: Augment | None,
    mean: Tensor,
    *,
    generator: torch.Generator,
    ranks: Ranks,
    unfreeze: bool,
) -> Learner:
    """Split an encoder behind its backbone. The features are computed once, unless they change from step to step."""
    before, after = split_augment(augment)
    if unfreeze:
        front.backbone.unfreeze()
    else:
        front.backbone.freeze()
    is_cached = before is None and not unfreeze
    if not is_cached:
        rows = without_blocks(rows, mean.device)
    if is_cached or not front.is_fitted:
        read = rows if is_cached else RowSubset(rows, _sample(rows.shape[0], generator))
        found = outputs(front.backbone, read)
        front.backbone.check(found, partial(describe_row, read))
        features = array_of(rows, found, mean.device)
        if not front.is_fitted:
            with torch.no_grad(), full_float32(), activity("computing principal components"):
                if ranks.is_first:
                    front.pca.fit(features, generator)
                ranks.copy_first(list(front.pca.buffers()))
        if is_cached:
            cached = array_of(rows, outputs(front.pca, features), mean.device)
            return Learner(encoder, rows, encoder.without_features(), cached, None, None, after, mean)
    return Learner(encoder, rows, encoder.without_features(), rows, before, front, after, mean)


def _sample(n: int, generator: torch.Generator) -> Tensor:
    """Ids of a random sample, from which the principal components of features are computed."""
    return torch.randperm(n, generator=generator, device=generator.device)[:SAMPLE_ROWS].sort().values
