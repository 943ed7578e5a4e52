"""Row programs: what the steps of a module give is what the module gives, and what they can't do is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dre.model.lowering import lower
from dre.model.program_builder import LoweringError
from dre.model.row_program import RowProgram
from made_models import ENCODERS, METRICS, MODULES, fitted, module_case, program_of

CLOSE = 1e-5


def deviation(program: RowProgram, rows: np.ndarray, expected: np.ndarray) -> float:
    return float((np.abs(program.run(rows) - expected) / np.maximum(1, np.abs(expected))).max())


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_is_lowered_to_what_transform_gives(encoder: str) -> None:
    model, rows = fitted(encoder)
    assert deviation(program_of(model), rows, model.transform(rows)) < CLOSE


@pytest.mark.parametrize("options", METRICS, ids=str)
def test_scaling_and_metric_are_inside(options: dict[str, Any]) -> None:
    model, rows = fitted("mlp(16)", **options)
    odd = np.vstack([rows, np.zeros_like(rows[:1]), np.full_like(rows[:1], 3.0), 1e4 * rows[:1]])
    assert deviation(program_of(model), odd, model.transform(odd)) < CLOSE


@pytest.mark.parametrize("name", MODULES)
def test_modules_of_the_user_are_lowered_if_their_operators_are_known(name: str) -> None:
    program, rows, expected = module_case(name)
    assert deviation(program, rows, expected) < CLOSE


class Sorts(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sort(1).values[:, :2]


class Draws(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :2] + torch.rand_like(x[:, :2])


class Ignores(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ones(len(x), 2)


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :2] if x.sum() > 0 else -x[:, :2]


class PadsWithInfinity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pad(x, (1, 1), value=-torch.inf)[:, 1:3]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Sorts(), r"aten\.sort is not among"),
        (Draws(), r"aten\.rand.* draws"),
        (Ignores(), "does not depend"),
        (Branches(), r"^torch\.export can't trace it: [^\n]+[^\n.]$"),
        (PadsWithInfinity(), "pads with -inf"),
    ],
)
def test_what_a_program_lacks_is_refused_by_name(module: nn.Module, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LoweringError, match=message):
        lower(module, torch.zeros(1, 3, dtype=torch.double))
    assert capfd.readouterr() == ("", "")


def test_constants_occur_once_and_moves_without_effect_are_no_steps() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.layer(x.reshape(-1, 2, 2).flatten(1)).contiguous())

    program = lower(Twice(), torch.zeros(1, 4))
    assert [step.op for step in program.steps] == ["dense", "dense"]
    assert len(program.constants) == 2
    assert program.nbytes == 4 * (16 + 4)
