"""Memory that a graph of all rows needs while it is made and used, before any of it is taken."""

from __future__ import annotations

# Measured by the peak of whole fits: of a million rows of 8 columns with 90 neighbors on a CPU, 5.7 GB. On a GPU the pairs are
# sorted in both directions, which needs more for a moment.
NEIGHBOR_BYTES = {"cpu": 60, "cuda": 70}
COPIES = 4  # of the rows: as they are given, scaled, in the index of a search, and its queries


def graph_bytes(n: int, width: int, k: int, device: str) -> int:
    """Return the bytes that a graph of n rows with k neighbors needs, with the rows, of so many columns, as float32.

    >>> graph_bytes(1_000_000, 50, 90, "cpu") / 1e9
    6.2
    """
    return n * (4 * COPIES * width + NEIGHBOR_BYTES.get(device, NEIGHBOR_BYTES["cuda"]) * k)
