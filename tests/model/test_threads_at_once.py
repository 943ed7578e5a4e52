"""Fits in several threads at once: the bits of each are those of a fit alone, and nothing outside is touched."""

from __future__ import annotations

import random
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Gamma

from dre import DRE

SCHEDULE = "x: gaussian(5) -> kl * 3; h1: gaussian(5) -> kl * 2"
THREADS, ROUNDS = 4, 3


class WithDropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h1 = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5))
        self.out = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.h1(x))


class DrawsAlways(WithDropout):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 0.1 * torch.randn_like(x))


class GammaNoise(WithDropout):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 0.1 * Gamma(torch.ones_like(x), 1.0).sample())


@torch.jit.script
def scripted_noise(x: Tensor) -> Tensor:
    return x + 0.1 * torch.randn_like(x)


class Scripted(WithDropout):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(scripted_noise(x))


def add_noise(x: Tensor) -> Tensor:
    return x + 0.1 * torch.randn(x.shape)


OWN = {"dropout": WithDropout(), "draws": DrawsAlways(), "gamma": GammaNoise(), "scripted": Scripted()}
EXCHANGED = ("scripted", "scripted function")  # these exchange the global state, for a step or a call
KINDS: dict[str, dict[str, object]] = {
    "mlp": {"schedule": SCHEDULE, "encoder": "mlp(16)"},
    "model-a": {"schedule": SCHEDULE, "encoder": "model-a(width=16)", "batch_size": 20},
    "dropout": {"schedule": SCHEDULE, "encoder": OWN["dropout"], "batch_size": 20},
    "draws": {"schedule": SCHEDULE, "encoder": OWN["draws"], "batch_size": 20},
    "gamma": {"schedule": SCHEDULE, "encoder": OWN["gamma"], "batch_size": 20},
    "scripted": {"schedule": SCHEDULE, "encoder": OWN["scripted"], "batch_size": 20},
    "function": {"schedule": SCHEDULE, "encoder": "mlp(16)", "augment": add_noise},
    "scripted function": {"schedule": SCHEDULE, "encoder": "mlp(16)", "augment": scripted_noise},
    "fast": {"recipe": "fast"},
}


def global_states() -> tuple[object, ...]:
    kind, keys, *rest = np.random.get_state()
    torch_state = torch.get_rng_state().numpy().tobytes()
    settings = (torch.get_num_threads(), torch.get_default_dtype(), torch.get_float32_matmul_precision())
    return keys.tobytes(), repr((kind, rest)), random.getstate(), torch_state, settings, list(warnings.filters)


def in_threads(work: Callable[[int], object]) -> list[object]:
    """Return ``work(i)`` of every thread; they begin together."""
    found: list[object] = [None] * THREADS
    start = threading.Barrier(THREADS)

    def run(i: int) -> None:
        start.wait()
        try:
            found[i] = work(i)
        except BaseException as problem:
            found[i] = problem

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return found


def rows_of(i: int, n: int = 40) -> np.ndarray:
    return np.random.default_rng(i).normal(size=(n + 7 * i, 6))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_fits_in_several_threads_have_the_bits_of_fits_alone(kind, number):
    torch.set_num_threads(number)

    def fit(i: int) -> np.ndarray:
        model = DRE(random_state=i, device="cpu", **KINDS[kind]).fit(rows_of(i))
        np.testing.assert_array_equal(model.transform(rows_of(i)), model.embedding_)
        return model.embedding_

    alone = [fit(i) for i in range(THREADS)]
    for _ in range(1 if kind == "fast" else ROUNDS):
        before = global_states()
        together = in_threads(fit)
        assert global_states() == before
        for mine, expected in zip(together, alone, strict=True):
            np.testing.assert_array_equal(mine, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_does_not_depend_on_the_global_seed(kind):
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(DRE(random_state=0, device="cpu", **KINDS[kind]).fit(rows_of(0)).embedding_)
    np.testing.assert_array_equal(*found)


@contextmanager
def drawing() -> Iterator[list[Tensor]]:
    """Another thread draws from torch's global random state inside; yields its draws."""
    drawn: list[Tensor] = []
    stop = threading.Event()

    def draw() -> None:
        while not stop.is_set():
            drawn.append(torch.rand(3))
            stop.wait(1e-4)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield drawn
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("fast", *EXCHANGED)])
def test_a_thread_that_draws_from_the_global_state_neither_disturbs_a_fit_nor_is_disturbed(kind):
    model = DRE(random_state=0, device="cpu", **KINDS[kind])
    alone = model.fit(rows_of(0)).embedding_
    for _ in range(ROUNDS):
        torch.manual_seed(5)
        with drawing() as drawn:
            np.testing.assert_array_equal(model.fit(rows_of(0)).embedding_, alone)
        torch.manual_seed(5)
        assert all(torch.equal(torch.rand(3), each) for each in drawn)


def test_threads_that_begin_in_a_fit_find_the_number_of_threads_outside():
    torch.set_num_threads(3)
    found = []

    def look(event: object) -> None:
        thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        thread.start()
        thread.join()

    X = rows_of(0)
    DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(4, depth=1)", device="cpu").fit(X, observers=[look])
    assert set(found) == {3}


def test_a_model_can_embed_in_several_threads_at_once():
    torch.set_num_threads(2)
    model = DRE(random_state=0, device="cpu", **KINDS["mlp"]).fit(rows_of(0))
    alone = [model.transform(rows_of(i)) for i in range(THREADS)]
    for mine, expected in zip(in_threads(lambda i: [model.transform(rows_of(i)) for _ in range(20)]), alone, strict=True):
        for each in mine:
            np.testing.assert_array_equal(each, expected)


def test_warnings_of_other_threads_are_not_silenced_for_good():
    before = list(warnings.filters)
    for _ in range(ROUNDS):
        in_threads(lambda i: DRE("fast", random_state=0, device="cpu").plan((30, 6)))
        in_threads(lambda i: DRE("fast", device="cpu")._clamp(DRE("fast", device="cpu").plan((30, 6)), 30))
    assert list(warnings.filters) == before


# The number of threads, and the load.


@contextmanager
def busy() -> Iterator[None]:
    """Another thread keeps a core, and torch, at work inside."""
    stop = threading.Event()

    def work() -> None:
        x = torch.ones(200, 200)
        while not stop.is_set():
            x = (x @ x).clamp(0, 1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("images", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["vectors", "images"])
def test_the_bits_of_the_default_do_not_depend_on_the_number_of_threads_or_the_load(images, monkeypatch):
    monkeypatch.setattr("dre.encoder.forward.CPU_CHUNK_ROWS", 64)
    monkeypatch.setattr("dre.runtime.threads.PART", 2**10)  # work that threads share, of few rows
    X = np.random.default_rng(0).normal(size=(520, 8, 8) if images else (520, 110))
    model, found = DRE("fast", random_state=0, device="cpu"), []
    for number in (1, 2, 4):
        torch.set_num_threads(number)
        with busy() if number == 2 else nullcontext():
            found.append((model.fit(X).embedding_, model.transform(X[:100])))
    for other in found[1:]:
        np.testing.assert_array_equal(other[0], found[0][0])
        np.testing.assert_array_equal(other[1], found[0][1])


@pytest.mark.slow
def test_large_steps_have_the_same_bits_with_the_same_number_of_threads():
    X, found, large = np.random.default_rng(0).normal(size=(2500, 20)), [], []
    for number, load in ((1, nullcontext), (2, nullcontext), (2, busy)):
        torch.set_num_threads(number)
        model = DRE(
            schedule="x: gaussian(5) -> kl * 1", encoder="model-a", batch_size=2500, random_state=0, device="cpu", verbose=False
        )
        with load():
            found.append(model.fit(X, observers=[lambda event: large.append(event.run.has_large_steps)]).embedding_)
    assert large[-1]
    np.testing.assert_array_equal(found[1], found[2])
    np.testing.assert_allclose(found[0], found[1], atol=1e-2)  # other numbers of threads round differently
