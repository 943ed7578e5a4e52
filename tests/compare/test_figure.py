"""The figure of a comparison stays readable with any number of classes, long names and methods that failed."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from dre.compare import Comparison
from dre.datasets import Dataset, DatasetSplit

mpl.use("Agg")
RNG = np.random.default_rng(0)
METHODS = ["pca", "umap", "open-tsne", "eigenmaps", "a method with a long name, before recursion"]
FAILED = {"dl-umap": "it needs umap-learn: pip install 'deep-recursive-embedding[bench]' " * 3}


@pytest.fixture(autouse=True)
def closed_figures() -> Any:
    yield
    plt.close("all")


def made(labels: Any, *, are_classes: bool = True, failed: dict[str, str] | None = None) -> Comparison:
    """A comparison of made-up maps."""
    labels = np.asarray(labels)
    codes = np.unique(labels, return_inverse=True)[1]
    part = DatasetSplit(np.zeros((len(labels), 3)), labels, {"label": labels} if are_classes else {})
    scores = {**({"nearest_neighbor": 0.912} if are_classes else {}), "trustworthiness": 0.973}
    record = {"stages": [{"scores": scores, "seconds": 1.0}], "fit_seconds": 12.3, "transform_seconds": 0.02}
    results: dict[str, Any] = {}
    for name in METHODS:
        Y = RNG.normal(size=(codes.max() + 1, 2))[codes] * 9 + RNG.normal(size=(len(labels), 2))
        results[name] = SimpleNamespace(record={**record, "in_sample": name == "eigenmaps"}, maps={"test-0": Y})
    return Comparison(Dataset("data", "data", part, part, ""), results, failed or {}, "cell type")


def drawn(figure: Any) -> Any:
    figure.canvas.draw()
    return figure


def assert_nothing_overlaps(figure: Any) -> None:
    shown = [axis for axis in figure.axes if axis.axison]
    texts = [text for axis in shown for text in (axis.title, axis.xaxis.label) if text.get_text()]
    boxes = [*(axis.get_window_extent() for axis in shown), *(text.get_window_extent() for text in texts)]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    page = figure.bbox
    assert all(box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1 for box in boxes)


LONG = "an excitatory neuron of the cortex, layer {}"


@pytest.mark.parametrize(("count", "name"), [(3, "{}"), (3, LONG), (50, "{}"), (200, LONG), (1000, "{}")])
def test_any_number_of_classes_has_one_legend_or_names_in_the_maps(count: int, name: str) -> None:
    figure = drawn(made([name.format(i) for i in np.arange(2 * count) % count], failed=FAILED).figure())
    assert_nothing_overlaps(figure)
    if count == 3 and name == "{}":
        assert all({text.get_text() for text in axis.texts} == {"0", "1", "2"} for axis in figure.axes[:5])
        assert not figure.legends
        return
    (legend,) = figure.legends
    assert not any(axis.texts for axis in figure.axes[:5])
    assert legend.get_title().get_text() == "cell type"
    shown = [text.get_text() for text in legend.get_texts()]
    assert len(shown) == count or shown[-1] == f"and {count - len(shown) + 1:,} smaller classes"


def test_a_method_that_failed_has_a_panel_with_the_reason() -> None:
    figure = drawn(made(["a", "b"] * 30, failed=FAILED).figure(style="dark"))
    panel = figure.axes[5]
    assert panel.get_title() == "dl-umap"
    (text,) = panel.texts
    assert text.get_text().startswith("failed: it needs umap-learn:")
    inside, frame = text.get_window_extent(), panel.get_window_extent()
    assert inside.x0 >= frame.x0
    assert inside.y0 >= frame.y0
    assert inside.y1 <= frame.y1
    assert sum(figure.get_facecolor()[:3]) < 0.5


def test_captions_have_scores_and_times() -> None:
    captions = [axis.get_xlabel() for axis in made(["a", "b"] * 30).figure().axes[:5]]
    assert captions[0] == "1-NN 0.912 · trustworthiness 0.973\nfit 12.3 s · embed 0.02 s"
    assert captions[3].endswith("in-sample")


@pytest.mark.parametrize("labels", [RNG.normal(size=80), [f"2026-0{1 + i % 9}-01" for i in range(80)]])
def test_numbers_and_dates_have_one_color_bar_with_their_name(labels: Any) -> None:
    figure = drawn(made(labels, are_classes=False).figure())
    bars = [axis for axis in figure.axes if axis.get_ylabel()]
    assert [bar.get_ylabel() for bar in bars] == ["cell type"]


def test_labels_that_are_scored_as_classes_are_drawn_as_classes() -> None:
    figure = made(np.tile(np.arange(40) * 3, 4)).figure()
    assert len(figure.legends[0].get_texts()) == 40
