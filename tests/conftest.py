"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

# Fixtures hold no doctests, and modules of the same name could not all be imported to look for them.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

# Tiny data are quickest on one thread: on a busy machine several wait for each other at every operation. It also makes
# fixtures of any scope comparable bit by bit.
THREADS = torch.get_num_threads()
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Slow tests get all threads."""
    slow = request.node.get_closest_marker("slow") is not None
    torch.set_num_threads(THREADS if slow else 1)
    yield
    torch.set_num_threads(1)
