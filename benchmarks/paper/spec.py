"""What a comparison is made of, as data: data sets, runs, methods, jobs, tables, figures and claims."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

ANYWHERE = ""  # the panel of a run whose time is not compared


@dataclass(frozen=True)
class Data:
    """A data set as it is used here."""

    name: str
    title: str
    set: str  # as dre.datasets.load knows it
    options: dict[str, Any] = field(default_factory=dict)  # of the loader
    rows: int | None = None  # the first so many training rows; None: all
    test_rows: int | None = None
    spread: bool = False  # so many rows spread over all instead of the first
    scores: str = "all"  # or "1-nn": that alone, where there are too many rows for the others
    protocol: str = "paper"  # or "standard", as dre.metrics.evaluate has it
    prefixes: tuple[int, ...] = ()  # the first so many test rows are scored by themselves as well


@dataclass(frozen=True)
class Run:
    """A system to fit: a baseline with its options. One run can serve several methods, each as it was after a stage."""

    name: str
    baseline: str
    options: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)  # options that take the place of these in a quick run
    test_rows: int | None = None  # at most so many, where embedding new rows takes long


@dataclass(frozen=True)
class Method:
    """A column of a table."""

    name: str
    title: str
    run: str
    stage: int | None = None  # None: the last
    ours: bool = False  # a network of this package, and no baseline
    parametric: bool = True  # new rows by a formula or a network; False: not at all, or by a search of its own


@dataclass(frozen=True)
class Job:
    """One cell of work: fit a run to data with a seed. ``panel`` names the kind of machine where times are compared."""

    data: str
    run: str
    seed: int
    panel: str = ANYWHERE

    def __str__(self) -> str:
        return "/".join([*([self.panel] if self.panel else []), self.data, self.run, str(self.seed)])


@dataclass(frozen=True)
class NotRun:
    """Why cells are empty."""

    reason: str
    data: tuple[str, ...] = ()  # none: all
    methods: tuple[str, ...] = ()
    panel: str | None = None
    without_data: bool = False  # only where the data are not at hand; where they are, the cells are run

    def covers(self, data: str, method: str, panel: str = ANYWHERE) -> bool:
        fits = (not self.data or data in self.data) and (not self.methods or method in self.methods)
        return fits and self.panel in (None, panel)


@dataclass(frozen=True)
class Explained:
    """Why a value is below the published one, where that is no fault of the method's program here."""

    reason: str
    data: tuple[str, ...] = ()  # none: all
    methods: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()

    def covers(self, data: str, method: str, score: str) -> bool:
        pairs = ((self.data, data), (self.methods, method), (self.scores, score))
        return all(not names or name in names for names, name in pairs)


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    about: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    scores: tuple[str, ...]
    seeds: int = 1
    seeds_of: dict[str, int] = field(default_factory=dict)  # method → how many, where there are more
    panels: tuple[str, ...] = (ANYWHERE,)
    not_run: tuple[NotRun, ...] = ()
    explained: tuple[Explained, ...] = ()  # why baselines are below the paper
    published: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # data → method → one value per score
    smaller_is_better: bool = False
    not_differenced: tuple[str, ...] = ()  # data whose published values are printed only, since the features differ

    def seeds_for(self, method: str) -> range:
        return range(self.seeds_of.get(method, self.seeds))

    def reason(self, data: str, method: str, panel: str = ANYWHERE) -> str | None:
        """Why a cell is not run."""
        return self._reason(data, method, panel, without_data=False)

    def reason_without_data(self, data: str, method: str, panel: str = ANYWHERE) -> str | None:
        """Why a cell is empty for want of data."""
        return self._reason(data, method, panel, without_data=True)

    def _reason(self, data: str, method: str, panel: str, *, without_data: bool) -> str | None:
        reasons = (each for each in self.not_run if each.without_data == without_data and each.covers(data, method, panel))
        return next((each.reason for each in reasons), None)


@dataclass(frozen=True)
class Row:
    """Of a figure: maps side by side."""

    title: str
    data: str
    methods: tuple[str, ...]
    part: str = "test"  # or "train"
    level: str | None = None  # the labels that give the colours; None: the main ones
    view: str = "all"  # or "inside 9", "border 9": a zoom into a class, or onto its border


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    about: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Comparison:
    """One method beside another in one score, over the same seeds."""

    this: str  # METHOD, METHOD@DATA or METHOD@DATA#PREFIX
    that: str
    score: str
    expect: str  # "higher", "lower" or "same"
    data: str = ""  # where neither names its own
    within: float = 0.0  # what still is the same; for the others the least difference that counts
    minus: str | None = None  # a method whose score is taken off both first
    panel: str = ANYWHERE


@dataclass(frozen=True)
class Claim:
    name: str
    title: str
    says: str  # what the paper says, and where
    comparisons: tuple[Comparison, ...]
    seeds: int = 3


@dataclass(frozen=True)
class Side:
    """Of a comparison: a method on data, on all its test rows or the first so many."""

    method: str
    data: str
    prefix: int | None = None


def side(text: str, data: str) -> Side:
    """METHOD, METHOD@DATA or METHOD@DATA#PREFIX.

    >>> side("umap@mnist#10000", "")
    Side(method='umap', data='mnist', prefix=10000)
    """
    text, _, prefix = text.partition("#")
    method, _, own = text.partition("@")
    return Side(method, own or data, int(prefix) if prefix else None)


def sides(comparison: Comparison) -> list[Side]:
    """This, that, and what is taken off each."""
    both = [side(text, comparison.data) for text in (comparison.this, comparison.that)]
    return both + ([replace(each, method=comparison.minus) for each in both] if comparison.minus else [])
