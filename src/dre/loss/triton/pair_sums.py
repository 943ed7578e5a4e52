"""The sums over pairs in one kernel each, for a GPU: no block of pairs is ever written to its memory. Needs Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.loss.curves import Attraction, LogOdds, NegLogStudent, Repulsion, Student
from dre.runtime import on_device_of

STUDENT, LOG_STUDENT, LOG_ODDS, ATTRACTION, REPULSION, CAUCHY = (tl.constexpr(kind) for kind in range(6))
SMALLEST, STEEPEST = tl.constexpr(1e-12), tl.constexpr(1e-4)  # as LogOdds has them
ROWS, OTHERS, SLOTS = 16, 64, 32  # of a tile
PROGRAMS = 1024  # enough to keep a large GPU busy
Code = tuple[int, float, float]


def code(curve: object) -> Code | None:
    """A curve as the kernels know it, by kind and two numbers; None where they don't."""
    match curve:
        case Student(exponent):
            return (CAUCHY if exponent == 1 else STUDENT).value, exponent, 0.0
        case NegLogStudent(exponent):
            return LOG_STUDENT.value, exponent, 0.0
        case LogOdds():
            return LOG_ODDS.value, curve.offset, curve.b
        case Attraction(odds):
            return ATTRACTION.value, odds.offset, odds.b
        case Repulsion(odds):
            return REPULSION.value, odds.offset, odds.b
        case _:
            return None


def over_pairs(y: Tensor, code: Code, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """The sum over all pairs of rows of y (b, c), each once, weighted by the upper triangle of (b, b), and its gradient."""
    b, c = y.shape
    blocks = triton.cdiv(b, ROWS)
    parts = max(1, min(triton.cdiv(b, OTHERS), PROGRAMS // blocks))
    sums, pulls = y.new_empty(parts, b), y.new_empty(parts, b, c)
    with on_device_of(y):
        _over_pairs[(blocks, parts)](
            y, y if weight is None else weight, sums, pulls, b, *code[1:],
            KIND=code[0], C=c, WIDE=triton.next_power_of_2(c), WEIGHTED=weight is not None, ROWS=ROWS, OTHERS=OTHERS,
        )  # fmt: skip
    return sums.sum() / 2, 2 * pulls.sum(0)


def over_near(y: Tensor, code: Code, near: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The sum over the pairs of each row and those at the positions ``near`` (b, k), and its gradient."""
    (b, c), k = y.shape, near.shape[1]
    sums, gradient = y.new_empty(b), torch.zeros_like(y)
    with on_device_of(y):
        _over_near[(triton.cdiv(b, ROWS),)](
            y, near, weight, sums, gradient, b, k, *code[1:],
            KIND=code[0], C=c, WIDE=triton.next_power_of_2(c), ROWS=ROWS, SLOTS=SLOTS,
        )  # fmt: skip
    return sums.sum(), gradient


@triton.jit
def _curve(squared, p, q, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    """Values and slopes."""
    if KIND == CAUCHY:  # Student's curve with the exponent 1, which needs no power
        value = 1 / (1 + squared)
        slope = -value * value
    elif KIND == STUDENT:
        value = tl.exp2(-p * tl.log2(1 + squared))
        slope = -p * value / (1 + squared)
    elif KIND == LOG_STUDENT:
        value = p * tl.log(1 + squared)
        slope = p / (1 + squared)
    else:
        odds = q * tl.log(tl.maximum(squared, SMALLEST)) + p
        slope = q / tl.maximum(squared, STEEPEST)
        value = odds
        if KIND == ATTRACTION:
            value = tl.maximum(odds, 0.0) + tl.log(1 + tl.exp(-tl.abs(odds)))
            slope = slope / (1 + tl.exp(-odds))
        elif KIND == REPULSION:
            value = tl.maximum(-odds, 0.0) + tl.log(1 + tl.exp(-tl.abs(odds)))
            slope = -slope / (1 + tl.exp(odds))
    return value, slope


@triton.jit
def _over_pairs(  # type: ignore[no-untyped-def]
    y, weight, sums, pulls, b, p, q,
    KIND: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr, WEIGHTED: tl.constexpr, ROWS: tl.constexpr, OTHERS: tl.constexpr,
):  # fmt: skip
    """Some rows with a part of all others; each program writes its own sums, which so add up in the same order each time."""
    part = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDE)
    mine = tl.load(y + rows[:, None] * C + c[None, :], mask=(rows[:, None] < b) & (c[None, :] < C), other=0.0)
    total = tl.zeros((ROWS,), tl.float32)
    pull = tl.zeros((ROWS, WIDE), tl.float32)
    for start in range(part * OTHERS, b, tl.num_programs(1) * OTHERS):
        others = start + tl.arange(0, OTHERS)
        theirs = tl.load(y + others[:, None] * C + c[None, :], mask=(others[:, None] < b) & (c[None, :] < C), other=0.0)
        apart = mine[:, None, :] - theirs[None, :, :]
        value, slope = _curve(tl.sum(apart * apart, 2), p, q, KIND)
        pairs = (rows[:, None] < b) & (others[None, :] < b) & (rows[:, None] != others[None, :])
        if WEIGHTED:
            here = rows[:, None].to(tl.int64) * b + others[None, :]
            there = others[None, :].to(tl.int64) * b + rows[:, None]
            both = tl.load(weight + here, mask=pairs, other=0.0) + tl.load(weight + there, mask=pairs, other=0.0)
            value, slope = value * both, slope * both
        total += tl.sum(tl.where(pairs, value, 0.0), 1)
        pull += tl.sum(tl.where(pairs, slope, 0.0)[:, :, None] * apart, 1)
    tl.store(sums + part * b + rows, total, mask=rows < b)
    at = (part * b + rows[:, None]) * C + c[None, :]
    tl.store(pulls + at, pull, mask=(rows[:, None] < b) & (c[None, :] < C))


@triton.jit
def _over_near(  # type: ignore[no-untyped-def]
    y, near, weight, sums, gradient, b, k, p, q,
    KIND: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Some rows with their neighbours; most weights are 0, since a neighbour is rarely in the batch."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDE)
    own = rows[:, None] * C + c[None, :]
    real = (rows[:, None] < b) & (c[None, :] < C)
    mine = tl.load(y + own, mask=real, other=0.0)
    total = tl.zeros((ROWS,), tl.float32)
    pull = tl.zeros((ROWS, WIDE), tl.float32)
    for start in range(0, k, SLOTS):
        slots = start + tl.arange(0, SLOTS)
        at = rows[:, None] * k + slots[None, :]
        w = tl.load(weight + at, mask=(rows[:, None] < b) & (slots[None, :] < k), other=0.0)
        pairs = w != 0
        other = tl.load(near + at, mask=pairs, other=0)
        place = other[:, :, None] * C + c[None, None, :]
        there = pairs[:, :, None] & (c[None, None, :] < C)
        apart = mine[:, None, :] - tl.load(y + place, mask=there, other=0.0)
        value, slope = _curve(tl.sum(apart * apart, 2), p, q, KIND)
        total += tl.sum(tl.where(pairs, w * value, 0.0), 1)
        push = tl.where(pairs, 2 * w * slope, 0.0)[:, :, None] * apart
        pull += tl.sum(push, 1)
        tl.atomic_add(gradient + place, -push, mask=there, sem="relaxed")
    tl.store(sums + rows, total, mask=rows < b)
    tl.atomic_add(gradient + own, pull, mask=real, sem="relaxed")
