"""Threads: contexts give back what they found, parts and items are all visited, and results do not depend on the number."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

from dre import DRE
from dre.metrics import evaluate
from dre.neighbors.search import nearest
from dre.runtime import threads
from dre.runtime.threads import PART, all_threads, at_most_threads, in_threads, map_in_threads, one_thread, thread_count


@pytest.fixture
def two() -> None:
    """Two threads, however many cores there are; the next test sets the number again."""
    torch.set_num_threads(2)


@pytest.mark.usefixtures("two")
def test_one_thread_is_left_as_it_was_found():
    with one_thread(), one_thread():
        assert torch.get_num_threads() == 1
        assert thread_count() == 2
        with all_threads():
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == thread_count() == 2


@pytest.mark.usefixtures("two")
def test_a_limit_holds_for_torch_and_blas_and_ends():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    before = os.environ.get("OMP_NUM_THREADS")
    with at_most_threads(1):
        assert thread_count() == torch.get_num_threads() == 1
        assert {each["num_threads"] for each in threadpoolctl.threadpool_info()} == {1}
        assert os.environ["OMP_NUM_THREADS"] == "1"
    assert thread_count() == 2
    assert os.environ.get("OMP_NUM_THREADS") == before
    with at_most_threads(None):
        assert thread_count() == 2


def test_libraries_that_are_loaded_later_are_limited_too():
    program = (
        "from dre.runtime.threads import at_most_threads\n"
        "with at_most_threads(1):\n"
        "    import numba, faiss\n"
        "    print(numba.get_num_threads(), faiss.omp_get_max_threads())"
    )
    pytest.importorskip("faiss")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 7, 100])
def test_kernels_visit_every_row_once(monkeypatch, count, rows):
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    seen = np.zeros(rows, dtype=int)

    def kernel(first, last, seen):
        seen[first:last] += 1

    for work in (1, PART, 2 * PART, 1000 * PART):
        seen[:] = 0
        in_threads(kernel, rows, work, (seen,))
        assert (seen == 1).all()


def test_little_work_stays_in_one_thread_and_much_is_shared(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    seen = []

    def kernel(first, last):
        seen.append(threading.get_ident())
        time.sleep(0.01)

    in_threads(kernel, 100, 2 * PART - 1, ())
    assert seen == [threading.get_ident()]
    in_threads(kernel, 100, 20 * PART, ())
    assert len(set(seen)) == 2


def test_a_thread_that_waits_for_a_core_does_not_hold_up_the_others(monkeypatch):
    """As on a busy machine: what it has not begun is done by others, and it is not waited for."""
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    pool, release = threads._pool(os.getpid(), 1), threading.Event()
    busy = pool.submit(release.wait, 30)
    try:
        seen = np.zeros(50, dtype=int)

        def kernel(first, last, seen):
            seen[first:last] += 1

        in_threads(kernel, 50, 50 * PART, (seen,))
        assert (seen == 1).all()
        assert not busy.done()
    finally:
        release.set()


def test_errors_of_a_kernel_reach_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 2)

    def kernel(first, last):
        if threading.current_thread() is not threading.main_thread():
            raise ArithmeticError("in the second thread")
        time.sleep(0.01)

    with pytest.raises(ArithmeticError, match="second thread"):
        in_threads(kernel, 50, 50 * PART, ())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(count):
    torch.set_num_threads(count)

    def work(item):
        assert torch.get_num_threads() == 1
        time.sleep(0.002 * (item % 3))
        return item * item

    assert list(map_in_threads(work, range(20))) == [i * i for i in range(20)]
    assert torch.get_num_threads() == count


@pytest.mark.usefixtures("two")
def test_items_are_drawn_a_few_ahead_and_errors_stop_the_work():
    drawn, done = [], []

    def items():
        for i in range(100):
            drawn.append(i)
            yield i

    def work(item):
        if item == 5:
            raise ArithmeticError("the sixth")
        done.append(item)
        return item

    with pytest.raises(ArithmeticError, match="the sixth"):
        list(map_in_threads(work, items()))
    assert len(drawn) < 12
    assert torch.get_num_threads() == 2


def test_maps_scores_and_neighbors_have_the_same_bits_with_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("dre.neighbors.distances.BLOCK", {"cpu": 64})
    monkeypatch.setattr("dre.encoder.forward.CPU_CHUNK_ROWS", 64)
    monkeypatch.setattr(threads, "PART", 2**10)
    X = np.random.default_rng(0).normal(size=(600, 30)).astype(np.float32)
    labels = np.arange(600) % 3
    found = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        model = DRE("fast", random_state=0, device="cpu").fit(X)
        near = nearest(torch.from_numpy(X), 20)
        scores = evaluate(X, model.embedding_, labels)
        found.append([model.embedding_, model.transform(X[:100]), near.indices.numpy(), near.distances.numpy(), dict(scores)])
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_equal(mine, theirs)
