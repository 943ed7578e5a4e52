"""The sums against a bank in one kernel each, for a GPU. Needs Triton."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from dre.affinity.bank import BankPairs
from dre.loss.triton.pair_sums import _curve, code
from dre.runtime import on_device_of

ROWS, OTHERS, SLOTS = 16, 128, 64  # of a tile
PROGRAMS = 2048  # enough to keep a large GPU busy
SIZES = ["b", "n", "every"]  # arguments for whose values no kernel of its own is compiled: that takes half a second each
Sums = tuple[Tensor, Tensor]  # of the values, and Σj slope (yi - yj) of every row


def all_rows(y: Tensor, pairs: BankPairs, curve: object) -> Sums | None:
    """Σj value and Σj slope (yi - yj) over all other rows; None for a curve without a kernel."""
    known = code(curve)
    if known is None:
        return None
    (b, c), n = y.shape, pairs.coordinates.shape[1]
    blocks, every = triton.cdiv(b, ROWS), pairs.every
    parts = max(1, min(triton.cdiv(n, OTHERS * every), PROGRAMS // blocks))
    sums, pulls = y.new_empty(parts, b), y.new_empty(parts, b, c)
    with on_device_of(y):
        if c == 2:
            _all_rows_of_plane[(blocks, parts)](
                y, pairs.ids, pairs.coordinates, pairs.first, sums, pulls, b, n, every, *known[1:],
                KIND=known[0], ROWS=ROWS, OTHERS=OTHERS,
            )  # fmt: skip
        else:
            _all_rows[(blocks, parts)](
                y, pairs.ids, pairs.coordinates, pairs.first, sums, pulls, b, n, every, *known[1:],
                KIND=known[0], C=c, WIDE=triton.next_power_of_2(c), ROWS=ROWS, OTHERS=OTHERS,
            )  # fmt: skip
    return (sums.sum(), pulls.sum(0)) if every == 1 else (sums.sum() * every, pulls.sum(0) * every)


def neighbors(y: Tensor, pairs: BankPairs, curve: object) -> Sums | None:
    """Σj w value and Σj w slope (yi - yj) over the neighbors of each row; None for a curve without a kernel."""
    known = code(curve)
    if known is None:
        return None
    (b, c), n = y.shape, pairs.coordinates.shape[1]
    sums, pulls = y.new_empty(b), y.new_empty(b, c)
    with on_device_of(y):
        _neighbors[(b,)](
            y, pairs.ids, pairs.coordinates, pairs.start, pairs.others, pairs.weight, sums, pulls, n, *known[1:],
            KIND=known[0], C=c, WIDE=triton.next_power_of_2(c), SLOTS=SLOTS,
        )  # fmt: skip
    return sums.sum(), pulls


@triton.jit(do_not_specialize=SIZES)
def _all_rows_of_plane(  # type: ignore[no-untyped-def]
    y, ids, coordinates, first, sums, pulls, b, n, every, p, q,
    KIND: tl.constexpr, ROWS: tl.constexpr, OTHERS: tl.constexpr,
):  # fmt: skip
    """As ``_all_rows``, in two dimensions, whose coordinates stay apart."""
    part = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows < b
    x0 = tl.load(y + rows * 2, mask=inside, other=0.0)
    y0 = tl.load(y + rows * 2 + 1, mask=inside, other=0.0)
    own = tl.load(ids + rows, mask=inside, other=-1)
    total = tl.zeros((ROWS, OTHERS), tl.float32)
    along_x = tl.zeros((ROWS, OTHERS), tl.float32)
    along_y = tl.zeros((ROWS, OTHERS), tl.float32)
    offset = tl.load(first)
    for start in range(part * OTHERS, tl.cdiv(n, every), tl.num_programs(1) * OTHERS):
        others = offset + (start + tl.arange(0, OTHERS)) * every
        real = others < n
        x1 = tl.load(coordinates + others, mask=real, other=0.0)
        y1 = tl.load(coordinates + n + others, mask=real, other=0.0)
        dx, dy = x0[:, None] - x1[None, :], y0[:, None] - y1[None, :]
        value, slope = _curve(dx * dx + dy * dy, p, q, KIND)
        met = real[None, :] & (own[:, None] != others[None, :])
        total += tl.where(met, value, 0.0)
        slope = tl.where(met, slope, 0.0)
        along_x += slope * dx
        along_y += slope * dy
    tl.store(sums + part * b + rows, tl.sum(total, 1), mask=inside)
    tl.store(pulls + (part * b + rows) * 2, tl.sum(along_x, 1), mask=inside)
    tl.store(pulls + (part * b + rows) * 2 + 1, tl.sum(along_y, 1), mask=inside)


@triton.jit(do_not_specialize=SIZES)
def _all_rows(  # type: ignore[no-untyped-def]
    y, ids, coordinates, first, sums, pulls, b, n, every, p, q,
    KIND: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, OTHERS: tl.constexpr,
):  # fmt: skip
    """Some rows of the batch with a part of all rows; each program writes its own sums, which so add up in the same order."""
    part = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDE)
    mine = tl.load(y + rows[:, None] * C + c[None, :], mask=(rows[:, None] < b) & (c[None, :] < C), other=0.0)
    own = tl.load(ids + rows, mask=rows < b, other=-1)
    total = tl.zeros((ROWS,), tl.float32)
    pull = tl.zeros((ROWS, WIDE), tl.float32)
    offset = tl.load(first)
    for start in range(part * OTHERS, tl.cdiv(n, every), tl.num_programs(1) * OTHERS):
        others = offset + (start + tl.arange(0, OTHERS)) * every
        at = c[None, :] * n + others[:, None]
        theirs = tl.load(coordinates + at, mask=(others[:, None] < n) & (c[None, :] < C), other=0.0)
        apart = mine[:, None, :] - theirs[None, :, :]
        value, slope = _curve(tl.sum(apart * apart, 2), p, q, KIND)
        real = (rows[:, None] < b) & (others[None, :] < n) & (own[:, None] != others[None, :])
        total += tl.sum(tl.where(real, value, 0.0), 1)
        pull += tl.sum(tl.where(real, slope, 0.0)[:, :, None] * apart, 1)
    tl.store(sums + part * b + rows, total, mask=rows < b)
    at = (part * b + rows[:, None]) * C + c[None, :]
    tl.store(pulls + at, pull, mask=(rows[:, None] < b) & (c[None, :] < C))


@triton.jit(do_not_specialize=SIZES[1:2])
def _neighbors(  # type: ignore[no-untyped-def]
    y, ids, coordinates, starts, others, weight, sums, pulls, n, p, q,
    KIND: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """One row of the batch with its neighbors, of which each row has another number."""
    row = tl.program_id(0)
    c = tl.arange(0, WIDE)
    mine = tl.load(y + row * C + c, mask=c < C, other=0.0)
    own = tl.load(ids + row)
    first, last = tl.load(starts + own), tl.load(starts + own + 1)
    total = tl.zeros((SLOTS,), tl.float32)
    pull = tl.zeros((SLOTS, WIDE), tl.float32)
    for start in range(first, last, SLOTS):
        slots = start + tl.arange(0, SLOTS)
        real = slots < last
        w = tl.load(weight + slots, mask=real, other=0.0)
        other = tl.load(others + slots, mask=real, other=0)
        theirs = tl.load(coordinates + c[None, :] * n + other[:, None], mask=real[:, None] & (c[None, :] < C), other=0.0)
        apart = mine[None, :] - theirs
        value, slope = _curve(tl.sum(apart * apart, 1), p, q, KIND)
        total += tl.where(real, w * value, 0.0)
        pull += tl.where(real, w * slope, 0.0)[:, None] * apart
    tl.store(sums + row, tl.sum(total, 0))
    tl.store(pulls + row * C + c, tl.sum(pull, 0), mask=c < C)
