"""Code whose draws can't be seen from Python is found in modules, in functions and in what they call."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dre.runtime import is_opaque

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.5)


compiled = torch.compile(F.dropout, backend="eager")


def call_scripted(x):
    return [scripted(each) for each in x]


def enclosing(inner):
    return lambda x: inner(x)


class Plain(nn.Module):
    def __init__(self, **attributes):
        super().__init__()
        torch.manual_seed(0)  # not in a forward pass
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x):
        return F.dropout(x) + torch.distributions.Gamma(x, 1.0).sample()


class Calls(Plain):
    @property
    def noise(self):
        return self.draw(torch.ones(2))

    @staticmethod
    def draw(x):
        return call_scripted(x)

    def forward(self, x):
        return x + self.noise


class Seeds(nn.Module):
    def forward(self, x):
        with torch.random.fork_rng():
            return x


class Doubled:
    def __call__(self, x):
        return 2 * x


class Scripted:
    def __call__(self, x):
        return scripted(x)


def compiled_in_place():
    module = nn.Linear(2, 2)
    module.compile(backend="eager")
    return nn.Sequential(module)


SEEN = {
    "layers": nn.Sequential(nn.LSTM(3, 3), nn.TransformerEncoderLayer(4, 2), nn.Dropout()),
    "module": Plain(),
    "attribute": Plain(act=F.gelu, inner=Plain(), names=["a"]),
    "traced by fx": torch.fx.symbolic_trace(nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5))),
    "function": lambda x: x + torch.randn_like(x),
    "partial": partial(F.dropout, p=0.5),
    "object": Doubled(),
    "builtin": torch.tanh,
}
OPAQUE = {
    "scripted": lambda: scripted,
    "scripted module": lambda: nn.Sequential(torch.jit.script(nn.Linear(2, 2))),
    "traced": lambda: nn.Sequential(torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))),
    "compiled": lambda: nn.Sequential(torch.compile(nn.Linear(2, 2), backend="eager")),
    "compiled in place": compiled_in_place,
    "attribute": lambda: nn.Sequential(Plain(act=scripted)),
    "compiled attribute": lambda: Plain(act=compiled),
    "called": Calls,
    "seeded": Seeds,
    "function": lambda: call_scripted,
    "enclosed": lambda: enclosing(scripted),
    "method": lambda: Calls().forward,
    "partial": lambda: partial(call_scripted),
    "object": Scripted,
}


@pytest.mark.parametrize("name", SEEN)
def test_code_in_python_is_seen(name):
    assert not is_opaque(SEEN[name])


@pytest.mark.parametrize("name", OPAQUE)
def test_code_that_python_does_not_run_is_found(name):
    assert is_opaque(OPAQUE[name]())
