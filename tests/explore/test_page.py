"""The content of a page and its encoding."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import HOSTILE, known

from dre.explore import Explorer, ShownMap, StageView, build_explorer, write_page
from dre.explore.columns import Column, make_column
from dre.explore.measured import measure_rows
from dre.explore.page import page
from dre.explore.thumbnails import as_images, thumbnails
from dre.explore.trust import point_trust
from dre.metrics import align_stages, trustworthiness
from dre.plot.colors import MAX_COLORS


def payload(text: str, name: str) -> bytes:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', text)
    assert found is not None
    return gzip.decompress(base64.b64decode(found[1]))


def about(text: str) -> dict[str, Any]:
    found = re.search(r'id="about">(.*)</script>', text)
    assert found is not None
    described: dict[str, Any] = json.loads(found[1])
    return described


def decoded(text: str, name: str, kind: str) -> np.ndarray:
    planes = np.frombuffer(payload(text, name), np.uint8).reshape(np.dtype(kind).itemsize, -1)
    return np.ascontiguousarray(planes.T).reshape(-1).view(kind)


def single(embedding: np.ndarray) -> Explorer:
    return Explorer("t", [ShownMap("m", [StageView("s", embedding)])])


@pytest.mark.parametrize("components", [2, 3])
def test_coordinates_are_those_of_the_map_to_the_last_bit(components: int) -> None:
    embedding = np.random.default_rng(0).normal(size=(500, components)).astype(np.float32) * 7 + 300
    text = page(single(embedding))
    kept = decoded(text, "coordinates-0-0", "<f4").reshape(components, -1).T
    assert kept.tobytes() == embedding.tobytes()
    shown = about(text)["maps"][0]
    assert shown["components"] == components
    place = shown["stages"][0]["place"]
    placed = kept.astype(float) @ np.array(place["matrix"]) + place["offset"]
    assert placed.min() == pytest.approx(0, abs=1e-6)
    assert placed.max() == pytest.approx(1, abs=1e-6)
    assert placed - placed.mean(0) == pytest.approx((embedding - embedding.mean(0)) / np.ptp(embedding, axis=0).max(), abs=1e-5)


def test_stages_are_turned_and_sized_as_a_whole_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    last = rng.normal(size=(50, 2))
    turn = np.array([[0.0, 1.0], [1.0, 0.0]])  # a mirror too
    noise = rng.normal(size=(50, 2)) * 0.1
    first = 3.0 * (last + noise) @ turn + 7
    back, kept = align_stages([first, last], scale="match")
    assert kept == pytest.approx(last)
    apart = lambda embedding: np.linalg.norm(embedding[:, None] - embedding[None], axis=2)  # noqa: E731
    ratio = apart(back)[np.triu_indices(50, 1)] / apart(first)[np.triu_indices(50, 1)]
    assert ratio == pytest.approx(ratio[0])
    assert back == pytest.approx(last, abs=0.5)


def test_nothing_of_a_label_is_html_and_the_policy_names_the_script() -> None:
    given = known()
    text = page(build_explorer(given.pop("stages"), title=HOSTILE, **given))
    assert "<img" not in text
    assert text.count("<script>") == 1
    script = text[text.index("<script>") + 8 : text.rindex("</script>")]
    policy = re.search(r"script-src 'sha256-([^']+)'", text)
    assert policy is not None
    assert policy[1] == base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert about(text)["title"] == HOSTILE
    assert HOSTILE in json.loads(payload(text, "classes-0"))


@pytest.mark.parametrize(
    ("values", "kind", "names"),
    [
        (np.array(["b", "a", "b"]), "class", ["a", "b"]),
        (np.array([10, 2, 10]), "class", ["2", "10"]),
        (np.array([True, False]), "class", ["False", "True"]),
        (np.array(["", "x"], dtype=object), "class", ["x", "–"]),
        (np.array(["b", None, 3], dtype=object), "class", ["3", "b", "–"]),
        (np.array([0.5, np.nan, 1.0]), "class", ["0.5", "1", "–"]),
        (np.array([f"text {i}" for i in range(30)] + [""]), "text", [*(f"text {i}" for i in range(30)), "–"]),
        (np.array(["2026-01-02", "2026-01-01"], dtype="M8[D]"), "date", None),
        (np.arange(200), "number", None),
        (np.linspace(0, 1, 50), "number", None),
    ],
)
def test_a_column_is_classes_numbers_dates_or_text(values: np.ndarray, kind: str, names: list[str] | None) -> None:
    made = make_column("c", values)
    assert (made.kind, made.names) == (kind, names)
    assert made.about()["kind"] == kind


def numbers_of(column: Column) -> np.ndarray:
    """As the page decodes them."""
    if column.names is not None:
        return np.array([float(name) for name in column.names])[column.values]
    if column.decimals is None:
        return column.values
    return np.where(column.values == -(2**31), np.nan, column.values / 10.0**column.decimals)


@pytest.mark.parametrize("kind", [np.int64, np.uint32, np.float32, np.float64])
@pytest.mark.parametrize("factor", [1, 101, 10**7, 0.1, 1 / 7])
def test_numbers_are_carried_as_they_are(kind: type, factor: float) -> None:
    values = (np.arange(200) * factor + (20_260_000 if factor == 1 else 0)).astype(kind)
    assert numbers_of(make_column("c", values)).tolist() == values.tolist()


def test_a_missing_number_stays_missing_and_takes_nothing_from_the_others() -> None:
    values = np.append(np.arange(100) * 0.25, [np.nan, np.inf])
    made = make_column("c", values)
    assert np.isnan(numbers_of(made)).tolist() == [False] * 100 + [True] * 2
    assert made.high <= 24.75
    mixed = make_column("c", np.array([*range(100), None], dtype=object))
    assert mixed.kind == "number"
    assert mixed.integer
    assert np.isnan(numbers_of(mixed)[-1])


def test_decimals_take_less_room_than_float64() -> None:
    values = np.random.default_rng(0).uniform(0, 99, size=20_000).round(1)
    assert make_column("c", values).values.dtype == np.int32


def test_dates_are_milliseconds_with_their_precision() -> None:
    days = make_column("c", np.array(["2026-01-02", "", "1970-01-02"]))
    assert days.values[[0, 2]].tolist() == [1_767_312_000_000, 86_400_000]
    assert np.isnan(days.values[1])
    assert days.about()["precision"] == "day"
    assert make_column("c", np.array(["2026-01-02T10:20:30", "2026-01-03T00:00:00"])).about()["precision"] == "second"


def test_skewed_positive_numbers_begin_on_a_logarithmic_scale() -> None:
    rng = np.random.default_rng(0)
    incomes = make_column("income", np.exp(rng.normal(size=1000) * 1.5))
    assert (incomes.scale, incomes.scales) == ("log", ("linear", "log", "quantile"))
    assert make_column("size", rng.normal(size=1000) + 10).scale == "linear"
    assert "log" not in make_column("change", rng.normal(size=1000)).scales


def test_one_value_far_out_does_not_take_the_colors_of_the_others() -> None:
    made = make_column("c", np.append(np.random.default_rng(0).normal(size=999), 1e6))
    assert made.high < 10


def test_stages_that_have_nothing_in_common_are_as_large_as_the_last() -> None:
    rng = np.random.default_rng(0)
    maps = [rng.normal(size=(500, 2)) * factor for factor in (9.0, 0.1, 2.0)]
    sizes = [each.std() for each in align_stages(maps, scale="match")]
    assert sizes == pytest.approx([sizes[-1]] * 3)


def test_of_many_classes_the_largest_have_colors() -> None:
    values = np.array([f"c{i % 400}" for i in range(800)] + ["large"] * 5 + ["larger"] * 9)
    made = make_column("c", values)
    assert made.names is not None
    assert made.names[:2] == ["larger", "large"]
    assert made.colors is not None
    assert len(set(made.colors)) == MAX_COLORS
    assert np.array(made.names)[made.values].tolist() == values.tolist()


def test_trust_of_many_points_is_near_to_that_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 6)).astype(np.float32)
    embedding = rows[:, :2].copy()
    embedding[:300] = rng.permutation(embedding[:300])  # these have false neighbors
    rows += 5000  # far from the origin, where float32 has few digits left for distances
    exact = trustworthiness(rows, embedding, per_point=True)
    assert point_trust(rows, embedding) == pytest.approx(exact, abs=1e-6)
    monkeypatch.setattr("dre.explore.trust.EXACT_TRUST", 100)
    monkeypatch.setattr("dre.explore.trust.TRUST_SAMPLE", 1000)
    coarse = point_trust(rows, embedding)
    assert coarse.shape == (3000,)
    assert np.corrcoef(coarse, exact)[0, 1] > 0.5
    assert coarse[:300].mean() < coarse[300:].mean() - 0.1


def test_the_estimated_trust_uses_the_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 1.5, size=500)
    embedding = np.column_stack([np.cos(angle), np.sin(angle)]).astype(np.float32)
    rows = embedding * rng.uniform(1, 50, size=(500, 1)).astype(np.float32)  # only the direction is kept
    monkeypatch.setattr("dre.explore.trust.EXACT_TRUST", 100)
    monkeypatch.setattr("dre.explore.trust.TRUST_SAMPLE", 200)
    assert point_trust(measure_rows(rows, "cosine").vectors, embedding).mean() > 0.999
    assert point_trust(measure_rows(rows).vectors, embedding).mean() < 0.9


def test_images_of_every_layout_are_seen_as_such() -> None:
    for shape in ((4, 5, 6), (4, 5, 6, 3), (4, 3, 5, 6), (4, 1, 5, 6)):
        found = as_images(np.zeros(shape, np.uint8))
        assert found is not None
        assert found.read(0, 2).shape[:3] == (2, 5, 6)
    assert as_images(np.zeros((4, 30))) is None
    flat = as_images(np.arange(120.0).reshape(4, 30), (5, 6))
    assert flat is not None
    assert flat.read(1, 2).shape == (1, 5, 6)
    with pytest.raises(ValueError, match=r"30 values.*7 × 7"):
        as_images(np.zeros((4, 30)), (7, 7))


def test_large_images_are_made_small_and_share_sheets() -> None:
    images = as_images(np.full((1100, 96, 48, 3), 128, np.uint8))
    assert images is not None
    made = thumbnails(images)
    assert (made.width, made.height, len(made.sheets)) == (24, 48, 2)
    assert all(sheet.startswith("data:image/webp;base64,") for sheet in made.sheets)


@pytest.mark.parametrize(
    ("stage", "says"),
    [(np.zeros((5, 4)), "shape"), (np.zeros(5), "shape"), (np.full((5, 2), np.nan), "finite")],
)
def test_what_can_not_be_shown_is_refused(stage: np.ndarray, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        single(stage)


def test_a_page_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.explore.page.page", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_page(tmp_path / "p.html", single(np.zeros((5, 2))))
    assert list(tmp_path.iterdir()) == []


def test_one_point_and_points_in_one_place_can_be_shown(tmp_path: Path) -> None:
    for n in (1, 3):
        write_page(tmp_path / f"{n}.html", build_explorer([("s", np.zeros((n, 2), np.float32))], title="t"))
        assert (tmp_path / f"{n}.html").stat().st_size > 10_000


def test_a_column_without_values_is_named() -> None:
    Y = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    with pytest.raises(ValueError, match=r"metadata\['kind'\] is None, .*dataset without labels: leave it out"):
        build_explorer([("map", Y)], title="t", metadata={"size": np.arange(30), "kind": None})
