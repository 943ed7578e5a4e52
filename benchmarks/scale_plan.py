"""What 1e6 to 1e9 rows of 768 columns need: bytes, seconds, memory, network and cost, from measured rates.

Constants are assumptions, or numbers of the code. Everything else is read from results/*.json.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from dre.encoder.patch_mlp import PatchMLP
from dre.plan.recipes.default import EPOCH_ROWS, MOST, WIDE
from result_text import load
from ring_model import BYTES, LINKS, Traffic

SIZES = (10**6, 10**7, 10**8, 10**9)
COLUMNS = 768
NEIGHBORS = 90  # of gaussian(30)
COMPONENTS = 2

# Assumptions: replace them by yours
PRICE = 4.0  # dollars of a GPU for an hour
READ = 1e9  # bytes per second that a process reads from its disk or object store
GPU_BYTES = 141e9
GPU_SHARE = 0.5  # of its memory, for rows and graph
HOST_BYTES = 128e9  # of the memory that a rank has on its host
HOST_SHARE = 0.5
LINK = next(link for link in LINKS if "InfiniBand" in link.name)

# Bytes of the code
ID = 8  # int64
EDGE = 4 + 2  # int32 id and float16 weight of a neighbor, while batches use a graph in parts
EXACT_EDGE = ID + BYTES  # int64 and float32, of a graph in one part
LINKED = 2 * (BYTES + BYTES)  # int32 id and weight, at both ends of a pair, while it is used by coordinates or the bank
COLLECTED = 3  # copies of the embedding while ranks collect it: their own parts, the pickled ones, and the whole

FIT_PASSES = 3  # over the rows: two for their moments, one through the PCA front, whose output is held
FIRST_EPOCHS = 40  # of the default inside batches, for up to EPOCH_ROWS rows
ADAM_COPIES = 3  # weights and two moments in a checkpoint


class Rates(NamedTuple):
    """What one H200 has done."""

    embedded_streamed: float  # rows per second, made on the GPU
    embedded: float  # from the memory of the host
    searched: float  # seconds of the neighbors of a part
    part: int
    step: float  # seconds
    batch: int
    weights: int
    fitted: float  # seconds of the fit of a row, by coordinates
    float32: float  # products and sums per second


@cache
def count_weights() -> int:
    """Weights of the network of ``gpu-step.json``, "the default" of images inside batches: a stand-in for any large one."""
    network = PatchMLP(2048, depth=4, n_pcs=300).build((1, 28, 28), COMPONENTS)
    return sum(weight.numel() for weight in network.parameters() if weight.requires_grad)


def measured() -> Rates:
    """Read the rates of one GPU."""
    stream, graph, step = load("infinite-stream-gpu")["results"], load("gpu-graph")["results"][-1], load("gpu-step")["results"]
    fit, flops = load("mnist8m")["results"], load("gpu-ceilings")["results"]["float32_tflops"]
    named = next(name for name in step if name.startswith("the default, "))
    return Rates(
        embedded_streamed=stream["rows"] / stream["seconds"],
        embedded=1e6 / min(load("gpu-transform")["results"]["auto"]),
        searched=graph["seconds"],
        part=graph["n"],
        step=step[named] / 1e3,
        batch=int(named.split()[2]),
        weights=count_weights(),
        fitted=fit["seconds"]["fit"] / fit["fitted"],
        float32=1e12 * flops,
    )


FEATURES = WIDE * BYTES  # bytes of a row behind the PCA front


def held_by_rank(n: int, ranks: int) -> dict[str, float]:
    """Bytes on one rank that trains inside batches; none of them grows with the square of the rows."""
    own = n / ranks
    return {
        "its rows behind the PCA front, float32": own * FEATURES,
        "its graph, int32 and float16": own * NEIGHBORS * EDGE,
        "ids of its own rows, int64": own * ID,
        "ids of all rows in the order of the ranks, int64": n * ID,
        "embedding_ of all rows, float32": n * COMPONENTS * BYTES,
    }


def on_gpu(n: int, ranks: int) -> float:
    """Bytes of the GPU of a rank: rows and graph."""
    return sum(list(held_by_rank(n, ranks).values())[:2])


def on_host(n: int, ranks: int) -> float:
    """Bytes of the host of a rank, at the most: ids, and the embedding while it is collected."""
    own_ids, order, embedding = list(held_by_rank(n, ranks).values())[2:]
    return own_ids + order + COLLECTED * embedding


def sample_rows(n: int) -> int:
    """Rows that the default fits on a GPU."""
    return min(n, MOST["cuda"])


def ranks_for(n: int) -> int:
    """The fewest ranks, a power of two, on whose GPUs rows and graph fit."""
    fewest = on_gpu(n, 1) / (GPU_SHARE * GPU_BYTES)
    return 1 << max(0, math.ceil(math.log2(fewest)))


def phases_by_ranks(n: int, ranks: int, rates: Rates) -> dict[str, float]:
    """Seconds of a fit of all rows on ranks, inside batches, and of their embedding."""
    own = n / ranks
    epochs = math.ceil(FIRST_EPOCHS * min(1.0, EPOCH_ROWS / n))
    step = rates.step + Traffic(BYTES * rates.weights).seconds(LINK, ranks)
    row_bytes = COLUMNS * BYTES
    return {
        "read": FIT_PASSES * own * row_bytes / READ,
        "PCA front": own * 2 * COLUMNS * WIDE / rates.float32,
        "neighbors": own / rates.part * rates.searched,
        "steps": epochs * own / rates.batch * step,
        "embed": max(own / rates.embedded, own * row_bytes / READ),
    }


def phases_by_sample(n: int, gpus: int, rates: Rates) -> dict[str, float]:
    """Seconds of a fit of a sample on one GPU, and of the embedding of all rows in shards, one for each GPU."""
    sample = sample_rows(n)
    row_bytes = COLUMNS * BYTES
    return {
        "read the sample": FIT_PASSES * sample * row_bytes / READ,
        "fit the sample": sample * rates.fitted,
        "embed": max(n / gpus / rates.embedded, n / gpus * row_bytes / READ),
    }


def gpu_hours(phases: dict[str, float], gpus: int, alone: tuple[str, ...] = ()) -> float:
    """Hours of all GPUs; phases in ``alone`` need one of them."""
    return sum(seconds * (1 if name in alone else gpus) for name, seconds in phases.items()) / 3600


def rows_where(nbytes_of_row: float, limit: float) -> float:
    """Rows of which each takes so many bytes, until the limit."""
    return limit / nbytes_of_row


def dealt_seconds(n: int) -> float:
    """Seconds to read rows for a fit if they are dealt from compressed files: every rank reads every row group."""
    return FIT_PASSES * n * COLUMNS * BYTES / READ


def limits() -> list[dict[str, Any]]:
    """What ends first, and at how many rows."""
    coordinates = FEATURES + NEIGHBORS * (EDGE + LINKED)
    host, gpu = HOST_SHARE * HOST_BYTES, GPU_SHARE * GPU_BYTES
    return [
        {"what": "free coordinates, bank: the first rank has features and graph of all rows", "row": coordinates,
         "rows": MOST["cuda"], "why": "the default's limit on a GPU; a sample, or batches, beyond"},
        {"what": "the same without that limit", "row": coordinates, "rows": rows_where(coordinates, gpu),
         "why": "half of the GPU of the first rank"},
        {"what": "rows and graph of a single rank", "row": on_gpu(10**6, 1) / 10**6,
         "rows": rows_where(on_gpu(10**6, 1) / 10**6, gpu), "why": "half of a GPU; more ranks, or a sample"},
        {"what": "embedding_ of all rows, collected on every rank", "row": COLLECTED * COMPONENTS * BYTES + ID,
         "rows": rows_where(COLLECTED * COMPONENTS * BYTES + ID, host),
         "why": "half of a rank's host memory; shards instead"},
        {"what": "int32 ids of neighbors, against the bank", "row": LINKED * NEIGHBORS, "rows": 2**31 - 1, "why": "int32"},
    ]  # fmt: skip


def checkpoint_bytes(n: int, weights: int) -> dict[str, float]:
    """Bytes of a checkpoint: weights and moments, and coordinates where a stage has them."""
    return {"batches": ADAM_COPIES * weights * BYTES, "coordinates": ADAM_COPIES * weights * BYTES + n * COMPONENTS * BYTES}


def step_bytes(weights: int, ranks: int) -> float:
    """Bytes that a rank sends in a step."""
    return Traffic(BYTES * weights).sent(ranks)
