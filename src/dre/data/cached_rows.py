"""Rows of a stream in an array, from which training steps take them at random.

Reading a row of a compressed file means decoding its block. Once copied, in one pass from the first block to the last, a row is
a place in memory, or in a file that is mapped into it. The alternative, which was not built, is to decode the file again in
every epoch and to shuffle what a window of its blocks holds. By the rates of the parts it would be slower from about the second
epoch on: Parquet was decoded at 0.3 to 0.6 GB/s on a core, rows were taken from a mapped file, once in memory, at 1.9 GB/s. It
would also shuffle a file of few large row groups badly. The copy takes 4 bytes per value of the disk.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dre.data.rows import CPU, ArrayRows, Rows, chunk_length, empty_rows, fits, in_blocks, is_stream
from dre.progress.activity import activity
from dre.runtime import scratch


def without_blocks(rows: Rows, device: torch.device) -> Rows:
    """Return the rows themselves if each can be read alone, else a copy in an array."""
    return copy_rows(rows, device) if in_blocks(rows) else rows


def copy_rows(rows: Rows, device: torch.device) -> ArrayRows:
    """Copy rows to an array on the device if it fits there, else on the host, in a scratch file if it is large."""
    n, step = rows.shape[0], chunk_length(rows.shape[1:])
    where = device if fits(4 * math.prod(rows.shape), device) else CPU
    out = empty_rows(rows.shape, where, rows)
    with activity("copying rows from blocks", n) as copying:
        for start in range(0, n, step):
            out[start : start + step] = rows.read(start, min(n, start + step))
            copying.advance(min(step, n - start))
    return array_of(rows, out, device)


def array_of(rows: Rows, data: Tensor, device: torch.device) -> ArrayRows:
    """Return an array that was computed from rows as Rows; a large one of a stream is read by the batch, as from a disk."""
    return ArrayRows(data, device, is_stream=is_stream(rows) and data.is_cpu and data.nbytes > scratch.HELD_BYTES)
