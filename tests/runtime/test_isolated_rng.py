"""Isolated draws: they are those of a seeded global state, which itself is left alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import FunctionType

import pytest
import torch
from torch import nn
from torch._ops import OpOverloadPacket
from torch.distributions import Beta, Binomial, Dirichlet, Gamma, StudentT
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dre.runtime.isolated_rng import IsolatedRNG, may_draw

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
    "double": lambda: torch.randn_like(X.T, dtype=torch.double),
    "with gradients": lambda: torch.rand_like(X, requires_grad=True, device=X.device),
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
    "gamma": lambda: Gamma(X, 1.0).sample(),
    "dirichlet": lambda: Dirichlet(X).rsample(),
    "beta": lambda: Beta(X, 2.0).sample(),
    "binomial": lambda: Binomial(5, X / 30).sample(),
    "student": lambda: StudentT(X).sample(),
    "dropout_": lambda: torch.dropout_(X.clone(), 0.5, True),
    "alpha dropout_": lambda: torch.alpha_dropout_(X.clone(), 0.5, True),
    "feature dropout_": lambda: torch.feature_dropout_(X.clone(), 0.5, True),
    "feature alpha dropout_": lambda: torch.feature_alpha_dropout_(X.clone(), 0.5, True),
    "native dropout": lambda: torch.native_dropout(X, 0.5, True)[0],
    "rrelu module": lambda: nn.RReLU(inplace=True)(-X),
    "fractional": lambda: F.fractional_max_pool2d(X[None], 2, output_size=2),
    "fractional, indices": lambda: F.fractional_max_pool2d(X[None], 2, output_size=2, return_indices=True)[1],
    "self-attention": lambda: nn.MultiheadAttention(6, 2, dropout=0.5)(X, X, X)[0],
    "transformer": lambda: nn.TransformerEncoderLayer(6, 2, 8)(X),
    "operator": lambda: torch.ops.aten.bernoulli(X / 30),
    "overload": lambda: torch.ops.aten.rand.default([3]),
    "low rank": lambda: torch.svd_lowrank(X, 2)[1],
}


@torch.jit.script
def scripted_dropout(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.5)


def seeded_noise():
    first = torch.rand(3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.stack([first, torch.rand(3)])


OPAQUE = {
    "script": lambda: scripted_dropout(X),
    "scripted module": lambda: torch.jit.script(nn.Dropout(0.5))(X),
    "compiled": lambda: torch.compile(nn.Dropout(0.5), backend="eager")(X),
    "seeded": seeded_noise,
    "gamma": DRAWS["gamma"],
}


def check_draws(draw, rng):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        expected = [draw() for _ in range(2)]
    for each in expected:  # the second context continues the first
        torch.rand(2)
        before = torch.get_rng_state()
        with rng():
            found = draw()
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.equal(found, each)


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_the_seed_and_the_global_state_is_untouched(name):
    check_draws(DRAWS[name], IsolatedRNG(3, CPU))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", OPAQUE)
def test_draws_that_python_does_not_see_are_isolated_where_the_global_state_is_exchanged(name):
    check_draws(OPAQUE[name], IsolatedRNG(3, CPU, exchange=True))


@pytest.mark.parametrize("exchange", [False, True])
def test_a_state_that_is_put_back_draws_the_same_again(exchange):
    rng, again = (IsolatedRNG(seed, CPU, exchange=exchange) for seed in (3, 4))
    with rng():
        torch.rand(5)
    again.state = rng.state
    with rng():
        expected = DRAWS["dropout"]()
    with again():
        assert torch.equal(DRAWS["dropout"](), expected)


def test_threads_that_exchange_the_global_state_take_turns():
    def draw(seed):
        rng = IsolatedRNG(seed, CPU, exchange=True)
        drawn = []
        for _ in range(50):
            with rng():
                drawn.append(torch.stack([scripted_dropout(X) for _ in range(3)]))
        return torch.stack(drawn)

    before = torch.get_rng_state()
    alone = [draw(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert all(map(torch.equal, threads.map(draw, range(4)), alone))
    assert torch.equal(torch.get_rng_state(), before)


def random_operators():
    """Names of the functions of torch for a CPU whose operators are tagged as random."""
    for name in {each.removeprefix("aten::").partition(".")[0] for each in torch._C._dispatch_get_all_op_names()}:
        operator = getattr(torch.ops.aten, name, None)
        if isinstance(operator, OpOverloadPacket) and any(
            torch.Tag.nondeterministic_seeded in getattr(operator, each).tags for each in operator.overloads()
        ):
            yield name


def test_every_function_of_torch_that_draws_is_known():
    names = set(random_operators())
    assert {"_standard_gamma", "native_dropout", "dropout_", "rand"} <= names
    in_python = [each for each in vars(F).values() if isinstance(each, FunctionType)]
    drawing = {each.__name__.removeprefix("_") for each in in_python if names & set(each.__code__.co_names)}
    assert {"dropout", "rrelu", "gumbel_softmax"} <= drawing
    assert {name for name in names | drawing if not may_draw(name)} == set()
    assert not any(map(may_draw, ("add", "linear", "relu", "__get__", "matmul", "", "backward", "cdist")))


def test_numbers_of_a_checkpoint_are_repeated_where_the_global_state_is_exchanged():
    x = X.clone().requires_grad_()
    with IsolatedRNG(0, CPU, exchange=True)():
        y = checkpoint(lambda x: F.dropout(x, 0.5), x, use_reentrant=False)
        y.sum().backward()
    assert torch.equal(x.grad * X, y)


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
