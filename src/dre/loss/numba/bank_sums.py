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
TILE = 512  # rows whose distances are held at a time
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
    (components, n), one = coordinates.shape, np.float32(1)
    base, pull = np.empty(TILE, np.float32), np.empty(components, np.float32)
    for i in range(first, last):
        total = np.float32(0)
        pull[:] = np.float32(0)
        for start in range(0, n, TILE):
            size = min(TILE, n - start)
            base[:] = one
            for c in range(components):
                yi, p = y[i, c], coordinates[c]
                for j in range(size):
                    apart = yi - p[start + j]
                    base[j] += apart * apart
            for j in range(size):
                q = one / base[j] if exponent == ONE else base[j] ** -exponent
                if start + j == own[i]:
                    q = np.float32(0)
                total += q
                base[j] = q / base[j]
            for c in range(components):
                yi, p = y[i, c], coordinates[c]
                along = np.float32(0)
                for j in range(size):
                    along += base[j] * (yi - p[start + j])
                pull[c] += along
        sums[i] = total
        for c in range(components):
            pulls[i, c] = -exponent * pull[c]


@njit(fastmath=True, nogil=True, cache=True, error_model="numpy")
def _neighbors(first, last, ids, y, coordinates, start, others, weight, exponent, counted, sums, pulls):  # type: ignore[no-untyped-def]
    components, one = coordinates.shape[0], np.float32(1)
    for i in range(first, last):
        total = np.float32(0)
        for c in range(components):
            pulls[i, c] = np.float32(0)
        for e in range(start[ids[i]], start[ids[i] + 1]):
            j = others[e]
            base = one
            for c in range(components):
                apart = y[i, c] - coordinates[c, j]
                base += apart * apart
            q = exponent * weight[e] / base
            for c in range(components):
                pulls[i, c] += q * (y[i, c] - coordinates[c, j])
            if i < counted:
                total += exponent * weight[e] * np.log(base)
        sums[i] = total


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
