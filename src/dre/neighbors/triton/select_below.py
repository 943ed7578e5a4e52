"""What of a block of distances is below the bars of its rows and columns, picked out in one pass. Needs Triton."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dre.runtime import on_device_of

ROWS, COLUMNS = 8, 128  # of a tile, by one warp: small ones often have nothing to add


class Selected(NamedTuple):
    """For each of n points room for as many values; ``counts`` says how many were below its bar, with or without room."""

    values: Tensor  # (n, room) float32
    ids: Tensor  # (n, room) int32
    counts: Tensor  # (n,) int32

    @classmethod
    def none(cls, n: int, room: int, device: torch.device) -> Selected:
        values = torch.empty(n, room, device=device)
        return cls(values, values.new_empty(n, room, dtype=torch.int32), values.new_zeros(n, dtype=torch.int32))

    def of(self, some: slice) -> Selected:
        return Selected(self.values[some], self.ids[some], self.counts[some])


class Thresholds(NamedTuple):
    """Below which values are picked, and what they are added to; ``first`` is what the ids count from."""

    limits: Tensor  # (n,) float32
    into: Selected
    first: int


def pick(block: Tensor, rows: Thresholds | None, columns: Thresholds | None) -> None:
    """Add what of a block (r, c) is below the bars of its rows, and what is below those of its columns.

    In which order they are found may differ from run to run.
    """
    given = rows or columns
    assert given is not None
    of_rows, of_columns = rows or given, columns or given
    r, c = block.shape
    with on_device_of(block):
        _pick[(triton.cdiv(r, ROWS), triton.cdiv(c, COLUMNS))](
            block, of_rows.limits, *of_rows.into, of_rows.first, of_columns.limits, *of_columns.into, of_columns.first,
            r, c, given.into.values.shape[1],
            BY_ROW=rows is not None, BY_COLUMN=columns is not None, ROWS=ROWS, COLUMNS=COLUMNS, num_warps=1,
        )  # fmt: skip


@triton.jit(do_not_specialize=["row_first", "column_first", "r", "c", "room"])  # or each size would be compiled for itself
def _pick(  # type: ignore[no-untyped-def]
    block, row_bars, row_values, row_ids, row_counts, row_first,
    column_bars, column_values, column_ids, column_counts, column_first, r, c, room,
    BY_ROW: tl.constexpr, BY_COLUMN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < r)[:, None] & (column < c)[None, :]
    value = tl.load(block + row[:, None] * c + column[None, :], mask=inside, other=float("inf"))
    rows, columns = row[:, None] + 0 * column[None, :], column[None, :] + 0 * row[:, None]
    if BY_ROW:
        bar = tl.load(row_bars + row, mask=row < r, other=float("-inf"))
        _add(value < bar[:, None], value, rows, columns + row_first, row_values, row_ids, row_counts, room)
    if BY_COLUMN:
        bar = tl.load(column_bars + column, mask=column < c, other=float("-inf"))
        _add(value < bar[None, :], value, columns, rows + column_first, column_values, column_ids, column_counts, room)


@triton.jit
def _add(below, value, whose, which, values, ids, counts, room):  # type: ignore[no-untyped-def]
    """Each value that is below its bar to the next free place of the point whose bar it is."""
    if tl.max(tl.max(below.to(tl.int32), 1), 0) > 0:
        slot = tl.atomic_add(counts + whose, 1, mask=below, sem="relaxed")
        kept = below & (slot < room)
        at = whose * room + slot
        tl.store(values + at, value, mask=kept)
        tl.store(ids + at, which, mask=kept)
