"""The examples for trackers in docs/training.md run, against stand-ins with the interface of the real modules."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

PAGE = Path(__file__).parents[1] / "docs/training.md"
MLFLOW_NAME = re.compile(r"[\w\-. :/]+")  # what MLflow accepts as the name of a metric
LINES = 16  # of an example, with its imports: ten or so of its own


def example(module: str) -> str:
    found = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return next(str(code) for code in found if code.startswith(f"import {module}\n"))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What the examples use without defining it."""
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    digits = load_digits()
    yield {"X": digits.data[:100], "labels": digits.target[:100]}
    pyplot.close("all")


class Logged(list[tuple[str, float, int | None]]):
    """Metrics with their steps."""

    def check(self, history: list[dict[str, Any]]) -> None:
        for against in {(each["stage"], each["against"]) for each in history}:
            expected = [each["loss"] for each in history if (each["stage"], each["against"]) == against]
            name = f"loss/stage {against[0]} {against[1]}"
            assert [value for each, value, _ in self if each == name] == expected
        steps = [step for _, _, step in self if step is not None]
        assert steps == sorted(steps)
        assert all(np.isfinite(value) for _, value, _ in self)


@contextmanager
def entered(log: list[str], **options: Any) -> Iterator[None]:
    log.append("entered")
    yield
    log.append("left")


def test_weights_and_biases(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    logged, runs, images = Logged(), [], []
    wandb = ModuleType("wandb")

    def log(data: dict[str, Any], step: int | None = None) -> None:
        assert runs == ["entered"]
        logged.extend((name, value, step) for name, value in data.items() if isinstance(value, float))
        images.extend(value for value in data.values() if not isinstance(value, float))

    def image(data: Figure) -> Figure:
        assert isinstance(data, Figure)
        return data

    wandb.log, wandb.Image = log, image  # type: ignore[attr-defined]
    wandb.init = lambda project, config: entered(runs)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    code = example("wandb")
    assert len(code.splitlines()) <= LINES
    exec(code, names)
    assert runs == ["entered", "left"]
    logged.check(names["model"].history_)
    assert [each for each, _, _ in logged].count("learning rate") == len(names["model"].history_)
    assert len(images) == 1


def test_mlflow(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    logged, runs, files, settings = Logged(), [], [], {}
    mlflow = ModuleType("mlflow")

    def log_metric(key: str, value: float, step: int | None = None) -> None:
        assert MLFLOW_NAME.fullmatch(key), key
        logged.append((key, value, step))

    mlflow.log_metric, mlflow.log_params = log_metric, settings.update  # type: ignore[attr-defined]
    mlflow.log_artifact = lambda path: files.append(Path(path).stat().st_size)  # type: ignore[attr-defined]
    mlflow.start_run = lambda: entered(runs)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    code = example("mlflow")
    assert len(code.splitlines()) <= LINES
    exec(code, names)
    assert runs == ["entered", "left"]
    logged.check(names["model"].history_)
    assert settings["encoder"] == names["model"].recipe_.encoder
    assert files[0] > 1000


def test_the_stand_ins_have_the_names_of_the_pages_examples() -> None:
    used = set(re.findall(r"(?:wandb|mlflow)\.(\w+)", PAGE.read_text("utf-8")))
    assert used == {"init", "log", "Image", "start_run", "log_metric", "log_params", "log_artifact"}
