"""The picture as a file: PNG at twice the resolution, SVG with points, names, legend and title."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from known_page import HOSTILE, Seen
from made_maps import classes_of, groups, pixels, rest, shown, write_map
from PIL import Image

from dre.explore.columns import make_column

pytestmark = pytest.mark.slow  # seconds per test

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    embedding, codes = groups(240, 3)
    columns = [
        classes_of(codes),
        make_column("hostile", np.array([HOSTILE, "other"], dtype=object)[codes % 2]),
        make_column("value", np.linspace(0, 1, 240)),
    ]
    return write_map(
        tmp_path_factory.mktemp("made") / "made.html", {"ours": embedding, "theirs": embedding[:, ::-1]}, columns, color="class"
    )


def saved(seen: Seen, button: str) -> bytes:
    with seen.page.expect_download() as downloading:
        seen.page.locator(button).click()
    assert downloading.value.suggested_filename == f"Made-map.{button[1:]}"
    return Path(downloading.value.path()).read_bytes()


def svg_of(seen: Seen) -> ElementTree.Element:
    return ElementTree.fromstring(saved(seen, "#svg"))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


def test_a_png_shows_map_legend_and_title_at_twice_the_resolution(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        rest(seen)
        picture = np.array(Image.open(io.BytesIO(saved(seen, "#png"))).convert("RGB"), dtype=np.int32)
        wide, tall = seen.page.evaluate("[points.clientWidth, points.clientHeight]")
        tall_picture, wide_picture, _ = picture.shape
        assert wide_picture > 2 * wide + 200
        assert tall_picture > 2 * tall
        x, y = seen.screen(0)
        head = tall_picture // 2 - tall
        found, drawn = picture[int(2 * (y + head)), int(2 * x)], pixels(seen)[round(y), round(x), :3]
        assert np.abs(found - drawn).max() < 40
        assert (picture[: 2 * head, : 2 * wide] < 100).all(axis=2).sum() > 500  # the title
        legend = picture[2 * head :, 2 * wide :]
        assert (np.ptp(legend, axis=2) > 60).sum() > 300  # dots of the classes
        assert seen.said == []


def test_an_svg_has_each_visible_point_as_a_circle_and_text_as_text(browser: Any, made: Path) -> None:
    with shown(browser, made, "#beside=nothing") as seen:
        rest(seen)
        root = svg_of(seen)
        map_of_points = root.find(f"{SVG}svg")
        assert map_of_points is not None
        circles = list(map_of_points.iter(f"{SVG}circle"))
        assert len(circles) == 240
        places = np.array([[float(each.get("cx", "")), float(each.get("cy", ""))] for each in circles])
        for row in (0, 100, 239):
            assert np.abs(places - seen.screen(row)).max(axis=1).min() < 0.1
        said = texts(root)
        assert {"Made map", "240 points", "class", "class 000", "80"} <= set(said)
        assert said.count("class 001") == 2  # on the map and in the legend
        seen.page.mouse.dblclick(*seen.screen(0))
        rest(seen)
        assert len(list(svg_of(seen).find(f"{SVG}svg").iter(f"{SVG}circle"))) < 200  # type: ignore[union-attr]


def test_many_points_and_a_density_become_an_image(browser: Any, tmp_path: Path, made: Path) -> None:
    embedding, codes = groups(20_500, 4)
    path = write_map(tmp_path / "many.html", {"map": embedding}, [classes_of(codes)], color="class")
    for page, fragment in ((path, ""), (made, "#density=1")):
        with shown(browser, page, fragment) as seen:
            rest(seen)
            inner = svg_of(seen).find(f"{SVG}svg")
            assert inner is not None
            assert not list(inner.iter(f"{SVG}circle"))
            [image] = inner.iter(f"{SVG}image")
            data = base64.b64decode((image.get("href") or "").removeprefix("data:image/png;base64,"))
            found = np.array(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.int32)
            assert found.shape[0] == 2 * round(float(inner.get("height", "")))
            assert (found.sum(axis=2) < 690).mean() > 0.01


def test_a_scale_has_a_ramp_with_ticks_and_a_filter_is_told(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        seen.page.locator("#legend .classes button").first.click()
        seen.page.locator("#color").select_option(label="value")
        rest(seen)
        root = svg_of(seen)
        assert len(list(root.iter(f"{SVG}stop"))) > 3
        assert {"value", "0.2", "0.8"} <= set(texts(root))
        assert any(text.startswith("80 of 240 points: class") for text in texts(root))


def test_a_hostile_name_is_text_in_the_picture(browser: Any, made: Path) -> None:
    with shown(browser, made) as seen:
        seen.page.locator("#color").select_option(label="hostile")
        rest(seen)
        root = svg_of(seen)
        assert not [
            each
            for each in root.iter()
            if each.tag not in {SVG + name for name in ("svg", "g", "rect", "circle", "text", "image")}
        ]
        assert any(text.startswith("<img src=x onerror") for text in texts(root))


def test_both_maps_are_in_the_picture(browser: Any, made: Path) -> None:
    with shown(browser, made, "#beside=1,0") as seen:
        rest(seen)
        root = svg_of(seen)
        maps = root.findall(f"{SVG}svg")
        assert [len(list(each.iter(f"{SVG}circle"))) for each in maps] == [240, 240]
        assert {"ours", "theirs"} <= set(texts(root))
        assert float(maps[1].get("x", "")) >= float(maps[0].get("width", "")) - 1
