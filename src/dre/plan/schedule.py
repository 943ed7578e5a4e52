"""The stages of a run as data, and as a text that means the same."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dre.affinity import AFFINITIES, Affinity
from dre.loss import Loss, Sum, read_loss
from dre.notation import NotationError, Reader, is_word, write_value

COMMENT = re.compile(r"#.*")


@dataclass(frozen=True)
class Stage:
    """Match the neighborhoods of ``source`` under ``affinity`` by minimizing ``loss`` for so many epochs.

    >>> from dre import Gaussian, KL
    >>> print(Stage("h1", Gaussian(30), KL(), 15, lr=1e-4))
    h1: gaussian(30) -> kl * 15 @ 0.0001
    """

    source: str  # "x", or the name of any submodule of the encoder, such as "h1" or "backbone.layer2"
    affinity: Affinity
    loss: Loss
    epochs: int
    lr: float | None = None  # learning rate; None: the recipe's
    refresh: int | None = None  # recompute the target every so many epochs; None: once, at the start

    def __post_init__(self) -> None:
        for name, kind in (("source", str), ("affinity", Affinity), ("loss", Loss), ("epochs", int)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name}={getattr(self, name)!r}: expected {kind.__name__}")
        if not is_word(self.source):
            raise ValueError(f"source={self.source!r}: expected a name such as 'x', 'h1' or 'backbone.layer2'")
        if self.refresh is not None and not isinstance(self.refresh, int):
            raise TypeError(f"refresh={self.refresh!r}: expected a whole number of epochs")
        for name in ("epochs", "lr", "refresh"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name}={value}: must be positive")

    def __str__(self) -> str:
        loss = f"({self.loss})" if isinstance(self.loss, Sum) else str(self.loss)
        rate = "" if self.lr is None else f" @ {write_value(self.lr)}"
        again = "" if self.refresh is None else f" refresh {self.refresh}"
        return f"{self.source}: {self.affinity} -> {loss} * {self.epochs}{rate}{again}"


class Schedule:
    """Stages, one after the other. The text form is lossless: ``Schedule.parse(str(s)) == s``.

    >>> schedule = Schedule.parse("x: gaussian(30) -> kl * 30; h1: gaussian(30) -> kl * 15")
    >>> [stage.source for stage in schedule]
    ['x', 'h1']
    >>> Schedule.parse(str(schedule)) == schedule
    True
    """

    def __init__(self, *stages: Stage) -> None:
        if not stages:
            raise ValueError("a schedule needs at least one stage, such as 'x: gaussian(30) -> kl * 30'")
        for stage in stages:
            if not isinstance(stage, Stage):
                raise TypeError(f"{stage!r} is not a Stage; Schedule.parse reads a text")
        self.stages = stages

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read stages, one a line or separated by ``;``: ``source: affinity -> loss * epochs [@ rate] [refresh epochs]``."""
        return cls(*(_read_stage(line) for line in COMMENT.sub("", text).replace(";", "\n").splitlines() if line.strip()))

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __getitem__(self, index: int) -> Stage:
        return self.stages[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.stages == other.stages

    def __hash__(self) -> int:
        return hash(self.stages)

    def __str__(self) -> str:
        return "\n".join(map(str, self.stages))

    def __repr__(self) -> str:
        return f"Schedule.parse({'; '.join(map(str, self.stages))!r})"


def _read_stage(line: str) -> Stage:
    reader = Reader(line.strip())
    start = reader.next
    if start.kind not in ("name", "number"):  # nn.Sequential numbers its blocks
        raise reader.error(start, "a stage starts with its source, such as 'x' or 'h1'")
    source = reader.take().text
    reader.expect(":", "':' after the source")
    affinity: Affinity = AFFINITIES.read(reader)
    reader.expect("->", "'->' between the affinity and the loss")
    loss = read_loss(reader)
    reader.expect("*", "'*' and the number of epochs")
    epochs = _read_int(reader, "the number of epochs")
    lr = refresh = None
    if reader.accept("@"):
        lr = float(reader.expect("number", "a learning rate").text)
    if reader.next.text == "refresh":
        reader.take()
        refresh = _read_int(reader, "a number of epochs")
    if reader.next.kind != "end":
        follows = "after the epochs only '@ learning rate' and 'refresh epochs' may follow"
        raise reader.error(reader.next, f"unexpected {reader.next.text!r}; {follows}")
    try:
        return Stage(source, affinity, loss, epochs, lr, refresh)
    except ValueError as problem:
        raise NotationError(reader.text, 0, len(reader.text), str(problem)) from problem


def _read_int(reader: Reader, what: str) -> int:
    token = reader.expect("number", what)
    if not token.text.isdigit():
        raise reader.error(token, f"{what} must be a whole number from 1 up")
    return int(token.text)


def recursive(first: Stage, again: Stage, sources: Sequence[str], recursions: int) -> list[Stage]:
    """Return the first stage, then ``again`` on one source after the other; beyond the last source, on the last."""
    if recursions < 0:
        raise ValueError(f"recursions={recursions}: must not be negative")
    return [first, *(replace(again, source=sources[min(i, len(sources) - 1)]) for i in range(recursions))]
