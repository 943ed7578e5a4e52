"""A fitted model: a trained encoder with its scaling, as it is saved and as it embeds new rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dre.data.image_range import warn_of_range
from dre.data.preparation import Preparation
from dre.data.range_error import RangeError
from dre.data.rows import ArrayRows, HostRows, Rows, RowSlice, describe_row, fits, is_rows
from dre.data.scaling import ScaledRows, Scaling, is_near
from dre.data.sparse import is_sparse
from dre.data.validation import check_memory
from dre.encoder.backbone_front import BackboneFront
from dre.encoder.forward import outputs
from dre.observe.account import Account
from dre.plan.recipe import Recipe
from dre.runtime.float64 import float64_device
from dre.training.loop import DivergedError
from dre.training.run import Weights

Array = np.ndarray[Any, Any]
FAR = 1e6  # standard deviations: no row of a fit is as far out, and float32 can still square it


class MapModule(nn.Module):
    """One plain module from raw rows to the embedding: preparation, scaling, front and encoder in a row.

    A preparation that is no module, such as that of a table with text, is left out: the module then reads prepared rows.

    It has no Python loop over the rows, and works with ``torch.export``. Rows that ``transform`` refuses become NaN: those with
    NaN or infinity, and those too far from the fit. Under autocast it computes as any other module does.
    """

    def __init__(self, scaling: Scaling, encoder: nn.Module, preparation: nn.Module | None = None) -> None:
        super().__init__()
        self.preparation = preparation
        self.scaling = scaling
        self.encoder = encoder
        for part in encoder.modules():
            if hasattr(part, "piecewise"):
                setattr(part, "piecewise", False)  # noqa: B010 - no attribute of every module

    def forward(self, x: Tensor) -> Tensor:
        if self.preparation is not None:
            x = self.preparation(x)
        scaled = self.scaling(x)
        y: Tensor = self.encoder(scaled)
        computable = is_near(scaled).flatten(1).all(1, keepdim=True)
        return torch.where(computable, y, torch.nan)  # outside of torch, maximum and layer norm may lose a NaN


@dataclass
class FittedMap:
    """A trained encoder with its scaling and preparation, and the recipe, stages and history that made it."""

    encoder: nn.Module
    recipe: Recipe
    scaling: Scaling
    n_components: int
    stages: list[Weights | None] = field(default_factory=list)  # at the end of each stage; None: left out of the file
    history: list[dict[str, Any]] = field(default_factory=list)  # one record per epoch
    preparation: Preparation | None = None  # from what users have to raw rows of numbers
    account: Account | None = None  # of the fit; None of a map from a file

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one raw row."""
        return self.scaling.shape

    @property
    def device(self) -> torch.device:
        return next((p.device for p in self.encoder.parameters()), torch.device("cpu"))

    def embed(self, X: Any, stage: int | None = None) -> Array:
        """Embed rows, by the last weights or by those at the end of a stage. Rows are read and scaled chunk by chunk."""
        y: Array = self.coordinates(X, stage).cpu().numpy()
        return y

    def coordinates(self, X: Any, stage: int | None = None) -> Tensor:
        """Embed rows as ``embed`` does; the result is on the device of the encoder."""
        self.check_shape(X.shape)
        raw = X if is_rows(X) else HostRows(X)
        Y = outputs(self.encoder_of(stage), ScaledRows(raw, self.scaling, self.device))
        is_lost = ~Y.isfinite().all(1)
        if bool(is_lost.any()):
            raise self._explain(int(is_lost.long().argmax()), raw)
        return Y

    def warn_of_range(self, X: Any) -> None:
        """Warn of images with another range than those of the fit."""
        self.check_shape(X.shape)
        warn_of_range(X if is_rows(X) else HostRows(X), self.scaling)

    def features(self, X: Any, source: str, stage: int | None = None) -> Array:
        """Return the output of a submodule of the encoder for rows."""
        self.check_shape(X.shape)
        rows = ScaledRows(X if is_rows(X) else HostRows(X), self.scaling, self.device)
        y: Array = outputs(self.encoder_of(stage), rows, source).cpu().numpy()
        return y

    def _explain(self, row: int, raw: Rows) -> ValueError:
        """Return the error for a row whose coordinates are not finite: it names the value that lies farthest out."""
        x = raw.read(row, row + 1).cpu()
        scores = self.scaling.scores(x)[0].abs().nan_to_num(torch.inf)
        if float(scores.max()) < FAR:
            self._check_backbone(row, raw)
            return ValueError(
                f"the encoder gives no finite coordinates for row {row} of X, an ordinary row: fit the model again"
            )
        at = int(scores.argmax())
        place = tuple(int(i) for i in np.unravel_index(at, self.shape))
        reason = (
            f"{float(scores.flatten()[at]):.2g} standard deviations from the mean of the fit are too many for float32. "
            "Check the units of X, or leave this row out."
        )
        return RangeError(row, place, float(x.flatten()[at]), reason)

    def _check_backbone(self, row: int, raw: Rows) -> None:
        """Raise a ValueError if the features of this row, by the last weights, are not finite."""
        front = getattr(self.encoder, "features", None)
        if isinstance(front, BackboneFront):
            scaled = ScaledRows(RowSlice(raw, row, row + 1), self.scaling, self.device)
            front.backbone.check(outputs(front.backbone, scaled), lambda _: describe_row(raw, row))

    def module(self, stage: int | None = None, *, prepares: bool = True) -> MapModule:
        """Return a copy of preparation, scaling and encoder as one module, in eval mode.

        ``prepares=False`` leaves out the preparation: the module then reads prepared rows. It is on the device of the encoder,
        or on the CPU if that device has no float64.
        """
        scaling, encoder = copy.deepcopy(self.scaling), copy.deepcopy(self.encoder_of(stage))
        preparation = self.preparation.module() if prepares and self.preparation is not None else None
        return MapModule(scaling, encoder, preparation).to(float64_device(self.device)).eval()

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise a ValueError if rows have another shape than those that were fitted."""
        if tuple(shape[1:]) != self.shape:
            raise ValueError(f"X has rows of the shape {tuple(shape[1:])}, but the model was fitted on {self.shape}: reshape X")

    def encoder_of(self, stage: int | None) -> nn.Module:
        """Return the encoder, with the weights at the end of a stage; None for the last."""
        if stage is None:
            return self.encoder
        if not isinstance(stage, Integral) or not -len(self.stages) <= stage < len(self.stages):
            raise ValueError(f"stage={stage!r}: this model has {len(self.stages)} stage(s), counted from 0")
        weights = self.stages[stage]
        if weights is None:
            raise ValueError(f"stage={stage}: this model was saved with stages=False; transform(X) gives its last map")
        encoder = copy.deepcopy(self.encoder)
        encoder.load_state_dict(weights)
        return encoder


def to_model_rows(X: Any, scaling: Scaling, device: torch.device, *, hold: bool = True) -> Rows:
    """Return rows as the encoder reads them.

    An array is scaled at once and kept in memory, on the device if it fits there; ``hold=False`` leaves it unscaled on a CPU,
    for rows that are read only a few times. Streams are scaled when they are read.
    """
    if is_rows(X):
        return ScaledRows(X, scaling, device)
    rows = ScaledRows(HostRows(X), scaling, device)  # a GPU receives the numbers as given, and converts them
    nbytes = 4 * int(np.prod(rows.shape))
    if hold and is_sparse(X):
        check_memory(X, "X", np.float32)
    if device.type == "cpu":
        return ArrayRows(rows.read(0, rows.shape[0]), device) if hold else rows
    holds = fits(nbytes, device) and (hold or not is_sparse(X))
    return ArrayRows(rows.read(0, rows.shape[0]), device) if holds else rows


def embed(encoder: nn.Module, rows: Rows) -> Array:
    """Embed scaled rows."""
    y: Array = outputs(encoder, rows).cpu().numpy()
    return y


def check_map(Y: Array) -> Array:
    """Return the map of the fitted rows, or raise if the last step has made weights of which it is not finite."""
    if np.isfinite(Y).all():
        return Y
    raise DivergedError("the map is not finite after the last step. Lower learning_rate, or clip the gradients.")
