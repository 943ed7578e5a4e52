"""Where ours is better and where it is worse, read off the records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dre.compare.plan import Table
from paper.report import extent, shades, wording
from paper.report.below import Shortfall, below
from paper.report.blocks import Shown
from paper.report.reading import Place, Reader, Reading, published, split_score
from paper.report.tables import TOLERANCE

OURS = ("dre", "dre-paper")  # the default of this package, and the paper's own recipe
PUBLISHED = "dre-paper"  # what the paper's best method is called in the plans
SCORES = ("neighborhood_hit", "nearest_neighbor", "trustworthiness", "shepard_goodness")
DIGITS = 3


@dataclass(frozen=True)
class Rival:
    """What one of ours is compared with."""

    title: str  # of the method; none where it is the same one
    value: float
    remark: str = ""  # where it rests on other rows than ours, or not all that could be better were run


# Kinds of rivals, each with its head in the table and in a sentence.
RIVALS = {
    "published": ("published for DRE t-SNE + UMAP", "the value published for DRE t-SNE + UMAP"),
    "parametric": ("best parametric baseline here", "the best parametric baseline"),
    "by search": ("best that embeds by search", "the best that embeds by search"),
}


@dataclass(frozen=True)
class Beside:
    """One score on one data set: ours, and its rivals by kind."""

    title: str
    ours: dict[str, float]
    rivals: dict[str, Rival]
    differs: bool = False  # the features or the rows are not the paper's

    def cells(self) -> list[Shown]:
        """Ours, then the rivals, each with what our default is above it, where that is measured."""
        own = [Shown(wording.number(self.ours[name]) if name in self.ours else "not measured") for name in OURS]
        first = self.ours.get(OURS[0])
        missing = {"published": "not comparable: other features or rows" if self.differs else "not in the paper"}
        return own + [
            _beside(self.rivals[kind], first) if kind in self.rivals else Shown(missing.get(kind, "not measured"))
            for kind in RIVALS
        ]


@dataclass(frozen=True)
class Balance:
    """One of ours against one kind of rival: where it is better, the same, or worse."""

    method: str
    rival: str
    better: int
    same: int
    worse: tuple[str, ...]  # each named: these are what a reader must know

    @property
    def of(self) -> int:
        return self.better + self.same + len(self.worse)


@dataclass(frozen=True)
class Summary:
    heads: tuple[str, ...]
    beside: tuple[Beside, ...]
    balances: tuple[Balance, ...]
    below: Shortfall
    times: tuple[str, ...]
    tolerance: str = wording.number(TOLERANCE, 2)


def summary(reader: Reader, *, against_paper: bool = True) -> Summary:
    """``against_paper=False``, for a quick run, leaves out the published values and who is better: they mean nothing there."""
    tables = reader.plans.tables
    beside = tuple(_without_repetition(each for table in tables for each in _beside_of(table, reader)))
    methods = reader.plans.methods
    titles = [methods[name].title if name in methods else name for name in OURS]
    heads = (*titles, *(head for head, _ in RIVALS.values()))
    if not against_paper:
        rivals = [{kind: rival for kind, rival in each.rivals.items() if kind != "published"} for each in beside]
        beside = tuple(replace(each, rivals=known, differs=True) for each, known in zip(beside, rivals, strict=True))
        return Summary(heads, beside, (), Shortfall(), ())
    return Summary(heads, beside, _balances(beside, reader), below(reader), tuple(_times(reader)))


def _beside_of(table: Table, reader: Reader) -> Iterator[Beside]:
    plans = reader.plans
    for data in table.data:
        for score in table.scores:
            if split_score(score)[0] not in SCORES:
                continue
            readings = {method: reader.read(table, Place(data, method, score)) for method in table.methods}
            means = {m: r.mean for m, r in readings.items() if r.mean is not None and not r.in_sample}
            ours = {name: means[name] for name in OURS if name in means}
            if not ours:
                continue
            usual = extent.usual(record for reading in readings.values() for record in reading.records)
            rivals = {"published": _published(table, data, score)}
            others = [m for m in table.methods if not plans.methods[m].ours and not readings[m].in_sample]
            for kind, parametric in (("parametric", True), ("by search", False)):
                # Which of those that are not run would have embedded new rows by search can't be known.
                of_kind = [m for m in others if plans.methods[m].parametric is parametric and (parametric or m in means)]
                known = [
                    Rival(plans.methods[m].title, means[m], _rows(readings[m], usual, score)) for m in of_kind if m in means
                ]
                rivals[kind] = _best(known, of=len(of_kind))
            title = f"{plans.data[data].title}, {wording.score_title(score)}"
            there = {kind: rival for kind, rival in rivals.items() if rival is not None}
            yield Beside(title, ours, there, differs=data in table.not_differenced)


def _published(table: Table, data: str, score: str) -> Rival | None:
    value = published(table, Place(data, PUBLISHED, score)) if data not in table.not_differenced else None
    return None if value is None else Rival("", value)


def _rows(reading: Reading, usual: extent.Extent | None, score: str) -> str:
    return "; ".join(extent.departures(reading.records, usual, score))


def _best(rivals: list[Rival], of: int) -> Rival | None:
    if not rivals:
        return None
    best = max(rivals, key=lambda rival: rival.value)
    told = [best.remark, f"the best of {len(rivals)} that were run; {of - len(rivals)} not run" if len(rivals) < of else ""]
    return replace(best, remark="; ".join(filter(None, told)))


def _beside(rival: Rival, ours: float | None) -> Shown:
    value = wording.number(rival.value)
    if ours is None:
        return Shown(f"{value} {rival.title}".strip(), small=rival.remark)
    difference = round(ours - rival.value, DIGITS)
    return Shown(
        f"{value} ({wording.signed(difference)}) {rival.title}".strip(),
        shades.of_difference(difference),
        rival.remark,
        square=shades.square(difference, TOLERANCE),
    )


def _balances(beside: tuple[Beside, ...], reader: Reader) -> tuple[Balance, ...]:
    found = []
    for kind, (_, what) in RIVALS.items():
        for name in OURS:
            sorted_out: dict[str, list[str]] = {"better": [], "same": [], "worse": []}
            for each in beside:
                if name in each.ours and kind in each.rivals:
                    rival = each.rivals[kind]
                    difference = round(each.ours[name] - rival.value, DIGITS)
                    word = "better" if difference > 0 else "worse" if difference < 0 else "same"
                    whom = f" to {rival.title}" if rival.title else ""
                    sorted_out[word].append(f"{each.title} ({wording.signed(difference)}{whom})")
            if any(sorted_out.values()):
                title = reader.plans.methods[name].title
                found.append(
                    Balance(title, what, len(sorted_out["better"]), len(sorted_out["same"]), tuple(sorted_out["worse"]))
                )
    return tuple(found)


def _times(reader: Reader) -> Iterator[str]:
    """Ours beside the published times, where both are known."""
    for table in reader.plans.tables:
        for panel in table.panels if table.smaller_is_better else ():
            for data in table.data:
                for method in table.methods:
                    if reader.plans.methods[method].ours:
                        yield from _time(table, reader, data, method, panel)


def _time(table: Table, reader: Reader, data: str, method: str, panel: str) -> Iterator[str]:
    places = [Place(data, method, score, panel) for score in table.scores]
    parts = []
    for place in places:
        here, paper = reader.read(table, place).mean, published(table, place)
        if here is not None and paper is not None:
            what = wording.score_title(place.score).removesuffix(", s")
            parts.append(f"{what} {wording.seconds(here)} s, published {paper:,} s ({wording.ratio(here, paper)})")
    if parts:
        where = wording.PANELS.get(panel, panel)
        yield f"{reader.plans.methods[method].title}{f' on a {where}' if where else ''}: {'; '.join(parts)}"


def _without_repetition(found: Iterator[Beside]) -> list[Beside]:
    return list({each.title: each for each in found}.values())
