"""A recipe: a schedule plus encoder, batches, optimizer and augmentation, all that a run needs beside the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import nn

from dre.augment import Augment, parse_augment
from dre.batches import BATCHES, Batches
from dre.encoder import ENCODERS, Encoder
from dre.encoder.backbone import Backbone
from dre.optimizer import OPTIMIZERS, Optimizer
from dre.plan.schedule import Schedule, Stage


@dataclass(frozen=True)
class Recipe:
    """A schedule plus encoder, batches, optimizer and augmentation. Each part may be given as a string.

    >>> recipe = Recipe("x: gaussian(30) -> kl * 20", "mlp(256)", "shuffled(500)", "adam(0.001)")
    >>> recipe.batches
    Shuffled(size=500)
    """

    schedule: Schedule
    encoder: Encoder | nn.Module
    batches: Batches
    optimizer: Optimizer
    augment: Augment | None = None
    precision: str = "auto"

    def __post_init__(self) -> None:
        parsers = {
            "schedule": Schedule.parse,
            "encoder": ENCODERS.parse,
            "batches": BATCHES.parse,
            "optimizer": OPTIMIZERS.parse,
            "augment": parse_augment,
        }
        for name, parse in parsers.items():
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, parse(getattr(self, name)))
        self._check_unfreezing()

    def _check_unfreezing(self) -> None:
        """Raise a ValueError if a stage trains a backbone that is not there, or that has nothing to learn."""
        if not any(stage.unfreeze for stage in self.schedule):
            return
        if not isinstance(self.encoder, Backbone):
            title = self.encoder if isinstance(self.encoder, Encoder) else type(self.encoder).__name__
            raise ValueError(f"a stage says unfreeze, but the encoder {title} has no backbone: pass encoder=Backbone(module)")
        if not self.encoder.can_learn:
            raise ValueError(
                "a stage says unfreeze, but no weight of the backbone requires a gradient: call "
                "requires_grad_(True) of the module, or of the layers that are to be trained"
            )

    def clamp_to(self, n: int, ranks: int = 1) -> Recipe:
        """Lower perplexity and n_neighbors where the n rows of a rank, or a batch of them, are too few, with a warning."""
        smallest = n // self.batches.split(ranks).steps(n)

        def rows_of(stage: Stage) -> int:
            if stage.affinity.scope != "graph":
                return smallest
            return n * ranks if stage.needs_all_rows else n

        clamped = {pair: pair[0].clamp_to(pair[1]) for pair in {(s.affinity, rows_of(s)): None for s in self.schedule}}
        stages = (replace(stage, affinity=clamped[stage.affinity, rows_of(stage)]) for stage in self.schedule)
        return replace(self, schedule=Schedule(*stages))

    def __str__(self) -> str:
        encoder = self.encoder if isinstance(self.encoder, Encoder) else type(self.encoder).__name__
        lines = [f"encoder   {encoder}", f"batches   {self.batches}", f"optimizer {self.optimizer}"]
        lines += [f"augment   {self.augment}"] if self.augment else []
        lines += [f"precision {self.precision}"]
        return "\n".join([*lines, *(f"stage {i}   {stage}" for i, stage in enumerate(self.schedule))])


@dataclass(frozen=True)
class DataSpec:
    """Facts about the data and the device, by which a named recipe is chosen."""

    n: int  # rows
    shape: tuple[int, ...]  # of one row: (d,) or (channels, height, width)
    device: str  # "cpu", "cuda", ...
    n_components: int = 2
    direct: bool = False  # whether the loss must go through the network from the start, inside each batch
    sampled: bool = False  # whether the n rows are a sample, and the network has others to embed
    free: int | None = None  # bytes of the device's memory; None: as much as is needed

    @property
    def images(self) -> bool:
        return len(self.shape) == 3
