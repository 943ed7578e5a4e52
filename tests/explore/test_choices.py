"""The color and the title that a page begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dre.explore import build_explorer
from dre.explore.choices import choose_color, choose_title
from dre.explore.columns import make_column

N = 240
RNG = np.random.default_rng(0)
TABLE: dict[str, Any] = {
    "id": np.arange(N),
    "url": np.array([f"https://a.org/{i}" for i in range(N)]),
    "review": np.array([f"a text of some length, number {i} " * 9 for i in range(N)]),
    "headline": np.array([f"Something happened on day {i}" for i in range(N)]),
    "height": RNG.normal(size=N),
    "rooms": np.arange(N) % 5,
    "member": np.arange(N) % 2 == 0,
    "author": np.array([f"author {i % 60}" for i in range(N)]),
    "city": np.array(["Rome", "Oslo", "Bern"])[np.arange(N) % 3],
    "cell_type": np.array([f"t{i % 30}" for i in range(N)]),
    "joined": np.array(["2026-01-02", "2026-03-04"])[np.arange(N) % 2],
    "constant": np.full(N, "x"),
}


@pytest.mark.parametrize(
    ("without", "chosen"),
    [
        ([], "cell_type"),
        (["cell_type"], "city"),
        (["cell_type", "city"], "rooms"),
        (["cell_type", "city", "rooms"], "member"),
        (["cell_type", "city", "rooms", "member"], "author"),
        (["cell_type", "city", "rooms", "member", "author"], None),
    ],
)
def test_labels_come_before_categories_and_ids_and_texts_are_never_chosen(without: list[str], chosen: str | None) -> None:
    assert choose_color([make_column(name, values) for name, values in TABLE.items() if name not in without]) == chosen


def test_a_title_is_a_column_of_that_name_or_a_short_text_and_never_an_address() -> None:
    columns = [make_column(name, values) for name, values in TABLE.items()]
    assert columns[choose_title(columns) or 0].name == "headline"
    assert choose_title([column for column in columns if column.name != "headline"]) is None
    notes = make_column("remark", np.array([f"remark {i}" for i in range(N)]))
    assert choose_title([columns[1], notes]) == 1
    assert choose_title([columns[1], notes], has_names=True) is None


def test_what_is_asked_for_colors_the_points_and_anything_else_is_refused() -> None:
    Y = RNG.normal(size=(N, 2))
    table = {name: TABLE[name] for name in ("city", "height", "review")}
    assert build_explorer([("s", Y)], title="t", metadata=table, color="height").color == "height"
    forced = build_explorer([("s", Y)], title="t", metadata=table, color="review")
    assert next(column.kind for column in forced.columns if column.name == "review") == "class"
    for color in ("weight", "trust"):
        with pytest.raises(ValueError, match=color):
            build_explorer([("s", Y)], title="t", metadata=table, color=color)


def test_a_column_of_the_table_is_not_taken_for_one_that_the_page_makes() -> None:
    rng = np.random.default_rng(0)
    Y, X = rng.normal(size=(60, 2)), rng.normal(size=(60, 5))
    metadata = {"city": ["Rome", "Oslo"] * 30, "cluster": [0, 1, 2] * 20, "trust": rng.normal(size=60)}
    made = build_explorer([("map", Y)], title="t", rows=X, metadata=metadata)
    assert made.color == "cluster"
    assert [column.name for column in made.columns] == ["city", "cluster", "trust", "trust of the map"]


def test_without_classes_and_clusters_trust_colors_the_points() -> None:
    rows = RNG.normal(size=(N, 5))
    assert build_explorer([("s", rows[:, :2])], title="t", rows=rows, metadata={"height": TABLE["height"]}).color == "trust"
    assert (
        build_explorer([("s", rows[:, :2])], title="t", metadata={"url": TABLE["url"], "height": TABLE["height"]}).color
        == "height"
    )


def test_trust_has_fixed_ends_and_an_explanation() -> None:
    rows = RNG.normal(size=(N, 2))
    page = build_explorer([("s", rows)], title="t", rows=rows)
    (trust,) = (column.about() for column in page.columns if column.name == "trust")
    assert (trust["low"], trust["high"], trust["fixed"], trust["scales"]) == (0.5, 1.0, True, ["linear"])
    assert trust["explain"]


def test_a_page_has_room_for_some_columns_and_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.explore.build.MAX_BYTES", 3 * N)
    monkeypatch.setattr("dre.explore.columns.MAX_CHARACTERS", 60 * N)
    Y = RNG.normal(size=(N, 2))
    page = build_explorer([("s", Y)], title="t", metadata={name: TABLE[name] for name in ("review", "city", "height", "rooms")})
    kept = {column.name: column for column in page.columns}
    assert list(kept) == ["review", "city", "rooms"]
    assert max(map(len, kept["review"].names or [])) <= 51
    assert any("height" in note for note in page.notes)
    assert any("cut after 50 characters" in note for note in page.notes)
