"""What a notebook shows of a model: a summary of the fit, in which every text is escaped."""

from __future__ import annotations

import base64
import io
import pickle
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from PIL import Image
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dre import DRE
from dre.training.events import StageSkipped

SCHEDULE = "x: gaussian(5) -> kl * 4 from pca free 30 follow 2 against bank; h1: gaussian(5) -> kl * 3"
HOSTILE = "<script>alert(1)</script>\" onload='x"
Array = np.ndarray[Any, Any]


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture(scope="module")
def X() -> Array:
    return np.random.default_rng(0).normal(size=(60, 6))


@pytest.fixture(scope="module")
def model(X: Array) -> DRE:
    return cheap().fit(X)


class Page(HTMLParser):
    """The elements and the text of a page; an element that is not closed is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]
        if tag != "img":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_fitted_model_shows_its_stages_time_score_and_map(model: DRE) -> None:
    html = model._repr_html_()
    page = Page(html)
    assert len(html) < 200_000
    assert "60 rows of 6 values → 2 dimensions in " in page.text
    assert re.search(r"trustworthiness 0\.\d{3}, of a sample of the fitted rows", page.text)
    for number, stage in enumerate(model.schedule_):
        records = [each for each in model.history_ if each["stage"] == number]
        assert str(stage) in page.text
        assert f"{records[-1]['loss']:.4g}" in page.text
    assert repr(model).replace("\n", "") in page.text.replace("\n", "")
    found = re.search(r"data:image/png;base64,([^\"]+)", html)
    assert found is not None
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))))
    assert pixels.shape[2] == 4
    assert 0.001 < (pixels[..., 3] > 128).mean() < 0.5


def test_the_bundle_has_the_summary_and_the_plain_text(model: DRE) -> None:
    bundle = model._repr_mimebundle_()
    assert bundle == {"text/plain": repr(model), "text/html": model._repr_html_()}


def test_before_the_fit_and_in_a_pipeline_it_is_the_diagram_of_scikit_learn(model: DRE, X: Array) -> None:
    assert "sk-top-container" in cheap()._repr_html_()
    pipeline = make_pipeline(StandardScaler(), cheap()).fit(X)
    assert "sk-top-container" in pipeline._repr_html_()
    assert "dre-model" not in pipeline._repr_html_()


def test_the_option_of_scikit_learn_for_plain_text_holds(model: DRE) -> None:
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_a_model_from_a_file_says_that_it_has_no_embedding(model: DRE, tmp_path: Path) -> None:
    model.save(tmp_path / "m.safetensors")
    page = Page(DRE.load(tmp_path / "m.safetensors")._repr_html_())
    assert "img" not in page.tags
    assert "transform(X) computes the map" in page.text
    assert "time in epochs" in page.text
    assert "Rows of 6 values → 2 dimensions" in page.text
    assert f"{model.history_[-1]['loss']:.4g}" in page.text


def test_a_pickled_model_shows_the_same(model: DRE) -> None:
    assert pickle.loads(pickle.dumps(model))._repr_html_() == model._repr_html_()


def test_texts_are_escaped(X: Array) -> None:
    hostile = cheap(columns=None).fit(X)
    hostile.set_params(metric=HOSTILE, columns=[HOSTILE])  # as a damaged or hostile file may say
    hostile.feature_names_in_ = np.array([HOSTILE] * 6, dtype=object)
    page = Page(hostile._repr_html_())
    assert "script" not in page.tags
    assert not [name for name in page.attributes if name.startswith("on")]
    assert "alert(1)" in page.text


def test_long_texts_are_cut(X: Array) -> None:
    long = cheap().fit(X).set_params(columns=["x" * 100_000])
    assert len(long._repr_html_()) < 100_000


@pytest.mark.parametrize(("n_components", "said"), [(1, ""), (3, "the first two of 3 dimensions")])
def test_maps_of_other_dimensions_are_drawn(n_components: int, said: str, X: Array) -> None:
    page = Page(cheap(n_components=n_components).fit(X)._repr_html_())
    assert "img" in page.tags
    assert said in page.text
    assert f"→ {n_components} dimension{'s' * (n_components > 1)} in" in page.text


def picture_of(model: DRE) -> str:
    found = re.search(r"data:image/png;base64,([^\"]+)", model._repr_html_())
    assert found is not None
    return found[1]


@pytest.mark.parametrize("y", [["a", "b", "c"] * 20, [{"x": 1}, {"y": 2}] * 30, np.linspace(0, 1, 60), [True, None] * 30])
def test_labels_color_the_map_until_the_model_is_saved_or_goes_on(y: Any, X: Array) -> None:
    plain, model = cheap().fit(X), cheap().fit(X, y)
    np.testing.assert_array_equal(plain.embedding_, model.embedding_)
    assert "colored by y" in Page(model._repr_html_()).text
    assert picture_of(model) != picture_of(plain)
    assert "colored by y" not in pickle.loads(pickle.dumps(model))._repr_html_()
    assert model.partial_fit(X[:5], memory=X)._repr_html_().count("colored by y") == 0
    assert "colored by y" not in model.fit(X)._repr_html_()


@pytest.mark.parametrize("y", [np.zeros((60, 2)), ["a"], 5, [[1], [2, 3]] * 30])
def test_what_is_no_label_for_each_row_is_ignored(y: Any, X: Array) -> None:
    assert "colored by y" not in cheap().fit(X, y)._repr_html_()


def test_a_sample_and_the_shown_part_are_told(X: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.model.notebook.MOST_POINTS", 10)
    page = Page(cheap(sample=40).fit(X)._repr_html_())
    assert "60 rows of 6 values" in page.text
    assert "fitted to 40 of them" in page.text
    assert "10 of 60 rows" in page.text


def test_what_became_of_an_optional_stage_is_told(X: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.training.loop.skip", lambda run, target: None)
    for values, outcome in (((0.95, 0.9), "0.900 before it, 0.950 after"), ((0.5, 0.9), "undone, ")):
        measured = iter(values)  # the map after the stage is measured first
        monkeypatch.setattr("dre.training.optional.sample_trust", lambda features, embedding, left=measured: next(left))
        text = Page(cheap(schedule=f"{SCHEDULE} optional").fit(X)._repr_html_()).text
        assert outcome in text
        assert f"trustworthiness {max(values):.3f}, of a sample" in text  # of the map that was kept
    monkeypatch.setattr("dre.training.loop.skip", lambda run, target: StageSkipped(run, (1.25, 2.5)))
    skipped = cheap(schedule=f"{SCHEDULE} optional").fit(X)
    assert "skipped" in Page(skipped._repr_html_()).text


def test_equal_rows_and_an_interrupted_fit_are_shown(X: Array) -> None:
    assert "dre-model" in cheap().fit(np.ones((30, 4)))._repr_html_()
    model = cheap().fit(X)
    model.interrupted_ = True
    assert "Ctrl-C ended the fit early" in Page(model._repr_html_()).text
