"""Values that are further below the published ones than rounding and luck explain, and what explains them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from dre.compare.plan import Table
from paper.report import shades, wording
from paper.report.blocks import Shown
from paper.report.reading import Place, Reader, published
from paper.report.tables import TOLERANCE

AS_ABOVE = "as above"
LONG = 12  # rows; a longer list is folded on the page


@dataclass(frozen=True)
class Below:
    """One of them."""

    method: str
    ours: bool
    where: str
    here: str
    paper: str
    difference: Shown
    why: str


@dataclass(frozen=True)
class Shortfall:
    """All of them: baselines that nothing explains, then ours, then what is explained."""

    rows: tuple[Below, ...] = ()

    @property
    def is_long(self) -> bool:
        return len(self.rows) > LONG

    @property
    def counts(self) -> str:
        """So many of each kind."""
        kinds = {
            "of baselines, not explained": sum(not each.ours and not each.why for each in self.rows),
            "of ours, not explained": sum(each.ours and not each.why for each in self.rows),
            "explained": sum(each.why != "" for each in self.rows),
        }
        parts = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
        return f"{len(self.rows)} value{'s' * (len(self.rows) != 1)}: {parts}."


def below(reader: Reader) -> Shortfall:
    return Shortfall(_in_order([each for table in reader.plans.tables for each in _below(table, reader)]))


def _below(table: Table, reader: Reader) -> Iterator[Below]:
    if table.smaller_is_better:
        return
    for data in table.data:
        for method in table.methods if data not in table.not_differenced else ():
            for score in table.scores:
                place = Place(data, method, score)
                paper, here = published(table, place), reader.read(table, place).mean
                if paper is None or here is None or here - paper >= -TOLERANCE - 1e-9:
                    continue
                told = reader.plans.methods[method]
                where = f"{reader.plans.data[data].title}, {wording.score_title(score)}"
                difference = Shown(wording.signed(here - paper), shades.of_difference(here - paper), square="🟥")
                texts = wording.number(here), wording.number(paper, 2 if round(paper, 2) == paper else 4)
                yield Below(told.title, told.ours, where, *texts, difference, _explained(table, place))


def _in_order(found: list[Below]) -> tuple[Below, ...]:
    """Baselines that nothing explains, then ours, then what is explained, each explanation once."""
    reasons = list(dict.fromkeys(each.why for each in found if each.why))

    def order(each: Below) -> tuple[bool, int]:
        return bool(each.why), reasons.index(each.why) if each.why else int(each.ours)

    ordered = sorted(found, key=order)
    repeats = [False, *(each.why != "" and each.why == before.why for before, each in pairwise(ordered))]
    return tuple(replace(each, why=AS_ABOVE) if again else each for each, again in zip(ordered, repeats, strict=False))


def _explained(table: Table, place: Place) -> str:
    """What the table's plan says about a value that is below the published one."""
    reasons = (each.reason for each in table.explained if each.covers(place.data, place.method, place.score))
    return " ".join(next(reasons, "").split())
