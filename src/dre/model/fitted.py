"""A learned map: all that it takes to embed new rows, and all that is saved."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dre.data.image_layout import channels_first, image_layout, model_shape
from dre.data.rows import ArrayRows, HostRows, Rows, fits, is_rows
from dre.data.scaling import ScaledRows, Scaling
from dre.encoder.forward import chunk_rows, outputs
from dre.plan.recipe import Recipe
from dre.training.loop import Weights

Array = np.ndarray[Any, Any]
SLICES = 8


@dataclass
class FittedMap:
    encoder: nn.Module
    recipe: Recipe
    scaling: Scaling
    n_components: int
    stages: list[Weights | None] = field(default_factory=list)  # at the end of each stage; None: left out of the file
    history: list[dict[str, Any]] = field(default_factory=list)  # one record per epoch

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row, as it was handed in."""
        return tuple(self.scaling.mean.shape)

    def embed(self, X: Any, stage: int | None = None) -> Array:
        """The map of the rows of X, now or as it was after a stage."""
        self.check_shape(X.shape)
        encoder = self.encoder if stage is None else self._after(stage)
        device = next((p.device for p in encoder.parameters()), torch.device("cpu"))
        if is_rows(X):
            return embed(encoder, to_model_rows(X, self.scaling, device))
        # Only a slice is dense float32 at a time; slices are whole chunks of the forward pass, so that the bits agree.
        step = SLICES * chunk_rows(model_shape(self.shape))
        slices = (to_model_rows(X[start : start + step], self.scaling, device) for start in range(0, X.shape[0], step))
        return np.concatenate([embed(encoder, rows) for rows in slices])

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if tuple(shape[1:]) != self.shape:
            raise ValueError(f"X has rows of the shape {tuple(shape[1:])}, but the model was fitted on {self.shape}: reshape X")

    def _after(self, stage: int) -> nn.Module:
        if not isinstance(stage, Integral) or not -len(self.stages) <= stage < len(self.stages):
            raise ValueError(f"stage={stage!r}: this model carried out {len(self.stages)} stage(s), counted from 0")
        weights = self.stages[stage]
        if weights is None:
            raise ValueError(f"stage={stage}: this model was saved with stages=False; transform(X) gives its last map")
        encoder = copy.deepcopy(self.encoder)
        encoder.load_state_dict(weights)
        return encoder


def to_model_rows(X: Any, scaling: Scaling, device: torch.device, *, held: bool = True) -> Rows:
    """Rows as the encoder reads them: centred and scaled, images with their channels first.

    An array at once, unless it need not be ``held`` on a CPU, since it is read only a few times; Rows as read.
    """
    if is_rows(X):
        return ScaledRows(X, scaling, device)
    if device.type == "cpu" and not held:
        return ScaledRows(HostRows(X), scaling, device)
    if device.type == "cpu":
        x = scaling.apply(X)
        return ArrayRows(channels_first(x, image_layout(tuple(x.shape[1:]))), device)
    rows = ScaledRows(HostRows(X), scaling, device)  # what travels to the device is what was handed in
    n = rows.shape[0]
    return ArrayRows(rows.read(0, n), device) if fits(4 * math.prod(rows.shape), device) else rows


def mean_of_scaled(scaling: Scaling) -> Tensor:
    """What was taken from every row, at the scale and in the layout in which the encoder sees it."""
    mean = torch.from_numpy(scaling.mean / scaling.scale).float()[None]
    return channels_first(mean, image_layout(tuple(mean.shape[1:])))[0]


def embed(encoder: nn.Module, rows: Rows) -> Array:
    y: Array = outputs(encoder, rows).cpu().numpy()
    return y
