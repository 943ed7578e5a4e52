"""The sums against a bank: one pass over all rows that stays in a CPU's registers and cache."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from dre.affinity.bank import BankPairs
from dre.loss.curves import NegLogStudent, Student
from dre.runtime.threads import in_threads

ONE, HALF = 1.0, 0.75  # exponents that have loops of their own, which need no power
TILE = 1024  # rows whose distances are held at a time
COUNTED = 8  # one row in so many
Sums = tuple[Tensor, Tensor]  # of the values, and Σj slope (yi - yj) of every row
njit: Any = numba.njit


def all_rows(y: Tensor, pairs: BankPairs, curve: object) -> Sums | None:
    """Σj value and Σj slope (yi - yj) over all other rows; None for a curve without a kernel."""
    if not isinstance(curve, Student):
        return None
    b, c = y.shape
    sums, pulls = torch.empty(b), torch.empty(b, c)
    coordinates, own = pairs.coordinates, pairs.ids.numpy()
    if pairs.every > 1:
        first = int(pairs.first)
        coordinates = coordinates[:, first :: pairs.every].contiguous()
        own = np.where((own - first) % pairs.every == 0, (own - first) // pairs.every, -1)
    arguments = (own, y.detach().numpy(), coordinates.numpy(), np.float32(curve.exponent))
    kernel = _all_rows_of_plane if c == 2 else _all_rows
    in_threads(kernel, b, b * coordinates.shape[1], (*arguments, sums.numpy(), pulls.numpy()))
    return (sums.sum(), pulls) if pairs.every == 1 else (sums.sum() * pairs.every, pulls.mul_(pairs.every))


def neighbors(y: Tensor, pairs: BankPairs, curve: object) -> Sums | None:
    """Σj w value and Σj w slope (yi - yj) over the neighbors of each row; None for a curve without a kernel."""
    if not isinstance(curve, NegLogStudent):
        return None
    b, c = y.shape
    sums, pulls = torch.zeros(b), torch.empty(b, c)
    links = (pairs.start.numpy(), pairs.others.numpy(), pairs.weight.numpy())
    # Logarithms take longer than all the rest: those of a part of the rows are enough to know the loss.
    counted = 0 if not pairs.values else b if b == pairs.coordinates.shape[1] else -(-b // COUNTED)
    arguments = (pairs.ids.numpy(), y.detach().numpy(), pairs.coordinates.numpy(), *links, np.float32(curve.exponent), counted)
    kernel = _neighbors_of_plane if c == 2 else _neighbors
    in_threads(kernel, b, 4 * b * len(pairs.weight) // len(pairs.start), (*arguments, sums.numpy(), pulls.numpy()))
    return sums.sum() * (b / max(1, counted)), pulls


@njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
def _all_rows_of_plane(first, last, own, y, coordinates, exponent, sums, pulls):  # type: ignore[no-untyped-def]
    """``own``: where a row of the batch is among the others; -1 if it is not."""
    px, py = coordinates[0], coordinates[1]
    n, one = len(px), np.float32(1)
    for i in range(first, last):
        xi, yi = y[i, 0], y[i, 1]
        s = sx = sy = np.float32(0)
        if exponent == ONE:
            for j in range(n):
                dx, dy = xi - px[j], yi - py[j]
                q = one / (one + dx * dx + dy * dy)
                s += q
                q *= q
                sx += q * dx
                sy += q * dy
        elif exponent == np.float32(HALF):
            for j in range(n):
                dx, dy = xi - px[j], yi - py[j]
                inverse = one / (one + dx * dx + dy * dy)
                root = np.sqrt(inverse)
                q = root * np.sqrt(root)
                s += q
                q *= inverse
                sx += q * dx
                sy += q * dy
        else:
            for j in range(n):
                dx, dy = xi - px[j], yi - py[j]
                base = one + dx * dx + dy * dy
                q = base**-exponent
                s += q
                q /= base
                sx += q * dx
                sy += q * dy
        if own[i] >= 0:
            dx, dy = xi - px[own[i]], yi - py[own[i]]
            base = one + dx * dx + dy * dy
            q = base**-exponent
            s -= q
            q /= base
            sx -= q * dx
            sy -= q * dy
        sums[i] = s
        pulls[i, 0], pulls[i, 1] = -exponent * sx, -exponent * sy


@njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
def _all_rows(first, last, own, y, coordinates, exponent, sums, pulls):  # type: ignore[no-untyped-def]
    """Of any number of components: a tile of rows at a time, whose distances stay in the cache."""
    (components, n), one = coordinates.shape, np.float32(1)
    tile, values, pull = np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.empty(components, np.float32)
    for i in range(first, last):
        total = np.float32(0)
        pull[:] = np.float32(0)
        for start in range(0, n, TILE):
            stop = min(n, start + TILE)
            base, q = tile[: stop - start], values[: stop - start]
            base[:] = one
            for c in range(components):
                yi, p = y[i, c], coordinates[c, start:stop]
                for j in range(len(p)):
                    apart = yi - p[j]
                    base[j] += apart * apart
            _student(base, exponent, q)
            if start <= own[i] < stop:
                q[own[i] - start] = np.float32(0)
            for j in range(len(q)):
                total += q[j]
                q[j] /= base[j]
            for c in range(components):
                yi, p = y[i, c], coordinates[c, start:stop]
                along = np.float32(0)
                for j in range(len(p)):
                    along += q[j] * (yi - p[j])
                pull[c] += along
        sums[i] = total
        for c in range(components):
            pulls[i, c] = -exponent * pull[c]


@njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
def _student(base, exponent, q):  # type: ignore[no-untyped-def]
    """base ** -exponent, by roots and products if the exponent is a multiple of 1/4."""
    one, quarters = np.float32(1), round(4 * exponent)
    if quarters != 4 * exponent:
        for j in range(len(q)):
            q[j] = base[j] ** -exponent
        return
    rest = quarters % 4
    if rest == 0:
        q[:] = one
    elif rest == 2:
        for j in range(len(q)):
            q[j] = np.sqrt(one / base[j])
    else:
        for j in range(len(q)):
            root = np.sqrt(one / base[j])
            fourth = np.sqrt(root)
            q[j] = fourth if rest == 1 else root * fourth
    for _ in range(quarters // 4):
        for j in range(len(q)):
            q[j] /= base[j]


@njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
def _neighbors(first, last, ids, y, coordinates, start, others, weight, exponent, counted, sums, pulls):  # type: ignore[no-untyped-def]
    """Of any number of components: one component of all neighbors after the other, as they lie in memory."""
    components, one = coordinates.shape[0], np.float32(1)
    tile = np.empty(TILE, np.float32)
    for i in range(first, last):
        total = np.float32(0)
        pulls[i] = np.float32(0)
        end = start[ids[i] + 1]
        for low in range(start[ids[i]], end, TILE):
            high = min(end, low + TILE)
            at, w, base = others[low:high], weight[low:high], tile[: high - low]
            base[:] = one
            for c in range(components):
                yi, p = y[i, c], coordinates[c]
                for e in range(len(at)):
                    apart = yi - p[at[e]]
                    base[e] += apart * apart
            if i < counted:
                for e in range(len(at)):
                    total += w[e] * np.log(base[e])
            for e in range(len(at)):
                base[e] = w[e] / base[e]
            for c in range(components):
                yi, p = y[i, c], coordinates[c]
                along = np.float32(0)
                for e in range(len(at)):
                    along += base[e] * (yi - p[at[e]])
                pulls[i, c] += exponent * along
        sums[i] = exponent * total


@njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
def _neighbors_of_plane(first, last, ids, y, coordinates, start, others, weight, exponent, counted, sums, pulls):  # type: ignore[no-untyped-def]
    px, py = coordinates[0], coordinates[1]
    one = np.float32(1)
    for i in range(first, last):
        xi, yi = y[i, 0], y[i, 1]
        total = sx = sy = np.float32(0)
        low, high = start[ids[i]], start[ids[i] + 1]
        for e in range(low, high):
            j = others[e]
            dx, dy = xi - px[j], yi - py[j]
            q = weight[e] / (one + dx * dx + dy * dy)
            sx += q * dx
            sy += q * dy
        if i < counted:
            for e in range(low, high):
                j = others[e]
                dx, dy = xi - px[j], yi - py[j]
                total += weight[e] * np.log(one + dx * dx + dy * dy)
        sums[i] = exponent * total
        pulls[i, 0], pulls[i, 1] = exponent * sx, exponent * sy
