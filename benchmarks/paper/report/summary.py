"""The summary: where DRE is better and where it is worse, and shortfalls against the published values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from paper.report import formatting
from paper.report.reading import CellReader, Reading, RowCounts, TableCell, departures, published, usual_counts
from paper.report.tables import TOLERANCE, Cell
from paper.spec import Table, parse_score

DEFAULT, PAPER = "dre", "paper"  # the package's default, and the paper's recipe, which the published values are of
VARIANTS = (DEFAULT, PAPER)
SCORES = ("neighborhood_hit", "nearest_neighbor", "trustworthiness", "shepard_goodness")
DIGITS = 3
AS_ABOVE = "as above"
FOLD_FROM = 12  # rows; a longer list is folded on the page
# Kinds of rivals, each with its head in the table and in a sentence.
RIVALS = {
    "published": ("published for DRE t-SNE + UMAP", "the value published for DRE t-SNE + UMAP"),
    "parametric": ("best parametric baseline here", "the best parametric baseline"),
    "by optimization": ("best that embeds by optimization", "the best that embeds by optimization"),
}


@dataclass(frozen=True)
class Shortfall:
    """A value that is more than the tolerance below the published one."""

    method: str
    is_dre: bool
    where: str
    here: str
    paper: str
    difference: Cell
    why: str


@dataclass(frozen=True)
class Shortfalls:
    """All shortfalls: unexplained ones of baselines, then of DRE, then explained ones."""

    rows: tuple[Shortfall, ...] = ()

    @property
    def is_long(self) -> bool:
        return len(self.rows) > FOLD_FROM

    @property
    def counts(self) -> str:
        """Count the shortfalls of each kind."""
        kinds = {
            "of baselines, not explained": sum(not each.is_dre and not each.why for each in self.rows),
            "of DRE, not explained": sum(each.is_dre and not each.why for each in self.rows),
            "explained": sum(each.why != "" for each in self.rows),
        }
        parts = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
        return f"{len(self.rows)} value{'s' * (len(self.rows) != 1)}: {parts}."


def shortfalls(reader: CellReader) -> Shortfalls:
    """Find every value that is more than the tolerance below the published one."""
    return Shortfalls(_in_order([each for table in reader.spec.tables for each in _shortfalls_of(table, reader)]))


def _shortfalls_of(table: Table, reader: CellReader) -> Iterator[Shortfall]:
    if table.smaller_is_better:
        return
    for data in table.data:
        for method in table.methods if data not in table.not_differenced else ():
            for score in table.scores:
                cell = TableCell(data, method, score)
                paper, here = published(table, cell), reader.read(table, cell).mean
                if paper is None or here is None or here - paper >= -TOLERANCE - 1e-9:
                    continue
                spec = reader.spec.methods[method]
                where = f"{reader.spec.data[data].title}, {formatting.score_title(score)}"
                difference = Cell(formatting.signed(here - paper), formatting.shade_of_difference(here - paper), square="🟥")
                texts = formatting.number(here), formatting.number(paper, 2 if round(paper, 2) == paper else 4)
                yield Shortfall(spec.title, spec.is_dre, where, *texts, difference, _explained(table, cell))


def _in_order(found: list[Shortfall]) -> tuple[Shortfall, ...]:
    """Sort shortfalls and print each explanation once."""
    reasons = list(dict.fromkeys(each.why for each in found if each.why))

    def order(each: Shortfall) -> tuple[bool, int]:
        return bool(each.why), reasons.index(each.why) if each.why else int(each.is_dre)

    ordered = sorted(found, key=order)
    repeats = [False, *(each.why != "" and each.why == before.why for before, each in pairwise(ordered))]
    return tuple(replace(each, why=AS_ABOVE) if again else each for each, again in zip(ordered, repeats, strict=False))


def _explained(table: Table, cell: TableCell) -> str:
    """Return the explanation in the table's spec, or ""."""
    reasons = (each.reason for each in table.explained if each.covers(cell.data, cell.method, cell.score))
    return " ".join(next(reasons, "").split())


@dataclass(frozen=True)
class Rival:
    """A value that DRE is compared with."""

    title: str  # of the method; "" for the same one
    value: float
    remark: str = ""  # on other row counts, or on methods that were not run


@dataclass(frozen=True)
class SummaryRow:
    """A score on a data set: the variants of DRE and their rivals by kind."""

    title: str
    dre: dict[str, float]
    rivals: dict[str, Rival]
    differs: bool = False  # features or rows differ from the paper's

    def cells(self) -> list[Cell]:
        """Return the cells of DRE, then those of the rivals with the difference of the default to each."""
        own = [Cell(formatting.number(self.dre[name]) if name in self.dre else "not measured") for name in VARIANTS]
        first = self.dre.get(DEFAULT)
        missing = {"published": "not comparable: other features or rows" if self.differs else "not in the paper"}
        return own + [
            _rival_cell(self.rivals[kind], first) if kind in self.rivals else Cell(missing.get(kind, "not measured"))
            for kind in RIVALS
        ]


@dataclass(frozen=True)
class Balance:
    """A variant of DRE against one kind of rival."""

    method: str
    rival: str
    better: int
    same: int
    worse: tuple[str, ...]  # each named

    @property
    def of(self) -> int:
        return self.better + self.same + len(self.worse)


@dataclass(frozen=True)
class Summary:
    """The first section of the report."""

    heads: tuple[str, ...]
    rows: tuple[SummaryRow, ...]
    balances: tuple[Balance, ...]
    shortfalls: Shortfalls
    times: tuple[str, ...]
    tolerance: str = formatting.number(TOLERANCE, 2)


def summary(reader: CellReader, *, against_paper: bool = True) -> Summary:
    """Summarize the tables; ``against_paper=False``, for quick runs, leaves out published values and verdicts."""
    tables = reader.spec.tables
    rows = tuple(_without_repetition(each for table in tables for each in _rows_of(table, reader)))
    methods = reader.spec.methods
    titles = [methods[name].title if name in methods else name for name in VARIANTS]
    heads = (*titles, *(head for head, _ in RIVALS.values()))
    if not against_paper:
        rivals = [{kind: rival for kind, rival in each.rivals.items() if kind != "published"} for each in rows]
        rows = tuple(replace(each, rivals=known, differs=True) for each, known in zip(rows, rivals, strict=True))
        return Summary(heads, rows, (), Shortfalls(), ())
    return Summary(heads, rows, _balances(rows, reader), shortfalls(reader), tuple(_times(reader)))


def _rows_of(table: Table, reader: CellReader) -> Iterator[SummaryRow]:
    spec = reader.spec
    for data in table.data:
        for score in table.scores:
            if parse_score(score)[0] not in SCORES:
                continue
            readings = {method: reader.read(table, TableCell(data, method, score)) for method in table.methods}
            means = {m: r.mean for m, r in readings.items() if r.mean is not None and not r.in_sample}
            dre = {name: means[name] for name in VARIANTS if name in means}
            if not dre:
                continue
            usual = usual_counts(record for reading in readings.values() for record in reading.records)
            rivals = {"published": _published(table, data, score)}
            others = [m for m in table.methods if not spec.methods[m].is_dre and not readings[m].in_sample]
            for kind, parametric in (("parametric", True), ("by optimization", False)):
                # Of methods that are not parametric, only those that were run are known to embed new rows.
                of_kind = [m for m in others if spec.methods[m].parametric is parametric and (parametric or m in means)]
                known = [
                    Rival(spec.methods[m].title, means[m], _row_remark(readings[m], usual, score))
                    for m in of_kind
                    if m in means
                ]
                rivals[kind] = _best(known, of=len(of_kind))
            title = f"{spec.data[data].title}, {formatting.score_title(score)}"
            there = {kind: rival for kind, rival in rivals.items() if rival is not None}
            yield SummaryRow(title, dre, there, differs=data in table.not_differenced)


def _published(table: Table, data: str, score: str) -> Rival | None:
    value = published(table, TableCell(data, PAPER, score)) if data not in table.not_differenced else None
    return None if value is None else Rival("", value)


def _row_remark(reading: Reading, usual: RowCounts | None, score: str) -> str:
    return "; ".join(departures(reading.records, usual, score))


def _best(rivals: list[Rival], of: int) -> Rival | None:
    if not rivals:
        return None
    best = max(rivals, key=lambda rival: rival.value)
    remarks = [best.remark, f"the best of {len(rivals)} that were run; {of - len(rivals)} not run" if len(rivals) < of else ""]
    return replace(best, remark="; ".join(filter(None, remarks)))


def _rival_cell(rival: Rival, dre: float | None) -> Cell:
    value = formatting.number(rival.value)
    if dre is None:
        return Cell(f"{value} {rival.title}".strip(), small=rival.remark)
    difference = round(dre - rival.value, DIGITS)
    return Cell(
        f"{value} ({formatting.signed(difference)}) {rival.title}".strip(),
        formatting.shade_of_difference(difference),
        rival.remark,
        square=formatting.square(difference, TOLERANCE),
    )


def _balances(rows: tuple[SummaryRow, ...], reader: CellReader) -> tuple[Balance, ...]:
    found = []
    for kind, (_, what) in RIVALS.items():
        for name in VARIANTS:
            sorted_out: dict[str, list[str]] = {"better": [], "same": [], "worse": []}
            for each in rows:
                if name in each.dre and kind in each.rivals:
                    rival = each.rivals[kind]
                    difference = round(each.dre[name] - rival.value, DIGITS)
                    word = "better" if difference > 0 else "worse" if difference < 0 else "same"
                    whom = f" to {rival.title}" if rival.title else ""
                    sorted_out[word].append(f"{each.title} ({formatting.signed(difference)}{whom})")
            if any(sorted_out.values()):
                title = reader.spec.methods[name].title
                found.append(
                    Balance(title, what, len(sorted_out["better"]), len(sorted_out["same"]), tuple(sorted_out["worse"]))
                )
    return tuple(found)


def _times(reader: CellReader) -> Iterator[str]:
    """Describe DRE's times next to the published ones."""
    for table in reader.spec.tables:
        for panel in table.panels if table.smaller_is_better else ():
            for data in table.data:
                for method in table.methods:
                    if reader.spec.methods[method].is_dre:
                        yield from _time(table, reader, data, method, panel)


def _time(table: Table, reader: CellReader, data: str, method: str, panel: str) -> Iterator[str]:
    cells = [TableCell(data, method, score, panel) for score in table.scores]
    parts = []
    for cell in cells:
        here, paper = reader.read(table, cell).mean, published(table, cell)
        if here is not None and paper is not None:
            what = formatting.score_title(cell.score).removesuffix(", s")
            parts.append(f"{what} {formatting.seconds(here)} s, published {paper:,} s ({formatting.ratio(here, paper)})")
    if parts:
        where = formatting.PANELS.get(panel, panel)
        yield f"{reader.spec.methods[method].title}{f' on a {where}' if where else ''}: {'; '.join(parts)}"


def _without_repetition(found: Iterator[SummaryRow]) -> list[SummaryRow]:
    return list({each.title: each for each in found}.values())
