"""The kernels in the tree are those that the GPU tests were last run on."""

from __future__ import annotations

import json

import pytest

from run_gpu_tests import RECORD, kernels_digest


def test_no_kernel_changed_since_the_gpu_tests_passed() -> None:
    record = json.loads(RECORD.read_text())
    assert record["kernels"] == kernels_digest(), "run `make test-gpu` on a machine with a GPU and commit tests/gpu-record.json"
    assert record["passed"] > 50
    assert (record["failed"], record["failures"]) == (0, [])
    if record["selection"] is not None:
        pytest.skip(
            f"{record['passed']} GPU tests passed on these kernels, those of {record['selection']!r}; `make test-gpu` runs all"
        )
    assert record["passed"] > 100
