"""The model's metric and standardization: ``dre evaluate``, ``dre plot`` and ``dre explore`` measure the same distances."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dre import DRE, explore, metrics, plot
from dre.explore import build
from dre.metrics import shepard_diagram, trustworthiness

Run = Callable[..., int]
X = (load_digits().data[:120] * np.linspace(1, 50, 64)).astype(np.float32)
SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    DRE(schedule=SCHEDULE, metric="cosine", standardize=True, random_state=0, device="cpu").fit(X).save(path)
    return path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[Any]]:
    """Record the arguments and the result of each call of a function."""

    def spy(module: Any, name: str) -> list[Any]:
        recorded: list[Any] = []
        real = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            recorded.append((arguments, options, result))
            return result

        monkeypatch.setattr(module, name, call)
        return recorded

    return spy


def evaluated(run: Run, model: Path) -> dict[str, np.ndarray]:
    assert run("evaluate", "x.npy", model, "--per-point", "points.csv", "--device", "cpu") == 0
    with Path("points.csv").open() as file:
        records = list(csv.DictReader(file))
    return {name: np.array([float(each[name]) for each in records]) for name in ("trustworthiness", "continuity")}


def test_every_command_scores_a_model_in_its_metric(dre: Run, model: Path, calls: Any) -> None:
    np.save("x.npy", X)
    expected = evaluated(dre, model)

    distortion = calls(plot, "distortion")
    assert dre("plot", model, "x.npy", "--kind", "distortion", "-o", "d.png", "--device", "cpu") == 0
    ((embedding, per_point), _, _) = distortion[0]
    for name, values in expected.items():
        assert per_point[name] == pytest.approx(values, abs=1e-6)

    pages = calls(explore, "write_page")
    assert dre("explore", model, "x.npy", "-o", "m.html", "--device", "cpu") == 0
    page = pages[0][0][1]
    (trust,) = (column.values for column in page.columns if column.name == "trust")
    assert trust == pytest.approx(expected["trustworthiness"], abs=1e-6)
    assert page.maps[0].stages[-1].scores["trustworthiness"] == pytest.approx(expected["trustworthiness"].mean(), abs=1e-6)

    assert not np.allclose(trustworthiness(X, embedding, per_point=True), expected["trustworthiness"])


def test_the_shepard_diagram_and_the_stages_use_the_metric(dre: Run, model: Path, calls: Any) -> None:
    np.save("x.npy", X)
    expected = evaluated(dre, model)["trustworthiness"].mean()
    fitted = DRE.load(model)

    diagrams = calls(metrics, "shepard_diagram")
    assert dre("plot", model, "x.npy", "--kind", "shepard", "-o", "s.png", "--device", "cpu") == 0
    (_, embedding), _, diagram = diagrams[0]
    assert (diagram.counts == shepard_diagram(fitted.metric_rows(X), embedding, metric="cosine").counts).all()

    figures = calls(plot, "stages")
    assert dre("plot", model, "x.npy", "--kind", "stages", "-o", "t.png", "--device", "cpu") == 0
    assert f"trustworthiness {expected:.3f}" in figures[0][2].axes[-1].get_xlabel()


def test_images_of_a_standardizing_model_show_the_raw_rows(dre: Run, model: Path, calls: Any) -> None:
    np.save("x.npy", X)
    shown = calls(build, "thumbnails")
    assert dre("explore", model, "x.npy", "-o", "m.html", "--image-shape", "8x8", "--device", "cpu") == 0
    (images,), _, _ = shown[0]
    assert (images.read(0, len(X)).reshape(X.shape) == X).all()
