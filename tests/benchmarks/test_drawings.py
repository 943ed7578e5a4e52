"""Drawings show the modules and the schedule as they are: what changes there changes here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from dre.encoder.mlp import MLP
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.plan.recipes import RECIPES
from dre.plan.schedule import Schedule
from paper import networks
from paper.networks import draw_networks, layers
from paper.schematic import MNIST_SPEC, draw_schematic, lanes

PAPER = RECIPES["paper"](MNIST_SPEC, None)
SHAPES = {"A": (ModelA(), (784,)), "B": (ModelB(), (1, 28, 28))}


def words(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize(("plan", "shape"), SHAPES.values(), ids=SHAPES)
def test_every_module_with_weights_is_a_layer_of_its_size(plan: Any, shape: tuple[int, ...]) -> None:
    network = plan.build(shape, 2)
    found = layers(network, shape)
    dense = [module.out_features for module in network.modules() if isinstance(module, nn.Linear)]
    convolutions = [module.out_channels for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert [layer.shape[0] for layer in found if layer.what == "dense"] == dense
    assert [layer.shape[0] for layer in found if layer.what.startswith("conv")] == convolutions
    relus = sum(isinstance(module, nn.ReLU) for module in network.modules())
    assert sum(layer.after.count("ReLU") for layer in found) == relus
    assert [layer.part for layer in found][-4:] == ["h1", "h2", "h3", "out"]


def test_the_shapes_are_those_that_a_row_has_on_its_way() -> None:
    found = [(layer.what, layer.shape) for layer in layers(ModelB().build((1, 28, 28), 2), (1, 28, 28))]
    assert found[:3] == [("conv 3 × 3", (16, 28, 28)), ("conv 3 × 3", (16, 28, 28)), ("max pool 2 × 2", (16, 14, 14))]
    assert ("flatten", (1568,)) in found


def test_looking_at_a_network_changes_nothing() -> None:
    network = ModelA().build((20,), 2)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.random.get_rng_state()
    layers(network, (20,))
    assert network.training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert torch.equal(state, torch.random.get_rng_state())
    assert not any(module._forward_hooks for module in network.modules())


def test_figure_1_has_the_sizes_of_both_networks() -> None:
    shown = words(draw_networks())
    for plan, shape in SHAPES.values():
        for layer in layers(plan.build(shape, 2), shape):
            assert " × ".join(map(str, layer.shape)) in shown
            assert layer.what in shown
    assert shown.count("dense") == 9 + 4
    assert {"features", "h1", "h2", "h3", "map", "ReLU", "batch norm"} <= set(shown)


def test_another_network_makes_another_figure_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "ModelA", lambda: ModelA(width=321, depth=2))
    assert words(draw_networks()).count("321") == 2


def test_figure_2_has_every_stage_of_the_schedule_under_its_source() -> None:
    figure = draw_schematic()
    texts = {text.get_text(): text.get_position() for text in figure.axes[0].texts}
    sizes = [
        module.out_features for module in PAPER.encoder.build(MNIST_SPEC.shape, 2).modules() if isinstance(module, nn.Linear)
    ]  # type: ignore[union-attr, operator]
    assert all(str(size) in texts for size in sizes)
    for symbol, stage in zip("PPPPV", PAPER.schedule, strict=True):
        x, y = texts[f"${symbol}$ from {stage.source}"]
        above = texts["input x" if stage.source == "x" else stage.source]
        assert x == pytest.approx(above[0])
        assert y < above[1]
        assert any(text.startswith(f"{stage.epochs} epochs") for text in texts)
        assert str(stage.affinity) in texts
    assert {"Stage 1", "Stage 2", "250 epochs", "100 epochs", "$Q$", "$W$"} <= set(texts)
    assert texts["Stage 2"][1] < texts["Stage 1"][1]


def test_lanes_are_runs_of_stages_with_the_same_loss() -> None:
    found = lanes(PAPER)
    assert [[number for number, _ in lane.stages] for lane in found] == [[1, 2, 3, 4], [5]]
    assert [lane.symbols[0] for lane in found] == ["P", "V"]


def test_another_schedule_makes_another_figure_2() -> None:
    other = replace(
        PAPER, schedule=Schedule.parse("x: gaussian(12) -> kl * 7; h2: gaussian(12) -> kl * 5; h2: gaussian(12) -> kl * 4")
    )
    shown = words(draw_schematic(other))
    assert {"$P$ from x", "7 epochs", "gaussian(12)", "16 epochs"} <= set(shown)
    assert shown.count("$P$ from h2") == 2
    assert "Stage 2" not in shown
    small = replace(other, encoder=MLP(33))
    assert words(draw_schematic(small)).count("33") == 3


def test_a_source_that_the_network_lacks_is_named() -> None:
    lacking = replace(PAPER, schedule=Schedule.parse("h9: gaussian(12) -> kl * 7"))
    with pytest.raises(ValueError, match=r"'h9'.*h1, h2, h3"):
        draw_schematic(lacking)
