"""The model inside a page: what it brings along, and which models and maps are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch
from known_page import visit
from model_pages import bring, placed, small_model, table
from torch import Tensor, nn

import dre.explore.embedded
from dre import DRE
from dre.data.gene_pca import CountNormalization, GenePCA
from dre.data.preparation import Prepared
from dre.explore import build_explorer
from dre.explore.embedded import EmbeddedModelError, embed_model
from dre.explore.page import page


@pytest.fixture(scope="module")
def model() -> DRE:
    return small_model(table()[["length", "width", "weight"]], standardize=True)


def test_a_page_has_the_weights_and_no_row_of_the_data(model: DRE) -> None:
    frame = table()[["length", "width", "weight"]]
    text = page(build_explorer([("map", model.transform(frame))], title="t", model=model))
    found = re.search(r'id="about">(.*)</script>', text)
    assert found is not None
    about = json.loads(found[1])["model"]
    assert about["names"] == ["length", "width", "weight"]
    assert set(re.findall(r'id="model-(\w+)"', text)) == {*about["constants"], "rows", "expected"}
    assert "worker-src blob:" in text
    known = embed_model(model).rows
    assert not np.isin(known, frame.to_numpy(np.float32)).any()


def test_the_size_of_the_model_is_what_it_adds_in_text(model: DRE) -> None:
    embedded = embed_model(model)
    assert embedded.nbytes == sum(len(each.partition(">")[2].partition("<")[0]) for each in embedded.elements())
    assert embedded.program.nbytes < embedded.nbytes


def test_a_map_of_another_model_is_refused(model: DRE) -> None:
    rows = table()[["length", "width", "weight"]].to_numpy()
    with pytest.raises(ValueError, match=r"away from where the last map has them: pass the map of this model"):
        build_explorer([("map", model.transform(rows) + 1)], title="t", rows=rows, model=model, trust=False, neighbors=False)


def test_a_model_that_is_too_large_is_refused_with_a_remedy(model: DRE, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dre.explore.embedded, "MAX_BYTES", 1000)
    with pytest.raises(
        EmbeddedModelError, match=r"MB of weights, and a page holds 0 MB: .* smaller encoder, such as mlp\(128\)"
    ):
        embed_model(model)


class Sorts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h1 = nn.Linear(3, 4)
        self.out = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.h1(x).sort(1).values)
        return y


class MixesRows(Sorts):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.h1(x - x.mean(0)))
        return y


class Branches(Sorts):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.h1(x if x.sum() > 0 else -x))
        return y


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (Sorts(), r"operator aten\.sort .* ONNX"),
        (MixesRows(), "mixes rows"),
        (Branches(), r"^(?!.*ONNX).*transform; or write the module without branches"),
    ],
)
def test_a_module_that_a_page_can_not_compute_is_refused_by_its_reason(encoder: nn.Module, message: str) -> None:
    fitted = DRE(schedule="x: fuzzy(10) -> ce * 1", encoder=encoder, random_state=0, verbose=False).fit(
        table()[["length", "width", "age"]]
    )
    with pytest.raises(EmbeddedModelError, match=message):
        embed_model(fitted)


@pytest.mark.parametrize(
    ("values", "ends"),
    [([0, 255], (0, 255)), ([0.0, 0.98], (0, 1)), ([-0.9, 0.9], (-1, 1)), ([0.0, 16.0], (0, 16)), ([-3.0, 700.0], (-3, 700))],
)
def test_pixels_have_the_range_of_the_rows(values: list[float], ends: tuple[float, float]) -> None:
    rows = np.resize(np.array(values), (40, 4, 4)) + np.linspace(0, 1e-3, 40)[:, None, None] * (values[1] > 300)
    rows = rows.astype(np.uint8) if values == [0, 255] else rows
    model = small_model(np.random.default_rng(0).normal(size=(40, 4, 4)))
    page_of = build_explorer([("map", model.transform(rows.astype(float)))], title="t", rows=rows, trust=False, neighbors=False)
    assert page_of.model is None
    from dre.explore.thumbnails import ImageView

    about = embed_model(model, images=ImageView(rows, (4, 4))).about["image"]
    del about["rows_first"]  # depends on the version of Pillow
    assert about | {"low": 0, "high": 0} == {"height": 4, "width": 4, "channels": 1, "layout": "hw", "low": 0, "high": 0}
    assert (about["low"], about["high"]) == pytest.approx(ends, abs=0.01)


def test_the_range_of_pixels_is_known_without_thumbnails_or_images_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).uniform(size=(40, 4, 4)).astype(np.float32)
    model = small_model(rows)
    made = {"title": "t", "model": model, "trust": False, "neighbors": False, "clusters": False}
    stages = [("map", model.transform(rows))]
    hidden = build_explorer(stages, rows=rows, images=False, **made)
    monkeypatch.setattr("dre.explore.build.MAX_IMAGES", 10)
    many = build_explorer(stages, rows=rows, **made)
    for each in (hidden, many):
        assert each.thumbnails is None
        assert each.model is not None
        assert (each.model.about["image"]["low"], each.model.about["image"]["high"]) == (0, 1)
    unknown = build_explorer(stages, **made)
    assert unknown.model is not None
    assert unknown.model.about["image"] is None


def test_rows_may_be_a_data_frame_if_the_model_reads_it(model: DRE) -> None:
    frame = table()[["length", "width", "weight"]]
    made = {"title": "t", "trust": False, "clusters": False}
    stages = [("map", model.transform(frame))]
    of_frame, of_array, of_polars = (
        build_explorer(stages, rows=rows, model=model, **made).neighbors
        for rows in (frame, model.prepare(frame), polars.from_pandas(frame))
    )
    assert of_frame is not None
    assert of_array is not None
    assert of_polars is not None
    assert np.array_equal(of_frame.ids, of_array.ids)
    assert np.array_equal(of_polars.ids, of_array.ids)
    with pytest.raises(TypeError, match=r"rows is a DataFrame: pass model, .* or rows=model\.prepare\(frame\)"):
        build_explorer(stages, rows=frame, **made)


def genes() -> tuple[GenePCA, np.ndarray]:
    rng = np.random.default_rng(0)
    counts = (
        rng.poisson(np.array([[1, 9, 3, 5, 2], [8, 1, 4, 2, 6]])[np.arange(40) % 2]).astype(float)
        + np.eye(5)[np.arange(40) % 5]
    )
    loadings = torch.linalg.qr(torch.randn(5, 3, generator=torch.Generator().manual_seed(0))).Q
    names = [f"gene{i}" for i in range(5)]
    return GenePCA(names, torch.ones(5), torch.arange(5), loadings, CountNormalization(100.0)), counts


def test_genes_are_prepared_inside_the_program(browser: Any, tmp_path: Path) -> None:
    """Normalization and PCA are a module, and so a part of the program: the page reads counts, or normalized values."""
    from dre.explore import write_page

    preparation, counts = genes()
    model = small_model(Prepared(counts, preparation))
    explorer = build_explorer(
        [("map", model.transform(counts))], title="t", rows=counts, model=model, trust=False, neighbors=False
    )
    write_page(tmp_path / "map.html", explorer)
    rows = np.vstack([counts[:3], np.log1p(counts[3:6] * 3)])
    text = "\n".join([",".join(preparation.columns), *(",".join(map(repr, row)) for row in rows.tolist())])
    with visit(browser, tmp_path / "map.html") as seen:
        assert bring(seen, ("cells.csv", text.encode())) == "6 rows of cells.csv placed."
        assert np.abs(placed(seen) - model.transform(rows)).max() < 1e-3


def test_a_preparation_that_is_no_module_is_refused_by_its_kind() -> None:
    preparation, counts = genes()
    partial = GenePCA(preparation.columns, preparation.center, preparation.used, preparation.loadings, CountNormalization(None))
    model = small_model(Prepared(np.log1p(counts * 1.5), partial))
    with pytest.raises(EmbeddedModelError, match=r"preparation of kind 'gene-pca'.* place new rows by transform"):
        embed_model(model)
