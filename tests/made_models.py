"""Small models of every encoder, and modules as users write them, which Python and a browser compute alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dre import DRE
from dre.model.lowering import lower
from dre.model.row_program import RowProgram

Array = np.ndarray[Any, Any]
ENCODERS = (
    "mlp(16)", "mlp(16, n_pcs=4)", "patch-mlp(16, n_pcs=5)", "model-a(width=20, depth=2, norm=true)",
    "model-b(filters=4/6, norm=true)", "strided(filters=4/8)",
)  # fmt: skip
METRICS: tuple[dict[str, Any], ...] = (
    {"metric": "correlation"},
    {"metric": "cosine", "standardize": True},
    {"metric": "manhattan"},
    {"n_components": 3},
)
SHAPES = {"mlp": (7,), "model-a": (7,), "patch-mlp": (9, 10, 3), "model-b": (9, 10), "strided": (3, 9, 10)}
SCHEDULE = "x: fuzzy(10) -> ce * 1"


def rows_for(encoder: str) -> Array:
    """Rows in the shape that the encoder reads: vectors, or images of some layout."""
    shape = SHAPES[encoder.partition("(")[0]]
    rng = np.random.default_rng(3)
    if len(shape) == 1:
        return rng.normal(size=(40, *shape)) * 3 + 10 * np.arange(1, 8)
    return rng.integers(0, 256, size=(40, *shape)).astype(np.uint8)


@cache
def _fitted(encoder: str, options: tuple[tuple[str, Any], ...]) -> DRE:
    return DRE(schedule=SCHEDULE, encoder=encoder, random_state=0, verbose=False, **dict(options)).fit(rows_for(encoder))


def fitted(encoder: str, **options: Any) -> tuple[DRE, Array]:
    """A model that has seen a step or two, and its rows."""
    return _fitted(encoder, tuple(sorted(options.items()))), rows_for(encoder)


@cache
def program_of(model: DRE) -> RowProgram:
    return lower(model.module(), torch.zeros(1, *model.row_shape_, dtype=torch.double))


@cache
def module_case(name: str) -> tuple[RowProgram, Array, Array]:
    """The program of a module, rows, and what the module gives for them."""
    make, shape = MODULES[name]
    torch.manual_seed(0)
    module = make().double().eval()
    rows = torch.randn(7, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    with torch.no_grad():
        expected = module(rows).flatten(1).numpy()
    return lower(module, rows[:1]), rows.numpy(), expected


class Attends(nn.Module):
    """Attention of the values of a row to each other, as a small transformer has it."""

    def __init__(self) -> None:
        super().__init__()
        self.keys, self.out = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.keys(x.unflatten(1, (4, 3)))
        weights = torch.softmax(tokens @ tokens.transpose(1, 2) / 2, -1)
        return self.out((weights @ tokens).mean(1))


class Mixed(nn.Module):
    """Functions of single values, of all kinds."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.cat([nn.functional.silu(x), nn.functional.elu(x), x.clamp(-1, 0.5), torch.tanh(x), x.abs().sqrt(), x**2], 1)
        z = torch.stack([y, y.flip(1)], 1)
        parts = [
            z.amax(1),
            z.amin(1),
            z.std(1),
            nn.functional.mish(y),
            nn.functional.leaky_relu(y, 0.1),
            y.softmax(1),
            y.round(),
        ]
        return torch.stack([*((part - part.mean(1, keepdim=True)).norm(dim=1) for part in parts), y.sum(1)], 1)


def _signals() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 6, 3, padding=2, dilation=2, stride=2), nn.GroupNorm(3, 6), nn.GELU("tanh"), nn.Flatten(), nn.Linear(30, 2)
    )


def _images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(4, 8, (3, 2), padding=1, stride=(2, 1), groups=2), nn.PReLU(), nn.MaxPool2d(3, 2, padding=1, ceil_mode=True),
        nn.ReflectionPad2d(1), nn.Conv2d(8, 4, 1), nn.Hardtanh(), nn.AvgPool2d(2, 2, ceil_mode=True, count_include_pad=False),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3), nn.LayerNorm(3), nn.Sigmoid(),
    )  # fmt: skip


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "attention": (Attends, (12,)),
    "functions": (Mixed, (5,)),
    "signals": (_signals, (2, 10)),
    "images": (_images, (4, 11, 12)),
    "residual": (lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.SELU(), nn.Softplus(), nn.Linear(8, 2)), (4,)),
}
