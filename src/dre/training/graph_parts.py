"""The graph of a stage: of all rows at once, or in random parts of the rows where they are too many for a search or the memory.

A random part is as good a sample of the data as all rows, at a cost that grows with the rows and not with their square. A row
has its neighbors inside its part: the neighborhoods are as wide as those of a smaller sample, but all rows take part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from dre.affinity.graph_memory import graph_bytes
from dre.affinity.target import Graph
from dre.data.rows import Rows, chunk_length, is_on_device
from dre.encoder.forward import INPUT
from dre.neighbors.search import SharedCells, nearest
from dre.plan.schedule import Stage
from dre.progress.activity import activity
from dre.runtime import available_bytes
from dre.runtime.scratch import empty
from dre.training.learner import joined_sources
from dre.training.run import Run

SEARCHED = {"cuda": 2**20, "cpu": 2**20}  # rows up to which all are searched at once
# Rows of a part. On a GPU an exact search of so many is quick. On a CPU larger parts take longer, and those of smaller ones
# have wider neighborhoods: benchmarks/NOTES.md has the figures.
PART = {"cuda": 2**20, "cpu": 100_000}
FEWEST = 10_000  # rows of a part, however little memory is left


def count_parts(n: int, width: int, k: int, device: str) -> int:
    """Return the number of parts in which the neighbors of n rows are searched, by their number and the free memory."""
    free = available_bytes(device) if device in SEARCHED else None
    fitting = n if free is None else free // graph_bytes(1, width, k, device)
    if n <= min(SEARCHED.get(device, n), fitting):
        return 1
    return math.ceil(n / min(PART.get(device, n), max(FEWEST, fitting // 2), n))


def make_graph(run: Run, stage: Stage) -> Graph:
    """Return the weighted neighbors of all rows, by the present output of the stage's source."""
    n, device = run.rows.shape[0], run.runtime.device
    width = math.prod(_rows(run, stage).shape[1:])  # a hidden layer is about as wide as what the network reads
    parts = count_parts(n, width, stage.affinity.count_neighbors(n), device.type)
    if parts == 1:
        return _graph(stage, run.learner.features(stage.source), None)
    order = torch.randperm(n, generator=run.streams.of_stage(run.stage).generator("parts of the graph"), device=device)
    ids_of_parts = [part.sort().values for part in order.tensor_split(parts)]
    return Graph.joined(_graphs(run, stage, ids_of_parts), n, compact=True)


def _graphs(run: Run, stage: Stage, ids_of_parts: list[Tensor]) -> Iterator[tuple[Tensor, Graph]]:
    shared = SharedCells()
    with activity("graphs of parts", len(ids_of_parts)) as finding:
        for ids, features in zip(ids_of_parts, _features(run, stage, ids_of_parts), strict=True):
            yield ids, _graph(stage, features, shared)
            finding.advance()


def _graph(stage: Stage, features: Tensor, shared: SharedCells | None) -> Graph:
    return Graph.of(stage.affinity, nearest(features, stage.affinity.count_neighbors(len(features)), shared=shared))


def _features(run: Run, stage: Stage, ids_of_parts: list[Tensor]) -> Iterator[Tensor]:
    """Yield the features of one part after the other.

    Rows in memory are gathered part by part. Others would be read once for every part: they are read once in all, and sorted
    by parts on the way, into memory or a scratch file.
    """
    if is_on_device(_rows(run, stage), run.runtime.device):
        yield from (run.learner.features(stage.source, ids) for ids in ids_of_parts)
        return
    sorted_rows, widths = _sorted_by_part(run, stage.sources, torch.cat(ids_of_parts).cpu())
    for part in sorted_rows.split([len(ids) for ids in ids_of_parts]):
        yield joined_sources(part.to(run.runtime.device).split(widths, dim=1))


def _rows(run: Run, stage: Stage) -> Rows:
    """Return the rows that the sources of the stage are computed from."""
    return run.learner.input_rows if INPUT in stage.sources else run.learner.rows


def _sorted_by_part(run: Run, sources: list[str], order: Tensor) -> tuple[Tensor, list[int]]:
    """Return the output of the sources, side by side, for the rows in this order, and the width of each."""
    n, place = len(order), torch.empty_like(order)
    place[order] = torch.arange(n)
    step = chunk_length(run.rows.shape[1:])
    widths: list[int] = []
    out = torch.empty(0)
    with activity("sorting the rows into parts", n) as sorting:
        for start in range(0, n, step):
            chunk = slice(start, min(n, start + step))
            blocks = [run.learner.features(source, chunk).cpu() for source in sources]
            if not widths:
                widths = [block.shape[1] for block in blocks]
                out = empty((n, sum(widths)), blocks[0].dtype, what="the features of all rows")
            out[place[chunk]] = torch.cat(blocks, 1)
            sorting.advance(chunk.stop - chunk.start)
    return out, widths
