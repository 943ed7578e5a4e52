"""The benchmark as data: data sets, runs, methods, jobs, tables, figures and claims."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dre.notation import unknown

ANYWHERE = ""  # the panel of a job whose time is not compared


class SpecError(ValueError):
    """A specification that is inconsistent or can't be read; the message names the file or the name."""


@dataclass(frozen=True)
class Data:
    """A data set and how it is cut and scored."""

    name: str
    title: str
    set: str  # name for dre.datasets.load
    options: dict[str, Any] = field(default_factory=dict)  # arguments of the loader
    rows: int | None = None  # number of training rows; None: all
    test_rows: int | None = None
    spread: bool = False  # take rows in equal steps instead of the first ones
    scores: str = "all"  # or "1-nn", for data that are too large for the other scores
    protocol: str = "paper"  # or "standard", see dre.metrics.evaluate
    prefixes: tuple[int, ...] = ()  # also score the first so many test rows
    stand_in_for: str = ""  # name of the data that these digits replace in a quick run


@dataclass(frozen=True)
class RunSpec:
    """A baseline with its options. One run can serve several methods, each after another stage."""

    name: str
    baseline: str
    options: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)  # options of a quick run, over ``options``
    test_rows: int | None = None  # at most so many, if embedding new rows is slow


@dataclass(frozen=True)
class Method:
    """A row of a table: a run after one of its stages."""

    name: str
    title: str
    run: str
    stage: int | None = None  # None: the last
    is_dre: bool = False  # DRE in any variant; else a baseline
    parametric: bool = True  # embeds new rows by a function; False: by optimization, or not at all


@dataclass(frozen=True)
class Job:
    """Fit a run to a data set with a seed. ``panel`` is the kind of machine if times are compared."""

    data: str
    run: str
    seed: int
    panel: str = ANYWHERE

    def __str__(self) -> str:
        return "/".join([*([self.panel] if self.panel else []), self.data, self.run, str(self.seed)])


@dataclass(frozen=True)
class NotRun:
    """Why some cells are not run."""

    reason: str
    data: tuple[str, ...] = ()  # empty: all
    methods: tuple[str, ...] = ()
    panel: str | None = None
    without_data: bool = False  # applies only if the data are not available

    def covers(self, data: str, method: str, panel: str = ANYWHERE) -> bool:
        fits = (not self.data or data in self.data) and (not self.methods or method in self.methods)
        return fits and self.panel in (None, panel)


@dataclass(frozen=True)
class Explained:
    """Why values are below the published ones, for a reason other than the implementation."""

    reason: str
    data: tuple[str, ...] = ()  # empty: all
    methods: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()

    def covers(self, data: str, method: str, score: str) -> bool:
        pairs = ((self.data, data), (self.methods, method), (self.scores, score))
        return all(not names or name in names for names, name in pairs)


@dataclass(frozen=True)
class Table:
    """Methods and scores on data sets, with the published values."""

    name: str
    title: str
    about: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    scores: tuple[str, ...]
    seeds: int = 1
    seeds_of: dict[str, int] = field(default_factory=dict)  # method → number of seeds, if not ``seeds``
    panels: tuple[str, ...] = (ANYWHERE,)
    not_run: tuple[NotRun, ...] = ()
    explained: tuple[Explained, ...] = ()  # why values are below the published ones
    published: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # data → method → one value per score
    smaller_is_better: bool = False
    not_differenced: tuple[str, ...] = ()  # data with other features than published: no differences

    def seeds_for(self, method: str) -> range:
        return range(self.seeds_of.get(method, self.seeds))

    def reason(self, data: str, method: str, panel: str = ANYWHERE) -> str | None:
        """Return why a cell is not run, or None."""
        return self._reason(data, method, panel, without_data=False)

    def reason_without_data(self, data: str, method: str, panel: str = ANYWHERE) -> str | None:
        """Return why a cell is empty if its data are missing, or None."""
        return self._reason(data, method, panel, without_data=True)

    def _reason(self, data: str, method: str, panel: str, *, without_data: bool) -> str | None:
        reasons = (each for each in self.not_run if each.without_data == without_data and each.covers(data, method, panel))
        return next((each.reason for each in reasons), None)


@dataclass(frozen=True)
class Row:
    """A row of a figure: embeddings side by side."""

    title: str
    data: str
    methods: tuple[str, ...]
    part: str = "test"  # or "train"
    level: str | None = None  # labels to color by; None: the main ones
    view: str = "all"  # or "inside 9", "border 9": a zoom into class 9 or on its border


@dataclass(frozen=True)
class Figure:
    """Rows of embeddings."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class ClaimComparison:
    """One method against another in one score, paired by seed."""

    this: str  # METHOD, METHOD@DATA or METHOD@DATA#PREFIX
    that: str
    score: str
    expect: str  # "higher", "lower" or "same"
    data: str = ""  # data of the sides that name none
    within: float = 0.0  # tolerance of "same"; smallest difference that counts as "higher" or "lower"
    minus: str | None = None  # method whose score is subtracted from both sides
    panel: str = ANYWHERE


@dataclass(frozen=True)
class Claim:
    """A statement of the paper as comparisons that must all hold."""

    name: str
    title: str
    says: str  # what the paper says and where
    comparisons: tuple[ClaimComparison, ...]
    seeds: int = 3


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a method on all or the first ``prefix`` test rows of a data set."""

    method: str
    data: str
    prefix: int | None = None


def parse_side(text: str, data: str) -> Side:
    """Parse METHOD, METHOD@DATA or METHOD@DATA#PREFIX.

    >>> parse_side("umap@mnist#10000", "")
    Side(method='umap', data='mnist', prefix=10000)
    """
    text, _, prefix = text.partition("#")
    method, _, own = text.partition("@")
    return Side(method, own or data, int(prefix) if prefix else None)


def parse_score(text: str) -> tuple[str, int | None]:
    """Parse SCORE or SCORE#PREFIX, a score of the first so many test rows.

    >>> parse_score("nearest_neighbor#10000"), parse_score("continuity")
    (('nearest_neighbor', 10000), ('continuity', None))
    """
    score, _, prefix = text.partition("#")
    return score, int(prefix) if prefix else None


def sides(comparison: ClaimComparison) -> list[Side]:
    """Return both sides and, if there is one, the method subtracted from each."""
    both = [parse_side(text, comparison.data) for text in (comparison.this, comparison.that)]
    return both + ([replace(each, method=comparison.minus) for each in both] if comparison.minus else [])


@dataclass(frozen=True)
class Spec:
    """All data sets, runs, methods, tables, figures and claims of the benchmark."""

    data: dict[str, Data]
    runs: dict[str, RunSpec]
    methods: dict[str, Method]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    is_quick: bool = False

    def check(self) -> None:
        """Raise ``SpecError`` if a name is unknown."""
        for method in self.methods.values():
            _check_known("run", method.run, self.runs)
        for table in self.tables:
            for name in table.data:
                _check_known(f"{table.name}: data", name, self.data)
            for name in table.methods:
                _check_known(f"{table.name}: method", name, self.methods)
        for figure in self.figures:
            for row in figure.rows:
                _check_known(f"{figure.name}: data", row.data, self.data)
                for name in row.methods:
                    _check_known(f"{figure.name}: method", name, self.methods)
        for claim in self.claims:
            for comparison in claim.comparisons:
                for side in sides(comparison):
                    _check_known(f"{claim.name}: method", side.method, self.methods)
                    _check_known(f"{claim.name}: data", side.data, self.data)

    def quick(self, rows: int, test_rows: int) -> Spec:
        """Return the same benchmark on few rows, with the runs' quick options and one seed."""
        prefixes = {prefix: _scaled_prefix(prefix, data, test_rows) for data in self.data.values() for prefix in data.prefixes}
        runs = {name: replace(run, options={**run.options, **run.quick}) for name, run in self.runs.items()}
        return replace(
            self,
            is_quick=True,
            data={name: _shrink(data, rows, test_rows) for name, data in self.data.items()},
            runs=runs,
            tables=tuple(
                replace(
                    table,
                    seeds=1,
                    seeds_of={},
                    not_run=(),
                    scores=tuple(_with_prefix(score, prefixes) for score in table.scores),
                )
                for table in self.tables
            ),
            claims=tuple(
                replace(
                    claim,
                    seeds=1,
                    comparisons=tuple(
                        replace(each, this=_with_prefix(each.this, prefixes), that=_with_prefix(each.that, prefixes))
                        for each in claim.comparisons
                    ),
                )
                for claim in self.claims
            ),
        )


def _shrink(data: Data, rows: int, test_rows: int) -> Data:
    """Few rows in equal steps, since some data sets are sorted by label."""
    return replace(
        data,
        rows=min(rows, data.rows or rows),
        test_rows=test_rows,
        spread=True,
        options={**data.options, **({"n_train": rows} if "n_train" in data.options else {})},
        prefixes=tuple(_scaled_prefix(prefix, data, test_rows) for prefix in data.prefixes),
    )


def _scaled_prefix(prefix: int, data: Data, test_rows: int) -> int:
    return test_rows * prefix // max(data.prefixes)


def _with_prefix(text: str, prefixes: dict[int, int]) -> str:
    """Replace the prefix of a score or of a side of a comparison."""
    name, _, prefix = text.partition("#")
    return f"{name}#{prefixes[int(prefix)]}" if prefix else text


def _check_known(kind: str, name: str, known: dict[str, Any]) -> None:
    if name not in known:
        raise SpecError(unknown(kind, name, list(known)))
