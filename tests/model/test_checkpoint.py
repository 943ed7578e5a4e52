"""Checkpoints: a fit that is resumed ends in the same bits, and what is not that of this fit is refused, with the reason."""

from __future__ import annotations

import copy
import errno
import importlib.metadata
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from safetensors.torch import save_file

from dre import DRE, DeepUMAP, EarlyStopping
from dre.data.fingerprint import fingerprint
from dre.data.rows import HostRows
from dre.model.checkpoint import Checkpoint, CheckpointError, CheckpointFolder
from dre.training.events import CoordinatesMoved, EpochEnded, Event, StageEnded, StepEnded, TargetBegan
from kill_fits import ALLOWED, kill_all, moments

X = np.random.default_rng(0).normal(size=(60, 6))
SCHEDULE = "x: gaussian(5) -> kl * 3 from pca free 4 follow 2 against bank; h1: gaussian(5) -> kl * 2"


def cheap(**others: object) -> DRE:
    options = {"schedule": SCHEDULE, "encoder": "mlp(8, depth=2)", "batch_size": 20, "random_state": 0, "device": "cpu"}
    return DRE(**(options | others))


class Crash(Exception):
    """What ends a fit in the middle."""


def crash_at(kind: type[Event], count: int = 1):
    left = [count]

    def observer(event: Event) -> None:
        left[0] -= isinstance(event, kind)
        if left[0] == 0 and isinstance(event, kind):
            raise Crash

    return observer


def crash(folder: Path, kind: type[Event] = StageEnded, count: int = 1, model: DRE | None = None, data=X, **options) -> None:
    observers = [*options.pop("observers", []), crash_at(kind, count)]
    with pytest.raises(Crash):
        (model or cheap()).fit(data, checkpoint=folder, checkpoint_minutes=0, observers=observers, **options)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# Resume.


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        (TargetBegan, 1),
        (CoordinatesMoved, 3),
        (StepEnded, 1),
        (StepEnded, 8),
        (EpochEnded, 2),
        (StageEnded, 1),
        (StepEnded, 19),
    ],
)
def test_a_fit_that_is_resumed_has_the_same_bits_and_history(kind: type[Event], count: int, tmp_path: Path) -> None:
    wanted = cheap().fit(X)
    crash(tmp_path, kind, count)
    found = cheap().fit(X, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)
    assert [{**each, "seconds": 0} for each in found.history_] == [{**each, "seconds": 0} for each in wanted.history_]
    for stage in (0, 1):
        np.testing.assert_array_equal(found.transform(X, stage=stage), wanted.transform(X, stage=stage))


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ({"metric": "cosine", "standardize": True}, X),
        ({"n_components": 3}, X),
        ({}, scipy.sparse.csr_matrix(X * (X > 0))),
        ({}, HostRows(X.astype(np.float32))),
        ({"encoder": "patch-mlp(4, depth=1, filters=3, n_pcs=5)"}, np.random.default_rng(1).normal(size=(60, 6, 5))),
        ({"schedule": None, "encoder": None, "batch_size": None}, X),
        ({"augment": "noise(0.3)", "optimizer": "adam(0.01, whiten=true)"}, X),
    ],
)
def test_every_kind_of_fit_can_be_resumed(options: dict, data: object, tmp_path: Path) -> None:
    wanted = cheap(**options).fit(data)
    crash(tmp_path, StepEnded, 5, cheap(**options), data)
    found = cheap(**options).fit(data, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)


def test_a_module_with_dropout_and_batch_norm_can_be_resumed(tmp_path: Path) -> None:
    def module() -> torch.nn.Module:
        torch.manual_seed(0)
        parts = [torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2)]
        return torch.nn.Sequential(*parts)

    options = {"schedule": "x: gaussian(5) -> kl * 3", "encoder": module()}
    wanted = cheap(**options).fit(X)
    crash(tmp_path, StepEnded, 5, cheap(**options))
    options["encoder"] = module()
    np.testing.assert_array_equal(cheap(**options).fit(X, checkpoint=tmp_path, resume=True).embedding_, wanted.embedding_)


def test_neighbors_that_were_passed_can_be_resumed_and_others_are_refused(tmp_path: Path) -> None:
    from sklearn.neighbors import NearestNeighbors

    distances, indices = NearestNeighbors(n_neighbors=20).fit(X).kneighbors()
    schedule = "x: gaussian(5) -> kl * 3"
    wanted = cheap(schedule=schedule).fit(X, precomputed_knn=(indices, distances))
    crash(tmp_path, StepEnded, 4, cheap(schedule=schedule), precomputed_knn=(indices, distances))
    with pytest.raises(CheckpointError, match=r"precomputed_knn: the checkpoint has 60 x .*; this fit has none"):
        cheap(schedule=schedule).fit(X, checkpoint=tmp_path, resume=True)
    found = cheap(schedule=schedule).fit(X, precomputed_knn=(indices, distances), checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)


@pytest.mark.parametrize("count", [2, 8, 19])
@pytest.mark.parametrize("events", [2, 3, 4])
def test_a_fit_may_be_stopped_again_before_it_has_made_a_step(events: int, count: int, tmp_path: Path) -> None:
    wanted = cheap().fit(X)
    crash(tmp_path, StepEnded, count)
    crash(tmp_path, object, events, resume=True)
    crash(tmp_path, object, events, resume=True)
    found = cheap().fit(X, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)


def test_a_fit_that_has_ended_is_read_again(tmp_path: Path) -> None:
    wanted = DeepUMAP(n_neighbors=5, encoder="mlp(8)", random_state=0, device="cpu").fit(X, checkpoint=tmp_path)
    seen: list[Event] = []
    again = DeepUMAP(n_neighbors=5, encoder="mlp(8)", random_state=0, device="cpu")
    again.fit(X, checkpoint=tmp_path, resume=True, observers=[seen.append])
    np.testing.assert_array_equal(again.embedding_, wanted.embedding_)
    assert again.history_ == wanted.history_
    assert not seen


def test_without_a_seed_that_of_the_checkpoint_is_used(tmp_path: Path) -> None:
    crash(tmp_path, EpochEnded, 3, cheap(random_state=None))
    copied = tmp_path / "copy"
    os.makedirs(copied)
    for name in names(tmp_path):
        if name != "copy":
            (copied / name).write_bytes((tmp_path / name).read_bytes())
    first, second = (cheap(random_state=None).fit(X, checkpoint=each, resume=True).embedding_ for each in (tmp_path, copied))
    np.testing.assert_array_equal(first, second)


def test_early_stopping_is_resumed(tmp_path: Path) -> None:
    options = {"schedule": "x: gaussian(5) -> kl * 40", "optimizer": "adam(0.001, policy=constant)"}

    def fit(**more) -> DRE:
        return cheap(**options).fit(X, observers=[EarlyStopping(patience=4, min_delta=0.5)], **more)

    wanted = fit()
    assert len(wanted.history_) == 5
    for epoch in (3, 5):  # in the fifth the stage has been ended, and is not yet over
        folder = tmp_path / str(epoch)
        crash(folder, EpochEnded, epoch, cheap(**options), observers=[EarlyStopping(patience=4, min_delta=0.5)])
        found = fit(checkpoint=folder, resume=True)
        assert len(found.history_) == 5
        np.testing.assert_array_equal(found.embedding_, wanted.embedding_)


def test_other_observers_with_a_state_are_refused(tmp_path: Path) -> None:
    crash(tmp_path, EpochEnded, 3)
    with pytest.raises(CheckpointError, match="other observers than EarlyStopping"):
        cheap().fit(X, checkpoint=tmp_path, resume=True, observers=[EarlyStopping()])


# What is refused.


@pytest.mark.parametrize(
    ("options", "data", "what"),
    [
        ({}, X[:-1], "rows: the checkpoint has 60 x 6 float64, .*; this fit has 59 x 6 float64"),
        ({}, X.astype(np.float32), "rows: the checkpoint has 60 x 6 float64, .*; this fit has 60 x 6 float32"),
        ({}, X + 1e-12, "rows: the values differ"),
        ({"random_state": 1}, X, "seed: the checkpoint has 0; this fit has 1"),
        (
            {"schedule": "x: gaussian(5) -> kl * 3"},
            X,
            r"recipe: the checkpoint has\n.*stage 1 h1: gaussian\(5\) -> kl \* 2\n    this fit has\n.*stage 0 x",
        ),
        ({"encoder": "mlp(9, depth=2)"}, X, r"recipe: .*mlp\(8, depth=2\).*mlp\(9, depth=2\)"),
        ({"learning_rate": 0.5}, X, r"recipe: .*adam"),
        ({"metric": "cosine"}, X, "metric: the checkpoint has euclidean; this fit has cosine"),
        ({"standardize": True}, X, "standardize: the checkpoint has False; this fit has True"),
        ({"n_components": 3}, X, "n_components: the checkpoint has 2; this fit has 3"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(options: dict, data: np.ndarray, what: str, tmp_path: Path) -> None:
    crash(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with pytest.raises(CheckpointError, match=f"(?s)is that of another fit.*{what}.*Choose another folder"):
        cheap(**options).fit(data, checkpoint=tmp_path, resume=True)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_every_label_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.data.fingerprint.SAMPLED_ROWS", 3)
    assert fingerprint(X) == fingerprint(np.where(np.arange(60)[:, None] == 7, 0.0, X))
    assert fingerprint(X, sampled=False) != fingerprint(np.where(np.arange(60)[:, None] == 7, 0.0, X), sampled=False)


def test_a_value_outside_the_sample_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.data.fingerprint.SAMPLED_ROWS", 3)
    crash(tmp_path)
    other = X.copy()
    other[7, 2] += 0.001
    with pytest.raises(CheckpointError, match="the values differ"):
        cheap().fit(other, checkpoint=tmp_path, resume=True)


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash(tmp_path)
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.0" if name == "torch" else version(name))
    with pytest.raises(
        CheckpointError, match=rf"versions: the checkpoint has torch {re.escape(version('torch'))}; .*torch 1\.0"
    ):
        cheap().fit(X, checkpoint=tmp_path, resume=True)


def test_a_used_folder_is_not_begun_again(tmp_path: Path) -> None:
    crash(tmp_path)
    with pytest.raises(FileExistsError, match="resume=True"):
        cheap().fit(X, checkpoint=tmp_path)


def test_a_folder_without_checkpoints_begins_the_fit(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    cheap().fit(X, checkpoint=tmp_path, resume=True)
    cheap().fit(X, checkpoint=tmp_path / "new" / "folder", resume=True)
    assert "notes.txt" in names(tmp_path)


@pytest.mark.parametrize(
    "options",
    [{"resume": True}, {"checkpoint": "x", "checkpoint_minutes": -1}, {"checkpoint": "x", "checkpoint_minutes": math.nan}],
)
def test_wrong_options_are_refused(options: dict) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        cheap().fit(X, **options)
    assert not os.path.exists("x")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="can't hold checkpoints"):
        cheap().fit(X, checkpoint=tmp_path / "file")


def test_two_fits_cannot_use_one_folder_at_once(tmp_path: Path) -> None:
    with CheckpointFolder(tmp_path), pytest.raises(CheckpointError, match="in use by another fit"):
        cheap().fit(X, checkpoint=tmp_path, resume=True)
    cheap().fit(X, checkpoint=tmp_path, resume=True)


# Files.


def test_the_last_two_are_kept_and_nothing_else(tmp_path: Path) -> None:
    cheap().fit(X, checkpoint=tmp_path, checkpoint_minutes=0)
    found = names(tmp_path)
    assert len(found) == 2
    assert all(re.fullmatch(r"checkpoint-\d{6}\.safetensors", name) for name in found)


def test_within_the_time_only_ends_of_stages_are_written(tmp_path: Path) -> None:
    cheap().fit(X, checkpoint=tmp_path)
    assert names(tmp_path)[-1] == "checkpoint-000003.safetensors"  # the start and two stages


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "text", "header"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_is_used(damage: str, tmp_path: Path) -> None:
    wanted = cheap().fit(X)
    crash(tmp_path, EpochEnded, 5)
    path = tmp_path / names(tmp_path)[-1]
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[-100] ^= 1
    if damage == "header":
        at = content.index(b"steps")
        content[at + 10] ^= 1
    path.write_bytes({"truncated": content[:-500], "empty": b"", "text": b"hello"}.get(damage, bytes(content)))
    with pytest.warns(
        UserWarning, match=rf"(?s){path.name} is damaged.*The one before it, checkpoint-\d+.safetensors, is used"
    ):
        found = cheap().fit(X, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)


def test_a_checkpoint_of_another_format_is_not_taken_for_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash(tmp_path, EpochEnded, 5)
    monkeypatch.setattr("dre.model.checkpoint.FORMAT", 7)
    with pytest.raises(CheckpointError, match="has the format 1, this dre reads 7: use the version that wrote it"):
        cheap().fit(X, checkpoint=tmp_path, resume=True)


def test_a_full_disk_ends_a_fit_at_its_start_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, calls = cheap().fit(X), []

    def fail(tensors: object, path: Path, header: object) -> None:
        calls.append(1)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        save_file(tensors, path, header)

    monkeypatch.setattr("dre.model.checkpoint.save_file", fail)
    with pytest.warns(UserWarning, match=r"cannot be written: no space.*The fit goes on with the checkpoint before"):
        found = cheap().fit(X, checkpoint=tmp_path, checkpoint_minutes=0)
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)
    assert names(tmp_path) == ["checkpoint-000001.safetensors", "checkpoint-000002.safetensors"]
    with pytest.raises(OSError, match="no space"):
        cheap().fit(X, checkpoint=tmp_path / "another")


def test_if_all_are_damaged_the_fit_is_refused(tmp_path: Path) -> None:
    crash(tmp_path, EpochEnded, 5)
    for name in names(tmp_path):
        (tmp_path / name).write_bytes(b"no")
    with pytest.raises(CheckpointError, match=r"(?s)safetensors is damaged.*safetensors is damaged.*Remove .* to begin again"):
        cheap().fit(X, checkpoint=tmp_path, resume=True)


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    weights = {"a": torch.randn(3, 2), "b": torch.tensor(5), "c": torch.zeros(0, 4), "d": torch.arange(4, dtype=torch.uint8)}
    run = {"weights": weights, "again": copy.deepcopy(weights), "none": None, "list": [1, 2.5, True, "text", {"x": math.inf}]}
    saved = Checkpoint({"a": "b"}, run, {"mean": torch.ones(2, dtype=torch.double)}, [{"loss": 0.1}], [weights], [])
    with CheckpointFolder(tmp_path) as folder:
        folder.write(saved)
        found = folder.latest()
    assert repr(found) == repr(saved)
    assert found.run["weights"]["b"].dtype == torch.int64
    size = (tmp_path / names(tmp_path)[0]).stat().st_size
    assert size < 3000  # what is held three times is written once


# Processes that are killed.


def test_a_killed_process_is_resumed_with_the_same_bits(tmp_path: Path) -> None:
    chosen = moments(25)
    found = kill_all([chosen[i] for i in (1, 5, 6, 7)], tmp_path)
    assert all(result in ALLOWED for _, result in found), found


@pytest.mark.slow
def test_25_killed_processes_are_resumed_with_the_same_bits(tmp_path: Path) -> None:
    found = kill_all(moments(25), tmp_path)
    assert all(result in ALLOWED for _, result in found), found
