"""Arrays in memory and in scratch files."""

import pytest
import torch

from dre.runtime import scratch


def test_small_arrays_are_in_memory_and_large_ones_in_a_file_that_leaves_no_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    small = scratch.empty((4, 2), torch.float32, what="features", held_bytes=32)
    large = scratch.empty((5, 2), torch.float32, what="features", held_bytes=32)
    large.copy_(torch.arange(10.0).view(5, 2))
    assert small.shape == (4, 2)
    assert large.sum() == 45
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_anonymous_memory(tmp_path):
    def anonymous():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

    before = anonymous()
    large = scratch.in_file((64, 2**18), torch.float32, what="features")
    large.fill_(1.0)
    assert anonymous() - before < 16 * 2**10  # KiB; the array has 64 MiB


def test_a_full_disk_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda folder: scratch.shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(scratch.ScratchError, match=r"features need a scratch file .* TMPDIR"):
        scratch.in_file((2, 2), torch.float32, what="features")
