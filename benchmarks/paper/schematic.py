"""Figure 2 of the paper, the schematic, drawn from the schedule: sources, targets and losses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dre.encoder import Encoder
from dre.notation import write_value
from dre.plan.recipe import DataSpec, Recipe
from dre.plan.recipes import RECIPES
from dre.plan.schedule import Stage
from dre.plot.style import BACKGROUND, TEXT
from paper.canvas import EDGE, LANES, QUIET, one_sheet, tint
from paper.networks import DrawnLayer, layers

# The paper's symbols of the target and of its counterpart in the embedding, and the loss.
SYMBOLS = {"kl": ("P", "Q", "t-SNE loss\nKL(P‖Q)"), "ce": ("V", "W", "UMAP loss\nCE(V‖W)")}
MNIST_SPEC = DataSpec(60_000, (1, 28, 28), "cpu")
LEFT, STEP, BOX = 1.55, 2.2, 1.76  # titles of the lanes; distance and width of the network's parts
HEIGHT, LANE, SLOT, APART = 0.86, 0.3, 1.3, 0.34  # height of a part, above the first target, of a target, between lanes


@dataclass(frozen=True)
class Lane:
    """Consecutive stages with the same affinity and loss, with their numbers in the schedule."""

    stages: tuple[tuple[int, Stage], ...]

    @property
    def symbols(self) -> tuple[str, str, str]:
        loss = self.stages[0][1].loss
        return SYMBOLS.get(loss.name, ("P", "Q", str(loss)))

    @property
    def slots(self) -> int:
        """The largest number of stages that read the same source; they are stacked."""
        sources = [stage.source for _, stage in self.stages]
        return max(sources.count(source) for source in sources)


def lanes(recipe: Recipe) -> list[Lane]:
    """Group the stages of a recipe into lanes."""
    numbered = enumerate(recipe.schedule, 1)
    groups = groupby(numbered, key=lambda each: (type(each[1].affinity), type(each[1].loss)))
    return [Lane(tuple(group)) for _, group in groups]


def draw_schematic(recipe: Recipe | None = None, shape: tuple[int, ...] = MNIST_SPEC.shape) -> Any:
    """Draw the paper's recipe or another one for rows of a shape; return a matplotlib figure."""
    recipe = RECIPES["paper"](MNIST_SPEC, None) if recipe is None else recipe
    network = recipe.encoder.build(shape, 2) if isinstance(recipe.encoder, Encoder) else recipe.encoder
    columns = _columns(layers(network, shape), shape)
    found = lanes(recipe)
    width = LEFT + len(columns) * STEP + 2.6
    height = 1.75 + sum(LANE + SLOT * lane.slots + APART for lane in found)
    figure, axis = one_sheet((width, height), scale=0.8)
    network_y = height - 0.75
    centers = {name: LEFT + BOX / 2 + STEP * i for i, name in enumerate(columns)}
    _network(axis, columns, centers, network_y)
    top = network_y - HEIGHT / 2 - 0.55
    for i, lane in enumerate(found):
        _LaneDrawing(axis, centers, LANES[i % len(LANES)], width, network_y).draw(lane, i, top)
        top -= LANE + SLOT * lane.slots + APART
    return figure


def _columns(found: list[DrawnLayer], shape: tuple[int, ...]) -> dict[str, tuple[str, str]]:
    """Return the parts of the network in order, each with its size and title."""
    columns = {"x": (" × ".join(map(str, shape)), "input x")}
    for part in dict.fromkeys(layer.part for layer in found):
        own = [layer for layer in found if layer.part == part]
        size = " × ".join(map(str, own[-1].shape))
        if part == "features":
            columns[part] = (size, "feature extraction")
        else:
            columns[part] = (size, "map y" if part == "out" else part)
    return columns


def _network(axis: Any, columns: dict[str, tuple[str, str]], centers: dict[str, float], y: float) -> None:
    before = None
    for name, (size, title) in columns.items():
        x = centers[name]
        _box(axis, (x, y), (BOX, HEIGHT), tint(name), EDGE)
        axis.text(x, y + 0.14, size, ha="center", va="center", fontsize=11.5, fontweight="bold", color=TEXT)
        axis.text(x, y - 0.2, title, ha="center", va="center", fontsize=8.5, color=QUIET)
        if before is not None:
            _line(axis, [(before + BOX / 2 + 0.04, y), (x - BOX / 2 - 0.04, y)], EDGE)
        before = x
    axis.text(0.32, y, "Network", fontsize=11, fontweight="bold", color=TEXT, va="center")


class _LaneDrawing:
    """Draws a lane below the network."""

    def __init__(self, axis: Any, centers: dict[str, float], color: str, width: float, network: float) -> None:
        self.axis, self.centers, self.color, self.width = axis, centers, color, width
        self.network, self.below_y = network, network - HEIGHT / 2 - 0.03

    def draw(self, lane: Lane, at: int, top: float) -> None:
        target, counterpart, loss = lane.symbols
        bottom = top - LANE - SLOT * lane.slots
        middle = (top - LANE + bottom) / 2 + 0.2
        wide = self.width - 0.3
        _box(self.axis, (self.width / 2, (top + bottom) / 2), (wide, top - bottom), self.color + "12", self.color + "66")
        epochs = sum(stage.epochs for _, stage in lane.stages)
        self.axis.text(0.32, middle + 0.1, f"Stage {at + 1}", fontsize=11, fontweight="bold", color=self.color, va="center")
        self.axis.text(0.32, middle - 0.2, f"{epochs} epochs", fontsize=8.5, color=QUIET, va="center")
        ends, seen = [], dict.fromkeys(self.centers, 0)
        for number, stage in lane.stages:
            part = _part(stage.source, self.centers)
            y = top - LANE - SLOT * seen[part] - 0.47
            self._lead(self.centers[part], y, at + seen[part])
            seen[part] += 1
            self._target(number, stage, target, self.centers[part], y)
            ends.append((self.centers[part], y - 0.5))
        self._compare(counterpart, loss, middle, top, at)
        self._gather(ends, bottom + 0.14, middle)

    def _lead(self, x: float, y: float, past: int) -> None:
        """Draw the line from a source to its target, past rows of targets above it."""
        if past == 0:
            self._line([(x, self.below_y), (x, y + 0.5)])
            return
        turn, side = self.below_y - 0.1 - 0.12 * past, x + BOX / 2 + 0.08 + 0.1 * past
        start = x + BOX / 2 - 0.15 * past
        self._line([(start, self.below_y), (start, turn), (side, turn), (side, y), (x + BOX / 2 + 0.03, y)])

    def _target(self, number: int, stage: Stage, target: str, x: float, y: float) -> None:
        _box(self.axis, (x, y), (BOX, 0.94), BACKGROUND, self.color, over=True)
        rate = "" if stage.lr is None else f", rate {write_value(stage.lr)}"
        lines = [
            (0.25, f"${target}$ from {stage.source}", 10.5, TEXT),
            (-0.04, str(stage.affinity), 7, QUIET),
            (-0.28, f"{stage.epochs} epochs{rate}", 7, QUIET),
        ]
        for up, text, size, color in lines:
            self.axis.text(x, y + up, text, ha="center", va="center", fontsize=size, color=color, zorder=5)
        corner = x - BOX / 2 + 0.04, y + 0.43
        self.axis.scatter(*([value] for value in corner), s=150, color=self.color, zorder=5)
        look = {"fontsize": 8, "color": "white", "fontweight": "bold", "zorder": 6}
        self.axis.text(*corner, str(number), ha="center", va="center_baseline", **look)

    def _compare(self, counterpart: str, loss: str, middle: float, top: float, at: int) -> None:
        """Draw the embedding's side of the loss, the loss, and the gradient."""
        x, loss_x, side = self.centers["out"], self._loss_x, 0.62 * at
        self._line([(x + side, self.below_y), (x + side, top - 0.12), (x, top - 0.12), (x, middle + 0.33)])
        _box(self.axis, (x, middle), (0.9, 0.6), BACKGROUND, self.color)
        self.axis.text(x, middle, f"${counterpart}$", ha="center", va="center", fontsize=13, color=TEXT)
        self._line([(x + 0.47, middle), (loss_x - 0.83, middle)])
        back, enter = loss_x + 0.45 + 0.5 * at, self.network + 0.12 - 0.26 * at
        start = (back, middle + 0.42) if at == 0 else (loss_x + 0.79, middle)
        corners = [start, *([(back, middle)] if at else []), (back, enter), (x + BOX / 2 + 0.04, enter)]
        self._line(corners, dashed=True)
        if at == 0:
            self.axis.text((x + BOX / 2 + back) / 2, enter + 0.17, "gradient", ha="center", fontsize=8.5, color=QUIET)
        _box(self.axis, (loss_x, middle), (1.58, 0.82), self.color, self.color)
        self.axis.text(loss_x, middle, loss, ha="center", va="center", fontsize=9.5, color="white", fontweight="bold")

    def _gather(self, ends: list[tuple[float, float]], rail: float, middle: float) -> None:
        """Draw the lines from all targets to the loss."""
        for x, low in ends:
            self._line([(x, low), (x, rail)], head=False)
        self._line([(min(x for x, _ in ends), rail), (self._loss_x, rail), (self._loss_x, middle - 0.44)])

    @property
    def _loss_x(self) -> float:
        return self.width - 1.55

    def _line(self, points: list[tuple[float, float]], *, head: bool = True, dashed: bool = False) -> None:
        _line(self.axis, points, self.color, head=head, dashed=dashed)


def _part(source: str, centers: dict[str, float]) -> str:
    """Return the part of a source, which may be inside it, such as ``features.3``."""
    part = source.partition(".")[0]
    if part not in centers:
        raise ValueError(f"the network has no part {source!r}; its parts are {', '.join(centers)}")
    return part


def _box(
    axis: Any, middle: tuple[float, float], size: tuple[float, float], fill: str, edge: str, *, over: bool = False
) -> None:
    """Draw a box, with ``over`` on top of the lines."""
    from matplotlib.patches import FancyBboxPatch

    (x, y), (width, height) = middle, size
    corner, style = (x - width / 2, y - height / 2), "round,pad=0,rounding_size=0.1"
    shape = FancyBboxPatch(corner, width, height, boxstyle=style, facecolor=fill, edgecolor=edge, linewidth=1.0)
    shape.set_zorder(4 if over else 1)
    axis.add_patch(shape)


def _line(axis: Any, points: list[tuple[float, float]], color: str, *, head: bool = True, dashed: bool = False) -> None:
    """Draw a line through points, with an arrowhead at the last."""
    style = {"linestyle": (0, (4, 2.5))} if dashed else {"solid_capstyle": "round", "solid_joinstyle": "round"}
    axis.plot(*zip(*points, strict=True), color=color, linewidth=1.2, zorder=3, **style)
    if head:
        (x, y), (from_x, from_y) = points[-1], points[-2]
        length = max(abs(x - from_x), abs(y - from_y), 1e-9)
        tail = x - 0.01 * (x - from_x) / length, y - 0.01 * (y - from_y) / length
        look = {"arrowstyle": "-|>", "color": color, "linewidth": 0, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 11}
        axis.annotate("", xy=points[-1], xytext=tail, arrowprops=look, zorder=3)
