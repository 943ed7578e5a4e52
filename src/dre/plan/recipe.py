"""Everything that a run needs beside the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import nn

from dre.augment import Augment, parse_augment
from dre.batches import BATCHES, Batches
from dre.encoder import ENCODERS, Encoder
from dre.optimizer import Optimizer
from dre.plan.schedule import Schedule


@dataclass(frozen=True)
class Recipe:
    """A schedule with all that stands around it."""

    schedule: Schedule
    encoder: Encoder | nn.Module
    batches: Batches
    optimizer: Optimizer
    augment: Augment | None = None
    precision: str = "auto"

    def __post_init__(self) -> None:
        """Texts are read, as everywhere."""
        readers = {"schedule": Schedule.parse, "encoder": ENCODERS.parse, "batches": BATCHES.parse, "augment": parse_augment}
        for name, read in readers.items():
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, read(getattr(self, name)))

    def clamp_to(self, n: int) -> Recipe:
        """With every affinity that n rows, or the batches made of them, are too few for adapted (and one warning for each)."""
        smallest = n // self.batches.steps(n)
        fitted = {a: a.clamp_to(n if a.scope == "graph" else smallest) for a in {s.affinity: None for s in self.schedule}}
        return replace(self, schedule=Schedule(*(replace(s, affinity=fitted[s.affinity]) for s in self.schedule)))

    def __str__(self) -> str:
        encoder = self.encoder if isinstance(self.encoder, Encoder) else type(self.encoder).__name__
        lines = [f"encoder   {encoder}", f"batches   {self.batches}", f"optimizer {self.optimizer}"]
        lines += [f"augment   {self.augment}"] if self.augment else []
        lines += [f"precision {self.precision}"]
        return "\n".join([*lines, *(f"stage {i}   {stage}" for i, stage in enumerate(self.schedule))])


@dataclass(frozen=True)
class DataSpec:
    """What a named recipe is fitted to."""

    n: int
    shape: tuple[int, ...]  # of one row: (d,) or (channels, height, width)
    device: str  # "cpu", "cuda", ...

    @property
    def images(self) -> bool:
        return len(self.shape) == 3
