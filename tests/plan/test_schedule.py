"""A schedule is data, and its text says the same."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre import CE, KL, Fuzzy, Gaussian, Schedule, Stage
from dre.loss import Sum
from dre.notation import NotationError
from dre.plan.recipe import DataSpec
from dre.plan.recipes import RECIPES

PAPER = """
x:  gaussian(30, scope=batch) -> kl * 100
h1: gaussian(30, scope=batch) -> kl * 50
h2: gaussian(30, scope=batch) -> kl * 50
h3: gaussian(30, scope=batch) -> kl * 50
h3: fuzzy(15, scope=batch) -> ce(min_dist=0.001) * 100 @ 1e-4
"""

positive = st.floats(0, exclude_min=True, allow_infinity=False, allow_nan=False)
scopes = st.sampled_from(["graph", "batch"])
affinities = st.builds(Gaussian, st.integers(1, 1000) | st.floats(1, 1e6), scope=scopes) | st.builds(
    Fuzzy, st.integers(2, 500), scope=scopes
)
terms = st.builds(KL, alpha=st.floats(1e-3, 1e3)) | st.builds(
    CE, min_dist=st.floats(0, 1), spread=st.floats(1, 10), negative_sample_rate=st.none() | st.floats(0.1, 100)
)
weighted = st.tuples(st.floats(-1e9, 1e9), terms)
losses = terms | st.lists(weighted, min_size=1, max_size=3).map(lambda parts: Sum(tuple(parts)))
names = st.from_regex(r"[A-Za-z_0-9][A-Za-z_0-9]*", fullmatch=True)
sources = st.sampled_from(["x", "h1", "0", "0.1", "1e5", "layers.0.1.2", "conv-block.3"]) | st.lists(
    names, min_size=1, max_size=4
).map(".".join)
stages = st.builds(
    Stage,
    sources,
    affinities,
    losses,
    st.integers(1, 10**6),
    st.none() | positive,
    st.none() | st.integers(1, 10**6),
    optional=st.booleans(),
)


@given(st.lists(stages, min_size=1, max_size=5))
def test_the_text_is_read_back_without_loss(plan: list[Stage]) -> None:
    plan = [replace(plan[0], optional=False), *plan[1:]]
    schedule = Schedule(*plan)
    assert Schedule.parse(str(schedule)) == schedule
    assert Schedule.parse("; ".join(map(str, plan))) == schedule
    assert str(Schedule.parse(str(schedule))) == str(schedule)
    assert eval(repr(schedule), {"Schedule": Schedule}) == schedule


def test_the_papers_five_rows_are_read_and_printed() -> None:
    batch = Gaussian(30, scope="batch")
    wanted = Schedule(
        Stage("x", batch, KL(), 100),
        *(Stage(source, batch, KL(), 50) for source in ("h1", "h2", "h3")),
        Stage("h3", Fuzzy(15, scope="batch"), CE(min_dist=0.001), 100, lr=1e-4),
    )
    assert Schedule.parse(PAPER) == wanted
    assert RECIPES["paper"](DataSpec(60_000, (1, 28, 28), "cuda"), None).schedule == wanted
    assert str(wanted).split() == PAPER.replace("1e-4", "0.0001").split()


@pytest.mark.parametrize("between", ["\n", ";", " ; ", "\n\n", ";\n", "\r\n"])
def test_stages_stand_on_lines_or_between_semicolons(between: str) -> None:
    text = between.join(["x: gaussian(30) -> kl * 3", "  h1: fuzzy -> 0.5*kl + ce * 2 @ .1 refresh 1  ", ""])
    assert Schedule.parse(text) == Schedule(
        Stage("x", Gaussian(30), KL(), 3), Stage("h1", Fuzzy(), 0.5 * KL() + CE(), 2, lr=0.1, refresh=1)
    )


@pytest.mark.parametrize(
    ("line", "wrong", "said"),
    [
        (
            "x: gausian(30) -> kl * 3",
            "gausian",
            "unknown affinity 'gausian'; known: … fuzzy … gaussian … Did you mean 'gaussian'?",
        ),
        ("x: gaussian(30) -> lk * 3", "lk", "unknown loss 'lk'; known: … ce … kl"),
        ("x: gaussian(perp=30) -> kl * 3", "perp", "known: perplexity, scope"),
        ("x: gaussian(30) -> kl(alfa=1) * 3", "alfa", "Did you mean 'alpha'?"),
        ("x: gaussian(scope=bach) -> kl * 3", "bach", "graph or batch"),
        ("x: gaussian(3o) -> kl * 3", "3o", "perplexity of gaussian must be float"),
        ("x: fuzzy(15.5) -> kl * 3", "15.5", "n_neighbors of fuzzy must be int"),
        ("x: gaussian(30) -> kl * three", "three", "the number of epochs"),
        ("x: gaussian(30) -> kl * 2.5", "2.5", "must be a whole number"),
        ("x: gaussian(30) -> kl * -3", "-3", "must be a whole number"),
        ("x: gaussian(30) -> kl * 3 @ fast", "fast", "a learning rate"),
        (
            "x: gaussian(30) -> kl * 3 refrsh 2",
            "refrsh",
            "refresh, from, free, with, follow, against, optional, unfreeze may follow",
        ),
        ("x: gaussian(30) -> kl * 3 refresh 0.5", "0.5", "whole number"),
        ("x: gaussian(30) -> kl * 3 free 0.5 follow 2", "0.5", "a number of steps must be a whole number"),
        ("x: gaussian(30) -> kl * 3 follow", "", "a number of epochs"),
        ("x: gaussian(30) -> kl * 3 follow 2 free 3 follow 2", "follow", "each once"),
        ("x: gaussian(30) -> kl * 3 optional optional", "optional", "each once"),
        ("x: gaussian(30) -> kl * 3 optional 2", "2", "unexpected '2'"),
        ("x: gaussian(30) -> kl * 3 from 3 follow 2", "3", "where the map starts, network or pca"),
        ("x gaussian(30) -> kl * 3", "gaussian", "':' after the source"),
        ("x: gaussian(30) kl * 3", "kl", "'->' between the affinity and the loss"),
        ("x: gaussian(30) => kl * 3", "=", "'->' between the affinity and the loss"),
        ("x: gaussian(30) -> 0.5 kl * 3", "kl", "'*' between a weight and its loss"),
        ("-> kl * 3", "->", "a stage starts with its source"),
    ],
)
@pytest.mark.parametrize("before", ["", "x: gaussian(30) -> kl * 3; ", "x: fuzzy -> ce * 3\n\n"])
def test_a_typo_is_shown_with_its_line_and_what_is_known(before: str, line: str, wrong: str, said: str) -> None:
    with pytest.raises(NotationError) as caught:
        Schedule.parse(before + line)
    message, shown, pointer = str(caught.value).rsplit("\n", 2)
    assert shown == f"    {line}"
    assert shown[pointer.index("^") : pointer.rindex("^") + 1] == wrong
    assert all(piece in message for piece in said.split(" … "))


@pytest.mark.parametrize("end", ["* 0", "* 3 @ 0", "* 3 @ -1e-3", "* 3 refresh 0"])
def test_numbers_that_are_not_positive_are_refused_with_their_line(end: str) -> None:
    with pytest.raises(NotationError, match="must be positive") as caught:
        Schedule.parse(f"x: gaussian(30) -> kl {end}")
    assert f"x: gaussian(30) -> kl {end}" in str(caught.value)


@pytest.mark.parametrize("text", ["", "  \n ; \n"])
def test_an_empty_schedule_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"at least one stage, such as 'x: gaussian"):
        Schedule.parse(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": 1},
        {"source": "two words"},
        {"source": ""},
        {"affinity": "gaussian"},
        {"loss": "kl"},
        {"epochs": 2.5},
        {"epochs": 0},
        {"lr": 0.0},
        {"lr": math.inf},
        {"lr": math.nan},
        {"refresh": 0},
        {"refresh": 1.5},
        {"optional": "yes"},
        {"optional": 1},
    ],
    ids=str,
)
def test_a_stage_that_could_not_be_carried_out_or_written_down_is_refused(wrong: dict[str, object]) -> None:
    right = {"source": "x", "affinity": Gaussian(30), "loss": KL(), "epochs": 3}
    (name,) = wrong
    with pytest.raises((TypeError, ValueError), match=name):
        Stage(**(right | wrong))  # type: ignore[arg-type]


def test_a_schedule_is_a_sequence_of_stages_and_nothing_else() -> None:
    first, second = Stage("x", Gaussian(30), KL(), 3), Stage("h1", Fuzzy(), CE(), 2)
    schedule = Schedule(first, second)
    assert (len(schedule), list(schedule), schedule[1]) == (2, [first, second], second)
    assert hash(schedule) == hash(Schedule(first, second))
    assert schedule != Schedule(second, first)
    with pytest.raises(TypeError, match="is not a Stage"):
        Schedule("x: gaussian(30) -> kl * 3")  # type: ignore[arg-type]


def test_comments_are_passed_over() -> None:
    text = "# the input first\nx: gaussian(30) -> kl * 3  # as in t-SNE\n\nh1: fuzzy(15) -> ce * 2"
    assert Schedule.parse(text) == Schedule.parse("x: gaussian(30) -> kl * 3; h1: fuzzy(15) -> ce * 2")


def test_the_first_stage_cannot_be_optional() -> None:
    second = Stage("h1", Gaussian(30), KL(), 2, optional=True)
    assert Schedule(Stage("x", Gaussian(30), KL(), 3), second)[1].optional
    with pytest.raises(ValueError, match=r"the first stage can't be optional.*h1: gaussian\(30\) -> kl \* 2 optional"):
        Schedule(second)
    with pytest.raises(ValueError, match="the first stage can't be optional"):
        Schedule.parse("x: gaussian(30) -> kl * 3 optional; h1: gaussian(30) -> kl * 2")


# How a stage is solved.


@pytest.mark.parametrize(
    "end",
    [
        "from pca follow 5",
        "from pca free 100 follow 5 against bank",
        "free 100 follow 5",
        "against bank",
        "@ 0.001 refresh 2 from pca free 100 follow 5 against bank",
        "from pca free 100 with 0.3*shepard follow 5 against bank",
        "free 100 with 0.3*shepard + 0.5*kl(alpha=0.5) follow 5 optional",
        "optional",
        "@ 0.001 refresh 2 free 100 follow 5 against bank optional",
    ],
)
def test_the_text_of_a_solution_is_lossless(end: str) -> None:
    text = f"x: gaussian(30) -> kl * 3\nx+h1: gaussian(30) -> kl(alpha=0.5) * 3 {end}"
    schedule = Schedule.parse(text)
    assert str(schedule) == text
    assert Schedule.parse(str(schedule)) == schedule


def test_the_parts_of_a_solution_come_in_any_order_and_defaults_are_not_written() -> None:
    (stage,) = Schedule.parse("x: gaussian(30) -> kl * 3 against bank follow 5 refresh 2 free 9 from pca")
    assert (stage.start, stage.free, stage.follow, stage.against, stage.refresh) == ("pca", 9, 5, "bank", 2)
    assert stage.all_epochs == 8
    _, early = Schedule.parse("x: gaussian(30) -> kl * 3; h1: gaussian(30) -> kl * 3 optional against bank")
    assert (early.optional, early.against) == (True, "bank")
    (plain,) = Schedule.parse("x: gaussian(30) -> kl * 3 from network against batch free 0 follow 0")
    assert str(plain) == "x: gaussian(30) -> kl * 3"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("from nowhere follow 2", "start='nowhere'; known: network, pca"),
        ("against everything", "against='everything'; known: batch, bank"),
    ],
)
def test_unknown_ways_are_refused_with_those_that_are_known(end: str, said: str) -> None:
    with pytest.raises(NotationError, match=said):
        Schedule.parse(f"x: gaussian(30) -> kl * 3 {end}")


@pytest.mark.parametrize("name", ["free", "follow"])
@pytest.mark.parametrize("value", [-1, 1.5, "3"])
def test_steps_are_whole_numbers(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name}=.*must be a whole number from 0 up"):
        Stage("x", Gaussian(30), KL(), 3, **({"follow": 2} | {name: value}))  # type: ignore[arg-type]


def test_a_loss_beside_free_steps_is_added_in_these_alone() -> None:
    (stage,) = Schedule.parse("x: gaussian(30) -> kl * 3 from pca free 9 with 0.3*shepard follow 5")
    assert str(stage.loss) == "kl"
    assert str(stage.free_loss) == "1.0*kl + 0.3*shepard"
    assert replace(stage, free_with=None).free_loss == stage.loss
    with pytest.raises(NotationError, match="expected a loss, beside free steps"):
        Schedule.parse("x: gaussian(30) -> kl * 3 follow 5 with 0.3*shepard")
    with pytest.raises(NotationError, match=r"the loss 0\.3\*ce can't be taken against all rows"):
        Schedule.parse("x: gaussian(30) -> kl * 3 free 9 with 0.3*ce follow 5")


def test_a_stage_without_epochs_must_follow() -> None:
    assert Schedule.parse("x: gaussian(30) -> kl * 0 follow 5")[0].all_epochs == 5
    with pytest.raises(NotationError, match="epochs=0: must be positive"):
        Schedule.parse("x: gaussian(30) -> kl * 0")
