"""Losses are terms that can be weighted and added up, and written down."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dre import CE, KL
from dre.affinity.target import Pairs
from dre.loss import LOSSES, Loss, Step, Sum, read_loss
from dre.notation import NotationError, Reader

Y = torch.randn(20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double)
PAIRS = Pairs(None, torch.rand(20, 20, generator=torch.Generator().manual_seed(1), dtype=torch.double).triu(1))

weights = st.floats(-1e6, 1e6, allow_subnormal=False)


def read(text: str) -> Loss:
    return read_loss(Reader(text))


@given(u=weights, v=weights)
def test_the_value_of_a_sum_is_the_weighted_sum_of_the_values(u: float, v: float) -> None:
    wanted = u * KL()(Step.of(Y, PAIRS)) + v * CE(min_dist=0.5)(Step.of(Y, PAIRS))
    assert torch.allclose((u * KL() + v * CE(min_dist=0.5))(Step.of(Y, PAIRS)), wanted, rtol=1e-12)


def test_the_gradient_of_a_sum_is_the_weighted_sum_of_the_gradients() -> None:
    y = Y.clone().requires_grad_()
    gradients = [torch.autograd.grad(loss(Step.of(y, PAIRS)), y)[0] for loss in (KL(), CE(), 2.0 * KL() + 0.5 * CE())]
    assert torch.allclose(2 * gradients[0] + 0.5 * gradients[1], gradients[2])


def test_weights_multiply_and_sums_flatten() -> None:
    assert 2.0 * (KL() + 0.5 * CE()) == Sum(((2.0, KL()), (1.0, CE())))
    assert (KL() + CE()) + KL(alpha=0.5) == KL() + (CE() + KL(alpha=0.5))
    assert 3 * (2 * KL()) == 6 * KL()


@given(
    terms=st.lists(st.tuples(weights, st.sampled_from([KL(), KL(alpha=0.5), CE(), CE(min_dist=0.001)])), min_size=1, max_size=4)
)
def test_the_text_of_a_sum_is_read_back_without_loss(terms: list[tuple[float, Loss]]) -> None:
    loss = Sum(tuple(terms))
    assert read(str(loss)) == loss
    assert read(f"({loss})") == loss


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("kl", KL()),
        ("kl(alpha=0.5)", KL(alpha=0.5)),
        ("0.5*kl", 0.5 * KL()),
        ("kl + 0.1 * ce(min_dist=0.001)", KL() + 0.1 * CE(min_dist=0.001)),
        ("(kl+ce)", KL() + CE()),
        ("kl + -1e-3*ce", KL() + -0.001 * CE()),
        ("ce(negative_sample_rate=5)", CE(negative_sample_rate=5)),
        ("ce(negative_sample_rate=none)", CE()),
    ],
)
def test_losses_can_be_written_as_one_would_write_them(text: str, loss: Loss) -> None:
    assert read(text) == loss


def test_one_term_alone_is_written_plainly_and_is_no_sum() -> None:
    assert str(KL()) == "kl"
    assert str(CE(min_dist=0.001)) == "ce(min_dist=0.001)"
    assert read("kl") == KL()
    assert read("1.0*kl") == 1.0 * KL()
    assert str(1.0 * KL() + 0.1 * CE()) == "1.0*kl + 0.1*ce"


@pytest.mark.parametrize("text", ["kll", "0.5 kl", "kl + ", "(kl", "kl(beta=1)", "sum"])
def test_what_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(NotationError):
        read(text)


def test_every_loss_in_the_folder_is_known_by_its_name() -> None:
    assert {"kl": KL, "ce": CE}.items() <= LOSSES.members().items()
