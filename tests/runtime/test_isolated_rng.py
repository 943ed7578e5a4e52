"""Isolated draws: they are those of a seeded global state, which itself is left alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dre.runtime.isolated_rng import IsolatedRNG

CPU = torch.device("cpu")
X = torch.arange(24.0).view(4, 6) + 1
DRAWS = {
    "linear": lambda: nn.Linear(5, 4).weight,
    "conv": lambda: nn.Conv2d(2, 3, 3).bias,
    "embedding": lambda: nn.Embedding(3, 4).weight,
    "xavier": lambda: nn.init.xavier_normal_(torch.empty(3, 4)),
    "orthogonal": lambda: nn.init.orthogonal_(torch.empty(3, 4)),
    "trunc": lambda: nn.init.trunc_normal_(torch.empty(3, 4)),
    "rand": lambda: torch.rand(3),
    "randn": lambda: torch.randn(2, 3, dtype=torch.double),
    "randint": lambda: torch.randint(9, (5,)),
    "randperm": lambda: torch.randperm(7),
    "normal": lambda: torch.normal(X, 1.0),
    "bernoulli": lambda: torch.bernoulli(X / 30),
    "multinomial": lambda: X.multinomial(2),
    "exponential": lambda: torch.empty(4).exponential_(),
    "rand_like": lambda: torch.rand_like(X),
    "randn_like": lambda: torch.randn_like(X),
    "dropout": lambda: F.dropout(X, 0.3),
    "dropout module": lambda: nn.Dropout(0.7)(X),
    "all dropped": lambda: F.dropout(X, 1.0),
    "in place": lambda: F.dropout(X.clone(), 0.3, inplace=True),
    "dropout1d": lambda: F.dropout1d(X[None], 0.5),
    "alpha dropout": lambda: F.alpha_dropout(X, 0.5, training=True),
    "rrelu": lambda: F.rrelu(-X, training=True),
    "gumbel": lambda: F.gumbel_softmax(X),
    "attention": lambda: F.scaled_dot_product_attention(X[None], X[None], X[None], dropout_p=0.5),
    "lstm": lambda: nn.LSTM(6, 3, num_layers=2, dropout=0.5)(X[None])[0],
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_the_seed_and_the_global_state_is_untouched(name):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        expected = [DRAWS[name]() for _ in range(2)]
    before, rng = torch.get_rng_state(), IsolatedRNG(3, CPU)
    found = []
    for _ in range(2):  # the second context continues the first
        with rng():
            found.append(DRAWS[name]())
        torch.rand(2)
        torch.set_rng_state(before)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(mine, other) for mine, other in zip(found, expected, strict=True))


def test_what_does_not_draw_is_unchanged_and_generators_of_the_caller_are_used():
    mine, other = (torch.Generator().manual_seed(1) for _ in range(2))
    with IsolatedRNG(0, CPU)():
        assert torch.equal(F.dropout(X, 0.5, training=False), X)
        assert torch.equal(nn.Dropout(0.5).eval()(X), X)
        assert torch.equal(torch.rand(3, generator=mine), torch.rand(3, generator=other))
        assert torch.rand(3, device="meta").is_meta


def test_draws_that_a_checkpoint_could_not_repeat_are_refused():
    x = X.clone().requires_grad_()
    with IsolatedRNG(0, CPU)():
        checkpoint(lambda x: F.dropout(x * x, training=False), x, use_reentrant=False).sum().backward()
        attention = F.scaled_dot_product_attention
        checkpoint(lambda x: attention(x[None], x[None], x[None]), x, use_reentrant=False).sum().backward()
        with pytest.raises(RuntimeError, match=r"dropout.*torch.utils.checkpoint.*outside"):
            checkpoint(lambda x: F.dropout(x, 0.5), x, use_reentrant=False)
