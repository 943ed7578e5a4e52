"""How points are drawn, by WebGL2 and into pixels: colors, order, size, detail while moving, density and class names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_page import Seen
from made_maps import Array, classes_of, count_colored, drag, groups, names_drawn, pixels, rest, shown, write_map

from dre.explore.columns import make_column

pytestmark = pytest.mark.slow  # seconds per test

RENDERERS = ("canvas", "webgl2")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    embedding, codes = groups(600, 4)
    return write_map(tmp_path_factory.mktemp("few") / "few.html", {"map": embedding}, [classes_of(codes)], color="class")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    embedding, codes = groups(120_000, 5)
    return write_map(tmp_path_factory.mktemp("many") / "many.html", {"map": embedding}, [classes_of(codes)], color="class")


def renderer(seen: Seen) -> str:
    return str(seen.page.locator("#points").get_attribute("data-renderer"))


def color_at(image: Array, spot: tuple[float, float]) -> Array:
    x, y = (round(each) for each in spot)
    return np.median(image[y - 1 : y + 2, x - 1 : x + 2, :3].reshape(-1, 3), axis=0)


@pytest.mark.parametrize("name", RENDERERS)
def test_each_point_is_drawn_at_its_place_in_the_color_of_its_class(browser: Any, few: Path, name: str) -> None:
    with shown(browser, few, f"#render={name}") as seen:
        rest(seen)
        image = pixels(seen)
        assert renderer(seen) == name
        dots = seen.page.evaluate(
            "[...document.querySelectorAll('#legend .dot')].map((each) => getComputedStyle(each).backgroundColor)"
        )
        legend = np.array([[int(part) for part in dot[4:-1].split(",")] for dot in dots])
        for row in range(0, 600, 37):
            distances = np.abs(legend - color_at(image, seen.screen(row))).sum(axis=1)
            assert distances.argmin() == row % 4


def test_both_renderers_draw_the_same_picture(browser: Any, few: Path) -> None:
    images = []
    for name in RENDERERS:
        with shown(browser, few, f"#render={name}") as seen:
            rest(seen)
            images.append(pixels(seen)[..., :3])
    colored = [count_colored(image) for image in images]
    assert colored[0] == pytest.approx(colored[1], rel=0.2)
    assert np.abs(images[0] - images[1]).mean() < 1.0


def test_emulated_webgl_is_used_only_if_it_is_asked_for(browser: Any, few: Path) -> None:
    with shown(browser, few) as seen:
        rest(seen)
        emulated = seen.page.evaluate(
            """() => window.contexts.every((gl) => {
                const { UNMASKED_RENDERER_WEBGL = gl.RENDERER } = gl.getExtension("WEBGL_debug_renderer_info") || {};
                return /swiftshader|llvmpipe|software/i.test(gl.getParameter(UNMASKED_RENDERER_WEBGL));
            })"""
        )
        assert renderer(seen) == ("canvas" if emulated else "webgl2")


def test_a_lost_context_is_replaced_by_pixels_until_it_returns(browser: Any, few: Path) -> None:
    with shown(browser, few, "#render=webgl2") as seen:
        rest(seen)
        before = pixels(seen)[..., :3]
        seen.page.evaluate("(window.lost = window.contexts[0].getExtension('WEBGL_lose_context')).loseContext()")
        seen.page.wait_for_selector('#points[data-renderer="canvas"]')
        assert np.abs(pixels(seen)[..., :3] - before).mean() < 1.0
        seen.page.evaluate("window.lost.restoreContext()")
        seen.page.wait_for_selector('#points[data-renderer="webgl2"]')
        rest(seen)
        assert np.abs(pixels(seen)[..., :3] - before).mean() < 0.1


@pytest.mark.parametrize("name", RENDERERS)
def test_low_values_lie_on_top_where_the_column_says_so(browser: Any, tmp_path: Path, name: str) -> None:
    """All points but two lie on one spot; the lowest value gives the color."""
    embedding = np.zeros((200, 2))
    embedding[0], embedding[1] = (-5, 0), (5, 0)
    values = np.linspace(0, 1, 200)
    embedding[[0, 199]], embedding[[1, 198]] = embedding[[199, 0]], embedding[[198, 1]]
    column = replace(make_column("value", values), low_on_top=True)
    path = write_map(tmp_path / "stack.html", {"map": embedding}, [column], color="value")
    with shown(browser, path, f"#render={name}") as seen:
        rest(seen)
        image, colors = pixels(seen), column.colors
        assert colors is not None
        found = color_at(image, seen.screen(0))
        low, high = (np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) for color in (colors[0], colors[-1]))
        assert np.abs(found - low).sum() < 60 < np.abs(found - high).sum()


@pytest.mark.parametrize("name", RENDERERS)
def test_points_that_pass_no_filter_are_dimmed_and_lie_below(browser: Any, few: Path, name: str) -> None:
    with shown(browser, few, f"#render={name}") as seen:
        seen.page.locator("#legend .classes button").first.click()
        rest(seen)
        image = pixels(seen)
        kept, dimmed = color_at(image, seen.screen(0)), color_at(image, seen.screen(1))
        assert np.ptp(kept) > 60
        assert np.ptp(dimmed) < 25  # gray
        assert 190 < dimmed.mean() < 253


def test_points_are_larger_where_few_are_visible_and_smaller_where_many_are(browser: Any, few: Path, many: Path) -> None:
    def area(seen: Seen) -> float:
        """Of the disc of a point that stands alone, in pixels."""
        return float(seen.page.evaluate("explorer.look().radius")) ** 2

    with shown(browser, few) as seen:
        rest(seen)
        home = area(seen)
        for _ in range(4):
            seen.page.locator("#zoom-in").click()
        rest(seen)
        assert area(seen) > 1.5 * home
    with shown(browser, many) as seen:
        rest(seen)
        assert area(seen) < 0.5 * home
        assert seen.page.evaluate("explorer.look().opacity") < 0.8


@pytest.mark.parametrize("name", RENDERERS)
def test_many_points_lose_detail_only_while_they_move(browser: Any, many: Path, name: str) -> None:
    with shown(browser, many, f"#render={name}") as seen:
        rest(seen)
        before = pixels(seen)[..., :3]
        seen.page.context.new_cdp_session(seen.page).send("Emulation.setCPUThrottlingRate", {"rate": 8})
        seen.page.evaluate(
            """() => {
                window.details = new Set();
                new MutationObserver(() => window.details.add(points.dataset.detail)).observe(points, { attributes: true });
            }"""
        )
        drag(seen, (400, 400), (120, 60), steps=10)
        drag(seen, (520, 460), (-120, -60), steps=10)
        seen.page.wait_for_selector('#points[data-detail="full"]')
        seen.page.wait_for_timeout(1500)
        assert seen.page.evaluate("window.details.has('full')")
        if name == "canvas":  # the throttle slows the page, not the process that emulates WebGL2
            assert seen.page.evaluate("window.details.has('part')")
        assert np.abs(pixels(seen)[..., :3] - before).mean() < 0.2


@pytest.mark.parametrize("name", RENDERERS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_density_is_deep_where_points_are_and_follows_filters_and_theme(browser: Any, few: Path, name: str, theme: str) -> None:
    with shown(browser, few, f"#render={name}", theme=theme) as seen:
        seen.page.locator("#density").click()
        rest(seen)
        image = pixels(seen)[..., :3].sum(axis=2)
        empty, centers = (
            image[-1, -1],
            [np.mean([seen.screen(row) for row in range(code, 600, 4)], axis=0) for code in range(4)],
        )
        deep = [abs(int(image[int(y), int(x)]) - int(empty)) for x, y in centers]
        assert (empty > 700) == (theme == "light")
        assert min(deep) > 200
        seen.page.locator("#legend .classes button").first.click()
        rest(seen)
        image = pixels(seen)[..., :3].sum(axis=2)
        kept, *gone = (abs(int(image[int(y), int(x)]) - int(empty)) for x, y in centers)
        assert kept > 200
        assert max(gone) < 30
        assert seen.page.locator("#density-scale").is_visible()
        seen.page.locator("#density").click()
        rest(seen)
        assert seen.page.locator("#density-scale").is_hidden()


def overlap(names: list[tuple[str, float, float, float]]) -> bool:
    return any(
        abs(x1 - x2) < (w1 + w2) / 2 and abs(y1 - y2) < 13
        for k, (_, x1, y1, w1) in enumerate(names)
        for _, x2, y2, w2 in names[:k]
    )


def test_of_many_classes_as_many_names_as_fit_are_shown_and_more_when_zooming_in(browser: Any, tmp_path: Path) -> None:
    embedding, codes = groups(10_000, 250)
    path = write_map(tmp_path / "classes.html", {"map": embedding}, [classes_of(codes)], color="class")
    with shown(browser, path) as seen:
        rest(seen)
        far = names_drawn(seen)
        assert 40 < len(far) < 250
        assert not overlap(far)
        middle = [name for name, x, y, _ in far if abs(x - 480) < 240 and abs(y - 400) < 200]
        seen.page.mouse.move(480, 400)
        seen.page.mouse.dblclick(480, 400)
        rest(seen)
        near = names_drawn(seen)
        assert not overlap(near)
        assert len({name for name, *_ in near}) > 1.3 * len(middle)


def test_a_name_stands_on_a_part_of_its_class_not_between_two(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 0, 1], [60, 40, 50])
    centers = np.repeat([[-5.0, 0.0], [5.0, 0.0], [0.0, 3.0]], [60, 40, 50], axis=0)
    path = write_map(
        tmp_path / "lobes.html", {"map": centers + rng.normal(size=(150, 2)) * 0.3}, [classes_of(codes)], color="class"
    )
    with shown(browser, path) as seen:
        rest(seen)
        found = {name: (x, y) for name, x, y, _ in names_drawn(seen)}
        larger = np.mean([seen.screen(row) for row in range(60)], axis=0)
        assert np.linalg.norm(found["class 000"] - larger) < 40


def test_a_dense_screen_has_a_canvas_with_as_many_pixels(browser: Any, few: Path) -> None:
    with shown(browser, few, ratio=2) as seen:
        rest(seen)
        wide, tall = seen.page.evaluate("[points.width / points.clientWidth, points.height / points.clientHeight]")
        assert (wide, tall) == pytest.approx((2, 2), abs=0.01)
        x, y = seen.screen(0)
        assert np.ptp(color_at(pixels(seen), (2 * x, 2 * y))) > 60


def test_neighbors_of_the_pinned_point_are_marked_by_kind(seen: Seen) -> None:
    seen.page.locator("#show-names").uncheck()
    seen.pin(0)
    rest(seen)
    near = seen.page.evaluate("explorer.neighbors()")
    kinds = {
        "map": set(near["map"]) - set(near["data"]),
        "data": set(near["data"]) - set(near["map"]),
        "both": set(near["map"]) & set(near["data"]),
    }
    assert kinds["map"]
    assert kinds["data"]
    ink = pixels(seen, "#overlay")
    for kind, rows in kinds.items():
        wanted = seen.page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--near-{kind}').trim()")
        color = np.array([int(wanted[k : k + 2], 16) for k in (1, 3, 5)])
        for row in rows:
            x, y = (round(each) for each in seen.screen(row))
            around = ink[max(0, y - 14) : y + 15, max(0, x - 14) : x + 15]
            alike = (np.abs(around[..., :3] - color).max(axis=-1) < 40) & (around[..., 3] > 120)
            assert alike.sum() > 8, (kind, row)
    assert seen.page.locator("#marks").is_visible()
    seen.page.keyboard.press("Escape")
    rest(seen)
    assert pixels(seen, "#overlay")[..., 3].max() == 0
    assert seen.page.locator("#marks").is_hidden()


def test_a_page_that_opens_draws_its_points_once(browser: Any, many: Path) -> None:
    with shown(browser, many) as seen:
        rest(seen)
        assert seen.page.locator("#points").get_attribute("data-frames") == "1"
        assert seen.page.locator("#first-map").get_attribute("data-names") == "5"
