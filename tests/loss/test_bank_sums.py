"""Sums of a batch against the bank of all rows, and their gradients, against autograd over all pairs."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import Tensor

import dre.loss.bank_sums
import dre.loss.numba.bank_sums
from dre.affinity.bank import BankPairs
from dre.loss.bank_sums import sum_over_bank, sum_over_neighbors
from dre.loss.curves import Attraction, LogOdds, NegLogStudent, Student
from dre.loss.pair_sums import BLOCK, Curve

N = 61
ALL = torch.arange(N)
COMPONENTS = pytest.mark.parametrize("components", [1, 2, 3, 5])
EXPONENTS = pytest.mark.parametrize("exponent", [1.0, 0.75, 0.6])


@pytest.fixture(params=[True, False], ids=["numba", "torch"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sum is computed with and without numba, and all links of a batch are counted."""
    monkeypatch.setattr(dre.loss.bank_sums, "has_numba", lambda: request.param)
    monkeypatch.setattr(dre.loss.numba.bank_sums, "COUNTED", 1)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weights(n: int = N) -> Tensor:
    """A sparse symmetric matrix; row 0 has no links."""
    once = torch.rand(n, n, generator=seeded(1)).triu(1)
    once = once.masked_fill(torch.rand(n, n, generator=seeded(2)) > 0.2, 0.0)
    once[0] = 0.0
    return once + once.T


def bank(components: int, ids: Tensor = ALL, dtype: torch.dtype = torch.float32) -> BankPairs:
    coordinates = 2 * torch.randn(components, N, generator=seeded(3))
    matrix = weights()
    heads, tails = matrix.nonzero(as_tuple=True)
    start = torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(heads, minlength=N).cumsum(0)])
    weight = matrix[heads, tails].to(dtype)
    return BankPairs(ids, coordinates.to(dtype), start, tails.int(), weight, weight.sum(), weight.xlogy(weight).sum())


def moved(pairs: BankPairs) -> Tensor:
    """Where an encoder has put the rows of the batch: near their coordinates in the bank, and not at them."""
    at = pairs.coordinates.T[pairs.ids]
    return (at + 0.3 * torch.randn(at.shape, generator=seeded(4)).to(at)).requires_grad_()


def values(curve: Curve, squared: Tensor) -> Tensor:
    """By autograd's own means."""
    if isinstance(curve, Student):
        return (1 + squared) ** -curve.exponent
    assert isinstance(curve, NegLogStudent)
    return curve.exponent * (1 + squared).log()


def by_autograd(y: Tensor, pairs: BankPairs, curve: Curve, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The estimate of a sum with weights (n, n) from the batch, and its gradient, in double precision."""
    y, share = y.detach().double().requires_grad_(), N / len(y)
    squared = (y[:, None] - pairs.coordinates.T.double()).square().sum(2)
    total = share * (weight[pairs.ids].double() * values(curve, squared)).sum()
    (gradient,) = torch.autograd.grad(total, y)
    return total, 2 * gradient  # a pair moves both of its ends


def everyone() -> Tensor:
    return 1 - torch.eye(N)


def check(total: Tensor, y: Tensor, wanted: tuple[Tensor, Tensor], rtol: float = 2e-5) -> None:
    (gradient,) = torch.autograd.grad(total, y)
    torch.testing.assert_close(total.double(), wanted[0], rtol=rtol, atol=0, check_dtype=False)
    size = float(wanted[1].abs().max())
    torch.testing.assert_close(gradient.double(), wanted[1], rtol=rtol, atol=rtol * size)


@COMPONENTS
@EXPONENTS
@pytest.mark.parametrize("ids", [ALL, torch.tensor([7, 0, 60, 33, 12]), torch.tensor([5])], ids=["all", "some", "one"])
@pytest.mark.usefixtures("kernels")
def test_sums_and_gradients_are_those_of_autograd(components: int, exponent: float, ids: Tensor) -> None:
    pairs = bank(components, ids)
    for total, curve, weight in (
        (sum_over_bank, Student(exponent), everyone()),
        (sum_over_neighbors, NegLogStudent(exponent), weights()),
    ):
        y = moved(pairs)
        check(total(y, pairs, curve), y, by_autograd(y, pairs, curve, weight))


@pytest.mark.parametrize("components", [2, 3])
@pytest.mark.usefixtures("kernels")
def test_a_batch_of_all_rows_has_the_gradient_of_the_sum_over_all_pairs(components: int) -> None:
    """Both ends of a pair are free here, as they are in the loss that is estimated."""
    pairs = bank(components)
    for total, curve, weight in (
        (sum_over_bank, Student(1.0), everyone()),
        (sum_over_neighbors, NegLogStudent(1.0), weights()),
    ):
        free = pairs.coordinates.T.double().requires_grad_()
        whole = (weight.double() * values(curve, (free[:, None] - free).square().sum(2))).sum()
        (gradient,) = torch.autograd.grad(whole, free)
        y = pairs.coordinates.T.clone().requires_grad_()
        check(total(y, pairs, curve), y, (whole.detach(), gradient))


@pytest.mark.parametrize("components", [1, 2, 3])
@pytest.mark.usefixtures("kernels")
def test_the_batches_of_an_epoch_estimate_the_sum_of_all_rows_on_average(components: int) -> None:
    order = torch.randperm(N - 1, generator=seeded(6)) + 1  # 60 rows in five batches; row 0, which has no links, is left out
    for total, curve, weight in (
        (sum_over_bank, Student(0.75), everyone()),
        (sum_over_neighbors, NegLogStudent(0.75), weights()),
    ):
        found = []
        for ids in order.split(12):
            pairs = bank(components, ids)
            found.append(total(pairs.coordinates.T[ids], pairs, curve))
        pairs = bank(components, order)
        wanted, _ = by_autograd(pairs.coordinates.T[order], pairs, curve, weight)
        torch.testing.assert_close(torch.stack(found).mean().double(), wanted, rtol=1e-5, atol=0)


@pytest.mark.parametrize("every", [2, 7, N])
@pytest.mark.parametrize("components", [1, 2, 3])
@EXPONENTS
@pytest.mark.usefixtures("kernels")
def test_parts_of_the_rows_estimate_the_sums_over_all_on_average(components: int, exponent: float, every: int) -> None:
    pairs = bank(components, torch.tensor([0, 1, 30, 7, N - 1]))
    y = moved(pairs)
    totals, gradients = [], []
    for first in range(every):
        part = pairs._replace(every=every, offset=torch.tensor(first))
        totals.append(sum_over_bank(y, part, Student(exponent)))
        gradients.append(torch.autograd.grad(totals[-1], y)[0])
    whole = sum_over_bank(y, pairs, Student(exponent))
    torch.testing.assert_close(torch.stack(totals).mean(), whole, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.stack(gradients).mean(0), torch.autograd.grad(whole, y)[0], rtol=1e-4, atol=1e-3)
    assert not torch.allclose(totals[0], totals[1], rtol=1e-4)  # the parts differ


def test_each_batch_is_repelled_by_another_part_of_the_rows() -> None:
    pairs = bank(2)._replace(every=7)
    assert {int(pairs.with_varying(torch.tensor([i, 3])).first) for i in range(20)} == set(range(7))


@pytest.mark.parametrize("components", [1, 2, 3])
@EXPONENTS
@pytest.mark.usefixtures("kernels")
def test_a_row_does_not_meet_itself_wherever_the_encoder_has_put_it(components: int, exponent: float) -> None:
    pairs = bank(components, torch.tensor([4, 9]))
    y = pairs.coordinates.T[pairs.ids].clone()
    elsewhere = pairs.coordinates.clone()
    elsewhere[:, 4] += 100.0  # the old coordinates of a row of the batch
    with_old = sum_over_bank(y[:1], pairs._replace(ids=pairs.ids[:1]), Student(exponent))
    with_new = sum_over_bank(y[:1], pairs._replace(ids=pairs.ids[:1], coordinates=elsewhere), Student(exponent))
    torch.testing.assert_close(with_old, with_new, rtol=1e-5, atol=1e-5)
    met = sum_over_bank(y[1:], pairs._replace(ids=pairs.ids[1:], coordinates=elsewhere), Student(exponent))
    before = sum_over_bank(y[1:], pairs._replace(ids=pairs.ids[1:]), Student(exponent))
    assert met < before - 1e-3  # the other row does miss it


@pytest.mark.usefixtures("kernels")
def test_two_rows_at_one_place_still_meet_each_other() -> None:
    coordinates = torch.zeros(2, 3)
    pairs = bank(2)._replace(coordinates=coordinates, ids=torch.tensor([0, 2]))
    total = sum_over_bank(torch.zeros(2, 2), pairs, Student(1.0))
    assert total.item() == pytest.approx(6.0, rel=1e-6)  # 3 rows, each of which meets 2


@COMPONENTS
@pytest.mark.usefixtures("kernels")
def test_exaggeration_multiplies_the_attraction_and_nothing_else(components: int) -> None:
    pairs = bank(components)
    more = pairs._replace(exaggeration=12.0)
    for total, curve, factor in ((sum_over_neighbors, NegLogStudent(1.0), 12.0), (sum_over_bank, Student(1.0), 1.0)):
        y = moved(pairs)
        plain, exaggerated = total(y, pairs, curve), total(y, more, curve)
        torch.testing.assert_close(exaggerated, factor * plain)
        gradients = [torch.autograd.grad(each, y)[0] for each in (plain, exaggerated)]
        torch.testing.assert_close(gradients[1], factor * gradients[0])
    assert more.total == pairs.total


@COMPONENTS
@pytest.mark.usefixtures("kernels")
def test_the_gradient_does_not_depend_on_whether_values_are_wanted(components: int) -> None:
    pairs = bank(components, torch.tensor([7, 0, 60, 33, 12]))
    y = moved(pairs)
    for total, curve in ((sum_over_bank, Student(1.0)), (sum_over_neighbors, NegLogStudent(1.0))):
        gradients = [torch.autograd.grad(total(y, pairs._replace(values=wanted), curve), y)[0] for wanted in (True, False)]
        assert torch.equal(*gradients)


@pytest.mark.parametrize("components", [2, 3])
def test_the_value_of_a_large_batch_is_that_of_its_first_rows(components: int) -> None:
    """Logarithms are expensive: a part of the rows is enough to know the loss, and all of them have a gradient."""
    counted = dre.loss.numba.bank_sums.COUNTED
    ids = torch.arange(1, 1 + 5 * counted)
    pairs = bank(components, ids)
    y = moved(pairs)
    total = sum_over_neighbors(y, pairs, NegLogStudent(1.0))
    (gradient,) = torch.autograd.grad(total, y)
    few = pairs._replace(ids=ids[:5])
    wanted, _ = by_autograd(y[:5], few, NegLogStudent(1.0), weights())
    torch.testing.assert_close(total.double(), wanted, rtol=1e-5, atol=0)
    _, whole = by_autograd(y, pairs, NegLogStudent(1.0), weights())
    torch.testing.assert_close(gradient.double(), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("kernels")
def test_a_curve_without_a_kernel_and_double_precision_are_summed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BLOCK, "cpu", 3 * N)  # three rows at a time
    pairs = bank(2, dtype=torch.double)
    y = moved(pairs)
    check(sum_over_bank(y, pairs, Student(0.75)), y, by_autograd(y, pairs, Student(0.75), everyone()), 1e-10)
    check(sum_over_neighbors(y, pairs, NegLogStudent(2.0)), y, by_autograd(y, pairs, NegLogStudent(2.0), weights()), 1e-10)
    odds = Attraction(LogOdds(1.5, 0.9))
    apart = (y[:, None] - pairs.coordinates.T).square().sum(2)
    wanted = (weights().double() * (1 + 1.5 * apart**0.9).log()).sum()
    torch.testing.assert_close(sum_over_neighbors(y, pairs, odds), wanted)
    of_pairs = sum_over_neighbors(y.float(), bank(2), odds)
    torch.testing.assert_close(of_pairs.double(), wanted, rtol=1e-4, atol=0)


@pytest.mark.parametrize("components", [2, 3])
def test_threads_share_the_rows_and_change_no_bit_of_a_gradient(components: int, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = sys.modules[dre.loss.numba.bank_sums.in_threads.__module__]
    monkeypatch.setattr(threads, "PART", 1)
    pairs = bank(components)
    results = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        y = moved(pairs)
        totals = sum_over_bank(y, pairs, Student(1.0)), sum_over_neighbors(y, pairs, NegLogStudent(1.0))
        results.append([*totals, *(torch.autograd.grad(each, y)[0] for each in totals)])
    for one, several in zip(*results, strict=True):
        assert torch.equal(one, several)


@pytest.mark.parametrize("components", [1, 2, 3])
@pytest.mark.parametrize("where", ["batch", "bank"])
@pytest.mark.usefixtures("kernels")
def test_values_that_are_not_finite_reach_the_sums(components: int, where: str) -> None:
    """The loop must see a run that diverged."""
    pairs = bank(components)
    y = moved(pairs).detach()
    if where == "batch":
        y[3] = torch.nan
    else:
        pairs.coordinates[:, 3] = torch.nan
    assert not sum_over_bank(y, pairs, Student(1.0)).isfinite()
    assert not sum_over_neighbors(y, pairs, NegLogStudent(1.0)).isfinite()


@pytest.mark.usefixtures("kernels")
def test_the_bank_and_the_batch_are_left_as_they_were() -> None:
    pairs = bank(2, torch.tensor([7, 0, 60]))
    y = moved(pairs)
    before = [y.detach().clone(), *(part.clone() for part in pairs[:5])]
    (sum_over_bank(y, pairs, Student(1.0)) + sum_over_neighbors(y, pairs, NegLogStudent(1.0))).backward()
    assert all(map(torch.equal, before, [y.detach(), *pairs[:5]]))
