"""Triton kernel: select the entries of a block of distances below the thresholds of their rows and columns, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.runtime import on_device_of

ROWS, COLUMNS = 8, 128  # of a tile, by one warp: small tiles often have nothing to append


class SelectionBuffer(NamedTuple):
    """Selected values of n points and the ids they belong to, up to a capacity.

    ``counts`` goes on counting beyond the capacity, so that an overflow shows.
    """

    values: Tensor  # (n, capacity) float32
    ids: Tensor  # (n, capacity) int32
    counts: Tensor  # (n,) int32

    @classmethod
    def empty(cls, n: int, capacity: int, device: torch.device) -> SelectionBuffer:
        values = torch.empty(n, capacity, device=device)
        return cls(values, values.new_empty(n, capacity, dtype=torch.int32), values.new_zeros(n, dtype=torch.int32))

    def rows(self, part: slice) -> SelectionBuffer:
        """A view of some of the points."""
        return SelectionBuffer(self.values[part], self.ids[part], self.counts[part])


class ThresholdSelection(NamedTuple):
    """What to select along one side of a block, and where to append it."""

    thresholds: Tensor  # (n,) float32: smaller values are selected
    buffer: SelectionBuffer
    first_id: int  # the id of the other side's first point


def select_below(block: Tensor, rows: ThresholdSelection | None, columns: ThresholdSelection | None) -> None:
    """Append the values of a block (r, c) below the thresholds of its rows, and those below the thresholds of its columns.

    The order in which a point's values are appended may differ from run to run.
    """
    given = rows or columns
    assert given is not None
    of_rows, of_columns = rows or given, columns or given
    r, c = block.shape
    with on_device_of(block):
        _select_below[(triton.cdiv(r, ROWS), triton.cdiv(c, COLUMNS))](
            block, of_rows.thresholds, *of_rows.buffer, of_rows.first_id,
            of_columns.thresholds, *of_columns.buffer, of_columns.first_id,
            r, c, given.buffer.values.shape[1], int(rows is not None), int(columns is not None),
            ROWS=ROWS, COLUMNS=COLUMNS, num_warps=1,
        )  # fmt: skip


SIZES = ["row_first_id", "column_first_id", "r", "c", "capacity", "by_row", "by_column"]


@triton.jit(do_not_specialize=SIZES)  # else compiled for each size
def _select_below(  # type: ignore[no-untyped-def]
    block, row_thresholds, row_values, row_ids, row_counts, row_first_id,
    column_thresholds, column_values, column_ids, column_counts, column_first_id, r, c, capacity,
    by_row, by_column, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < r)[:, None] & (column < c)[None, :]
    value = tl.load(block + row[:, None] * c + column[None, :], mask=inside, other=float("inf"))
    rows, columns = row[:, None] + 0 * column[None, :], column[None, :] + 0 * row[:, None]
    if by_row:
        threshold = tl.load(row_thresholds + row, mask=row < r, other=float("-inf"))
        below = value < threshold[:, None]
        _append(below, value, rows, columns + row_first_id, row_values, row_ids, row_counts, capacity)
    if by_column:
        threshold = tl.load(column_thresholds + column, mask=column < c, other=float("-inf"))
        _append(
            value < threshold[None, :],
            value,
            columns,
            rows + column_first_id,
            column_values,
            column_ids,
            column_counts,
            capacity,
        )


@triton.jit
def _append(below, value, point, other, values, ids, counts, capacity):  # type: ignore[no-untyped-def]
    """Append each value below its threshold, and the id of the other point, to the next free slot of its point."""
    if tl.max(tl.max(below.to(tl.int32), 1), 0) > 0:
        slot = tl.atomic_add(counts + point, 1, mask=below, sem="relaxed")
        fits = below & (slot < capacity)
        at = point * capacity + slot
        tl.store(values + at, value, mask=fits)
        tl.store(ids + at, other, mask=fits)
