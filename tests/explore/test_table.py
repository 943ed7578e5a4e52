"""The table of the rows that pass the filters, and their export as CSV."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from known_page import N, Seen, shop, visit

from dre.explore import build_explorer, write_page

META = shop()["metadata"]


def open_table(seen: Seen) -> None:
    seen.page.keyboard.press("t")
    seen.page.wait_for_selector("#table-rows [role=row]")


def cells(seen: Seen, column: str) -> list[str]:
    place = [text.split(" ")[0] for text in seen.texts("#table-head button")].index(column)
    rows = seen.page.locator("#table-rows [role=row]").all()
    return [row.locator("[role=cell]").nth(place).inner_text() for row in rows]


def exported(seen: Seen) -> list[dict[str, str]]:
    with seen.page.expect_download() as downloading:
        seen.page.locator("#export").click()
    with open(downloading.value.path(), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_only_rows_on_the_screen_are_rendered(in_shop: Seen) -> None:
    open_table(in_shop)
    assert in_shop.page.locator("#table-count").inner_text() == f"{N} rows"
    assert 5 < in_shop.page.locator("#table-rows [role=row]").count() < 30
    assert in_shop.page.locator("#table-grid").get_attribute("aria-rowcount") == str(N + 1)
    in_shop.page.evaluate("document.getElementById('table-scroller').scrollTop = 1e6")
    in_shop.settled()
    assert cells(in_shop, "row")[-1] == str(N - 1)


def test_the_table_shows_what_the_filters_leave(in_shop: Seen) -> None:
    open_table(in_shop)
    in_shop.page.locator("#search").fill("group: group 12")
    in_shop.settled()
    assert cells(in_shop, "row") == [str(row) for row in range(12, N, 30)]
    assert in_shop.page.locator("#table-count").inner_text() == f"10 of {N} rows"


def test_a_click_on_a_head_sorts_up_then_down_then_not(in_shop: Seen) -> None:
    open_table(in_shop)
    in_shop.page.locator("#search").fill("group: group 10")
    rows = list(range(10, N, 30))
    for column in ("price", "rating", "added", "name"):
        keys = {"name": np.arange(N), **META}[column]
        known = [row for row in rows if keys[row] == keys[row]]
        missing = [row for row in rows if row not in known]
        up = sorted(known, key=lambda row: keys[row])
        for expected, sort in ((up + missing, "ascending"), (up[::-1] + missing, "descending"), (rows, "none")):
            in_shop.page.locator("#table-head button", has_text=column).click()
            in_shop.settled()
            assert [int(row) for row in cells(in_shop, "row")] == expected, (column, sort)
            head = in_shop.page.locator("#table-head [role=columnheader]", has_text=column)
            assert head.get_attribute("aria-sort") == sort


def test_a_click_on_a_row_pins_it_and_keys_go_along_the_rows(in_shop: Seen) -> None:
    open_table(in_shop)
    in_shop.page.locator("#table-rows [role=row]").nth(4).click()
    assert in_shop.page.evaluate("explorer.pinned()") == 4
    in_shop.page.locator("#table-scroller").focus()
    for _ in range(40):
        in_shop.page.keyboard.press("ArrowDown")
    in_shop.page.keyboard.press("Enter")
    in_shop.settled()
    assert in_shop.page.evaluate("explorer.pinned()") == 44
    assert in_shop.page.locator("#table-rows .pinned [role=cell]").first.inner_text() == "44"


def test_the_map_keeps_its_points_above_the_table(in_shop: Seen) -> None:
    open_table(in_shop)
    in_shop.settled()
    top = in_shop.page.locator("#table").bounding_box()["y"]
    assert max(in_shop.screen(row)[1] for row in range(0, N, 7)) < top
    in_shop.page.locator("#close-table").click()
    assert in_shop.page.locator("#table").is_hidden()


def test_the_export_restores_coordinates_and_values_exactly(in_shop: Seen) -> None:
    table = exported(in_shop)
    given = shop()
    assert len(table) == N
    coordinates = np.array([[line["dre1"], line["dre2"]] for line in table]).astype(np.float32)
    assert np.array_equal(coordinates, given["stages"][0][1])
    assert np.array_equal([float(line["price"]) for line in table], META["price"])
    assert np.array_equal([float(line["rating"] or "nan") for line in table], META["rating"], equal_nan=True)
    assert [line["added"] for line in table] == META["added"].astype(str).tolist()
    assert [line["seen"] for line in table] == META["seen"].astype(str).tolist()
    assert [line["link"] for line in table] == META["link"].tolist()


def test_a_cell_that_a_spreadsheet_would_run_is_defused(in_shop: Seen) -> None:
    for line, note in zip(exported(in_shop), META["note"], strict=True):
        is_number = note.lstrip("-").isdigit()
        assert line["note"] == (note if is_number or note[0] not in "=+-@" else f"'{note}")


def test_the_export_holds_what_the_filters_leave(in_shop: Seen) -> None:
    in_shop.page.locator("#search").fill("group: group 7")
    assert [int(line["row"]) for line in exported(in_shop)] == list(range(7, N, 30))


def test_rows_are_numbered_as_in_their_file(browser: Any, tmp_path: Path) -> None:
    embedding, numbers = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) * 2 + 7
    write_page(tmp_path / "some.html", build_explorer([("map", embedding)], title="some", row_numbers=numbers))
    with visit(browser, tmp_path / "some.html") as seen:
        assert [int(line["row"]) for line in exported(seen)] == numbers.tolist()
        for query, found in (("row 17", [5]), ("row 5", []), ("row 105", [49])):
            seen.page.locator("#search").fill(query)
            assert seen.highlighted() == found
        seen.page.locator("#search").press("Enter")
        assert seen.page.locator("#pinned header b").inner_text() == "row 105"
        seen.page.locator("#points").focus()
        open_table(seen)
        assert cells(seen, "row") == ["105"]


def test_three_components_are_exported_and_names_of_columns_stay_apart(browser: Any, tmp_path: Path) -> None:
    solid = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    metadata = {"dre1": np.arange(50) * 1.5, "row": 50.25 - np.arange(50)}
    write_page(tmp_path / "solid.html", build_explorer([("map", solid)], title="solid", metadata=metadata))
    with visit(browser, tmp_path / "solid.html") as seen:
        table = exported(seen)
        open_table(seen)
        for _ in ("up", "down"):
            seen.page.locator("#table-head button", has_text="row").last.click()  # the column, not the number of the row
        seen.settled()
        sorts = [head.get_attribute("aria-sort") for head in seen.page.locator("#table-head [role=columnheader]").all()]
        last_first = cells(seen, "row")[0]
    assert sorts == ["none", "none", "descending"]
    assert last_first == "0"
    assert np.array_equal(np.array([[line[f"dre{k}"] for k in (1, 2, 3)] for line in table]).astype(np.float32), solid)
    assert [float(line["dre1_2"]) for line in table] == metadata["dre1"].tolist()
    assert [float(line["row_2"]) for line in table] == metadata["row"].tolist()


def test_the_table_follows_a_point_that_is_pinned_elsewhere(in_shop: Seen) -> None:
    in_shop.page.evaluate("location.hash = '#pinned=250'")
    in_shop.page.wait_for_selector("#pinned:not([hidden])")
    open_table(in_shop)
    assert in_shop.page.locator("#table-rows .pinned [role=cell]").first.inner_text() == "250"
    in_shop.page.locator("#points").focus()
    in_shop.page.keyboard.press("n")
    row = in_shop.page.evaluate("explorer.pinned()")
    assert row != 250
    assert in_shop.page.locator("#table-rows .pinned [role=cell]").first.inner_text() == str(row)
