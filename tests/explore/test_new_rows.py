"""New rows on a page with its model: from files, drops and the clipboard, placed where transform places them."""

from __future__ import annotations

import base64
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_page import Seen, visit
from model_pages import (
    HOSTILE_CELL,
    NAMES,
    as_csv,
    bring,
    drop,
    lines,
    paste,
    placed,
    saved_rows,
    small_model,
    table,
    write_model_page,
)
from PIL import Image, ImageOps

from dre import DRE
from dre.data.pictures import to_pixels
from dre.io.readers.delimited import read_table
from dre.io.readers.source import SourceError

CLOSE = 1e-3  # what is promised
IS_SEEN = """(element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
}"""


@pytest.fixture(scope="module")
def fit() -> tuple[DRE, pd.DataFrame]:
    frame = table()
    return small_model(frame[NAMES], standardize=True), frame


@pytest.fixture(scope="module")
def path(fit: tuple[DRE, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, frame = fit
    metadata = {"kind": frame["kind"].to_numpy()}
    return write_model_page(tmp_path_factory.mktemp("pages") / "map.html", model, frame[NAMES], metadata=metadata)


@pytest.fixture
def page(browser: Any, path: Path) -> Iterator[Seen]:
    with visit(browser, path) as seen:
        yield seen
        assert seen.said == []
        assert [url for url in seen.asked if not url.startswith(("data:", "blob:"))] == [seen.page.url.partition("#")[0]]


def expected(fit: tuple[DRE, pd.DataFrame], frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(fit[0].transform(frame[NAMES].astype(float)))


def assert_placed(page: Seen, wanted: np.ndarray) -> None:
    assert np.abs(placed(page) - wanted).max() < CLOSE


def test_a_file_is_placed_where_transform_places_it_whatever_the_order_of_its_columns(page: Seen, fit: Any) -> None:
    new = table(9, seed=1)
    mixed = new[["age", "kind", "weight", "length", "width"]].assign(note=HOSTILE_CELL)
    assert bring(page, ("new.csv", as_csv(mixed))) == "9 rows of new.csv placed."
    assert_placed(page, expected(fit, new))
    assert page.page.locator("html").get_attribute("data-placer") == "worker"
    assert page.page.locator("#new-count").inner_text() == "9 new rows"
    assert page.page.locator("#status").inner_text().startswith("9 rows")
    assert page.page.title() == "A map"


@pytest.mark.parametrize(
    "options",
    [{"sep": ";", "decimal": ","}, {"sep": "\t"}, {"sep": "|"}, {"quoting": 1}, {"lineterminator": "\r\n"}, {"sep": ";"}],
    ids=str,
)
def test_separators_decimals_quotes_and_ends_of_lines(page: Seen, fit: Any, options: dict[str, Any]) -> None:
    new = table(5, seed=2).round(3)
    bring(page, ("new.csv", b"\xef\xbb\xbf" + as_csv(new, **options)))
    assert_placed(page, expected(fit, new))


AMOUNTS = {
    "currency in front": ["€ 5.1", "€ 1,056.12", "€-3"],
    "words": ["CHF 5", "CHF 7.25", "CHF1'056"],
    "percent": ["66.9 %", "5%", "-0.1 %"],
    "unit": ["12.0 kg", "7 kg", "1e1 kg"],
    "area": ["12.0m²", "7 m²", "8 m²"],
    "gaps": ["12 g", "n/a", "8 g"],
    "accounting": ["(5.5)", "7", "8"],
    "different units": ["12 kg", "7 g", "8 kg"],
    "some without": ["12 kg", "7", "8 kg"],
    "words alone": ["kg", "kg", "kg"],
    "grouped": ["1,056", "2,000", "12"],
}


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("kind", AMOUNTS)
def test_numbers_with_units_are_read_as_dre_reads_them(page: Seen, fit: Any, tmp_path: Path, kind: str, decimal: str) -> None:
    new = table(3, seed=2).round(2)[NAMES].astype(str).assign(weight=AMOUNTS[kind])
    if decimal == ",":
        swapped = new.map(lambda text: text.translate(str.maketrans(".,", ",.")))
        text = swapped.to_csv(index=False, sep=";").encode()
    else:
        text = new.to_csv(index=False).encode()
    (tmp_path / "new.csv").write_bytes(text)
    try:
        column = read_table(tmp_path / "new.csv")["weight"]
        read = column.values if column.kind == "number" else np.full(3, np.nan)
    except SourceError:
        read = np.full(3, np.nan)
    bring(page, ("new.csv", text))
    wanted = np.flatnonzero(np.isfinite(read))
    if len(wanted) == 0:  # Python refuses the column, the page each row that has no plain number in it
        refused = [line for line, value in enumerate(AMOUNTS[kind], 2) if not value.isdigit()]
        reasons = page.texts("#new-problems li")
        assert all(f"line {line}: " in reason for line, reason in zip(refused, reasons, strict=True))
        assert all("in “weight” is not a number" in reason for reason in reasons)
        return
    numbers = new[NAMES].assign(weight=read).iloc[wanted]
    assert_placed(page, expected(fit, numbers))
    saved = saved_rows(page)
    assert [float(row["weight"]) for row in saved] == list(read[wanted])


def test_what_is_saved_of_a_table_with_decimal_commas_can_be_read_again(page: Seen, fit: Any, tmp_path: Path) -> None:
    new = table(5, seed=2).round(3).assign(weight=[f"{k}.056,12 €" for k in range(1, 6)])
    bring(page, ("german.csv", as_csv(new, sep=";", decimal=",")))
    first = placed(page)
    assert len(first) == 5
    with page.page.expect_download() as waiting:
        page.page.locator("#new-save").click()
    saved = Path(waiting.value.path()).read_bytes()
    assert bring(page, ("saved.csv", saved)).startswith("5 rows of saved.csv placed.")
    np.testing.assert_allclose(placed(page)[5:], first, atol=1e-6)
    (tmp_path / "saved.csv").write_bytes(saved)
    again = read_table(tmp_path / "saved.csv")
    np.testing.assert_allclose(again["weight"].values, [1056.12 + 1000 * k for k in range(5)])


def test_quoted_numbers_with_commas_are_read_between_commas(page: Seen, fit: Any) -> None:
    new = table(3, seed=2).round(2)[NAMES]
    text = "\n".join(",".join(f'"{value:.2f}"'.replace(".", ",") for value in row) for row in new.to_numpy())
    assert paste(page, text) == "3 pasted rows placed."
    assert_placed(page, expected(fit, new))


def test_encodings_and_compressed_files(page: Seen, fit: Any) -> None:
    new = table(4, seed=3).assign(kind="größe")
    for name, data in {
        "utf16.csv": as_csv(new).decode().encode("utf-16"),
        "latin.csv": as_csv(new).decode().encode("cp1252"),
        "small.csv.gz": gzip.compress(as_csv(new)),
    }.items():
        bring(page, (name, data))
        assert_placed(page, expected(fit, new))
        page.page.locator("#new-list button").first.click()
        assert "größe" in page.page.locator("#new-pinned").inner_text()
        page.page.locator("#new-clear").click()


def test_pasted_rows_need_no_header_if_their_number_is_right(page: Seen, fit: Any) -> None:
    new = table(3, seed=4)
    text = new[NAMES].to_csv(index=False, header=False, sep="\t")
    assert paste(page, text) == "3 pasted rows placed."
    assert_placed(page, expected(fit, new))
    message = paste(page, new[NAMES[:3]].to_csv(index=False, header=False, sep="\t"))
    assert message == (
        "The pasted text could not be placed: its rows have 3 values, and the model reads 4: “length”, “width”, “weight”, “age”"
        ", or a first line with their names."
    )
    assert len(placed(page)) == 3  # those from before


def test_typed_rows_are_placed(page: Seen, fit: Any) -> None:
    new = table(2, seed=5).round(4)
    page.page.locator("#new-paste").click()
    page.page.locator("#new-text").fill(as_csv(new).decode())
    page.page.locator("#new-place").click()
    page.page.wait_for_selector('#new-rows[data-brought="1"]')
    assert_placed(page, expected(fit, new))
    assert page.page.locator("#new-text").input_value() == ""


def test_typed_rows_that_are_refused_stay_in_the_field(page: Seen, fit: Any) -> None:
    page.page.locator("#new-paste").click()
    page.page.locator("#new-text").fill("1,2,tall,4")
    page.page.locator("#new-place").click()
    page.page.wait_for_selector('#new-rows[data-brought="1"]')
    assert page.page.locator("#new-status").inner_text() == "No row of the pasted text could be placed:"
    assert page.texts("#new-problems li") == ["line 1: “tall” in “weight” is not a number"]
    assert page.page.locator("#new-text").input_value() == "1,2,tall,4"


def test_of_several_files_the_good_ones_are_placed_and_all_messages_stay(page: Seen, fit: Any) -> None:
    new = table(5, seed=2).round(3)
    odd = as_csv(new).replace(b"\n", b"\nx", 1)
    message = bring(page, ("first.csv", odd), ("bad.csv", b"length\n1\n"), ("last.csv", as_csv(new)), ("a.png", b""))
    assert message.splitlines() == [
        "a.png could not be placed: this page places rows of numbers, not images: bring a table.",
        "4 rows of first.csv placed. 1 row could not be placed:",
        "bad.csv could not be placed: it lacks the columns “width”, “weight”, “age”; its columns are “length”.",
        "5 rows of last.csv placed.",
    ]
    assert [text.partition(":")[0] for text in page.texts("#new-problems li")] == ["line 2"]
    bring(page, ("first.csv", odd), ("last.csv", odd))
    assert [text.partition(":")[0] for text in page.texts("#new-problems li")] == ["first.csv, line 2", "last.csv, line 2"]
    page.page.locator("#new-clear").click()
    bring(page, ("new.csv", as_csv(new.iloc[1:])), ("new.csv", as_csv(new)))
    assert_placed(page, expected(fit, pd.concat([new.iloc[1:], new])))


def test_a_drop_without_rows_replaces_the_message_of_the_last_one(page: Seen) -> None:
    bring(page, ("new.csv", as_csv(table(2))))
    page.page.evaluate(
        """() => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", " ");
            document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
        }"""
    )
    assert page.page.locator("#new-status").inner_text() == "There are no rows in it: bring a file, or copy rows of a table."
    assert len(placed(page)) == 2


def test_text_that_is_pasted_into_the_field_stays_there(page: Seen) -> None:
    script = """() => {
        const clipboardData = new DataTransfer();
        clipboardData.setData("text/plain", "1,2,3,4");
        const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
        return [document.querySelector("#new-text").dispatchEvent(event), document.querySelector("#new-status").textContent];
    }"""
    assert page.page.evaluate(script) == [True, ""]  # the browser's own paste goes on


def test_a_dropped_file_is_placed(page: Seen, fit: Any) -> None:
    new = table(6, seed=6)
    page.page.locator("#new-paste").click()
    for onto in ("#points", "#new-text"):  # a browser opens what is dropped on a field
        assert drop(page, "dropped.csv", as_csv(new).decode(), onto=onto) == "6 rows of dropped.csv placed."
        assert_placed(page, expected(fit, new))
        page.page.locator("#new-clear").click()
    assert page.page.locator("#new-drop").is_hidden()


def test_what_is_wrong_is_named_with_its_line(page: Seen, fit: Any) -> None:
    new = table(6, seed=7).round(3)
    text = as_csv(new).decode().splitlines()
    text[2] = text[2].replace(text[2].split(",")[1], "", 1)
    text[3] = text[3].replace(text[3].split(",")[0], "tall", 1)
    text[4] = "1,2,3"
    text[5] = ",".join(["1e300", *text[5].split(",")[1:]])
    message = bring(page, ("odd.csv", "\n".join(text).encode()))
    assert message == "2 rows of odd.csv placed. 4 rows could not be placed:"
    assert page.texts("#new-problems li") == [
        "line 3: it lacks a value in “width”",
        "line 4: “tall” in “length” is not a number",
        "line 5: it has 3 values, the others 5",
        "line 6: it lies too far from the rows of the fit: check its units",
    ]
    message = bring(page, ("inf.csv", as_csv(new.assign(age=["inf", 1, 2, 3, 4, 5]))))
    assert page.texts("#new-problems li") == ["line 2: “inf” in “age” is read as a missing value"]
    page.page.locator("#new-clear").click()
    bring(page, ("odd.csv", "\n".join(text).encode()))
    assert lines(page) == [2, 7]
    assert_placed(page, expected(fit, new.iloc[[0, 5]]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("length,width,age\n1,2,3\n4,5,6\n", "it lacks the column “weight”; its columns are “length”, “width”, “age”"),
        ("length,width,age,weight,age\n1,2,3,4,5\n", "it has several columns “age”: rename all but one"),
        ("length,width,weight,age\n", "it has names of columns but no rows below them"),
        ("", "it is empty"),
        ("PK\x03\x04\0\0", "it is not text: save the table as CSV"),
        ("%PDF-1.7\nobj\n", "it is not text: save the table as CSV"),
        (
            "Lorem\nipsum\ndolor\n",
            "it is no table with the columns “length”, “width”, “weight”, “age”: its first line is “Lorem”",
        ),
    ],
)
def test_a_file_that_can_not_be_read_is_refused_with_the_reason(page: Seen, text: str, message: str) -> None:
    assert bring(page, ("bad.csv", text.encode())) == f"bad.csv could not be placed: {message}."
    assert page.page.locator("#new-legend").is_hidden()


def test_rows_in_other_units_and_far_rows_are_told(page: Seen) -> None:
    new = table(30, seed=8)
    assert "times as far as those of the fit: check their units." in bring(
        page, ("grams.csv", as_csv(new.assign(weight=new["weight"] * 1000)))
    )
    few = new.head(3).assign(age=[30, 60, 6000])
    message = bring(page, ("few.csv", as_csv(few)))
    assert (
        "1 row differs from those of the fit by more than 10 times their spread, first line 4: its place means little."
        in message
    )


def test_gaps_are_filled_as_in_the_fit(browser: Any, tmp_path: Path) -> None:
    frame = table()
    model = small_model(frame[NAMES], standardize=True)
    model.fill_values_ = {"age": 33.0}
    with visit(browser, write_model_page(tmp_path / "map.html", model, frame[NAMES])) as seen:
        new = table(3, seed=1)
        message = bring(seen, ("gaps.csv", as_csv(new.assign(age=[np.nan, 20, 30]), na_rep="n/a")))
        assert message == "3 rows of gaps.csv placed. Missing values of 1 row are filled in as in the fit."
        wanted = model.transform(new[NAMES].assign(age=[33.0, 20, 30]))
        assert np.abs(placed(seen) - wanted).max() < CLOSE


def test_categories_and_answers_become_numbers_as_dre_reads_them(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=40),
            "kind=a": np.arange(40) % 2.0,
            "kind=b=c": 1 - np.arange(40) % 2.0,
            "old": np.arange(40) // 20.0,
        }
    )
    model = small_model(frame)
    with visit(browser, write_model_page(tmp_path / "map.html", model, frame)) as seen:
        message = bring(seen, ("new.csv", b"old,size,kind\nyes,0.5,a\nno,1.5,b=c\nno,-1,d\n"))
        assert message == "3 rows of new.csv placed. 1 value of categories did not occur in the fit."
        wanted = model.transform(pd.DataFrame([[0.5, 1, 0, 1], [1.5, 0, 1, 0], [-1, 0, 0, 0]], columns=frame.columns))
        assert np.abs(placed(seen) - wanted).max() < CLOSE


def test_a_click_pins_a_new_row_with_its_columns_and_its_nearest_points(page: Seen, fit: Any) -> None:
    new = table(3, seed=9).assign(name=[HOSTILE_CELL, "second", "third"])
    bring(page, ("new.csv", as_csv(new)))
    page.settled()
    page.page.mouse.click(*page.page.evaluate("explorer.newScreen(0)"))
    card = page.page.locator("#new-pinned")
    assert card.locator("b").first.inner_text() == HOSTILE_CELL
    assert card.locator("img").count() == 0
    values = dict(zip(card.locator("dt").all_inner_texts(), card.locator("dd").all_inner_texts(), strict=True))
    assert values["kind"] == "a"
    assert values["age"] == str(new["age"][0])
    near = np.linalg.norm(fit[0].transform(fit[1][NAMES]) - expected(fit, new)[0], axis=1).argsort()[:10]
    kinds = fit[1]["kind"][near]
    most = int(kinds.value_counts().iloc[0])
    counted = "All 10" if most == 10 else f"{most} of the 10"
    assert card.locator(".label").inner_text() == f"{counted} nearest: {kinds.mode()[0]}"
    assert [text.rpartition(" ")[2] for text in card.locator("li").all_inner_texts()] == [str(each) for each in near]
    card.locator("li button").first.click()
    assert page.page.evaluate("explorer.pinned()") == near[0]
    assert card.is_hidden()
    page.page.locator("#new-list button").nth(1).click()
    assert page.page.evaluate("[explorer.pinned(), explorer.newPinned()]") == [-1, 1]
    page.page.keyboard.press("Escape")
    assert card.is_hidden()


def test_hover_shows_a_new_row_and_a_point_beside_it_its_own_card(page: Seen) -> None:
    bring(page, ("new.csv", as_csv(table(1, seed=10).assign(name="fresh"))))
    page.settled()
    page.page.mouse.move(*page.page.evaluate("explorer.newScreen(0)"))
    assert page.page.locator("#card b").inner_text() == "fresh"
    page.page.mouse.move(*page.screen(1))
    assert page.page.locator("#card b").inner_text() == "row 1"
    page.page.mouse.move(3, 400)
    assert page.page.locator("#card").is_hidden()


def test_saved_rows_have_coordinates_and_columns_and_no_formula(page: Seen, fit: Any) -> None:
    new = table(2, seed=11).assign(note=["=1+1", "-2"])
    bring(page, ("new.csv", as_csv(new)))
    found = saved_rows(page)
    assert list(found[0]) == ["file", "line", "dre1", "dre2", *NAMES, "kind", "note"]
    assert [row["line"] for row in found] == ["2", "3"]
    assert [row["note"] for row in found] == ["'=1+1", "-2"]
    wanted = expected(fit, new)
    assert np.abs(np.array([[row["dre1"], row["dre2"]] for row in found], float) - wanted).max() < CLOSE
    page.page.locator("#new-clear").click()
    assert page.page.locator("#new-legend").is_hidden()
    assert page.page.evaluate("explorer.newRows().count") == 0


def test_the_view_includes_new_rows_that_lie_outside(page: Seen) -> None:
    page.page.evaluate("location.hash = 'view=0.1,0.1,40'")
    page.page.wait_for_timeout(400)
    bring(page, ("new.csv", as_csv(table(6, seed=12))))
    page.settled()
    box = page.page.locator("#map").bounding_box()
    spots = np.array([page.page.evaluate(f"explorer.newScreen({k})") for k in range(6)])
    assert (spots > 0).all()
    assert (spots < [box["width"], box["height"]]).all()


@pytest.mark.slow
def test_many_rows_are_placed_while_the_page_stays_alive(page: Seen, fit: Any) -> None:
    new = table(20_000, seed=13)
    page.page.evaluate(
        """() => {
            window.longest = 0;
            let before = performance.now();
            const watch = () => {
                const now = performance.now();
                window.longest = Math.max(window.longest, now - before);
                before = now;
                setTimeout(watch, 0);
            };
            watch();
        }"""
    )
    assert bring(page, ("many.csv", as_csv(new))) == "20,000 rows of many.csv placed."
    assert page.page.evaluate("window.longest") < 1500  # of work on the page at a time, on a busy machine
    assert_placed(page, expected(fit, new))


def test_placing_can_be_cancelled_and_begun_anew(page: Seen, fit: Any) -> None:
    new = table(50_000, seed=14).round(3)
    page.page.evaluate(
        """() => {
            const running = document.getElementById("new-running");
            const press = () => {
                if (running.hidden || window.pressed) return;
                window.pressed = true;
                document.getElementById("new-cancel").click();
            };
            new MutationObserver(press).observe(running, { attributes: true });
        }"""
    )
    assert bring(page, ("many.csv", as_csv(new))) == "Cancelled."
    assert bring(page, ("few.csv", as_csv(new.head(3)))) == "3 rows of few.csv placed."
    assert_placed(page, expected(fit, new.head(3)))


@pytest.mark.parametrize(
    "broken",
    [
        "window.Worker = undefined",
        "window.Worker = class { constructor() { setTimeout(() => this.onerror(new Event('error'))) } }",
    ],
)
def test_without_workers_the_page_itself_places_rows(browser: Any, path: Path, fit: Any, broken: str) -> None:
    context = browser.new_context()
    tab = context.new_page()
    tab.add_init_script(broken)
    seen = Seen(tab).open(path)
    new = table(3_000, seed=15)
    bring(seen, ("new.csv", as_csv(new)))
    assert tab.locator("html").get_attribute("data-placer") == "page"
    assert np.abs(placed(seen) - expected(fit, new)).max() < CLOSE
    context.close()


def test_a_browser_that_computes_otherwise_is_refused(browser: Any, path: Path) -> None:
    context = browser.new_context()
    tab = context.new_page()
    tab.add_init_script("window.Worker = undefined; Math.sqrt = (x) => x")
    seen = Seen(tab).open(path)
    message = bring(seen, ("new.csv", as_csv(table(3))))
    assert message.startswith("new.csv could not be placed: this browser computes other coordinates than the model, by ")
    context.close()


def test_new_rows_belong_to_the_last_stage(browser: Any, tmp_path: Path) -> None:
    frame = table()
    model = small_model(frame[NAMES], standardize=True, n_components=3)
    from dre.explore import build_explorer, write_page

    stages = [("before", model.transform(frame[NAMES]) * [1, -1, 1]), ("after", model.transform(frame[NAMES]))]
    beside = {"other": frame[NAMES].to_numpy()[:, :2].astype(np.float32)}
    explorer = build_explorer(stages, title="t", model=model, beside=beside, trust=False, neighbors=False)
    write_page(tmp_path / "map.html", explorer)
    with visit(browser, tmp_path / "map.html") as seen:
        new = table(4, seed=1)
        bring(seen, ("new.csv", as_csv(new)))
        wanted = model.transform(new[NAMES])
        assert placed(seen).shape == (4, 3)
        assert np.abs(placed(seen) - wanted).max() < CLOSE
        assert seen.page.locator("#new-stage").is_hidden()
        before = np.array(seen.page.evaluate("explorer.newScreen(0)"))
        seen.page.locator("#turn").click()
        seen.page.mouse.move(200, 300)
        seen.page.mouse.down()
        seen.page.mouse.move(260, 340, steps=3)
        seen.page.mouse.up()
        assert np.linalg.norm(np.array(seen.page.evaluate("explorer.newScreen(0)")) - before) > 1
        seen.page.locator("#new-list button").first.click()
        seen.page.evaluate("explorer.goToStage(0)")
        assert seen.page.locator("#new-stage").is_visible()
        assert seen.page.locator("#new-pinned").is_hidden()
        assert seen.said == []


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(("shape", "scale"), [((9, 8), 1.0), ((9, 8, 3), 1.0), ((3, 9, 8), 255.0), ((72,), 255.0)], ids=str)
def test_images_are_placed_as_the_same_pixels(browser: Any, tmp_path: Path, shape: tuple[int, ...], scale: float) -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, size=(40, *shape)).astype(np.uint8)
    rows = pixels if scale == 1 else (pixels / scale).astype(np.float32)
    model = small_model(rows)
    path = write_model_page(tmp_path / "map.html", model, rows, images=(9, 8) if len(shape) == 1 else True)
    shown = [
        np.moveaxis(each, 0, -1) if shape[0] == 3 else each.reshape(9, 8) if len(shape) == 1 else each for each in pixels[:3]
    ]
    with visit(browser, path) as seen:
        message = bring(seen, *((f"{k}.png", png(image)) for k, image in enumerate(shown)))
        assert message == "3 images placed."
        assert np.abs(placed(seen) - model.transform(rows[:3])).max() < CLOSE
        large = rng.integers(0, 256, size=(31, 23, 3)).astype(np.uint8)
        message = bring(seen, ("large.png", png(large)))
        assert message == "large.png placed. 1 image cropped in the middle and resized from 23 × 31 to 8 × 9 pixels."
        fitted = np.asarray(ImageOps.fit(Image.fromarray(large).convert("RGB" if 3 in shape else "L"), (8, 9)))
        same = (np.moveaxis(fitted, -1, 0) if shape[0] == 3 else fitted).reshape(1, *shape) / scale
        assert np.abs(placed(seen)[3:] - model.transform(same.astype(rows.dtype))).max() < CLOSE
        seen.page.locator("#new-list button").last.click()
        assert seen.page.locator("#new-pinned .new-image").is_visible()
        assert seen.page.locator("#new-pinned b").first.inner_text() == "large.png"
        assert bring(seen, ("broken.png", b"no image")) == "broken.png could not be placed: this browser can't decode it."
        assert seen.said == []


def rows_of_images(seen: Seen, files: list[bytes], shape: tuple[int, ...]) -> np.ndarray:
    """The rows that the page makes of images, as bytes of the given shape."""
    script = """async ([texts, [height, width, channels]]) => {
        const spec = { ...explorer.imageSpec, height, width, channels, layout: "hwc", low: 0, high: 255 };
        const rows = [];
        for (const text of texts) {
            const file = new Blob([Uint8Array.from(atob(text), (each) => each.charCodeAt(0))]);
            rows.push(Array.from(explorer.engine.rowOfImage(await explorer.readPixels(file), spec).row));
        }
        return rows;
    }"""
    texts = [base64.b64encode(each).decode() for each in files]
    found = seen.page.evaluate(script, [texts, [shape[0], shape[1], shape[2] if len(shape) > 2 else 1]])
    return np.array(found).reshape(len(files), *shape)


@pytest.fixture(scope="module")
def image_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    rows = np.random.default_rng(0).integers(0, 256, size=(40, 9, 8)).astype(np.uint8)
    path = write_model_page(tmp_path_factory.mktemp("pages") / "map.html", small_model(rows), rows)
    with visit(browser, path) as seen:
        yield seen
        assert seen.said == []


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_images_of_any_size_are_resized_as_pillow_does(image_page: Seen, mode: str) -> None:
    rng = np.random.default_rng(1)
    for side in (7, 28, 40):
        sizes = [(side, 2 * side), (43, 100), (24, 24), *rng.integers(6, 90, (20, 2)).tolist()]
        images = [rng.integers(0, 256, (height, width, len(mode))).astype(np.uint8).squeeze() for width, height in sizes]
        for size in ((side, side), (side, side + 9)):
            expected = [np.asarray(ImageOps.fit(Image.fromarray(each), size)) for each in images]
            found = rows_of_images(image_page, [png(each) for each in images], expected[0].shape)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
@pytest.mark.parametrize("wanted", ["L", "RGB"])
@pytest.mark.parametrize("size", [(16, 16), (9, 7)])
def test_transparent_images_are_laid_on_white(image_page: Seen, mode: str, wanted: str, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (16, 16, len(mode))).astype(np.uint8)
    pixels[:4, :, -1], pixels[4:8, :, -1] = 0, 255
    for image in (Image.fromarray(pixels), Image.fromarray(pixels).convert("RGBA")):
        file = io.BytesIO()
        image.save(file, "PNG")
        with Image.open(file) as opened:
            expected = to_pixels(opened, wanted, size)
        found = rows_of_images(image_page, [file.getvalue()], expected.shape)[0]
        np.testing.assert_array_equal(found, expected)


def test_photos_are_turned_upright(image_page: Seen) -> None:
    pixels = np.zeros((16, 8), np.uint8)
    pixels[:8] = 255
    for orientation in range(1, 9):
        file, exif = io.BytesIO(), Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(pixels).save(file, "JPEG", quality=100, exif=exif)
        with Image.open(file) as opened:
            expected = to_pixels(opened, "L", (8, 8))
        assert np.abs(rows_of_images(image_page, [file.getvalue()], (8, 8))[0] - expected).max() < 8, orientation


def test_a_transparent_image_is_placed_where_transform_places_it_on_white(image_page: Seen, tmp_path: Path) -> None:
    clear = np.zeros((9, 8, 4), np.uint8)
    clear[3:6, :, 3] = 128
    assert bring(image_page, ("clear.png", png(clear))) == "clear.png placed."
    rows = np.random.default_rng(0).integers(0, 256, size=(40, 9, 8)).astype(np.uint8)
    white = np.full((1, 9, 8), 255, np.uint8)
    white[0, 3:6] = 127
    assert np.abs(placed(image_page)[-1:] - small_model(rows).transform(white)).max() < CLOSE


def test_images_are_refused_by_a_model_of_columns(page: Seen) -> None:
    message = bring(page, ("a.png", png(np.zeros((4, 4), np.uint8))))
    assert message == "a.png could not be placed: this page places rows of numbers, not images: bring a table."


def test_of_several_images_those_that_can_be_decoded_are_placed(image_page: Seen) -> None:
    good = png(np.full((9, 8), 7, np.uint8))
    message = bring(image_page, ("a.png", good), ("b.png", b"no image"), ("c.png", good), ("d.csv", b"no table"))
    assert message.splitlines() == [
        "2 images placed. 1 image could not be placed:",
        "d.csv could not be placed: it has no name of an image, such as .png or .jpg, and as a table it has names of columns "
        "but no rows below them.",
    ]
    assert image_page.texts("#new-problems li") == ["b.png: this browser can't decode it"]
    assert image_page.texts("#new-list button[aria-label$='c.png']") != []
    message = bring(image_page, ("x.png", b""), ("y.png", b""))
    assert message == "None of 2 images could be placed:"


def test_on_a_phone_a_refusal_is_seen_and_nothing_is_said_of_drops(browser: Any, path: Path) -> None:
    with visit(browser, path, phone=True) as seen:
        assert seen.page.locator("#new-hint").inner_text() == "Choose a CSV file, or paste rows of a spreadsheet."
        seen.page.evaluate("scrollTo(0, 0)")
        bring(seen, ("bad.csv", b"a,b\n1,2\n"))
        assert seen.page.locator("#new-status").evaluate(IS_SEEN)


def test_on_a_phone_controls_fit_a_thumb_and_nothing_is_too_wide(browser: Any, path: Path) -> None:
    with visit(browser, path, phone=True) as seen:
        bring(seen, ("new.csv", as_csv(table(3, seed=1))))
        seen.page.locator("#new-paste").tap()
        seen.settled()
        small = seen.page.evaluate(
            """[...document.querySelectorAll("#new-rows button, #new-rows textarea")].filter((each) => each.checkVisibility())
                .map((each) => [each.id, each.getBoundingClientRect().height]).filter(([, tall]) => tall < 43.5)"""
        )
        assert small == []
        assert seen.page.evaluate("document.documentElement.scrollWidth") == 390
        seen.page.locator("#new-list button").first.tap()
        sheet = seen.page.locator("#new-pinned").bounding_box()
        assert sheet["width"] == 390
        assert seen.page.evaluate("explorer.newScreen(0)")[1] < sheet["y"]


def test_a_page_without_a_model_has_none_of_this(browser: Any, page_file: Path) -> None:
    text = page_file.read_text()
    assert "new-rows" not in text.partition("<body>")[2].partition("<script")[0]
    assert "worker-src" not in text
    assert "rowEngine" not in text.replace("listenToNewRows", "")
