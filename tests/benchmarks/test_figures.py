"""Figures show the maps that the spec names, in the colors of their classes, and say why one is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
import numpy as np
import pytest

from dre.datasets import Dataset, DatasetNotFoundError
from dre.datasets.tasic2018 import ReferenceMaps, TasicLabels
from dre.plot.colors import class_colors
from paper.figures import PUBLISHED_MAPS, draw_all, draw_figure, draw_published
from paper.jobs import Selection
from paper.spec import Data, Figure, Job, Row, Spec
from paper.store import Store

SPEC = made_up.spec()
METHODS = ("pca", "bh-tsne", "paper-tsne", "paper")
ROWS = (
    Row("training", "mnist", METHODS, part="train"),
    Row("test", "mnist", METHODS),
    Row("inside class 9", "mnist", METHODS, view="inside 9"),
    Row("at its border", "mnist", METHODS, view="border 9"),
)
FIGURE = Figure("figure-x", "Figure X", "made up", ROWS)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = made_up.store(tmp_path)
    spec = replace(SPEC, tables=(), figures=(FIGURE,), claims=())
    made_up.write_maps(SPEC, made, made_up.write_all(spec, made))
    return made


def loading(data: Data) -> Dataset:
    return made_up.dataset(data)


def draw(store: Store, *rows: Row, spec: Spec = SPEC) -> Any:
    return draw_figure(replace(FIGURE, rows=rows or ROWS), spec, store, loading)


def panels(figure: Any) -> list[Any]:
    """Without the legends, which have no frame."""
    return [axis for axis in figure.axes if axis.axison]


def words(axis: Any) -> str:
    return " ".join(" ".join(text.get_text() for text in axis.texts).split())


def test_a_panel_for_each_method_of_each_row_with_titles_above_and_at_the_left(store: Store) -> None:
    figure = draw(store)
    shown = panels(figure)
    assert len(shown) == len(ROWS) * len(METHODS)
    for axis, method in zip(shown, METHODS, strict=False):
        assert SPEC.methods[method].title in words(axis)
    assert not any(SPEC.methods[method].title in words(axis) for method in METHODS for axis in shown[len(METHODS) :])
    assert [text.get_text().replace("\n", " ") for text in figure.texts] == [row.title for row in ROWS]


def test_the_scores_over_a_map_of_test_rows_are_those_of_its_record(store: Store) -> None:
    shown = panels(draw(store))[len(METHODS) : 2 * len(METHODS)]
    for axis, method in zip(shown, METHODS, strict=True):
        shown_method = SPEC.methods[method]
        record = store.find(Job("mnist", shown_method.run, 0))
        assert record is not None
        scores = record["stages"][-1 if shown_method.stage is None else shown_method.stage]["scores"]
        expected = f"1-NN {scores['nearest_neighbor']:.3f}, NH {scores['neighborhood_hit']:.3f}".replace("0.", ".")
        assert expected in words(axis)
        assert ("in-sample" in words(axis)) == (method == "bh-tsne")


def test_the_dots_are_the_rows_of_the_map_in_the_colors_of_their_classes(store: Store) -> None:
    axis = panels(draw(store, Row("test", "mnist", ("paper-tsne",))))[0]
    (dots,) = axis.collections
    stage = SPEC.methods["paper-tsne"].stage
    embedding = store.map(Job("mnist", "paper", 0), "test", stage)
    assert embedding is not None
    labels = made_up.dataset(SPEC.data["mnist"]).test.labels
    known = {
        tuple(point): class_colors(10)[label][:3] for point, label in zip(embedding.astype(float).round(5), labels, strict=True)
    }
    drawn = dots.get_offsets().data.round(5)
    assert len(drawn) >= 0.98 * len(embedding)  # rows that lie far out may be left out
    for point, color in zip(drawn, dots.get_facecolors(), strict=True):
        assert color[:3] == pytest.approx(known[tuple(point)], abs=1e-6)


def test_a_class_has_one_colour_in_all_rows_of_a_data_set_even_where_a_part_lacks_some(store: Store) -> None:
    def lacking(data: Data) -> Dataset:
        made = made_up.dataset(data)
        labels = np.where(made.test.labels < 5, 5, made.test.labels)  # the test rows have no 0 to 4
        return replace(made, test=replace(made.test, labels=labels))

    rows = (Row("train", "mnist", ("pca",), part="train"), Row("test", "mnist", ("pca",)))
    figure = draw_figure(replace(FIGURE, rows=rows), SPEC, store, lacking)
    of_train, of_test = ({tuple(c[:3].round(4)) for c in axis.collections[0].get_facecolors()} for axis in panels(figure))
    assert of_test < of_train
    assert len(of_test) == 5


def test_the_level_picks_the_labels_and_the_legend_names_them(store: Store) -> None:
    rows = (Row("by class", "mnist", ("pca",)), Row("by sentiment", "mnist", ("pca",), level="sentiment"))
    figure = draw(store, *rows)
    legends = [axis.get_legend() for axis in figure.axes if not axis.axison]
    assert [text.get_text() for text in legends[0].get_texts()] == [str(i) for i in range(10)]
    assert [text.get_text() for text in legends[1].get_texts()] == ["negative", "positive"]
    assert len({tuple(color) for color in panels(figure)[1].collections[0].get_facecolors()}) == 2


def test_what_is_missing_says_why(store: Store) -> None:
    store.path(Job("mnist", "pca", 0)).unlink()
    store.save(Job("mnist", "paper", 0), {"plan": {}, "failed": "MemoryError: too much\nand more"})
    umap = Job("mnist", "umap", 0)
    store.save(umap, made_up.record(umap, SPEC))
    rows = (
        Row("training", "mnist", ("pca", "bh-tsne", "paper", "umap"), part="train"),
        Row("never run", "tasic2018", ("pca", "bh-tsne", "paper", "umap")),
        Row("test", "mnist", ("bh-tsne",)),
    )
    found = [words(axis) for axis in panels(draw(store, *rows))]
    assert "not measured yet" in found[0]
    assert "fitted to the test rows: no embedding of training rows" in found[1]
    assert "failed: MemoryError: too much" in found[2]
    assert "its embedding is on another machine" in found[3]
    reason = next(each.reason for table in SPEC.tables for each in table.not_run if each.covers("tasic2018", "pca"))
    assert " ".join(reason.split())[:60] in found[4]


def test_labels_of_other_rows_are_not_put_on_a_map(store: Store) -> None:
    figure = draw_figure(FIGURE, SPEC, store, lambda data: made_up.dataset(data, 300, 150))
    assert "its embedding has 200 rows, but the data 150" in words(panels(figure)[len(METHODS)])


def test_without_any_map_there_is_no_figure(tmp_path: Path) -> None:
    empty = made_up.store(tmp_path / "empty")
    assert draw(empty) is None
    assert draw_all(SPEC, empty, loading, tmp_path / "pictures") == {}


def test_zooms_are_outlined_in_the_row_that_shows_all_of_it(store: Store) -> None:
    shown = panels(draw(store))
    outlined = [len(axis.patches) for axis in shown]
    count = len(METHODS)
    assert outlined == [0] * count + [2] * count + [0] * 2 * count
    for i in range(count):
        boxes = {(round(p.get_x(), 4), round(p.get_y(), 4), round(p.get_width(), 4)) for p in shown[count + i].patches}
        views = {
            (round(axis.get_xlim()[0], 4), round(axis.get_ylim()[0], 4), round(axis.get_xlim()[1] - axis.get_xlim()[0], 4))
            for axis in (shown[2 * count + i], shown[3 * count + i])
        }
        assert boxes == views


def test_a_view_that_is_none_and_a_class_that_is_none_are_errors_that_name_what_there_is(store: Store) -> None:
    with pytest.raises(ValueError, match="'inside 0'"):
        draw(store, Row("zoom", "mnist", ("pca",), view="inside nine"))
    with pytest.raises(ValueError, match="inside or border"):
        draw(store, Row("zoom", "mnist", ("pca",), view="around 9"))


def test_all_figures_of_the_spec_are_drawn_and_kept(tmp_path: Path) -> None:
    from PIL import Image

    spec = Selection(parts=("figure-3", "figure-5")).apply(SPEC)
    made = made_up.store(tmp_path)
    made_up.write_maps(spec, made, made_up.write_all(spec, made))
    found = draw_all(spec, made, loading, tmp_path / "pictures", reference_maps=published)
    assert list(found) == ["figure-3", "figure-5", PUBLISHED_MAPS]
    for path in found.values():
        with Image.open(path) as picture:
            assert min(picture.size) > 300


@pytest.mark.parametrize("reference", ["away", "not asked for"])
def test_published_maps_that_are_away_leave_their_picture_where_it_is(reference: str, tmp_path: Path) -> None:
    spec = Selection(parts=("figure-5",)).apply(SPEC)
    made = made_up.store(tmp_path)
    getting = missing if reference == "away" else None
    assert draw_all(spec, made, loading, tmp_path, reference_maps=getting) == {}
    path = tmp_path / f"{PUBLISHED_MAPS}.webp"
    path.write_bytes(b"drawn elsewhere")
    assert draw_all(spec, made, loading, tmp_path, reference_maps=getting) == {PUBLISHED_MAPS: path}
    assert path.read_bytes() == b"drawn elsewhere"
    assert draw_all(spec, made, loading, tmp_path, reference_maps=published) == {PUBLISHED_MAPS: path}
    assert path.read_bytes() != b"drawn elsewhere"


def test_a_map_of_another_plan_is_not_shown(store: Store) -> None:
    job = Job("mnist", "pca", 0)
    store.save(job, made_up.record(job, SPEC, plan={"data": "another"}))
    (left, right) = panels(draw(store, Row("test", "mnist", ("pca", "paper"))))
    assert "measured before its settings were changed" in words(left)
    assert "1-NN" not in words(left)
    assert not left.collections
    assert right.collections


def published() -> ReferenceMaps:
    rng = np.random.default_rng(0)
    clusters = np.array(["a 1", "a 2", "b 1"])[np.arange(90) % 3]
    levels = {"class": np.array([name[0] for name in clusters]), "cluster": clusters}
    colors = {"class": {"a": "#ff0000", "b": "#0000ff"}, "cluster": {"a 1": "#ff0000", "a 2": "#880000", "b 1": "#0000ff"}}
    maps = {"tsne-p30": rng.normal(size=(90, 2)), "mds": rng.normal(size=(90, 2))}
    return ReferenceMaps(maps, TasicLabels(np.arange(90).astype(str), levels, colors))


def missing() -> ReferenceMaps:
    raise DatasetNotFoundError("nowhere")


def test_published_maps_have_their_published_colors_at_both_levels() -> None:
    figure = draw_published(published())
    shown = panels(figure)
    assert [words(axis) for axis in shown[:2]] == ["tsne-p30", "mds"]
    colors = [{tuple(np.round(c[:3] * 255).astype(int)) for c in axis.collections[0].get_facecolors()} for axis in shown]
    assert colors[0] == colors[1] == {(255, 0, 0), (0, 0, 255)}
    assert colors[2] == colors[3] == {(255, 0, 0), (136, 0, 0), (0, 0, 255)}
