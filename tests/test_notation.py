"""Objects as texts: read back without loss, and errors that point at the wrong word."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre import MLP, Fuzzy, Gaussian, ModelA, ModelB
from dre.affinity import AFFINITIES
from dre.augment import AUGMENTS, Noise
from dre.encoder import ENCODERS
from dre.notation import NotationError, Registry, is_word, write

SHAPES = Registry("shape", __name__)


@dataclass(frozen=True)
class Box:
    width: float = 1.0
    label: str = "plain"
    _: KW_ONLY
    sides: tuple[int, ...] = (4, 4)
    closed: bool = True
    lid: float | None = None


SHAPES.add("box", Box)

numbers = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False) | st.just(float("inf"))
words = st.from_regex(r"[a-z_][a-z0-9_]*(-[a-z]+)?", fullmatch=True).filter(lambda w: w not in {"true", "false", "none", "inf"})


def problem(registry: Registry, text: str) -> tuple[str, str]:
    """The message, and the piece of the text that the carets stand under."""
    with pytest.raises(NotationError) as caught:
        registry.parse(text)
    message, line, pointer = str(caught.value).rsplit("\n", 2)
    assert line == f"    {text}"
    assert set(pointer.strip()) == {"^"}
    return message, line[pointer.index("^") : pointer.rindex("^") + 1]


@given(
    width=numbers,
    label=words,
    sides=st.lists(st.integers(-9, 99), min_size=1, max_size=4).map(tuple),
    closed=st.booleans(),
    lid=st.none() | numbers,
)
def test_any_object_is_read_back_from_its_text(
    width: float, label: str, sides: tuple[int, ...], closed: bool, lid: float | None
) -> None:
    box = Box(width, label, sides=sides, closed=closed, lid=lid)
    assert SHAPES.parse(write(box, "box")) == box


@pytest.mark.parametrize(
    ("registry", "thing"),
    [
        (ENCODERS, MLP(64, depth=2)),
        (ENCODERS, ModelA(width=100, norm=True)),
        (ENCODERS, ModelB(filters=(8, 16, 32), norm=True)),
        (ENCODERS, ModelB(filters=(8,))),
        (AUGMENTS, Noise(0.25)),
        (AFFINITIES, Gaussian(30, scope="batch")),
        (AFFINITIES, Fuzzy(5)),
    ],
    ids=lambda each: "" if isinstance(each, Registry) else str(each),  # by its text: an address differs between processes
)
def test_every_kind_of_object_has_a_lossless_text(registry: Registry, thing: object) -> None:
    assert registry.parse(str(thing)) == thing


@pytest.mark.parametrize("number", [np.float64(30.5), np.float32(0.1), np.int64(30), np.float64(1e-12)])
def test_numbers_from_numpy_are_written_as_numbers(number: np.number) -> None:
    assert SHAPES.parse(write(Box(number), "box")) == Box(number)
    assert "np" not in write(Box(number), "box")


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("box", Box()),
        ("box()", Box()),
        ("box(2)", Box(2)),
        ("box( 2 ,label = big )", Box(2, "big")),
        ("box(width=.5, sides=1/2/3)", Box(0.5, sides=(1, 2, 3))),
        ("box(-1e-3, closed=false, lid=none)", Box(-0.001, closed=False)),
        ("box(sides=7/)", Box(sides=(7,))),
    ],
)
def test_texts_mean_what_the_same_python_would(text: str, box: Box) -> None:
    assert SHAPES.parse(text) == box


@pytest.mark.parametrize(
    ("text", "wrong", "expected"),
    [
        ("bax(2)", "bax", "unknown shape 'bax'; known: box. Did you mean 'box'?"),
        ("box(wdth=2)", "wdth", "known: width, label, sides, closed, lid. Did you mean 'width'?"),
        ("box(3o)", "3o", "width of box must be float, not '3o'"),
        ("box(width=1..2)", "1..2", "width of box must be float"),
        ("box(1, 2)", "2", "label of box must be str"),
        ("box(sides=4)", "4", "sides of box must be tuple[int, ...]"),
        ("box(closed=1)", "1", "closed of box must be bool"),
        ("box(lid=wide)", "wide", "lid of box must be float | None"),
        ("box(1, a, 3)", "3", "box takes 2 positional value(s)"),
        ("box(1, width=2)", "width", "width is given twice"),
        ("box(1 2)", "2", "expected ',' or ')', found '2'"),
        ("box(1)) ", ")", "unexpected ')' after the shape"),
        ("box(1; 2)", ";", "expected ',' or ')', found ';'"),
        ("box(width=)", ")", "expected a number or a word"),
        ("(2)", "(", "expected the name of a shape (box), found '('"),
    ],
)
def test_an_error_points_at_the_wrong_word_and_says_what_is_known(text: str, wrong: str, expected: str) -> None:
    message, under = problem(SHAPES, text)
    assert under == wrong
    assert expected in message


def test_an_error_at_the_end_points_behind_the_text() -> None:
    with pytest.raises(NotationError, match="expected a number or a word") as caught:
        SHAPES.parse("box(1,")
    _, line, pointer = str(caught.value).rsplit("\n", 2)
    assert pointer.index("^") == len(line)


@pytest.mark.parametrize(
    ("text", "wrong", "expected"),
    [
        ("gaussian(scope=bach)", "bach", "graph or batch"),
        ("gaussian(0.5)", "0.5", "must be at least 1"),
        ("fuzzy(1, scope=batch)", "1", "at least 2"),
        ("gausian(30)", "gausian", "Did you mean 'gaussian'?"),
    ],
)
def test_a_value_that_the_object_refuses_is_pointed_at(text: str, wrong: str, expected: str) -> None:
    message, under = problem(AFFINITIES, text)
    assert under == wrong
    assert expected in message


def test_a_long_text_is_read_in_time_that_grows_with_its_length() -> None:
    start = time.perf_counter()
    assert SHAPES.parse(f"box(sides={'1/' * 100_000})") == Box(sides=(1,) * 100_000)
    assert time.perf_counter() - start < 10  # some 40 s if the values were copied for each


def test_one_name_cannot_mean_two_classes() -> None:
    with pytest.raises(ValueError, match="'box' is defined twice"):
        SHAPES.add("box", Gaussian)
    SHAPES.add("box", Box)  # the same class again, as when a module is reloaded


@pytest.mark.parametrize(
    ("text", "word"), [("h1", True), ("a.b-c.0", True), ("0.1", True), ("été", True), ("a b", False), ("", False)]
)
def test_a_word_is_what_is_read_as_one(text: str, word: bool) -> None:
    assert is_word(text) is word
