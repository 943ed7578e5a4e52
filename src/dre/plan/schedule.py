"""The stages of a run as data, and as a text that means the same."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dre.affinity import AFFINITIES, Affinity
from dre.loss import Loss, Sum, read_loss
from dre.notation import NotationError, Reader, is_word, write_value

COMMENT = re.compile(r"#.*")
STARTS = ("network", "pca")
AGAINST = ("batch", "bank", "ranks")


@dataclass(frozen=True)
class Stage:
    """Match the neighborhoods of ``source`` under ``affinity`` by minimizing ``loss`` for so many epochs.

    >>> from dre import Gaussian, KL
    >>> print(Stage("h1", Gaussian(30), KL(), 15, lr=1e-4))
    h1: gaussian(30) -> kl * 15 @ 0.0001
    """

    source: str  # "x", or the name of any submodule of the encoder, such as "h1" or "backbone.layer2"; several: "x+h1"
    affinity: Affinity
    loss: Loss
    epochs: int
    lr: float | None = None  # learning rate; None: the recipe's
    refresh: int | None = None  # recompute the target every so many epochs; None: once, at the start
    start: str = "network"  # the map at the start: where the network has put the rows, or their principal components, "pca"
    free: int = 0  # steps in which the coordinates of all rows are optimized freely, before the network follows them
    free_with: Loss | None = None  # added to the loss in these steps alone
    follow: int = 0  # epochs in which the network follows these coordinates
    against: str = "batch"  # what the loss compares a batch with: itself, the batches of all "ranks", or the "bank" of all rows
    optional: bool = False  # undo the stage, and end the fit, if it does not improve the map
    unfreeze: bool = False  # train the weights of the encoder's backbone too, which other stages leave as they are

    def __post_init__(self) -> None:
        for name, kind in (("source", str), ("affinity", Affinity), ("loss", Loss), ("epochs", int)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name}={getattr(self, name)!r}: expected {kind.__name__}")
        if not all(map(is_word, self.sources)):
            raise ValueError(f"source={self.source!r}: expected a name such as 'x', 'h1', 'backbone.layer2' or 'x+h1'")
        if self.refresh is not None and not isinstance(self.refresh, int):
            raise TypeError(f"refresh={self.refresh!r}: expected a whole number of epochs")
        for name in ("epochs", "lr", "refresh"):
            value = getattr(self, name)
            if name == "epochs" and value == 0 and self.follow:
                continue  # the network follows and no more
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name}={value}: must be positive")
        for name, known in (("start", STARTS), ("against", AGAINST)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r}; known: {', '.join(known)}")
        self._check_flags()
        for name in ("free", "follow"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)!r}: must be a whole number from 0 up")
        self._check_solution()

    def _check_flags(self) -> None:
        for name in ("optional", "unfreeze"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name}={getattr(self, name)!r}: expected True or False")

    def _check_solution(self) -> None:
        """Raise a ValueError if the parts of the solution do not fit together."""
        if self.unfreeze and self.lr is None:
            raise ValueError(
                "unfreeze: the stage needs a learning rate of its own, such as '@ 0.0001'; that of a new network is too high"
            )
        if self.free_with is not None and not (isinstance(self.free_with, Loss) and self.free):
            raise ValueError(f"free_with={self.free_with}: expected a loss, beside free steps: free 350 with 0.3*shepard")
        if (self.free or self.start != "network") and not self.follow:
            raise ValueError("coordinates from pca or optimized freely need a network that follows them: follow 10")
        if not (self.free or self.against == "bank"):
            return
        for loss in (self.loss, self.free_with):
            if loss is not None and not loss.reads_bank:
                raise ValueError(f"the loss {loss} can't be taken against all rows: use kl, or 'against batch' and no 'free'")
        if self.affinity.scope != "graph":
            raise ValueError(f"{self.affinity} has its neighbors inside each batch: 'free' and 'against bank' need a graph")

    @property
    def sources(self) -> list[str]:
        """The names in ``source``."""
        return self.source.split("+")

    @property
    def needs_all_rows(self) -> bool:
        """Whether the graph is that of all rows, also where several ranks share them."""
        return self.free > 0 or self.against == "bank"

    @property
    def all_epochs(self) -> int:
        """Epochs of following and of minimizing the loss."""
        return self.follow + self.epochs

    @property
    def free_loss(self) -> Loss:
        """The loss of the free steps."""
        return self.loss if self.free_with is None else self.loss + self.free_with

    def __str__(self) -> str:
        loss = f"({self.loss})" if isinstance(self.loss, Sum) else str(self.loss)
        rate = "" if self.lr is None else f" @ {write_value(self.lr)}"
        again = "" if self.refresh is None else f" refresh {self.refresh}"
        start = "" if self.start == "network" else f" from {self.start}"
        free = f" free {self.free}" if self.free else ""
        beside = "" if self.free_with is None else f" with {self.free_with}"
        follow = f" follow {self.follow}" if self.follow else ""
        against = "" if self.against == "batch" else f" against {self.against}"
        optional = " optional" if self.optional else ""
        unfreeze = " unfreeze" if self.unfreeze else ""
        solution = f"{start}{free}{beside}{follow}{against}{optional}{unfreeze}"
        return f"{self.source}: {self.affinity} -> {loss} * {self.epochs}{rate}{again}{solution}"


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
        if stages[0].optional:
            raise ValueError(f"the first stage can't be optional, since no map is there to go back to: {stages[0]}")
        self.stages = stages

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read stages, one a line or separated by ``;``: ``source: affinity -> loss * epochs``.

        Then may follow ``@ rate``, ``refresh epochs``, ``from pca``, ``free steps``, ``with loss``, ``follow epochs``,
        ``against bank``, ``optional`` and ``unfreeze``.
        """
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
    while reader.accept("+"):
        source += "+" + reader.expect("name", "another source").text
    reader.expect(":", "':' after the source")
    affinity: Affinity = AFFINITIES.read(reader)
    reader.expect("->", "'->' between the affinity and the loss")
    loss = read_loss(reader)
    reader.expect("*", "'*' and the number of epochs")
    epochs = _read_int(reader, "the number of epochs")
    clauses: dict[str, Any] = {}
    while reader.next.text in CLAUSES and CLAUSES[reader.next.text].field not in clauses:
        clause = CLAUSES[reader.take().text]
        clauses[clause.field] = clause.read(reader, clause.what)
    if reader.next.kind != "end":
        follows = f"after the epochs only '@ learning rate' and {', '.join(list(CLAUSES)[1:])} may follow, each once"
        raise reader.error(reader.next, f"unexpected {reader.next.text!r}; {follows}")
    try:
        return Stage(source, affinity, loss, epochs, **clauses)
    except ValueError as problem:
        raise NotationError(reader.text, 0, len(reader.text), str(problem)) from problem


def _read_int(reader: Reader, what: str) -> int:
    token = reader.expect("number", what)
    if not token.text.isdigit():
        raise reader.error(token, f"{what} must be a whole number")
    return int(token.text)


def _read_rate(reader: Reader, what: str) -> float:
    return float(reader.expect("number", what).text)


def _read_name(reader: Reader, what: str) -> str:
    return reader.expect("name", what).text


def _read_loss(reader: Reader, what: str) -> Loss:
    return read_loss(reader)


def _read_nothing(reader: Reader, what: str) -> bool:
    return True


class _Clause(NamedTuple):
    field: str
    what: str
    read: Callable[[Reader, str], Any]


CLAUSES = {
    "@": _Clause("lr", "a learning rate", _read_rate),
    "refresh": _Clause("refresh", "a number of epochs", _read_int),
    "from": _Clause("start", f"where the map starts, {' or '.join(STARTS)}", _read_name),
    "free": _Clause("free", "a number of steps", _read_int),
    "with": _Clause("free_with", "a loss that is added in the free steps", _read_loss),
    "follow": _Clause("follow", "a number of epochs", _read_int),
    "against": _Clause("against", f"what the loss is taken against, {', '.join(AGAINST)}", _read_name),
    "optional": _Clause("optional", "", _read_nothing),
    "unfreeze": _Clause("unfreeze", "", _read_nothing),
}


def recursive(first: Stage, again: Stage, sources: Sequence[str], recursions: int) -> list[Stage]:
    """Return the first stage, then ``again`` on one source after the other; beyond the last source, on the last."""
    if recursions < 0:
        raise ValueError(f"recursions={recursions}: must not be negative")
    return [first, *(replace(again, source=sources[min(i, len(sources) - 1)]) for i in range(recursions))]
