"""The loop: plain events in order, targets from the network as it stands, and ends that leave it usable."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dre import DRE, KL, MLP, DivergedError, Gaussian, Optimizer, Recipe, Schedule, Stage
from dre.affinity.target import Graph, InBatch
from dre.augment import Augment, Noise
from dre.batches import Auto, Edges, Fixed, Shuffled
from dre.data.rows import ArrayRows, RowSubset
from dre.encoder import ENCODERS, Encoder
from dre.encoder.forward import evaluating, outputs
from dre.encoder.network import Network
from dre.loss import Loss, Step
from dre.neighbors.search import nearest
from dre.runtime import IsolatedRNG, Runtime
from dre.training import graph_parts
from dre.training.events import EpochEnded, Event, StageBegan, StageEnded, StepEnded, TargetBegan
from dre.training.loop import train
from dre.training.run import Run

N, D = 50, 6
CPU = torch.device("cpu")
X = torch.randn(N, D, generator=torch.Generator().manual_seed(0))
TWO_STAGES = "x: gaussian(5) -> kl * 3; h1: gaussian(5) -> kl * 2"


def network(seed: int = 0) -> nn.Module:
    with IsolatedRNG(seed, CPU)():
        return MLP(16, depth=2).build((D,), 2)


def plan(schedule: str | Schedule, encoder: nn.Module) -> Recipe:
    schedule = Schedule.parse(schedule) if isinstance(schedule, str) else schedule
    return Recipe(schedule, encoder, Shuffled(20), Optimizer(1e-2, policy="constant"), precision="float32")


def run(
    schedule: str | Schedule, encoder: nn.Module | None = None, data: Tensor = X, seed: int = 0, **other: object
) -> Iterator[Event]:
    encoder = network() if encoder is None else encoder
    recipe = replace(plan(schedule, encoder), **other)  # type: ignore[arg-type]
    return train(encoder, ArrayRows(data, CPU), recipe, n_components=2, runtime=Runtime(CPU), seed=seed)


def weights(encoder: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in encoder.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def first(events: Iterator[Event]) -> StageBegan:
    assert isinstance(next(events), TargetBegan)
    event = next(events)
    assert isinstance(event, StageBegan)
    return event


class Sequenced(nn.Module):
    """A user's own: nested, with dropout and batch norm, a feature map, a tuple, a scalar and a branch that is never taken."""

    def __init__(self, last: nn.Module | None = None) -> None:
        super().__init__()
        last = nn.Dropout(0.5) if last is None else last
        self.backbone = nn.Sequential(nn.Linear(D, 12), nn.BatchNorm1d(12), nn.Sequential(nn.ReLU(), last))
        self.maps = nn.Unflatten(1, (3, 2, 2))
        self.pair = Pair()
        self.total = Total()
        self.one = First()
        self.unused = nn.Linear(2, 2)
        self.head = nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.maps(self.backbone(x)).flatten(1)
        self.pair(h), self.total(h), self.one(h)
        return self.head(h)


class Pair(nn.Module):
    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        return h, h


class Total(nn.Module):
    def forward(self, h: Tensor) -> Tensor:
        return h.sum()


class First(nn.Module):
    def forward(self, h: Tensor) -> Tensor:
        return h[:, 0]


def own(seed: int = 0, last: nn.Module | None = None) -> Sequenced:
    with IsolatedRNG(seed, CPU)():
        return Sequenced(last)


def test_events_come_in_order() -> None:
    epoch = [StepEnded, StepEnded, StepEnded, EpochEnded]
    wanted = [TargetBegan, StageBegan, *epoch * 3, StageEnded, TargetBegan, StageBegan, *epoch * 2, StageEnded]
    assert [type(event) for event in run(TWO_STAGES)] == wanted


def test_events_are_plain_and_carry_the_position() -> None:
    at = []
    for event in run(TWO_STAGES):
        assert dataclasses.is_dataclass(event)
        assert isinstance(event.run, Run)
        if isinstance(event, EpochEnded):
            assert math.isfinite(event.loss)
            assert event.rows == N
            at.append((event.run.stage, event.run.current_stage.source, event.run.epoch, event.run.steps))
    assert at == [(0, "x", 0, 3), (0, "x", 1, 6), (0, "x", 2, 9), (1, "h1", 0, 12), (1, "h1", 1, 15)]


def test_the_loss_of_an_epoch_is_the_mean_of_its_steps() -> None:
    losses: list[float] = []
    for event in run("x: gaussian(5) -> kl * 3"):
        if isinstance(event, StepEnded):
            losses.append(float(event.loss))
        elif isinstance(event, EpochEnded):
            assert event.loss == pytest.approx(np.mean(losses), rel=1e-5)
            losses.clear()


def test_the_weights_at_each_stages_end_are_kept() -> None:
    encoder = network()
    before, ended, then = weights(encoder), [], []
    for event in run(TWO_STAGES, encoder):
        if isinstance(event, StageBegan):
            assert same(weights(encoder), ended[-1].weights if ended else before)
        if isinstance(event, StageEnded):
            ended.append(event)
            then.append(weights(encoder))
    assert all(same(event.weights, at_the_time) for event, at_the_time in zip(ended, then, strict=True))
    assert not same(before, then[0])
    assert not same(then[0], then[1])
    assert same(weights(encoder), then[1])


def test_training_lowers_the_loss() -> None:
    losses = [event.loss for event in run("x: gaussian(5) -> kl * 30") if isinstance(event, EpochEnded)]
    assert np.mean(losses[-3:]) < 0.9 * losses[0]


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    def learned(seed: int) -> dict[str, Tensor]:
        encoder = own()
        list(run("x: gaussian(5) -> kl * 2", encoder, seed=seed))
        return weights(encoder)

    assert same(learned(3), learned(3))
    assert not same(learned(3), learned(4))


@torch.jit.script
def scripted_dropout(x: Tensor) -> Tensor:
    return F.dropout(x, 0.5)


class ScriptedDropout(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return scripted_dropout(x)


class GammaNoise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.distributions.Gamma(torch.ones_like(x), 1.0).sample()


@dataclass(frozen=True)
class Blurred(KL, name="blurred-by-test-loop", registered=False):
    def __call__(self, step: Step) -> Tensor:
        return super().__call__(replace(step, y=step.y + 0.1 * torch.randn_like(step.y)))


DRAWING = {"dropout": own, "gamma": lambda: own(last=GammaNoise()), "scripted": lambda: own(last=ScriptedDropout())}


@pytest.mark.parametrize("loss", [KL(), 0.5 * KL() + Blurred()], ids=["kl", "blurred"])
@pytest.mark.parametrize("kind", [*DRAWING, "built in"])
def test_draws_neither_disturb_nor_depend_on_the_global_random_states(kind: str, loss: Loss) -> None:
    schedule = Schedule(Stage("x", Gaussian(5), loss, 2), Stage("backbone" if kind in DRAWING else "h1", Gaussian(5), loss, 1))
    learned = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        np.random.seed(global_seed)
        torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
        encoder = DRAWING.get(kind, network)()
        list(run(schedule, encoder))
        learned.append(weights(encoder))
        assert torch.equal(torch.get_rng_state(), torch_before)
        assert np.array_equal(np.random.get_state()[1], numpy_before)
    assert same(*learned)


def test_the_draws_of_an_encoder_by_name_are_isolated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ENCODERS, "_members", ENCODERS.members())  # unknown again after this test

    @dataclass(frozen=True)
    class WithDropout(Encoder, name="with-dropout"):
        def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
            return Network(nn.Flatten(), [nn.Sequential(nn.Linear(*shape, 12), nn.Dropout())], nn.Linear(12, n_components))

    found = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        before = torch.get_rng_state()
        model = DRE(schedule=TWO_STAGES, encoder=WithDropout(), random_state=0, device="cpu")
        found.append(model.fit_transform(X.numpy()))
        assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(*found)


@dataclass(frozen=True)
class Recorded(Gaussian, name="recorded-by-test-train"):
    """Remembers the distances it is given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "seen", [])

    def conditional(self, distances: Tensor) -> Tensor:
        self.seen.append(distances)  # type: ignore[attr-defined]
        return super().conditional(distances)


@pytest.mark.parametrize(("epochs", "refresh", "times"), [(6, None, 1), (6, 2, 3), (5, 2, 3), (3, 3, 1), (3, 1, 3), (2, 9, 1)])
def test_refresh_computes_the_target_again_from_the_network_as_it_has_become(
    epochs: int, refresh: int | None, times: int
) -> None:
    affinity = Recorded(5)
    list(run(Schedule(Stage("h1", affinity, KL(), epochs, refresh=refresh))))
    assert len(affinity.seen) == times
    assert all(not torch.equal(a, b) for a, b in zip(affinity.seen, affinity.seen[1:], strict=False))


def test_fixed_batches_get_the_refreshed_target_too() -> None:
    seen: list[Tensor] = []

    @dataclass(frozen=True)
    class Watching(Loss, name="watching-by-test-train"):
        def __call__(self, step: Step) -> Tensor:
            seen.append(step.pairs.weight.clone())
            return KL()(step)

    events = list(run(Schedule(Stage("h1", Gaussian(5), Watching(), 4, refresh=2)), batches=Fixed(N)))
    assert sum(isinstance(event, TargetBegan) for event in events) == 2
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[2], seen[3])
    assert not torch.equal(seen[0], seen[2])


@pytest.mark.parametrize("kind", [StageBegan, StepEnded, EpochEnded])
def test_an_observer_can_end_the_stage(kind: type) -> None:
    seen = []
    for event in run(TWO_STAGES):
        seen.append((event.run.stage, type(event)))
        if event.run.stage == 0 and isinstance(event, kind):
            event.run.end_stage()
    epoch = {StageBegan: [], StepEnded: [StepEnded, EpochEnded], EpochEnded: [*[StepEnded] * 3, EpochEnded]}[kind]
    assert [t for stage, t in seen if stage == 0] == [TargetBegan, StageBegan, *epoch, StageEnded]
    assert [t for stage, t in seen if stage == 1].count(EpochEnded) == 2


@pytest.mark.parametrize("kind", [StageBegan, StepEnded, EpochEnded, StageEnded])
def test_an_observer_can_end_the_fit_and_the_weights_so_far_are_kept(kind: type) -> None:
    encoder, seen = network(), []
    for event in run(TWO_STAGES, encoder):
        seen.append(event)
        if isinstance(event, kind):
            event.run.end_fit()
    assert {event.run.stage for event in seen} == {0}
    assert isinstance(seen[-1], StageEnded)
    assert same(seen[-1].weights, weights(encoder))


def test_ending_the_fit_is_not_taken_back_by_ending_the_stage() -> None:
    for event in run(TWO_STAGES):
        event.run.end_fit()
        event.run.end_stage()
        assert event.run.stage == 0


def test_a_caller_who_stops_asking_keeps_the_weights_of_that_moment() -> None:
    encoder = network()
    events = run(TWO_STAGES, encoder)
    for _ in range(4):
        next(events)
    at_that_moment = weights(encoder)
    events.close()  # type: ignore[attr-defined]
    assert same(weights(encoder), at_that_moment)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_an_error_that_names_stage_and_epoch(value: float) -> None:
    calls = []

    @dataclass(frozen=True)
    class Exploding(Loss, name="exploding-by-test-train"):
        def __call__(self, step: Step) -> Tensor:
            calls.append(1)
            return step.y.square().sum() * (value if len(calls) > 3 else 1.0)

    schedule = Schedule(Stage("x", Gaussian(5), KL(), 1), Stage("h1", Gaussian(5), Exploding(), 4))
    with pytest.raises(DivergedError, match=r"(nan|inf) in stage 1 \(h1: .*\), epoch 2 of 4.*learning_rate"):
        list(run(schedule))
    assert len(calls) == 6


@dataclass(frozen=True)
class Shifted(Augment, name="shifted-by-test-train"):
    by: float = 100.0

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return x + self.by * torch.randn(x.shape, generator=generator)


@pytest.mark.parametrize("source", ["x", "backbone", "backbone.2", "backbone.2.0", "head"])
def test_targets_come_from_the_source_in_eval_mode_and_without_augmentation(source: str) -> None:
    encoder = own().train()
    with torch.no_grad():
        twin = copy.deepcopy(encoder).eval()
        parts = {"x": X, "backbone": twin.backbone(X), "head": twin(X)}
        parts["backbone.2"] = parts["backbone"]
        parts["backbone.2.0"] = twin.backbone[2][0](twin.backbone[1](twin.backbone[0](X)))
    wanted = Graph.of(Gaussian(5), nearest(parts[source], 15))
    began = first(run(f"{source}: gaussian(5) -> kl * 1", encoder, augment=Shifted()))
    assert isinstance(began.target, Graph)
    assert torch.equal(began.target.indices, wanted.indices)
    assert torch.equal(began.target.weight, wanted.weight)
    assert same(weights(encoder), weights(twin))  # no running mean has moved


def test_the_loop_trains_on_augmented_rows_in_train_mode() -> None:
    seen: list[tuple[bool, float]] = []
    encoder = own().eval()
    encoder.backbone.register_forward_hook(
        lambda module, args, output: seen.append((module.training, float(args[0].abs().max())))
    )
    events = run("x: gaussian(5) -> kl * 1", encoder, augment=Shifted())
    first(events)
    seen.clear()
    assert sum(isinstance(event, StepEnded) for event in events) == 3
    assert len(seen) == 3
    assert all(training and largest > 50 for training, largest in seen)


def test_feature_maps_are_flattened() -> None:
    rows, encoder = ArrayRows(X, CPU), own()
    assert outputs(encoder, rows, "maps").shape == (N, 12)
    assert torch.equal(outputs(encoder, rows, "maps"), outputs(encoder, rows, "backbone"))
    assert outputs(encoder, rows, "one").shape == (N, 1)
    images = ArrayRows(torch.randn(5, 1, 4, 4), CPU)
    assert outputs(nn.Sequential(nn.Flatten(), nn.Linear(16, 2)), images, "x").shape == (5, 16)


def test_blocks_of_a_sequential_are_addressed_by_number() -> None:
    encoder = nn.Sequential(nn.Sequential(nn.Linear(D, 4), nn.ReLU()), nn.Linear(4, 2))
    assert (
        sum(isinstance(event, StageEnded) for event in run("0: gaussian(5) -> kl * 1; 0.1: gaussian(5) -> kl * 1", encoder))
        == 2
    )


@pytest.mark.parametrize(
    ("source", "problem", "said"),
    [
        ("backbonne", ValueError, r"unknown source 'backbonne'; known: x, backbone, backbone.0, .*Did you mean 'backbone'\?"),
        ("backbone.9", ValueError, "known: x, backbone"),
        ("unused", ValueError, "never calls this submodule"),
        ("pair", TypeError, "must be a tensor with one entry per row, not tuple"),
        ("total", TypeError, r"must be a tensor with one entry per row, not a tensor of the shape \(\)"),
    ],
)
def test_a_source_that_cannot_be_read_is_an_error_before_any_training(source: str, problem: type[Exception], said: str) -> None:
    encoder = own()
    before = weights(encoder)
    events = run(f"x: gaussian(5) -> kl * 1; {source}: gaussian(5) -> kl * 1", encoder)
    with pytest.raises(problem, match=said):
        next(events)
    assert same(weights(encoder), before)


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        (lambda: nn.Linear(D, 3), "3 components.*n_components=2"),
        (lambda: nn.Sequential(nn.Linear(D, 2), First()), r"tensor \(rows, components\)"),
        (lambda: nn.Sequential(nn.Linear(D, 2), Pair()), r"tensor \(rows, components\), not tuple"),
    ],
)
def test_an_encoder_that_gives_no_map_is_an_error_before_any_training(encoder: Callable[[], nn.Module], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        next(run("x: gaussian(5) -> kl * 1", encoder()))


def test_looking_leaves_every_submodule_in_the_mode_it_was_in() -> None:
    encoder = own().train()
    encoder.backbone[1].eval()  # a frozen batch norm
    modes = [module.training for module in encoder.modules()]
    with evaluating(encoder):
        assert not any(module.training for module in encoder.modules())
    assert [module.training for module in encoder.modules()] == modes
    with pytest.raises(ZeroDivisionError), evaluating(encoder):
        _ = 1 / 0
    assert [module.training for module in encoder.modules()] == modes
    outputs(encoder, ArrayRows(X, CPU), "backbone")
    assert [module.training for module in encoder.modules()] == modes


def test_outputs_do_not_depend_on_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, rows = own(), ArrayRows(X, CPU)
    whole = outputs(encoder, rows, "backbone")
    monkeypatch.setattr("dre.encoder.forward.CHUNK_ROWS", 7)
    assert torch.allclose(outputs(encoder, rows, "backbone"), whole, atol=1e-6)


def test_a_stages_own_rate_takes_the_place_of_the_recipes_and_adam_starts_anew() -> None:
    descents = []
    for event in run("x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 2 @ 0.0005"):
        if isinstance(event, StageEnded):
            assert event.run.optimizer is not None
            descents.append(event.run.optimizer)
    assert [descent.rate for descent in descents] == [1e-2, 0.0005]
    assert descents[0] is not descents[1]


@pytest.mark.parametrize("batches", [Fixed(20), Shuffled(20), Auto(20), Fixed(1000), Fixed(49)], ids=str)
@pytest.mark.parametrize("affinity", ["gaussian(4, scope=batch)", "fuzzy(5, scope=batch)", "gaussian(5)", "fuzzy(5)"])
def test_every_affinity_goes_with_batches_that_divide_the_rows_or_not(affinity: str, batches: object) -> None:
    events = list(run(f"x: {affinity} -> kl * 1; h1: {affinity} -> ce * 1", batches=batches))
    began = [event for event in events if isinstance(event, StageBegan)]
    assert [isinstance(event.target, InBatch) for event in began] == ["batch" in affinity] * 2
    assert sum(event.rows for event in events if isinstance(event, StepEnded)) == 2 * N


def test_a_perplexity_too_large_for_the_smallest_batch_is_adapted_with_one_warning() -> None:
    with pytest.warns(UserWarning, match="perplexity 30 is too large for 16 rows") as caught:
        list(run("x: gaussian(30, scope=batch) -> kl * 3"))
    assert len([w for w in caught if "too large" in str(w.message)]) == 1


def test_auto_batches_turn_to_edges_when_the_rows_outnumber_the_neighbours() -> None:
    began = first(run("x: gaussian(2) -> kl * 1", batches=Auto(4)))  # k·b/n = 6·4/50
    assert began.batches == Edges(2)
    assert first(run("x: gaussian(2) -> kl * 1", batches=Auto(20))).batches == Shuffled(20)


def test_edges_on_a_target_inside_the_batch_are_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"edges\(16\).*scope=graph"):
        list(run("x: gaussian(3, scope=batch) -> kl * 1", batches=Edges(16)))


def test_a_source_is_read_before_a_later_module_overwrites_it() -> None:
    encoder = nn.Sequential(nn.Linear(X.shape[1], 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
    torch.testing.assert_close(outputs(encoder, ArrayRows(X, CPU), "0"), encoder[0](X).detach())


def test_a_fit_that_is_ended_between_stages_does_not_begin_another() -> None:
    seen = []
    for event in run(TWO_STAGES):
        seen.append((event.run.stage, type(event)))
        if isinstance(event, TargetBegan) and event.run.stage == 1:
            event.run.end_fit()
    assert seen[-2:] == [(0, StageEnded), (1, TargetBegan)]


def test_neighbours_of_more_rows_than_are_searched_at_once_lie_in_random_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(graph_parts.SEARCHED, "cpu", 20)
    monkeypatch.setitem(graph_parts.PART, "cpu", 20)
    events = list(run("x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 2"))
    targets = [event.target for event in events if isinstance(event, StageBegan)]
    parts = math.ceil(len(X) / 20)
    for target in targets:
        assert isinstance(target, Graph)
        assert target.search.parts == parts
        reached = [{i} for i in range(len(X))]  # rows that hang together
        for i, near in enumerate(target.indices.tolist()):
            for j in near:
                joined = reached[i] | reached[j]
                for row in joined:
                    reached[row] = joined
        assert len({id(group) for group in reached}) == parts
    assert all(math.isfinite(event.loss) for event in events if isinstance(event, EpochEnded))


def test_some_rows_are_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Watched(ArrayRows):
        def take(self, ids: Tensor) -> Tensor:
            asked.append(len(ids))
            return super().take(ids)

    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 7 * X[0].numel())
    ids = torch.randperm(len(X))[:30]
    some = RowSubset(Watched(X, CPU), ids)
    assert torch.equal(some.read(2, 25), X[ids[2:25]])
    assert torch.equal(some.take(torch.tensor([3, 0])), X[ids[[3, 0]]])
    assert max(asked) <= 7


# Resume.


def states(events: Iterator[Event]) -> list[dict]:
    """States of a run at every event."""
    return [copy.deepcopy(event.run.state_dict()) for event in events]


RESUMED = {
    "two stages": ("x: gaussian(5) -> kl * 3; h1: gaussian(5) -> kl * 2", {}),
    "refresh": ("h1: gaussian(5) -> kl * 5 refresh 2", {}),
    "fixed batches": (
        "x: gaussian(5, scope=batch) -> kl * 2; h1: fuzzy(5, scope=batch) -> ce * 2 @ 0.001",
        {"batches": Fixed(20)},
    ),
    "edges, one-cycle, noise": (
        "h1: gaussian(5) -> kl * 4",
        {"batches": Edges(16), "optimizer": Optimizer(1e-2), "augment": Noise(0.3)},
    ),
}


@pytest.mark.parametrize(("name", "kind"), [*((name, None) for name in RESUMED), *(("two stages", kind) for kind in DRAWING)])
def test_a_run_that_is_resumed_ends_in_the_same_bits(name: str, kind: str | None) -> None:
    schedule, options = RESUMED[name]
    encoder = network() if kind is None else DRAWING[kind]()
    schedule = schedule if kind is None else schedule.replace("h1", "backbone")
    start = copy.deepcopy(encoder)
    saved = states(run(schedule, encoder, **options))
    assert len(saved) > 6
    for state in saved:
        again = copy.deepcopy(start)
        for event in resumed(schedule, again, state, **options):
            last = event.run.steps
        assert same(weights(again), weights(encoder))
        assert (state["stage"] == len(Schedule.parse(schedule))) or last == saved[-1]["steps"]


def resumed(schedule: str, encoder: nn.Module, state: dict, seed: int = 0, **other: object) -> Iterator[Event]:
    recipe = replace(plan(schedule, encoder), **other)  # type: ignore[arg-type]
    return train(encoder, ArrayRows(X, CPU), recipe, n_components=2, runtime=Runtime(CPU), seed=seed, resume=state)


def test_a_run_with_a_computed_front_is_resumed_with_that_front() -> None:
    def fronted() -> nn.Module:
        with IsolatedRNG(0, CPU)():
            return MLP(16, depth=2, n_pcs=4).build((D,), 2)

    encoder = fronted()
    saved = states(run("features: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1", encoder))
    again = fronted()
    list(resumed("features: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1", again, saved[2]))
    assert same(weights(again), weights(encoder))


def test_the_loss_of_an_epoch_that_is_resumed_is_the_mean_of_all_its_steps() -> None:
    saved, losses = [], []
    for event in run(TWO_STAGES, network(), optimizer=Optimizer(1e-2)):
        if isinstance(event, EpochEnded):
            losses.append((event.loss, event.rows))
        saved.append((len(losses), copy.deepcopy(event.run.state_dict())))
    for done, state in saved:
        events = resumed(TWO_STAGES, network(), state, optimizer=Optimizer(1e-2))
        assert [(event.loss, event.rows) for event in events if isinstance(event, EpochEnded)] == losses[done:]


@pytest.mark.parametrize(("change", "name"), [({"seed": 1}, "seed"), ({"schedule": "x: gaussian(5) -> kl * 9"}, "schedule")])
def test_a_state_of_another_run_is_refused(change: dict, name: str) -> None:
    state = states(run(TWO_STAGES))[2]
    settings = {"schedule": TWO_STAGES, "seed": 0} | change
    with pytest.raises(ValueError, match=f"another {name}"):
        next(resumed(settings["schedule"], network(), state, settings["seed"]))


# What a loss sees.


def test_a_loss_sees_rows_labels_and_hidden_outputs() -> None:
    seen: list[Step] = []

    @dataclass(frozen=True)
    class Watching(Loss, name="all-seeing-by-test-train"):
        reads_labels = True

        @property
        def reads_hidden(self) -> tuple[str, ...]:  # type: ignore[override]
            return ("h1",)

        def __call__(self, step: Step) -> Tensor:
            seen.append(step)
            return KL()(step) + 1e-3 * step.hidden["h1"].square().mean()

    encoder = network()
    recipe = plan(Schedule(Stage("x", Gaussian(5), Watching(), 1)), encoder)
    labels = torch.arange(N) * 10
    list(train(encoder, ArrayRows(X, CPU), recipe, n_components=2, runtime=Runtime(CPU), seed=0, labels=labels))
    for step in seen:
        assert torch.equal(step.labels, step.ids * 10)
        assert torch.equal(step.x, X[step.ids])
        assert step.hidden["h1"].shape == (len(step.ids), 16)
        assert step.hidden["h1"].requires_grad


def test_a_loss_that_reads_labels_needs_them() -> None:
    @dataclass(frozen=True)
    class Labelled(Loss, name="labelled-by-test-train"):
        reads_labels = True

        def __call__(self, step: Step) -> Tensor:
            return step.y.sum()

    with pytest.raises(ValueError, match=r"labels.*fit\(X, y\)"):
        next(run(Schedule(Stage("x", Gaussian(5), Labelled(), 1))))


def test_a_loss_that_names_an_unknown_output_is_refused_before_training() -> None:
    @dataclass(frozen=True)
    class Lost(Loss, name="lost-by-test-train"):
        reads_hidden = ("h7",)

        def __call__(self, step: Step) -> Tensor:
            return step.y.sum()

    with pytest.raises(ValueError, match=r"'h7'.*known: x.*h1"):
        next(run(Schedule(Stage("x", Gaussian(5), Lost(), 1))))


@pytest.mark.parametrize("part", [{}, {"augment": Shifted()}, {"batches": Fixed(20)}])
def test_steps_are_captured_where_every_part_says_that_it_can_be(part: dict) -> None:
    event = next(run(Schedule(Stage("x", Gaussian(5), KL(), 1)), **part))
    on_a_gpu = replace(event.run.runtime, captures=True)
    event.run.runtime = on_a_gpu
    event.run.recipe = replace(event.run.recipe, encoder=MLP(16))
    assert event.run.is_captured == (not part.get("augment"))
    event.run.recipe = replace(event.run.recipe, encoder=network())  # a module of the user's own does not say so
    assert not event.run.is_captured
