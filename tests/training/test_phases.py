"""Stages in phases: free coordinates, a network that follows them, and the loss against the bank."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial import procrustes
from sklearn.datasets import load_digits, load_iris
from torch import Tensor, nn

from dre import DRE, KL, MLP, Gaussian, Optimizer, Recipe, Schedule, Stage
from dre.affinity.bank import Bank, BankPairs
from dre.affinity.target import Coordinates, Graph
from dre.augment import Augment
from dre.augment.noise import LocalNoise
from dre.batches import Auto, Batches, Edges, Fixed, Shuffled
from dre.data.rows import ArrayRows
from dre.loss import Loss, Step
from dre.notation import NotationError
from dre.observe.history import History
from dre.runtime import IsolatedRNG, Runtime
from dre.training.events import (
    CoordinatesMoved,
    EpochEnded,
    Event,
    StageBegan,
    StageEnded,
    StageSkipped,
    StageUndone,
    StepEnded,
    TargetBegan,
)
from dre.training.learner import Learner, make_learner
from dre.training.loop import train
from dre.training.optional import TRUST_LOSS

N, D = 60, 6
CPU = torch.device("cpu")
X = torch.randn(N, D, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 2, 1, 1, 1, 1])
ALL_PHASES = "x: gaussian(5) -> kl * 3 from pca free 4 follow 2 against bank"
RECURSIVE = f"{ALL_PHASES}; x+h1: gaussian(5) -> kl * 2 free 3 follow 2 against bank"
DIGITS = load_digits().data[:300]


def network(seed: int = 0, components: int = 2) -> nn.Module:
    with IsolatedRNG(seed, CPU)():
        return MLP(16, depth=2).build((D,), components)


def run(
    schedule: str | Schedule,
    encoder: nn.Module | None = None,
    *,
    resume: dict | None = None,
    components: int = 2,
    **other: object,
) -> Iterator[Event]:
    encoder = network(components=components) if encoder is None else encoder
    schedule = Schedule.parse(schedule) if isinstance(schedule, str) else schedule
    recipe = Recipe(schedule, encoder, Shuffled(20), Optimizer(1e-2, whiten=True), precision="float32")
    recipe = replace(recipe, **other)  # type: ignore[arg-type]
    rows = ArrayRows(X, CPU)
    return train(encoder, rows, recipe, n_components=components, runtime=Runtime(CPU), seed=0, resume=resume)


def weights(encoder: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in encoder.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# The phases.


@pytest.mark.parametrize("components", [1, 2, 3])
def test_events_come_in_the_order_of_the_phases(components: int) -> None:
    epoch = [*[StepEnded] * 3, EpochEnded]
    wanted = [TargetBegan, *[CoordinatesMoved] * 4, StageBegan, *epoch * 5, StageEnded]
    wanted += [TargetBegan, *[CoordinatesMoved] * 3, StageBegan, *epoch * 4, StageEnded]
    events = list(run(RECURSIVE, components=components))
    assert [type(event) for event in events] == wanted
    assert [event.step for event in events if isinstance(event, CoordinatesMoved)] == [1, 2, 3, 4, 1, 2, 3]


def test_the_history_says_what_each_epoch_was_matched_with() -> None:
    history = History()
    for event in run(RECURSIVE + "; h1: gaussian(5) -> kl * 1"):
        history(event)
    against = [(record["stage"], record["epoch"], record["against"]) for record in history.records]
    assert against == [
        *((0, epoch, "coordinates") for epoch in (0, 1)),
        *((0, epoch, "bank") for epoch in (2, 3, 4)),
        *((1, epoch, "coordinates") for epoch in (0, 1)),
        *((1, epoch, "bank") for epoch in (2, 3)),
        (2, 0, "batch"),
    ]
    assert len(history.stages) == 3


def test_the_target_of_a_phase_is_coordinates_and_then_the_bank_of_the_stages_graph() -> None:
    kinds, graphs = [], []
    for event in run(ALL_PHASES):
        if isinstance(event, StageBegan):
            graphs.append(event.target)
        elif isinstance(event, EpochEnded):
            kinds.append(type(event.run.target))
            if isinstance(event.run.target, Bank):
                assert event.run.target.graph is graphs[0]
    assert kinds == [Coordinates] * 2 + [Bank] * 3
    assert isinstance(graphs[0], Graph)


@pytest.mark.parametrize("follow", [1, 3])
def test_a_stage_may_follow_and_no_more(follow: int) -> None:
    events = list(run(f"x: gaussian(5) -> kl * 0 from pca follow {follow}"))
    assert Counter(map(type, events))[EpochEnded] == follow
    assert isinstance(events[-1], StageEnded)


def test_a_network_that_follows_comes_to_the_coordinates() -> None:
    losses, target = [], None
    encoder = network()
    schedule = "x: gaussian(5) -> kl * 0 from pca free 30 follow 60"
    for event in run(schedule, encoder, optimizer=Optimizer(1e-2)):
        if isinstance(event, EpochEnded):
            losses.append(event.loss)
            assert isinstance(event.run.target, Coordinates)
            target = event.run.target.values
    assert losses[-1] < 0.2 * losses[0]
    with torch.no_grad():
        far = (encoder(X) - target).abs().mean()
    assert far < 0.3 * target.std()


def test_the_scale_of_a_map_that_starts_is_that_of_its_coordinates_and_later_stages_keep_it() -> None:
    encoder = network()
    targets = [event.run.target for event in run(RECURSIVE, encoder) if isinstance(event, StepEnded)]
    assert isinstance(targets[0], Coordinates)
    assert encoder.scale.item() == pytest.approx(targets[0].values.std(0, correction=0).mean().item(), rel=1e-5)


def test_a_bank_has_the_latest_coordinates_of_all_rows() -> None:
    """After an epoch without augmentation they are near where the encoder puts the rows, and were it at the last step."""
    encoder = network()
    seen: dict[int, Tensor] = {}

    @dataclass(frozen=True)
    class Watching(Loss, name="watching-by-test-phases"):
        reads_bank = True

        def __call__(self, step: Step) -> Tensor:
            if isinstance(step.pairs, BankPairs) and step.pairs.values:
                seen.update(zip(step.ids.tolist(), step.y.detach(), strict=True))
            return KL()(step)

    schedule = Schedule(Stage("x", Gaussian(5), Watching(), 2, follow=1, against="bank"))
    for event in run(schedule, encoder):
        if isinstance(event, EpochEnded) and isinstance(event.run.target, Bank):
            assert len(seen) == N
            latest = torch.stack([seen[i] for i in range(N)])
            assert torch.equal(event.run.target.columns.T, latest)


def test_the_bank_starts_where_the_encoder_has_put_the_rows() -> None:
    encoder = network()
    with torch.no_grad():
        before = encoder(X)
    first = next(event for event in run("x: gaussian(5) -> kl * 1 against bank", encoder) if isinstance(event, StepEnded))
    assert isinstance(first.run.target, Bank)
    moved = (first.run.target.columns.T - before).abs().max(1).values
    torch.testing.assert_close(
        first.run.target.columns.T, before, rtol=1e-4, atol=1e-4
    )  # the step has passed them before it moved
    assert (moved > 0).sum() <= first.rows


@pytest.mark.parametrize("batches", [Shuffled(20), Fixed(20), Edges(10), Auto(20), Auto(4)], ids=str)
def test_phases_go_with_all_batches_and_the_steps_are_those_that_were_announced(batches: Batches) -> None:
    events = list(run(RECURSIVE.replace("gaussian(5)", "gaussian(2)"), batches=batches))
    announced = [event.steps for event in events if isinstance(event, StageBegan)]
    assert sum(announced) == sum(isinstance(event, StepEnded) for event in events)


@pytest.mark.parametrize("resume", [0, 3, 7])
def test_the_steps_announced_are_those_that_are_left(resume: int) -> None:
    saved = states(run(ALL_PHASES))[resume]
    events = list(run(ALL_PHASES, resume=saved))
    announced = sum(event.steps for event in events if isinstance(event, StageBegan))
    assert announced == sum(isinstance(event, StepEnded) for event in events)


# What does not fit together.


@pytest.mark.parametrize("clauses", ["free 4", "from pca", "from pca free 4", "free 4 against bank"])
def test_coordinates_need_a_network_that_follows(clauses: str) -> None:
    with pytest.raises(NotationError, match="need a network that follows them: follow 10"):
        Schedule.parse(f"x: gaussian(5) -> kl * 3 {clauses}")


@pytest.mark.parametrize("loss", ["ce", "kl + 0.1*ce"])
@pytest.mark.parametrize("clauses", ["free 4 follow 2", "against bank"])
def test_a_loss_inside_the_batch_is_refused_with_the_remedy(loss: str, clauses: str) -> None:
    with pytest.raises(NotationError, match=r"can't be taken against all rows: use kl, or 'against batch' and no 'free'"):
        Schedule.parse(f"x: gaussian(5) -> {loss} * 3 {clauses}")


def test_a_loss_of_the_users_own_must_say_that_it_reads_a_bank() -> None:
    @dataclass(frozen=True)
    class Further(KL, name="further-by-test-phases"):
        """Neither this nor ``capturable`` is inherited: the subclass may do anything."""

    with pytest.raises(ValueError, match="further-by-test-phases can't be taken against all rows"):
        Stage("x", Gaussian(5), Further(), 3, against="bank")


@pytest.mark.parametrize("clauses", ["free 4 follow 2", "against bank"])
def test_neighbors_inside_the_batch_are_refused(clauses: str) -> None:
    with pytest.raises(NotationError, match="need a graph"):
        Schedule.parse(f"x: gaussian(5, scope=batch) -> kl * 3 {clauses}")


# Ends.


@pytest.mark.parametrize("end", ["end_fit", "end_stage"])
@pytest.mark.parametrize("step", [1, 4])
def test_a_run_that_is_ended_while_coordinates_move_leaves_a_network_that_can_be_used(end: str, step: int) -> None:
    encoder, seen = network(), []
    for event in run(RECURSIVE, encoder):
        seen.append((event.run.stage, type(event)))
        if isinstance(event, CoordinatesMoved) and (event.run.stage, event.step) == (0, step):
            getattr(event.run, end)()
    in_first = [kind for stage, kind in seen if stage == 0]
    assert in_first == [TargetBegan, *[CoordinatesMoved] * step]
    assert any(stage == 1 for stage, _ in seen) == (end == "end_stage")
    with torch.no_grad():
        assert encoder(X).isfinite().all()


def test_a_fit_that_is_ended_while_coordinates_move_has_a_map() -> None:
    def end_soon(event: Event) -> None:
        if isinstance(event, CoordinatesMoved) and event.step == 2:
            event.run.end_fit()

    model = DRE(schedule=RECURSIVE, encoder="mlp(16)", random_state=0, device="cpu").fit(DIGITS[:120], observers=[end_soon])
    assert model.history_ == []
    assert model.embedding_.shape == (120, 2)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.transform(DIGITS[:120]), model.embedding_)


@pytest.mark.parametrize("dense", [True, False], ids=["in one piece", "by torch"])
@pytest.mark.parametrize("stop", [TargetBegan, CoordinatesMoved, StageBegan, StepEnded, EpochEnded])
def test_a_run_that_is_abandoned_leaves_nothing_in_the_network(
    stop: type, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not dense:
        monkeypatch.setattr("dre.encoder.dense_pass.has_numba", lambda: False)
    encoder, threads = network(), torch.get_num_threads()
    events = run(ALL_PHASES, encoder)
    for event in events:
        if isinstance(event, stop):
            break
    events.close()  # type: ignore[attr-defined]
    assert not any(part._forward_pre_hooks for part in encoder.modules())
    parameters = list(encoder.parameters())
    assert len({p.untyped_storage().data_ptr() for p in parameters}) == len(parameters)
    assert torch.get_num_threads() == threads


# Resume.


def states(events: Iterator[Event]) -> list[dict]:
    """States of a run at every event."""
    return [copy.deepcopy(event.run.state_dict()) for event in events]


RESUMED: dict[str, tuple[str, dict]] = {
    "phases": (ALL_PHASES, {}),
    "recursion": (RECURSIVE, {"augment": LocalNoise(0.3)}),
    "refresh": ("h1: gaussian(5) -> kl * 5 refresh 2 from pca free 3 follow 2 against bank", {}),
    "inside the batch after following": ("x: gaussian(5) -> kl * 2 from pca follow 3", {"batches": Edges(10)}),
    "a bank alone": ("x: gaussian(5) -> kl * 4 against bank", {"optimizer": Optimizer(1e-2, clip=1.0)}),
    "following alone": ("x: gaussian(5) -> kl * 0 free 3 follow 3; h1: gaussian(5) -> kl * 1", {}),
}


def position(state: dict) -> tuple[int, int, int, bool]:
    steps = 0 if state["progress"] is None else state["progress"]["steps"]
    return state["stage"], state["epoch"], steps, state["coordinates"] is not None


@pytest.mark.parametrize("dense", [True, False], ids=["in one piece", "by torch"])
@pytest.mark.parametrize("name", RESUMED)
def test_a_run_that_is_resumed_anywhere_ends_in_the_same_bits(name: str, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dense:
        monkeypatch.setattr("dre.encoder.dense_pass.has_numba", lambda: False)
    schedule, options = RESUMED[name]
    encoder = network()
    saved = states(run(schedule, encoder, **options))
    for state in {position(state): state for state in saved}.values():  # one of each
        again = network()
        for event in run(schedule, again, resume=copy.deepcopy(state), **options):
            last = event.run.steps
        assert same(weights(again), weights(encoder)), position(state)
        assert state["stage"] == len(Schedule.parse(schedule)) or last == saved[-1]["steps"]


@pytest.mark.parametrize("position", [2, 5, 8])
def test_a_state_of_a_machine_with_numba_is_resumed_on_one_without(position: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, again = network(), network()
    saved = states(run(RECURSIVE, encoder))[position]
    for module in ("encoder.dense_pass", "loss.bank_sums"):
        monkeypatch.setattr(f"dre.{module}.has_numba", lambda: False)
    list(run(RECURSIVE, again, resume=saved))
    with torch.no_grad():
        torch.testing.assert_close(again(X), encoder(X), rtol=0, atol=0.1 * float(encoder(X).std()))


# Optional stages.


OPTIONAL = (
    f"{ALL_PHASES}; x+h1: gaussian(5) -> kl * 2 free 3 follow 2 against bank optional; h1: gaussian(5) -> kl * 1 optional"
)


def judge(monkeypatch: pytest.MonkeyPatch, before: float, after: float) -> list[Tensor]:
    """Let every optional stage have these values of trust; return the maps that were measured, the later map first."""
    values, seen = cycle((after, before)), []

    def measured(features: Tensor, embedding: Tensor) -> float:
        assert len(features) == len(embedding) == N
        seen.append(embedding.clone())
        return next(values)

    monkeypatch.setattr("dre.training.optional.sample_trust", measured)
    monkeypatch.setattr("dre.training.loop.skip", lambda run, target: None)
    return seen


@pytest.mark.parametrize("dense", [True, False], ids=["in one piece", "by torch"])
def test_an_optional_stage_that_costs_trust_is_undone_and_ends_the_fit(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dense:
        monkeypatch.setattr("dre.encoder.dense_pass.has_numba", lambda: False)
    maps = judge(monkeypatch, before=0.9, after=0.9 - 2 * TRUST_LOSS)
    alone, encoder, history = network(), network(), History()
    list(run(ALL_PHASES, alone))
    events = []
    for event in run(OPTIONAL, encoder):
        events.append(event)
        history(event)
    assert same(weights(encoder), weights(alone))
    assert same(weights(encoder), history.stages[-1])
    assert len(history.stages) == 1
    ends = [event for event in events if isinstance(event, (StageEnded, StageUndone))]
    assert [type(event) for event in ends] == [StageEnded, StageUndone]
    assert events[-1] is ends[-1]
    assert ends[0].trust is None  # it was not optional
    assert ends[1].trust == (0.9, 0.9 - 2 * TRUST_LOSS)
    assert {record["stage"] for record in history.records} == {0, 1}  # what was undone has been done
    with torch.no_grad():
        torch.testing.assert_close(maps[1], encoder(X), rtol=1e-4, atol=1e-5)
    assert not torch.equal(maps[0], maps[1])


@pytest.mark.parametrize("after", [0.95, 0.9, 0.9 - 0.9 * TRUST_LOSS], ids=["better", "equal", "hardly worse"])
def test_an_optional_stage_that_costs_no_trust_is_kept(after: float, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = judge(monkeypatch, before=0.9, after=after)
    plain, encoder, history = network(), network(), History()
    list(run(OPTIONAL.replace(" optional", ""), plain))
    events = []
    for event in run(OPTIONAL, encoder):
        events.append(event)
        history(event)
    assert same(weights(encoder), weights(plain))  # judging leaves no trace
    assert [event.trust for event in events if isinstance(event, StageEnded)] == [None, (0.9, after), (0.9, after)]
    assert not any(isinstance(event, StageUndone) for event in events)
    assert len(history.stages) == 3
    assert torch.equal(maps[0], maps[3])  # the second is judged by where the first has put the rows


def test_a_stage_without_the_clause_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = judge(monkeypatch, before=1.0, after=0.0)
    events = list(run(RECURSIVE))
    assert maps == []
    assert isinstance(events[-1], StageEnded)
    assert events[-1].run.start_weights == {}


def test_a_stage_that_scatters_the_rows_is_undone_and_one_that_repeats_the_first_is_kept() -> None:
    scattered = torch.randn(N, 2, generator=torch.Generator().manual_seed(1))

    @dataclass(frozen=True)
    class Scatter(Loss, name="scatter-by-test-phases"):
        def __call__(self, step: Step) -> Tensor:
            return (step.y - 10 * scattered[step.ids]).square().mean()

    first = Schedule.parse("x: gaussian(5) -> kl * 20 from pca free 30 follow 20 against bank")[0]
    encoder = network()
    again = replace(first, start="network", epochs=21, optional=True, affinity=Gaussian(6))  # easier to draw
    events = list(run(Schedule(first, again), encoder))
    assert isinstance(events[-1], StageEnded)
    before, after = events[-1].trust
    assert 0.5 < before < 1
    assert after > before - TRUST_LOSS
    events = list(run(Schedule(first, Stage("x", Gaussian(5), Scatter(), 60, optional=True)), network()))
    assert isinstance(events[-1], StageUndone)
    assert events[-1].trust[1] < events[-1].trust[0] - TRUST_LOSS


@pytest.mark.parametrize("end", ["end_stage", "end_fit"])
@pytest.mark.parametrize("kind", [StepEnded, EpochEnded])
def test_an_optional_stage_that_an_observer_ends_is_kept(end: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = judge(monkeypatch, before=1.0, after=0.0)
    ended, encoder = [], network()
    for event in run(OPTIONAL.rpartition(";")[0] + "; h1: gaussian(5) -> kl * 1", encoder):
        if isinstance(event, kind) and (event.run.stage, event.run.epoch) == (1, 2):
            getattr(event.run, end)()
        if isinstance(event, StageEnded):
            ended.append((event.run.stage, event.trust))
            last = event.weights
        assert not isinstance(event, StageUndone)
    assert ended == [(stage, None) for stage in range(3 if end == "end_stage" else 2)]
    assert maps == []
    assert same(last, weights(encoder))


@pytest.mark.parametrize("dense", [True, False], ids=["in one piece", "by torch"])
@pytest.mark.parametrize("after", [0.5, 0.95], ids=["undone", "kept"])
def test_an_optional_stage_that_is_resumed_ends_in_the_same_bits_and_decision(
    after: float, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not dense:
        monkeypatch.setattr("dre.encoder.dense_pass.has_numba", lambda: False)
    maps = judge(monkeypatch, before=0.9, after=after)
    encoder = network()
    events = run(OPTIONAL, encoder)
    saved, ends = [], []
    for event in events:
        if not isinstance(event, StepEnded):
            saved.append(copy.deepcopy(event.run.state_dict()))
        if isinstance(event, (StageEnded, StageUndone)):
            ends.append((event.run.stage, type(event), event.trust))
    judged = [embedding.clone() for embedding in maps[:2]]
    at = {(state["stage"], state["epoch"]): state for state in saved}
    assert {(1, epoch) for epoch in range(5)} <= set(at)
    for (stage, epoch), state in at.items():
        again = network()
        maps.clear()
        last = [
            (event.run.stage, type(event), event.trust)
            for event in run(OPTIONAL, again, resume=copy.deepcopy(state))
            if isinstance(event, (StageEnded, StageUndone))
        ]
        assert same(weights(again), weights(encoder)), (stage, epoch)
        assert last == ends[len(ends) - len(last) :], (stage, epoch)
        assert bool(last) == (stage < 3)
        if stage <= 1:
            assert all(torch.equal(a, b) for a, b in zip(maps[:2], judged, strict=True))


def test_a_model_whose_stage_was_undone_is_that_of_the_stages_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def model(schedule: str) -> DRE:
        return DRE(schedule=schedule, encoder="mlp(16, depth=2)", random_state=0, device="cpu").fit(X.numpy())

    shorter = model(ALL_PHASES)
    judge(monkeypatch, before=0.9, after=0.5)
    undone = model(OPTIONAL)
    assert (len(undone.stages_), len(undone.schedule_)) == (1, 3)
    assert not undone.interrupted_
    np.testing.assert_array_equal(undone.embedding_, shorter.embedding_)
    for stage in (None, 0, -1):
        np.testing.assert_array_equal(undone.transform(X.numpy(), stage=stage), undone.embedding_)
    with pytest.raises(ValueError, match=r"stage=1: this model has 1 stage"):
        undone.transform(X.numpy(), stage=1)
    undone.save(tmp_path / "model.safetensors")
    loaded = DRE.load(tmp_path / "model.safetensors")
    assert (len(loaded.stages_), loaded.schedule_) == (1, undone.schedule_)
    np.testing.assert_array_equal(loaded.transform(X.numpy()), undone.embedding_)


FITTED = "x: gaussian(5) -> kl * 20 from pca free 50 follow 20 against bank"


def test_a_stage_whose_neighborhoods_the_map_draws_worse_is_skipped() -> None:
    """Neighborhoods of 2 rows are harder to draw than those of 5."""
    alone, encoder, history = network(), network(), History()
    list(run(FITTED, alone))
    events = []
    for event in run(f"{FITTED}; h1: gaussian(2) -> kl * 5 against bank optional", encoder):
        events.append(event)
        history(event)
    assert isinstance(events[-1], StageSkipped)
    assert isinstance(events[-2], TargetBegan)  # no step was made
    before, now = events[-1].loss
    assert now >= before
    assert events[-1].run.ending == "fit"
    assert same(weights(encoder), weights(alone))
    assert len(history.stages) == 1
    again = network()
    assert (
        list(run(f"{FITTED}; h1: gaussian(2) -> kl * 5 against bank optional", again, resume=events[-1].run.state_dict())) == []
    )


def test_a_stage_whose_neighborhoods_the_map_draws_better_is_begun() -> None:
    kinds = []
    for event in run(f"{FITTED}; x: gaussian(15) -> kl * 1 against bank optional"):
        kinds.append((event.run.stage, type(event)))
        if isinstance(event, StageEnded) and event.run.stage == 0:
            before = event.run.map_loss
    assert (1, StageBegan) in kinds
    assert before is not None
    assert before > 0


@pytest.mark.parametrize("second", ["h1: gaussian(5) -> kl * 1 against bank", "h1: gaussian(5) -> ce * 1 optional"])
def test_the_loss_of_the_map_is_known_only_where_an_optional_stage_asks_for_it(second: str) -> None:
    events = list(run(f"{FITTED}; {second}"))
    assert all(event.run.map_loss is None for event in events)
    assert (1, StageBegan) in {(event.run.stage, type(event)) for event in events}


@pytest.mark.parametrize("kind", [StageEnded, StageSkipped])
def test_a_run_that_is_resumed_before_an_optional_stage_decides_alike(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.training.optional.sample_trust", lambda features, embedding: 0.9)
    affinity = "gaussian(2)" if kind is StageSkipped else "gaussian(15)"
    schedule = f"{FITTED}; x: {affinity} -> kl * 1 against bank optional"
    encoder, saved = network(), []
    for event in run(schedule, encoder):
        last = event
        if not isinstance(event, StepEnded) and event.run.stage == 0:
            saved.append(copy.deepcopy(event.run.state_dict()))
    assert isinstance(last, kind)
    at = {(state["stage"], state["epoch"]): state for state in saved[-3:]}  # within the last epochs, behind them, and after all
    assert len(at) > 2
    for state in at.values():
        again = network()
        events = list(run(schedule, again, resume=state))
        assert isinstance(events[-1], kind)
        assert same(weights(again), weights(encoder))


def test_both_maps_of_an_optional_stage_are_judged_by_features_that_are_computed_once(monkeypatch) -> None:
    computed, features = [], Learner.features

    def counted(self: Learner, source: str, ids: Tensor | None = None) -> Tensor:
        computed.append(source)
        return features(self, source, ids)

    monkeypatch.setattr(Learner, "features", counted)
    monkeypatch.setattr("dre.training.loop.skip", lambda run, target: None)
    list(run("x: gaussian(5) -> kl * 1; h1: gaussian(5) -> kl * 1 optional", network()))
    assert computed == ["x", "h1", "x"]  # a target for each stage, then the judgment


@pytest.mark.parametrize("encoder", ["mlp(16, n_pcs=8)", "patch-mlp(16)", "model-b"])
def test_optional_stages_judge_maps_of_images_by_what_the_network_reads(encoder: str) -> None:
    ends = []

    def look(event: Event) -> None:
        if isinstance(event, (StageEnded, StageUndone)):
            ends.append(event.trust)

    schedule = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1 optional"
    model = DRE(schedule=schedule, encoder=encoder, batch_size=50, random_state=0, device="cpu")
    model.fit(DIGITS[:100].reshape(100, 8, 8), observers=[look])
    assert ends[0] is None
    assert all(0 < value <= 1 for value in ends[1])


# Refresh.


def test_a_target_that_is_computed_again_keeps_the_bank() -> None:
    schedule = "h1: gaussian(5) -> kl * 4 refresh 2 follow 1 against bank"
    graphs, coordinates = [], []
    for event in run(schedule):
        if isinstance(event, TargetBegan) and isinstance(event.run.target, Bank):
            coordinates.append(event.run.target.columns.clone())
        if isinstance(event, StepEnded) and isinstance(event.run.target, Bank) and event.run.target.graph not in graphs:
            graphs.append(event.run.target.graph)
            if coordinates:
                moved = (event.run.target.columns != coordinates[-1]).any(0)
                assert moved.sum() == event.rows  # those of this step; the others are where they were
    assert len(graphs) == 2
    assert len(coordinates) == 1


# What a step sees.


def test_losses_that_read_hidden_outputs_train_the_network() -> None:
    @dataclass(frozen=True)
    class Hidden(Loss, name="hidden-by-test-phases"):
        reads_hidden = ("h1",)

        def __call__(self, step: Step) -> Tensor:
            return step.hidden["h1"].square().mean() + step.y.square().mean()

    encoder = network()
    before = weights(encoder)
    events = run(Schedule(Stage("x", Gaussian(5), Hidden(), 15)), encoder, optimizer=Optimizer(1e-2, policy="constant"))
    losses = [event.loss for event in events if isinstance(event, EpochEnded)]
    assert losses[-1] < 0.5 * losses[0]
    assert not any(torch.equal(value, before[name]) for name, value in encoder.named_parameters())


@pytest.mark.parametrize("encoder", ["mlp(16)", "mlp(16, n_pcs=10)", "patch-mlp(16)", "model-b"])
@pytest.mark.parametrize("augment", ["local-noise(0.5)", "flip + local-noise(0.5)"])
def test_the_radius_is_the_distance_to_the_tenth_neighbor_among_what_is_augmented(encoder: str, augment: str) -> None:
    radius: list[Tensor] = []
    features: list[Tensor] = []

    def look(event: Event) -> None:
        if isinstance(event, StepEnded) and not radius:
            assert event.run.radius is not None
            radius.append(event.run.radius)
            features.append(event.run.learner.features(event.run.learner.first_source))

    images = DIGITS[:120].reshape(120, 8, 8)
    source = "features" if "n_pcs" in encoder or "patch" in encoder else "x"
    schedule = f"{source}: gaussian(10) -> kl * 1; h1: gaussian(10) -> kl * 1"
    DRE(schedule=schedule, encoder=encoder, augment=augment, batch_size=60, random_state=0, device="cpu").fit(
        images, observers=[look]
    )
    if source == "features":
        assert features[0].shape[1] < 64 or encoder == "patch-mlp(16)"
    distances = torch.cdist(features[0].double(), features[0].double(), compute_mode="donot_use_mm_for_euclid_dist")
    torch.testing.assert_close(radius[0].double(), distances.sort(1).values[:, 10], rtol=1e-3, atol=1e-3)


def test_without_an_augmentation_that_reads_it_no_radius_is_computed() -> None:
    for event in run(ALL_PHASES, augment=None):
        assert event.run.radius is None


def test_an_augmentation_reads_the_radius_in_all_phases() -> None:
    seen: list[Tensor] = []

    class Watched(LocalNoise):
        def change(self, x: Tensor, generator: torch.Generator, radius: Tensor | None) -> Tensor:
            assert radius is not None
            seen.append(radius)
            return super().change(x, generator, radius)

    augment: Augment = Watched(0.3)
    list(run(RECURSIVE, augment=augment))
    assert len(seen) == 3 * 9
    epochs = [torch.cat(seen[i : i + 3]).sort().values for i in range(0, len(seen), 3)]
    assert all(torch.equal(epoch, epochs[0]) for epoch in epochs)


@pytest.mark.parametrize("front", [None, 4])
def test_the_embedding_of_a_learner_is_that_of_its_encoder(front: int | None) -> None:
    with IsolatedRNG(0, CPU)():
        encoder = MLP(16, depth=2, n_pcs=front).build((D,), 3)
    learner = make_learner(encoder, ArrayRows(X, CPU), None, torch.zeros(D), torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(learner.embedding(), encoder(X), rtol=1e-4, atol=1e-5)
    assert learner.n_components == 3


def test_two_sources_side_by_side_weigh_the_same() -> None:
    encoder = network()
    learner = make_learner(encoder, ArrayRows(X, CPU), None, torch.zeros(D), torch.Generator().manual_seed(0))
    both = learner.features("x+h1")
    assert both.shape == (N, D + 16)
    for part in (both[:, :D], both[:, D:]):
        assert part.var(0, correction=0).sum().item() == pytest.approx(1.0, rel=1e-4)


# The default.


@pytest.mark.parametrize("X", [load_iris().data, DIGITS], ids=["iris", "digits"])
def test_seeds_give_nearly_the_same_map_by_other_weights(X: np.ndarray) -> None:
    """The coordinates that the network follows do not depend on a seed."""
    models = [DRE(random_state=seed, device="cpu").fit(X) for seed in (0, 1)]
    _, _, disparity = procrustes(*(model.embedding_ for model in models))
    assert disparity < 0.05
    first, second = (dict(model.encoder_.named_parameters()) for model in models)
    assert all(not torch.equal(value, second[name]) for name, value in first.items())


def test_the_default_on_few_rows_is_solved_in_phases() -> None:
    model = DRE(random_state=0, device="cpu").fit(DIGITS[:150])
    (stage,) = model.schedule_
    assert (stage.start, stage.free) == ("pca", 0)  # the principal components, as they are
    assert model.history_[0]["against"] == "coordinates"
    assert model.history_[-1]["against"] == "bank"
    again = DRE(random_state=0, device="cpu").fit(DIGITS[:150])
    assert (model.embedding_ == again.embedding_).all()
