"""Whatever state of torch the caller has set, a fit gives the same map, and leaves that state as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dre import DRE

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"


@contextmanager
def float64_by_default() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def meta_by_default() -> Iterator[None]:
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


STATES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "float64": float64_by_default,
    "device": meta_by_default,
    "device context": lambda: torch.device("meta"),
}


class OwnModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h1 = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5))
        self.out = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.h1(x))


def callers_state() -> tuple[object, ...]:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.get_num_threads(),
        torch.get_float32_matmul_precision(),
    )


def rows(shape: tuple[int, ...] = (60, 6)) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


OWN = OwnModule()
KINDS = {
    "mlp": ({"schedule": SCHEDULE, "encoder": "mlp(16)", "augment": "noise(0.1)"}, rows()),
    "pcs": ({"schedule": SCHEDULE, "encoder": "mlp(8, n_pcs=4)", "standardize": True}, rows()),
    "model-a": ({"schedule": SCHEDULE, "encoder": "model-a(width=16)", "metric": "cosine"}, rows()),
    "images": ({"schedule": SCHEDULE, "encoder": "model-b(filters=4/8, norm=true)"}, rows((40, 8, 8))),
    "own module": ({"schedule": SCHEDULE, "encoder": OWN}, rows()),
    "fast": ({"recipe": "fast"}, rows((120, 6))),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_the_same_in_every_state_of_torch(kind, state, tmp_path):
    parameters, X = KINDS[kind]
    encoder = OWN if kind == "own module" else None
    plain = DRE(random_state=0, device="cpu", **parameters).fit(X)
    expected = plain.module()(torch.from_numpy(X)).detach()
    with STATES[state]():
        before = callers_state()
        model = DRE(random_state=0, device="cpu", **parameters).fit(X)
        np.testing.assert_array_equal(model.embedding_, plain.embedding_)
        np.testing.assert_array_equal(model.transform(X), plain.embedding_)
        np.testing.assert_array_equal(model.transform(X, stage=0), plain.transform(X, stage=0))
        module = model.module()
        model.save(tmp_path / "model")
        loaded = DRE.load(tmp_path / "model", encoder=encoder)
        np.testing.assert_array_equal(loaded.transform(X), plain.embedding_)
        assert callers_state() == before
    assert torch.equal(module(torch.from_numpy(X)), expected)
    again = DRE.load(tmp_path / "model", encoder=encoder)
    np.testing.assert_array_equal(again.transform(X), plain.embedding_)
    for part in (module, loaded.encoder_, again.encoder_, model.encoder_):
        assert all(value.dtype == torch.float32 for value in part.parameters())
        assert not any(value.is_inference() for value in part.state_dict().values())


@pytest.mark.parametrize("state", STATES)
def test_the_callers_state_comes_back_after_an_error(state):
    model = DRE(schedule=SCHEDULE, encoder="mlp(16)", device="cpu").fit(rows())
    with STATES[state]():
        before = callers_state()
        for call in (model.fit, model.transform):
            with pytest.raises(ValueError, match="NaN"):
                call(np.full((9, 6), np.nan))
            assert callers_state() == before


def test_tensors_that_were_made_in_inference_mode_are_mapped():
    with torch.inference_mode():
        X = torch.from_numpy(rows()) * 1
        module = OwnModule()
    model = DRE(schedule=SCHEDULE, encoder=module, random_state=0, device="cpu").fit(X)
    assert model.transform(X).isfinite().all()
