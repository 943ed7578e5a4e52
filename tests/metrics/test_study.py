"""A study: what is asked for is gathered once, after what it needs, from all pairs of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

import dre.neighbors.distances
from dre.metrics.evaluation import MEASURES
from dre.metrics.extent import Extent
from dre.metrics.neighborhoods import Near, RanksOfNeighbors
from dre.metrics.pairs import Block
from dre.metrics.points import HIGH, LOW, map_alone, two_spaces
from dre.metrics.question import Measure, Question, Score
from dre.metrics.shepard_binned import Binned, Counts
from dre.metrics.stress import Stress
from dre.metrics.study import Gathering, Part, Precision, Study

ROWS = torch.randn(70, 5, generator=torch.Generator().manual_seed(0), dtype=torch.double)
LOG: list[str] = []


@dataclass(frozen=True)
class Noted:
    """Notes when it begins and ends; its result is how many pairs it was shown."""

    name: str
    needs: tuple[Part, ...] = ()
    precision: Precision = Precision.VALUES

    def begin(self, study: Study) -> Gathering:
        for part in self.needs:
            assert study.find(part) == [70 * 69 // 2], "what it needs is there"
        LOG.append(f"{self.name} begins")
        return _Noting(self.name)


@dataclass
class _Noting:
    name: str
    pairs: list[Tensor] = field(default_factory=list)

    def take(self, block: Block) -> None:
        self.pairs.append(block.once(block.squared(LOW)))

    def result(self) -> int:
        LOG.append(f"{self.name} ends")
        return len(torch.cat(self.pairs))


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    LOG.clear()


def study() -> Study:
    return Study(two_spaces(ROWS, ROWS[:, :2]))


A = Noted("a")
B = Noted("b", (A,))
C = Noted("c", (B, A))


def test_what_is_needed_is_gathered_before_and_only_once() -> None:
    assert study().find(C, B, Noted("d", (A,))) == [2415, 2415, 2415]
    assert LOG[:2] == ["a begins", "a ends"]
    assert set(LOG[2:6]) == {"b begins", "b ends", "d begins", "d ends"}
    assert LOG[6:] == ["c begins", "c ends"]


def test_what_was_found_is_not_gathered_again() -> None:
    one = study()
    one.find(A)
    assert one.find(B, A) == [2415, 2415]
    assert one.find(B) == [2415]
    assert LOG == ["a begins", "a ends", "b begins", "b ends"]


def test_what_does_not_need_each_other_shares_a_round() -> None:
    study().find(A, Noted("e"), Noted("f"))
    assert LOG[:3] == ["a begins", "e begins", "f begins"]


def test_all_measures_together_take_two_rounds() -> None:
    for protocol in ("standard", "paper"):
        by_level = {"fine": torch.arange(70) % 4, "coarse": torch.arange(70) % 2}
        question = Question(70, 5, protocol, "histogram", by_level)
        rounds = study()._rounds([part for measure in MEASURES for part in measure.parts(question)])
        assert len(rounds) == 2
        first, second = map(set, rounds)
        assert {Near(HIGH, 5), Near(LOW, 5), Counts(HIGH), Counts(LOW)} <= first
        assert {RanksOfNeighbors(HIGH, 5), RanksOfNeighbors(LOW, 5), Binned()} <= second
        assert (Extent(HIGH) in first, Stress(protocol) in second) == (protocol == "paper",) * 2


@pytest.mark.parametrize("limit", [8, 24, 64, 10**9])
def test_every_pair_is_shown_once(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": limit})

    @dataclass(frozen=True)
    class Seen:
        needs: tuple[Part, ...] = ()
        precision: Precision = Precision.FLOAT64

        def begin(self, study: Study) -> Gathering:
            return _Seeing(lambda block: block.squared(HIGH))

    values = study().find(Seen())[0]
    assert values.sort().values.tolist() == pytest.approx(torch.pdist(ROWS).square().sort().values.tolist(), rel=1e-9)


class _Seeing:
    def __init__(self, values: Callable[[Block], Tensor]) -> None:
        self._values, self._parts = values, list[Tensor]()

    def take(self, block: Block) -> None:
        self._parts.append(block.once(self._values(block)))

    def result(self) -> Tensor:
        return torch.cat(self._parts)


def test_a_block_is_computed_when_it_is_asked_for_and_not_again() -> None:
    one = study()
    some = one.distances(LOW).stretches()[0]
    block = Block(some, some, {LOW: one.distances(LOW)})
    assert block.squared(LOW) is block.squared(LOW)
    with pytest.raises(KeyError):
        block.squared(HIGH)


@pytest.mark.parametrize(
    ("kind", "precision", "large", "small"),
    [
        (torch.double, Precision.ORDER, torch.float32, torch.float32),
        (torch.float32, Precision.ORDER, torch.float32, torch.float32),
        (torch.double, Precision.VALUES, torch.double, torch.double),
        (torch.float32, Precision.VALUES, torch.float32, torch.double),
        (torch.float32, Precision.FLOAT64, torch.double, torch.double),
    ],
)
def test_the_products_are_as_precise_as_a_part_needs_them(
    monkeypatch: pytest.MonkeyPatch, kind: torch.dtype, precision: Precision, large: torch.dtype, small: torch.dtype
) -> None:
    for limit, dtype in ((69, large), (70, small)):
        monkeypatch.setattr("dre.metrics.study.IN_FLOAT64_UP_TO", limit)
        one = Study(map_alone(ROWS.to(kind)))
        one.find(Noted("a", precision=precision))
        assert one.distances(LOW).dtype == dtype


def test_a_part_that_needs_more_precision_gets_it_after_one_that_did_not() -> None:
    one = study()
    one.find(Near(HIGH, 5))
    assert one.distances(HIGH).dtype == torch.float32
    one.find(Noted("a", precision=Precision.FLOAT64))
    assert one.distances(HIGH).dtype == torch.double


def test_a_measure_gives_its_value_or_that_of_each_point() -> None:
    question = Question(70)
    measure = Measure("m", lambda question: (A,), lambda question, study: Score(study.find(A)[0], torch.ones(3)))
    assert measure.value(question, study()) == 2415
    assert measure.of_points(question, study()).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="m has no value of a single point"):
        Measure("m", lambda question: (), lambda question, study: Score(1.0)).of_points(question, study())


def test_the_measures_are_named_as_their_functions() -> None:
    import dre.metrics

    names = [measure.name for measure in MEASURES]
    assert len(set(names)) == len(names)
    assert all(callable(getattr(dre.metrics, name)) for name in names)
