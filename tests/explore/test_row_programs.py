"""A browser computes what transform computes, for every encoder, metric and function of row programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import Seen, visit
from model_pages import run_in, small_model, table, write_model_page

from dre.model.row_program import POINTS, REDUCTIONS, RUN, RowProgram, RowStep
from made_models import ENCODERS, METRICS, MODULES, fitted, module_case, program_of

CLOSE = 1e-5  # of a coordinate; what is promised is 1e-3
RANGES = {
    "log": (0.1, 9),
    "sqrt": (0, 9),
    "rsqrt": (0.1, 9),
    "log1p": (-0.9, 9),
    "pow": (0.1, 3),
    "div": (0.5, 9),
    "reciprocal": (0.5, 9),
}


@pytest.fixture(scope="module")
def model_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    rows = table().drop(columns="kind")
    path = write_model_page(tmp_path_factory.mktemp("pages") / "map.html", small_model(rows), rows)
    with visit(browser, Path(path)) as seen:
        yield seen


def deviation(found: np.ndarray, expected: np.ndarray) -> float:
    return float((np.abs(found - expected) / np.maximum(1, np.abs(expected))).max())


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_places_rows_where_transform_does(model_page: Seen, encoder: str) -> None:
    model, rows = fitted(encoder)
    assert deviation(run_in(model_page, program_of(model), rows), model.transform(rows)) < CLOSE


@pytest.mark.parametrize("options", METRICS, ids=str)
def test_scaling_and_metric_are_those_of_the_model(model_page: Seen, options: dict[str, Any]) -> None:
    model, rows = fitted("mlp(16)", **options)
    odd = np.vstack([rows, np.zeros_like(rows[:1]), np.full_like(rows[:1], 3.0), 1e4 * rows[:1]])
    assert deviation(run_in(model_page, program_of(model), odd), model.transform(odd)) < CLOSE


@pytest.mark.parametrize("name", MODULES)
def test_modules_of_the_user_are_computed_alike(model_page: Seen, name: str) -> None:
    program, rows, expected = module_case(name)
    assert deviation(run_in(model_page, program, rows), expected) < CLOSE


def test_every_function_is_computed_alike(model_page: Seen) -> None:
    """Of one value, and of several that lie side by side in a row; also at ties and far out."""
    rng = np.random.default_rng(0)
    for name, function in POINTS.items():
        low, high = RANGES.get(name, (-8, 8))
        rows = rng.uniform(low, high, size=(5, 12))
        if name not in RANGES:
            rows[0] = [0, -0.5, 0.5, 1.5, 2.5, -1.5, 1, -1, 0, 0, 2.4999, 6]
        arity = function.__code__.co_argcount if hasattr(function, "__code__") else function.nin  # type: ignore[attr-defined]
        parts = [RowStep("take", ("x",), f"p{k}", 3, "float64", {"map": f"c{k}", "fill": 0.0}) for k in range(arity)]
        constants = {f"c{k}": np.arange(3 * k, 3 * k + 3, dtype=np.int32) for k in range(arity)}
        inputs = tuple(f"p{k}" for k in range(arity))
        steps = [*parts, RowStep("point", inputs, "v", 3, "float64", {"name": name, "maps": [None] * arity})]
        program = RowProgram(12, steps, constants, "v")
        assert deviation(run_in(model_page, program, rows), program.run(rows)) < 2e-7, name


def test_the_programs_of_these_tests_have_every_step_and_reduction() -> None:
    made = [program_of(fitted(encoder)[0]) for encoder in ENCODERS] + [module_case(name)[0] for name in MODULES]
    steps = [step for program in made for step in program.steps]
    assert {step.op for step in steps} == set(RUN)
    assert {step.options["name"] for step in steps if step.op == "reduce"} == set(REDUCTIONS)
