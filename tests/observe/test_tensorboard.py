"""What a fit writes for TensorBoard, read back with TensorBoard's own reader."""

from __future__ import annotations

import builtins
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from dre import DRE
from dre.atomic import WriteError
from dre.explore import Watch
from dre.metrics.evaluation import quick_scores
from dre.observe.tensorboard import TensorBoard
from dre.training.events import EpochEnded, StepEnded

pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
SCHEDULE = "x: gaussian(5) -> kl * 6 from pca free 60 follow 3 against bank; h1: gaussian(5) -> kl * 4"
Array = np.ndarray[Any, Any]


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


@pytest.fixture(scope="module")
def X() -> Array:
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, 6))[np.arange(90) % 3] * 4 + rng.normal(size=(90, 6))


LABELS = np.array(["a", "b", "c"])[np.arange(90) % 3]


def read(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), size_guidance={"images": 0, "scalars": 0, "tensors": 0}).Reload()


@pytest.fixture(scope="module")
def fitted(X: Array, tmp_path_factory: pytest.TempPathFactory) -> tuple[DRE, Any, list[float]]:
    folder, losses = tmp_path_factory.mktemp("runs") / "a", []

    def note(event: object) -> None:
        if isinstance(event, StepEnded):
            losses.append(float(event.loss))

    model = cheap().fit(X, observers=[note, TensorBoard(folder, labels=LABELS, label_name="kind", every=1)])
    return model, read(folder), losses


def seed_of(events: Any) -> float | str:
    """The hyperparameter random_state, as TensorBoard shows it."""
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    data = HParamsPluginData.FromString(events.summary_metadata["_hparams_/session_start_info"].plugin_data.content)
    seed = data.session_start_info.hparams["random_state"]
    found: float | str = getattr(seed, seed.WhichOneof("kind"))
    return found


def values(events: Any, tag: str) -> list[float]:
    return [each.value for each in events.Scalars(tag)]


def test_losses_are_those_of_the_history_in_a_curve_for_each_target(fitted: Any) -> None:
    model, events, losses = fitted
    for against in ("coordinates", "bank"):
        expected = [each["loss"] for each in model.history_ if each["stage"] == 0 and each["against"] == against]
        assert values(events, f"loss/stage 0, {against}") == pytest.approx(expected, rel=1e-6)
    steps = [each for tag in events.Tags()["scalars"] if tag.startswith("steps/") for each in events.Scalars(tag)]
    assert sorted(each.step for each in steps) == list(range(1, len(losses) + 1))
    assert [each.value for each in sorted(steps, key=lambda each: each.step)] == pytest.approx(losses, rel=1e-6)


def test_the_learning_rate_falls_within_each_phase(fitted: Any) -> None:
    model, events, _ = fitted
    rates = values(events, "learning rate")
    assert len(rates) == len(model.history_)
    assert max(rates) <= model.recipe_.optimizer.lr * (1 + 1e-6)
    assert rates[-1] < rates[-2]


def test_scores_are_those_of_the_map_after_each_stage(fitted: Any, X: Array) -> None:
    model, events, _ = fitted
    for stage in (0, 1):
        expected = quick_scores(X.astype(np.float32), model.transform(X, stage=stage), ("kind", LABELS))
        for name, value in expected.items():
            found = next(each for each in events.Scalars(f"scores/{name}") if each.step == stage)
            assert found.value == pytest.approx(value, abs=1e-4), name


def test_pictures_show_the_map_in_the_colors_of_the_labels(fitted: Any) -> None:
    _, events, _ = fitted
    assert {"map/stage 0, free coordinates", "map/stage 0", "map/stage 1"} <= set(events.Tags()["images"])
    last = events.Images("map/stage 1")[-1]
    assert max(last.width, last.height) == 640
    pixels = np.asarray(Image.open(io.BytesIO(last.encoded_image_string)).convert("RGB")).reshape(-1, 3).astype(int)
    assert (pixels.max(0) == 255).all()  # a white background
    for color in ((0x3A, 0x79, 0xCC), (0xF0, 0x8B, 0x24), (0x3A, 0xA6, 0x55)):
        assert (np.abs(pixels - color).max(1) < 40).any(), color


def test_the_recipe_and_its_settings_are_there(fitted: Any) -> None:
    model, events, _ = fitted
    text = events.Tensors("recipe/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "90 rows of 6 values" in text
    assert all(line in text for line in str(model.recipe_).splitlines())
    assert any(name.startswith("_hparams_") for name in events.summary_metadata)
    assert seed_of(events) == 0


@pytest.mark.parametrize(
    ("random_state", "shown"), [(7, 7.0), (np.int64(7), 7.0), (None, "None"), (np.random.RandomState(0), "RandomState")]
)
def test_the_random_state_is_that_of_the_user(random_state: Any, shown: Any, X: Array, tmp_path: Path) -> None:
    cheap(random_state=random_state, schedule="x: gaussian(5) -> kl * 1").fit(X, observers=[TensorBoard(tmp_path)])
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    metadata = read(tmp_path).summary_metadata["_hparams_/session_start_info"]
    content = HParamsPluginData.FromString(metadata.plugin_data.content)
    value = content.session_start_info.hparams["random_state"]
    assert getattr(value, value.WhichOneof("kind")) == shown


def test_watching_does_not_change_a_bit(X: Array, tmp_path: Path) -> None:
    augmented = {"augment": "noise(0.5)", "batch_size": "edges(16)"}
    for others in ({}, {"schedule": "x: gaussian(5) -> kl * 3"}, {"schedule": "x: gaussian(5) -> kl * 3", **augmented}):
        alone = cheap(**others).fit(X)
        state = torch.get_rng_state()
        watched = cheap(**others).fit(X, observers=[TensorBoard(tmp_path / str(len(others)), every=1)])
        assert np.array_equal(alone.embedding_, watched.embedding_)
        assert torch.equal(torch.get_rng_state(), state)


def test_labels_find_their_rows_in_a_sample_and_with_weights(X: Array, tmp_path: Path) -> None:
    """1-NN of labels that follow the clusters is high only if they are those of the rows."""
    weights = np.where(np.arange(90) < 45, 2, 1)
    for name, options, weight in (("sample", {"sample": 60}, None), ("weights", {}, weights)):
        cheap(**options).fit(X, sample_weight=weight, observers=[TensorBoard(tmp_path / name, labels=LABELS)])
        assert values(read(tmp_path / name), "scores/1-NN, labels")[-1] > 0.9, name


def test_scores_follow_the_metric_of_the_model(X: Array, tmp_path: Path) -> None:
    model = cheap(metric="manhattan").fit(X, observers=[TensorBoard(tmp_path)])
    expected = quick_scores(X, model.embedding_, metric="manhattan")
    assert values(read(tmp_path), "scores/trustworthiness")[-1] == pytest.approx(expected["trustworthiness"], abs=1e-4)


def test_few_rows_and_one_component_are_written_too(X: Array, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="perplexity"):
        cheap(n_components=1).fit(X[:10], observers=[TensorBoard(tmp_path)])
    events = read(tmp_path)
    assert not [tag for tag in events.Tags()["scalars"] if tag.startswith("scores/")]
    assert events.Images("map/stage 1")


def test_a_folder_of_another_fit_is_refused_unless_forced(X: Array, tmp_path: Path) -> None:
    cheap().fit(X, observers=[TensorBoard(tmp_path)])
    with pytest.raises(FileExistsError, match="another folder, or pass force=True"):
        cheap().fit(X, observers=[TensorBoard(tmp_path)])
    model = cheap().fit(X, observers=[TensorBoard(tmp_path, force=True)])
    assert len(values(read(tmp_path), "learning rate")) == len(model.history_)


def test_an_observer_serves_several_fits(X: Array, tmp_path: Path) -> None:
    observer, steps = TensorBoard(tmp_path, force=True), []

    def lose(event: object) -> None:
        if isinstance(event, StepEnded):
            steps.append(event.run.steps)
            if len(steps) == 3:  # its losses are not written yet
                raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        cheap().fit(X, observers=[observer, lose])
    steps[:] = [0] * 4
    cheap().fit(X, observers=[observer, lose])
    events = read(tmp_path)
    written = [each.step for tag in events.Tags()["scalars"] if tag.startswith("steps/") for each in events.Scalars(tag)]
    assert sorted(written) == steps[4:]


def test_a_fit_without_a_seed_shows_none(X: Array, tmp_path: Path) -> None:
    cheap(random_state=None).fit(X, observers=[TensorBoard(tmp_path)])
    assert seed_of(read(tmp_path)) == "None"


@pytest.mark.parametrize("observer", [TensorBoard, Watch])
def test_labels_have_to_be_as_many_as_the_rows_of_the_data(observer: Any, X: Array, tmp_path: Path) -> None:
    for n, part in enumerate((89, 91, 180)):
        with pytest.raises(ValueError, match=f"labels has {part} values for 90 rows"):
            cheap().fit(X, observers=[observer(tmp_path / f"{n}.html", labels=np.resize(LABELS, part))])
    weights = np.r_[np.full(89, 2.0), 0.0]  # the last row is not fitted at all
    cheap().fit(X, sample_weight=weights, observers=[observer(tmp_path / "weighted.html", labels=LABELS)])
    cheap(sample=60).fit(X, observers=[observer(tmp_path / "sampled.html", labels=LABELS)])
    model = cheap().partial_fit(X)
    model.partial_fit(X[:7] + 1, observers=[observer(tmp_path / "added.html", labels=LABELS[:7])])
    with pytest.raises(ValueError, match="labels has 90 values for 7 rows"):
        model.partial_fit(X[:7] + 2, observers=[observer(tmp_path / "added_wrongly.html", labels=LABELS)])


def test_wrong_labels_leave_the_folder_as_it_was(X: Array, tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_text("")
    with pytest.raises(ValueError, match="labels has 3 values"):
        cheap().fit(X, observers=[TensorBoard(tmp_path, labels=[1, 2, 3], force=True)])
    assert [each.name for each in tmp_path.iterdir()] == ["events.out.tfevents.1"]


def test_a_resumed_fit_goes_on_in_the_same_folder(X: Array, tmp_path: Path) -> None:
    def stop(event: object) -> None:
        if isinstance(event, EpochEnded) and event.run.epoch == 4:
            event.run.end_fit()

    options = {"checkpoint": tmp_path / "c", "checkpoint_minutes": 0}
    cheap().fit(X, observers=[TensorBoard(tmp_path / "t"), stop], **options)
    model = cheap().fit(X, observers=[TensorBoard(tmp_path / "t")], resume=True, **options)
    assert len(values(read(tmp_path / "t"), "learning rate")) == len(model.history_)


def test_a_folder_that_cannot_be_made_is_refused_with_a_remedy(X: Array, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"file/runs cannot be made a folder: .*; choose another one"):
        cheap().fit(X, observers=[TensorBoard(tmp_path / "file" / "runs")])


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("torch.utils.tensorboard"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"deep-recursive-embedding\[tensorboard\]"):
        TensorBoard(tmp_path)


def test_of_several_ranks_the_first_one_writes(tmp_path: Path) -> None:
    for observer in (TensorBoard(tmp_path / "runs"), Watch(tmp_path / "map.html")):
        with observer:
            observer(StepEnded(SimpleNamespace(ranks=SimpleNamespace(is_first=False)), torch.zeros(()), 1))
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_name_the_remedy(X: Array, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="every=0"):
        TensorBoard(tmp_path, every=0)
    with pytest.raises(ValueError, match="labels has 3 values"):
        cheap().fit(X, observers=[TensorBoard(tmp_path, labels=[1, 2, 3])])
