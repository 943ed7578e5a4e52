"""The model's metric and standardization: ``dre evaluate``, ``dre plot`` and ``dre explore`` measure the same distances."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from dre import DRE, explore, metrics, plot
from dre.explore import build
from dre.metrics import shepard_diagram, trustworthiness
from dre.neighbors.search import nearest

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


# Metrics without a transform.


@pytest.mark.parametrize("metric", ["canberra", "minkowski"])
def test_every_command_uses_a_metric_without_a_transform(
    dre: Run, calls: Any, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("x.npy", X)
    assert dre("fit", "x.npy", "-o", "m.safetensors", "--metric", metric, "--schedule", SCHEDULE, "--device", "cpu", "-v") == 0
    output = capsys.readouterr()
    assert f"Computed under the {metric} metric on 120 training rows" in output.out
    assert f"exact {metric} graph of 15 neighbors" in output.err
    expected = evaluated(dre, Path("m.safetensors"))
    model = DRE.load("m.safetensors")
    assert expected["trustworthiness"] == pytest.approx(
        trustworthiness(X, model.transform(X), metric=metric, per_point=True), abs=1e-6
    )
    pages = calls(explore, "write_page")
    assert dre("explore", "m.safetensors", "x.npy", "-o", "m.html", "--device", "cpu") == 0
    page = pages[0][0][1]
    (trust,) = (column.values for column in page.columns if column.name == "trust")
    assert trust == pytest.approx(expected["trustworthiness"], abs=1e-6)
    wanted = nearest(X, 10, metric=metric).distances.sum(1)
    shown = pairwise_distances(X, metric=metric)[np.arange(len(X))[:, None], page.neighbors.ids].sum(1)
    assert shown == pytest.approx(wanted.numpy(), rel=1e-5)
    assert dre("plot", "m.safetensors", "x.npy", "--kind", "distortion", "-o", "d.png", "--device", "cpu") == 0


def test_the_keywords_of_a_model_are_used(dre: Run) -> None:
    np.save("x.npy", X)
    DRE(schedule=SCHEDULE, metric="minkowski", metric_kwds={"p": 1}, random_state=0, device="cpu").fit(X).save("m.safetensors")
    embedding = DRE.load("m.safetensors").transform(X)
    wanted = trustworthiness(X, embedding, metric="manhattan", per_point=True)
    assert evaluated(dre, Path("m.safetensors"))["trustworthiness"] == pytest.approx(wanted, abs=1e-6)


def test_a_function_that_was_not_saved_is_said(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", X)
    DRE(schedule=SCHEDULE, metric=lambda x, y: float(abs(x - y).max()), random_state=0, device="cpu").fit(X).save(
        "m.safetensors"
    )
    assert dre("evaluate", "x.npy", "m.safetensors", "--device", "cpu") == 0
    assert "the metric of the model is a function, which is not saved" in capsys.readouterr().err
    assert dre("evaluate", "x.npy", "m.safetensors", "--metric", "chebyshev", "--device", "cpu") == 0
    assert "chebyshev metric" in capsys.readouterr().out


def test_a_matrix_of_distances_is_fitted_scored_and_shown(dre: Run, calls: Any, capsys: pytest.CaptureFixture[str]) -> None:
    D = pairwise_distances(X, metric="canberra")
    np.save("d.npy", D)
    np.save("new.npy", D[:30])
    assert dre("fit", "d.npy", "-o", "m.safetensors", "--metric", "precomputed", "--schedule", SCHEDULE, "--device", "cpu") == 0
    assert "trustworthiness" in capsys.readouterr().out
    assert dre("evaluate", "d.npy", "m.safetensors", "--sample", "60", "--device", "cpu") == 0
    assert "60 rows" in capsys.readouterr().out
    pages = calls(explore, "write_page")
    assert dre("explore", "m.safetensors", "d.npy", "-o", "m.html", "--device", "cpu") == 0
    embedding = DRE.load("m.safetensors").transform(D)
    (trust,) = (column.values for column in pages[0][0][1].columns if column.name == "trust")
    assert trust == pytest.approx(trustworthiness(X, embedding, metric="canberra", per_point=True), abs=1e-5)
    assert dre("transform", "m.safetensors", "new.npy", "-o", "e.csv", "--device", "cpu") == 0
    assert dre("evaluate", "new.npy", "m.safetensors", "--device", "cpu") == 2
    assert "distances (30, 120) to the fitted rows" in capsys.readouterr().err


def test_wrong_metrics_are_usage_errors(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", X)
    for options in (["--metric", "canbera"], ["--metric", "jaccard", "--standardize"]):
        assert dre("fit", "x.npy", "-o", "m.safetensors", *options) == 2
        assert "canberra" in (error := capsys.readouterr().err) or "asks whether values are zero" in error


def test_keywords_of_a_metric_are_those_of_python(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", X)
    np.save("y.npy", X[:, 10:12])
    asked = ["--metric", "minkowski", "--metric-kwds", "p=3"]
    assert dre("fit", "x.npy", "-o", "m.safetensors", "--schedule", SCHEDULE, "--device", "cpu", "--seed", "0", *asked) == 0
    model = DRE.load("m.safetensors")
    assert (model.metric, model.metric_kwds) == ("minkowski", {"p": 3})
    capsys.readouterr()
    assert dre("evaluate", "x.npy", "y.npy", *asked, "--device", "cpu", "--no-standardize") == 0
    expected = trustworthiness(X, X[:, 10:12], metric="minkowski", metric_kwds={"p": 3})
    assert f"trustworthiness       {float(expected):.4f}".split() == next(
        line.split()[:2] for line in capsys.readouterr().out.splitlines() if line.startswith("trustworthiness")
    )


@pytest.mark.parametrize(
    ("metric", "keywords", "message"),
    [
        ("minkowski", "3", "--metric-kwds 3: expected numbers by their names, such as p=3"),
        ("minkowski", "p=1_0", "--metric-kwds p=1_0: expected numbers"),
        ("minkowski", "p=3,p=4", "expected numbers by their names"),
        ("minkowski", "w=1:2", "weights of columns are passed in Python"),
        ("minkowski", "p=0.5", "--metric-kwds p=0.5: expected a number from 1 up"),
        ("minkowski", "q=3", "--metric-kwds has 'q', but the metric minkowski takes p and w"),
        ("cosine", "p=3", "--metric-kwds has 'p', but the metric cosine takes none"),
    ],
)
def test_wrong_keywords_of_a_metric_are_refused_before_the_rows_are_read(
    dre: Run, capsys: pytest.CaptureFixture[str], metric: str, keywords: str, message: str
) -> None:
    np.save("y.npy", X[:, :2])
    for command in (["fit", "none.npy", "-o", "m.safetensors"], ["evaluate", "none.npy", "y.npy"]):
        assert dre(*command, "--metric", metric, "--metric-kwds", keywords) == 2
        assert message in capsys.readouterr().err
    assert dre("evaluate", "none.npy", "y.npy", "--metric-kwds", "p=3") == 2
    assert "add the metric that it is for, as in --metric minkowski" in capsys.readouterr().err
