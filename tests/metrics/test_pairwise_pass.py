"""Pairwise statistics are computed once, after what they require, from all pairs of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

import dre.neighbors.distances
from dre.metrics.evaluation import ALL_METRICS
from dre.metrics.inputs import HIGH, LOW, embedding_space, paired_spaces
from dre.metrics.pairwise_pass import (
    Accumulator,
    DistanceRange,
    EvalConfig,
    Metric,
    PairBlock,
    PairwiseStatistics,
    Precision,
    Score,
    Statistic,
)
from dre.metrics.ranks import KNeighbors, NeighborRanks
from dre.metrics.shepard import BinCounts, BinnedSpearman
from dre.metrics.stress import StressRatio

ROWS = torch.randn(70, 5, generator=torch.Generator().manual_seed(0), dtype=torch.double)
LOG: list[str] = []


@dataclass(frozen=True)
class Noted:
    """Notes when it starts and ends; its result is how many pairs it was shown."""

    name: str
    requires: tuple[Statistic, ...] = ()
    precision: Precision = Precision.VALUES

    def start(self, pairwise: PairwiseStatistics) -> Accumulator:
        for statistic in self.requires:
            assert pairwise.compute(statistic) == [70 * 69 // 2], "its requirements are known"
        LOG.append(f"{self.name} starts")
        return _Noting(self.name)


@dataclass
class _Noting:
    name: str
    pairs: list[Tensor] = field(default_factory=list)

    def add(self, block: PairBlock) -> None:
        self.pairs.append(block.unique_pairs(block.squared(LOW)))

    def result(self) -> int:
        LOG.append(f"{self.name} ends")
        return len(torch.cat(self.pairs))


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    LOG.clear()


def pairwise() -> PairwiseStatistics:
    return PairwiseStatistics(paired_spaces(ROWS, ROWS[:, :2]))


A = Noted("a")
B = Noted("b", (A,))
C = Noted("c", (B, A))


def test_requirements_are_computed_before_and_only_once() -> None:
    assert pairwise().compute(C, B, Noted("d", (A,))) == [2415, 2415, 2415]
    assert LOG[:2] == ["a starts", "a ends"]
    assert set(LOG[2:6]) == {"b starts", "b ends", "d starts", "d ends"}
    assert LOG[6:] == ["c starts", "c ends"]


def test_known_results_are_not_computed_again() -> None:
    one = pairwise()
    one.compute(A)
    assert one.compute(B, A) == [2415, 2415]
    assert one.compute(B) == [2415]
    assert LOG == ["a starts", "a ends", "b starts", "b ends"]


def test_independent_statistics_share_a_pass() -> None:
    pairwise().compute(A, Noted("e"), Noted("f"))
    assert LOG[:3] == ["a starts", "e starts", "f starts"]


def test_all_metrics_together_take_two_passes() -> None:
    for protocol in ("standard", "paper"):
        by_level = {"fine": torch.arange(70) % 4, "coarse": torch.arange(70) % 2}
        config = EvalConfig(70, 5, protocol, "histogram", by_level)
        passes = pairwise()._passes([statistic for metric in ALL_METRICS for statistic in metric.statistics(config)])
        assert len(passes) == 2
        first, second = map(set, passes)
        assert {KNeighbors(HIGH, 5), KNeighbors(LOW, 5), BinCounts(HIGH), BinCounts(LOW)} <= first
        assert {NeighborRanks(HIGH, 5), NeighborRanks(LOW, 5), BinnedSpearman()} <= second
        assert (DistanceRange(HIGH) in first, StressRatio(protocol) in second) == (protocol == "paper",) * 2


@pytest.mark.parametrize("limit", [8, 24, 64, 10**9])
def test_every_pair_is_shown_once(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(dre.neighbors.distances, "BLOCK", {"cpu": limit})

    @dataclass(frozen=True)
    class Seen:
        requires: tuple[Statistic, ...] = ()
        precision: Precision = Precision.FLOAT64

        def start(self, pairwise: PairwiseStatistics) -> Accumulator:
            return _Seeing(lambda block: block.squared(HIGH))

    values = pairwise().compute(Seen())[0]
    assert values.sort().values.tolist() == pytest.approx(torch.pdist(ROWS).square().sort().values.tolist(), rel=1e-9)


class _Seeing:
    def __init__(self, values: Callable[[PairBlock], Tensor]) -> None:
        self._values, self._parts = values, list[Tensor]()

    def add(self, block: PairBlock) -> None:
        self._parts.append(block.unique_pairs(self._values(block)))

    def result(self) -> Tensor:
        return torch.cat(self._parts)


def test_a_block_is_computed_when_it_is_asked_for_and_not_again() -> None:
    one = pairwise()
    some = one.distances(LOW).tiles()[0]
    block = PairBlock(some, some, {LOW: one.distances(LOW)})
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
def test_the_products_are_as_precise_as_a_statistic_needs_them(
    monkeypatch: pytest.MonkeyPatch, kind: torch.dtype, precision: Precision, large: torch.dtype, small: torch.dtype
) -> None:
    for limit, dtype in ((69, large), (70, small)):
        monkeypatch.setattr("dre.metrics.pairwise_pass.FLOAT64_UP_TO", limit)
        one = PairwiseStatistics(embedding_space(ROWS.to(kind)))
        one.compute(Noted("a", precision=precision))
        assert one.distances(LOW).dtype == dtype


def test_a_statistic_that_needs_more_precision_gets_it_after_one_that_did_not() -> None:
    one = pairwise()
    one.compute(KNeighbors(HIGH, 5))
    assert one.distances(HIGH).dtype == torch.float32
    one.compute(Noted("a", precision=Precision.FLOAT64))
    assert one.distances(HIGH).dtype == torch.double


def test_a_metric_gives_its_value_or_that_of_each_point() -> None:
    config = EvalConfig(70)
    metric = Metric("m", lambda config: (A,), lambda config, pairwise: Score(pairwise.compute(A)[0], torch.ones(3)))
    assert metric.value(config, pairwise()) == 2415
    assert metric.per_point(config, pairwise()).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match=r"^m .*per_point"):
        Metric("m", lambda config: (), lambda config, pairwise: Score(1.0)).per_point(config, pairwise())


def test_the_metrics_are_named_as_their_functions() -> None:
    import dre.metrics

    names = [metric.name for metric in ALL_METRICS]
    assert len(set(names)) == len(names)
    assert all(callable(getattr(dre.metrics, name)) for name in names)
