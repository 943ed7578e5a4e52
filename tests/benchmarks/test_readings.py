"""Readings of the paper: every one has a plan that can be run, and the table names the closest first."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import readings
import readings_tables
from dre import DRE, Stage
from dre.data.rows import ArrayRows
from dre.encoder import Encoder
from dre.encoder.forward import check_sources
from readings import BY_NAME, COLUMNS, DATA, MAPS, PRINTED, PUBLISHED, READINGS, Images, Reading


@pytest.fixture(scope="module")
def images() -> Images:
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(256, size=(96, 28, 28), dtype=np.uint8), np.arange(96) % 3
    return Images(rows[:64], labels[:64], rows[64:], labels[64:])


@pytest.fixture(scope="module")
def networks() -> dict:
    return {}


def test_names_differ_and_a_continued_reading_has_its_own_stages():
    assert len(BY_NAME) == len(READINGS)
    assert all("schedule" in reading.options for reading in READINGS if reading.after is not None)
    assert [reading.name for reading in readings.with_parents(["CE of x"])] == [PUBLISHED, "CE of x"]


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.name)
def test_every_reading_has_a_plan_whose_encoder_has_its_sources(reading: Reading, images: Images, networks: dict):
    recipe = reading.plan(60_000)
    before = [] if reading.after is None else list(BY_NAME[PUBLISHED].plan(60_000).schedule)[: reading.after + 1]
    assert set(readings.map_stages([str(stage) for stage in (*before, *recipe.schedule)])) == set(MAPS)
    assert all(isinstance(stage, Stage) and stage.affinity.scope == "batch" for stage in recipe.schedule)
    kind = (recipe.encoder, reading.network, reading.pixels)
    if kind not in networks:
        encoder = readings.network_of(recipe, reading, images, 0)
        assert encoder.capturable
        networks[kind] = encoder.build(readings.SHAPE, 2) if isinstance(encoder, Encoder) else encoder
    rows = ArrayRows(torch.randn(2, *readings.SHAPE), torch.device("cpu"))
    check_sources(networks[kind], [stage.source for stage in recipe.schedule], rows, 2)
    assert reading.seconds > 0


def test_pixels_are_those_of_the_images(images: Images):
    network = readings.network_of(BY_NAME[PUBLISHED].plan(64), BY_NAME["pixels from 0 to 255"], images, 0)
    seen = []
    network.features[0].register_forward_hook(lambda module, args, output: seen.append(output))
    mean, scale = images.train.mean(0), np.sqrt(images.train.var(0).mean())
    network(torch.from_numpy((images.train - mean) / scale).float()[:, None])
    np.testing.assert_allclose(seen[0][:, 0].detach(), images.train, atol=1e-3)


@pytest.mark.filterwarnings("ignore:perplexity")
@pytest.mark.parametrize("name", ["CE of sums 1", "CE of ranks 15 to 29", "late exaggeration", "cut at each stage"])
def test_the_losses_affinities_and_batches_of_readings_train(name: str, images: Images):
    recipe = BY_NAME[name].plan(64)
    options = {"batch_size": BY_NAME[name].options.get("batch_size", 40), "encoder": "mlp(8)", "random_state": 0}
    schedule = str(recipe.schedule).replace("h3", "h1").replace("h2", "h1").replace("* 50", "* 2").replace("* 100", "* 2")
    model = DRE("paper", schedule=schedule, verbose=False, **options)
    model.fit(images.train)
    assert np.isfinite(model.embedding_).all()
    assert all(np.isfinite(epoch["loss"]) for epoch in model.history_)


def test_adam_keeps_its_moments_where_a_reading_says_so(images: Images):
    schedule = "x: gaussian(5, scope=batch) -> kl * 2; x: gaussian(5, scope=batch) -> kl * 2"
    once = "x: gaussian(5, scope=batch) -> kl * 4"
    optimizer = BY_NAME["Adam without restarts"].options["optimizer"]
    maps = []
    for text, chosen in ((schedule, optimizer), (once, None), (schedule, None)):
        model = DRE("paper", schedule=text, encoder="mlp(8)", random_state=0, verbose=False, optimizer=chosen)
        maps.append(model.fit(images.train).embedding_)
    np.testing.assert_allclose(maps[0], maps[1], atol=1e-5)
    assert np.abs(maps[2] - maps[1]).max() > 1e-4


def test_the_table_puts_the_closest_reading_first(monkeypatch, tmp_path):
    runs = [_run(name, data, shift) for name, shift in ((PUBLISHED, 0.1), ("CE of x", 0.01)) for data in DATA]
    found = readings.distances(runs)
    assert [each["reading"] for each in found] == ["CE of x", PUBLISHED]
    assert found[0]["distance"] == pytest.approx(0.01)
    printed = {data: {name: _columns(row) for name, row in maps.items()} for data, maps in PRINTED.items()}
    result = {"command": "python benchmarks/readings.py --data FOLDER", "machine": {"gpu": "G"}, "printed": printed}
    monkeypatch.setattr(readings_tables, "RESULTS", tmp_path)
    assert readings_tables.readings() == ""
    (tmp_path / "readings.json").touch()
    monkeypatch.setattr(readings_tables, "load", lambda name: {**result, "results": {"distances": found, "runs": runs}})
    lines = readings_tables.readings().splitlines()
    assert lines[2].startswith("| printed in the paper | .93 → .96 → .97 / .92 / .96 / .52 / .29 |")
    assert lines[3].startswith("| CE of x | .940 → .970 → .980 / .930 /")
    assert lines[3].endswith("| .010 | .010 |")


def _columns(values) -> dict[str, float]:
    return dict(zip(COLUMNS, values, strict=True))


def _run(name: str, data: str, shift: float) -> dict:
    stages = [{"scores": {"test": _columns(value + shift for value in PRINTED[data][each])}} for each in MAPS]
    return {"reading": name, "data": data, "seed": 0, "maps": {each: i for i, each in enumerate(MAPS)}, "stages": stages}
