"""Threads: contexts give back what they found, kernels see every row once, and a busy machine leaves one thread."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from dre.runtime import threads
from dre.runtime.threads import idle_threads, in_threads, one_thread, thread_count


def test_one_thread_is_left_as_it_was_found():
    before = torch.get_num_threads()
    with one_thread(), one_thread():
        assert torch.get_num_threads() == 1
        assert thread_count() == before
    assert torch.get_num_threads() == before
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == thread_count() == before


@pytest.mark.parametrize("others", [0, 1, 5, 10_000])
def test_threads_leave_the_cores_of_other_programs(monkeypatch, others):
    monkeypatch.setattr(threads, "_running_elsewhere", lambda: others)
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    threads._load.until = 0.0
    assert idle_threads() == max(1, min(2, (os.cpu_count() or 2) - others))
    threads._load.until = 0.0  # the next test looks again


def test_the_load_is_looked_at_rarely(monkeypatch):
    looks = []
    monkeypatch.setattr(threads, "_running_elsewhere", lambda: looks.append(1) or 0)
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    threads._load.until = 0.0
    for _ in range(100):
        idle_threads()
    assert 1 <= len(looks) < 50


def test_a_system_that_does_not_tell_its_load_is_taken_for_idle(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError

    monkeypatch.setattr("builtins.open", refuse)
    assert threads._running_elsewhere() == 0


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_kernels_visit_every_row_once(monkeypatch, count, rows):
    monkeypatch.setattr(threads, "idle_threads", lambda: count)
    seen = np.zeros(rows, dtype=int)

    def kernel(first, last, seen):
        seen[first:last] += 1

    in_threads(kernel, rows, 2**30, (seen,))
    assert (seen == 1).all()


def test_errors_of_a_kernel_reach_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "idle_threads", lambda: 2)

    def kernel(first, last):
        if first:
            raise ArithmeticError("in the second thread")

    with pytest.raises(ArithmeticError, match="second thread"):
        in_threads(kernel, 10, 2**30, ())
