"""What a step of several ranks takes, from the step of one rank and the speed of the network between them.

Gradients are averaged by a ring all-reduce of one buffer, after the backward pass: nothing overlaps. Every step waits for the
slowest rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BYTES = 4  # of a float32
GBIT = 1e9 / 8  # bytes


@dataclass(frozen=True)
class Link:
    """The connection between two ranks that are next to each other in the ring."""

    name: str
    bandwidth: float  # bytes per second, in one direction
    latency: float  # seconds of one message
    most: int = 2**20  # ranks that it can join
    source: str = "assumption"

    def all_reduce(self, nbytes: float, ranks: int) -> float:
        """Seconds to sum a buffer over all ranks: each part goes around the ring twice.

        >>> Link("1 GB/s", 1e9, 1e-5).all_reduce(1e6, 2)
        0.00102
        """
        return 2 * (ranks - 1) / ranks * nbytes / self.bandwidth + 2 * (ranks - 1) * self.latency

    def gather(self, nbytes: float, ranks: int) -> float:
        """Seconds until each rank has the tensors of all; every rank brings so many bytes."""
        return (ranks - 1) * (nbytes / self.bandwidth + self.latency)


# Nominal speeds: measure your own with benchmarks/scale_simulation.py. The latencies are those of a message between two
# processes, not of the wire.
LINKS = (
    Link("Ethernet, 25 Gbit/s", 25 * GBIT, 30e-6, source="assumption: nominal bandwidth, TCP"),
    Link("InfiniBand, 200 Gbit/s", 200 * GBIT, 5e-6, source="assumption: nominal bandwidth of HDR, RDMA"),
    Link("NVLink 4, 8 GPUs", 450e9, 3e-6, most=8, source="assumption: nominal 900 GB/s of an H200, both directions together"),
)


@dataclass(frozen=True)
class Traffic:
    """What a rank sends in a step."""

    summed: int  # bytes of gradients
    gathered: tuple[int, ...] = ()  # bytes of each tensor that all ranks get
    covariances: float = 0.0  # bytes that whitening averages, of which one step in ``every`` makes an exchange
    every: int = 1

    def seconds(self, link: Link, ranks: int) -> float:
        """Mean over the steps."""
        if ranks == 1:
            return 0.0
        gathers = sum(link.gather(nbytes, ranks) for nbytes in self.gathered)
        whitening = link.all_reduce(self.covariances, ranks) / self.every if self.covariances else 0.0
        return link.all_reduce(self.summed, ranks) + gathers + whitening

    def sent(self, ranks: int) -> float:
        """Bytes that a rank sends in a step, on average."""
        around = 2 * (ranks - 1) / ranks
        return around * (self.summed + self.covariances / self.every) + (ranks - 1) * sum(self.gathered)


def slowest_of(seconds: Sequence[float], ranks: int) -> float:
    """Return the mean of the longest of so many steps, each drawn from these.

    >>> slowest_of([1.0, 3.0], 1), slowest_of([1.0, 3.0], 2)
    (2.0, 2.5)
    """
    ordered = np.sort(np.asarray(seconds))
    share = (np.arange(len(ordered) + 1) / len(ordered)) ** ranks
    return float(ordered @ np.diff(share))


def affine_fit(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return a and b of y ≈ a + b·x, by least squares of relative errors; neither is negative.

    >>> [round(each, 6) for each in affine_fit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])]
    [1.0, 2.0]
    """
    from scipy.optimize import nnls

    each = np.asarray(y, dtype=float)
    matrix = np.column_stack([np.ones(len(each)), np.asarray(x, dtype=float)])
    unit = np.maximum(matrix.max(0), 1e-300)  # bytes and ones differ by many orders of magnitude
    (a, b), _ = nnls(matrix / unit / each[:, None], np.ones(len(each)))
    return float(a / unit[0]), float(b / unit[1])
