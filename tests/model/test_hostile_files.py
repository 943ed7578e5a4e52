"""A model file from a stranger: it opens to a consistent model, or ModelFileError names it, at little cost."""

from __future__ import annotations

import json
import os
import resource
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from dre import DRE, Backbone, ModelFileError, Optimizer, Schedule
from dre.encoder import ENCODERS, Encoder
from dre.model import archive, limits
from fuzz_model_files import ALLOWED, FORMAT_1, Base, bases, fuzz, fuzz_apart, table
from model_file_parts import Entry, Parts, write_raw

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"
X = np.random.default_rng(0).normal(size=(40, 6))
Edit = Callable[[Parts], None]


@pytest.fixture(scope="module")
def fitted() -> DRE:
    return DRE(schedule=SCHEDULE, encoder="mlp(16)", standardize=True, random_state=0, device="cpu").fit(X)


@pytest.fixture
def saved(fitted: DRE, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def edit(path: Path, change: Edit) -> None:
    """Edit a file and sign it again."""
    parts = Parts.read(path)
    change(parts)
    parts.sign()
    parts.write(path)


@contextmanager
def cheaply(seconds: float = 5.0, nbytes: int = 100 * 2**20) -> Iterator[None]:
    """Fail if it takes longer, or more memory."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    yield
    assert time.perf_counter() - start < seconds
    assert 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < nbytes


def with_encoder(text: str) -> Edit:
    return lambda parts: parts.configuration["recipe"]["recipe"].update(encoder={"encoder": text})


def with_schedule(text: str) -> Edit:
    return lambda parts: parts.configuration["recipe"]["recipe"].update(schedule={"schedule": text})


def with_field(**values: object) -> Edit:
    return lambda parts: parts.configuration.update(values)


def with_about(**values: object) -> Edit:
    return lambda parts: parts.configuration["about"].update(values)


def with_parameter(**values: object) -> Edit:
    return lambda parts: parts.configuration["about"]["parameters"].update(values)


def with_number(name: str, value: float) -> Edit:
    def change(parts: Parts) -> None:
        entry = parts.tensors[name]
        numbers = np.frombuffer(bytearray(entry.content), {"F64": np.float64, "F32": np.float32}[entry.dtype])
        numbers[-1] = value
        entry.content = numbers.tobytes()

    return change


def with_dtype(name: str, dtype: str) -> Edit:
    """The same bytes as numbers of another kind."""
    return lambda parts: setattr(parts.tensors[name], "dtype", dtype)


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


# Fuzzing.


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Base]:
    return bases(tmp_path_factory.mktemp("bases"))


@pytest.mark.filterwarnings("ignore")
def test_mutants_are_refused_unchanged_or_signed_and_consistent(made, tmp_path):
    found = fuzz(made, range(300), tmp_path / "mutant")
    print(table(found))
    assert [one for one in found if one[2] not in ALLOWED] == []
    assert {result for _, _, result, _ in found} == set(ALLOWED)


@pytest.mark.filterwarnings("ignore")
def test_the_fuzzer_notices_a_digest_that_is_not_compared(made, tmp_path, monkeypatch):
    class Anything:
        def __ne__(self, other: object) -> bool:
            return False

    monkeypatch.setattr(archive, "digest", lambda *parts: Anything())
    assert "silent" in {result for _, _, result, _ in fuzz(made, range(60), tmp_path / "mutant")}


@pytest.mark.filterwarnings("ignore")
def test_the_fuzzer_notices_another_error(made, tmp_path, monkeypatch):
    monkeypatch.setattr(archive.Configuration, "parse", lambda content: content["no such field"])
    monkeypatch.setattr(archive, "as_model_file_error", nullcontext)
    assert any("KeyError" in result for _, _, result, _ in fuzz(made, range(20), tmp_path / "mutant"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mutants_stay_within_limits_in_a_process_of_their_own(made, tmp_path):
    found = fuzz_apart(made, range(300, 800), tmp_path)
    print(table(found))
    assert [one for one in found if one[2] not in ALLOWED] == []


# Small files that ask for much.


@pytest.mark.parametrize(
    "change",
    [
        with_encoder("mlp(16, depth=300000)"),
        with_encoder(f"mlp(16, depth={10**12})"),
        with_encoder(f"mlp(16, depth={'9' * 30})"),
        with_encoder("mlp(20000)"),
        with_encoder(f"mlp({10**18})"),
        with_encoder(f"mlp({'9' * 5000})"),
        with_encoder("model-a(depth=300000)"),
        with_encoder(f"model-b(filters={'1/' * 100_000})"),
        with_encoder(f"model-b(filters={'1/' * 30_000})"),
        with_encoder("mlp(" * 20_000),
        with_schedule(f"x: gaussian(5) -> {'(' * 100_000}kl * 1"),
        with_schedule(f"x: gaussian({'9' * 5000}) -> kl * 1"),
        with_schedule("x: gaussian(5) -> kl * 1;" * 100_000),
        with_schedule(f"x{'+x' * 60_000}: gaussian(5) -> kl * 1"),
        with_field(n_components=10**8),
        with_field(n_components=2**62),
        with_field(n_components=1e8),
        with_field(history=nested(50)),
        with_field(history=nested(900)),
        with_field(earlier_stages=[True] * 10**5),
        with_field(earlier_stages=[False] * 10**5),
        with_about(feature_names_in=["a"] * 10**5),
        lambda parts: parts.tensors.update({f"stages.{i}.h1.0.weight": Entry("F32", [0], b"") for i in range(70_000)}),
    ],
)
def test_a_file_costs_no_more_than_it_holds(change, saved):
    edit(saved, change)
    with cheaply(), pytest.raises(ModelFileError, match=str(saved)) as error:
        DRE.load(saved)
    assert len(str(error.value)) < 2000


@pytest.mark.parametrize(
    "text", ["[" * 10**6, '{"a":' * 10**5, "9" * 5000, f'{{"format": {"9" * 5000}}}', "NaN", '"' + "a" * 10**6 + '"']
)
def test_a_configuration_that_cannot_be_parsed_is_refused(text, saved):
    Parts.read(saved).write(saved, text)
    with cheaply(), pytest.raises(ModelFileError, match=str(saved)):
        DRE.load(saved)


@pytest.mark.parametrize(
    "header",
    [b"[" * 10**6, b"{" * 10**6, b'{"a":' * 10**5, b"9" * 10**6, b" " * 10**6, b"{}", b"null", b'{"__metadata__":{"dre":{}}}'],
)
def test_a_header_that_cannot_be_parsed_is_refused(header, tmp_path):
    write_raw(tmp_path / "model", header, b"")
    with cheaply(), pytest.raises(ModelFileError, match=str(tmp_path / "model")):
        DRE.load(tmp_path / "model")


@pytest.mark.parametrize("length", [0, 1, 10**8, 2**40, 2**63, 2**64 - 1])
def test_a_header_that_is_said_to_be_longer_is_refused(length, saved):
    saved.write_bytes(struct.pack("<Q", length) + saved.read_bytes()[8:])
    with cheaply(), pytest.raises(ModelFileError, match=str(saved)):
        DRE.load(saved)


def test_a_file_of_holes_is_refused(saved):
    """It would be read as zeros, for hours."""
    parts = Parts.read(saved)
    weight, at = parts.tensors["weights.h1.0.weight"], sum(len(entry.content) for entry in parts.tensors.values())
    weight.shape, weight.content = [10**6, 10**6], b""
    table = {"__metadata__": {"dre": json.dumps(parts.configuration)}, "a": {"dtype": "F32", "shape": [10**6, 10**6]}}
    table["a"]["data_offsets"] = [0, 4 * 10**12]
    write_raw(saved, json.dumps(table).encode(), bytes(at))
    try:
        os.truncate(saved, saved.stat().st_size - at + 4 * 10**12)
    except OSError:
        pytest.skip("no files of this length here")
    with cheaply(), pytest.raises(ModelFileError, match=f"{saved}.*the disk holds"):
        DRE.load(saved)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with cheaply(), pytest.raises(FileNotFoundError, match="no model file"):
        DRE.load(tmp_path / "pipe")


# Signed files that contradict themselves.


@pytest.mark.parametrize(
    "change",
    [
        *(with_number(f"scaling.{name}", value) for name in ("scale", "column_std") for value in (0.0, -1.0, np.nan, np.inf)),
        with_number("scaling.mean", np.nan),
        with_number("scaling.column_mean", np.inf),
        with_number("weights.out.bias", np.nan),
        with_number("weights.out.weight", 3e38),
        with_number("stages.0.h1.0.weight", np.inf),
        with_dtype("scaling.mean", "I64"),
        with_dtype("scaling.scale", "I64"),
        with_dtype("weights.out.weight", "I32"),
        with_dtype("stages.0.out.weight", "I32"),
        lambda parts: setattr(parts.tensors["scaling.scale"], "shape", [1]),
        lambda parts: parts.tensors.pop("scaling.column_std"),
        lambda parts: parts.tensors.pop("weights.out.bias"),
        lambda parts: parts.tensors.pop("stages.0.out.bias"),
        lambda parts: parts.tensors.update({"weights.more": parts.tensors["weights.out.bias"]}),
        lambda parts: parts.tensors.update({"more": parts.tensors["weights.out.bias"]}),
        with_field(earlier_stages=[False]),
        with_field(earlier_stages=[]),
        with_field(earlier_stages=[True, True]),
        with_field(earlier_stages=[1]),
        with_field(earlier_stages="yes"),
        with_field(unchanged=["out.bias"]),
        with_field(unchanged=["none such"]),
        with_field(unchanged=[3]),
        with_field(metric="none such"),
        with_field(metric=None),
        with_field(n_components=3),
        with_field(n_components=0),
        with_field(n_components=True),
        with_field(n_components="2"),
        with_field(history=None),
        with_field(history=[3]),
        with_field(history=[{}]),
        with_field(history=[{"stage": 7, "source": "x", "epoch": 0, "loss": 1.0, "seconds": 1.0}]),
        with_field(history=[{"stage": "0", "source": "x", "epoch": 0, "loss": 1.0, "seconds": 1.0}]),
        with_field(history=[{"stage": 0, "source": "x", "epoch": 0, "loss": None, "seconds": 1.0}]),
        with_field(about=[]),
        with_field(recipe="paper"),
        with_field(recipe={"encoder": "mlp(16)"}),
        with_field(recipe={"evil": "mlp(16)"}),
        with_field(format=True),
        with_field(format="2"),
        with_about(**{"class": "Evil"}),
        with_about(**{"class": None}),
        with_about(**{"class": "DRE\x1b[2J"}),
        with_about(parameters=[]),
        with_about(feature_names_in=3),
        with_about(feature_names_in="abcdef"),
        with_about(feature_names_in=list("abc")),
        with_about(feature_names_in=[1, 2, 3, 4, 5, 6]),
        with_about(fill_values={"a": float("nan")}),
        with_about(fill_values={"a": "1"}),
        with_about(fill_values=[1.0]),
        with_parameter(device="abacus"),
        with_parameter(device="meta"),
        with_parameter(device=3),
        with_parameter(columns=3),
        with_parameter(none_such=3),
        with_parameter(schedule={"evil": 1}),
        with_parameter(schedule={"schedule": 1}),
        with_parameter(schedule={"list": 1}),
        with_schedule("x: gaussian(5) -> kl * 2"),
        lambda parts: parts.configuration["recipe"]["recipe"].update(optimizer=None),
        lambda parts: parts.configuration["recipe"]["recipe"].update(batches={"encoder": "mlp"}),
        lambda parts: parts.configuration["recipe"]["recipe"].update(precision="float7"),
        lambda parts: parts.configuration["recipe"]["recipe"].pop("schedule"),
    ],
)
def test_a_signed_file_that_contradicts_itself_is_refused(change, saved):
    edit(saved, lambda parts: None)
    DRE.load(saved)  # signed anew, but not changed
    edit(saved, change)
    with pytest.raises(ModelFileError, match=str(saved)):
        DRE.load(saved)


def test_a_mean_that_no_row_of_the_metric_has_is_refused(tmp_path):
    """Rows have unit length before they are centered: 1e38 would leave nothing of them."""
    DRE(schedule=SCHEDULE, encoder="mlp(4)", metric="cosine", random_state=0, device="cpu").fit(X).save(tmp_path / "model")
    edit(tmp_path / "model", with_number("scaling.mean", 1e38))
    with pytest.raises(ModelFileError, match="not finite"):
        DRE.load(tmp_path / "model")


@pytest.mark.parametrize("dtype", ["I64", "I32", "F32", "F64"])
def test_a_dtype_in_the_header_is_part_of_the_digest(dtype, saved):
    parts = Parts.read(saved)
    for entry in parts.tensors.values():
        if (entry.dtype, dtype) in (("F64", "I64"), ("F32", "I32")):
            entry.dtype = dtype
        elif (entry.dtype, dtype) in (("F64", "F32"), ("F32", "F64")) and entry.shape and entry.shape[-1] % 2 == 0:
            entry.dtype, entry.shape = (
                dtype,
                [*entry.shape[:-1], entry.shape[-1] * 2 if dtype == "F32" else entry.shape[-1] // 2],
            )
    parts.write(saved)
    with pytest.raises(ModelFileError, match=f"{saved} is damaged: it is not what was saved"):
        DRE.load(saved)


def test_a_model_whose_device_is_not_there_is_opened_on_the_cpu_with_a_warning(saved, fitted):
    edit(saved, with_parameter(device="cuda:99"))
    with pytest.warns(UserWarning, match="the model stays on the CPU: device='cuda:99'") as said:
        model = DRE.load(saved)
    assert said[0].filename == __file__
    np.testing.assert_array_equal(model.transform(X), fitted.embedding_)
    np.testing.assert_array_equal(DRE.load(saved, device="cpu").transform(X), fitted.embedding_)


@pytest.mark.parametrize("problem", [MemoryError(), RecursionError(), KeyError("a"), OSError("b"), AssertionError()])
def test_every_error_becomes_one_that_names_the_file(problem, saved, monkeypatch):
    def fail(*arguments: object) -> None:
        raise problem

    monkeypatch.setattr(archive, "decode_recipe", fail)
    with pytest.raises(ModelFileError, match=str(saved)):
        DRE.load(saved)


def test_ctrl_c_ends_a_load(saved, monkeypatch):
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(archive, "decode_recipe", interrupt)
    with pytest.raises(KeyboardInterrupt):
        DRE.load(saved)


# What must still work.


def test_a_file_that_is_overwritten_later_does_not_change_the_model(saved, fitted):
    loaded = DRE.load(saved)
    with saved.open("r+b") as file:
        file.seek(-4000, os.SEEK_END)
        file.write(bytes(4000))
    np.testing.assert_array_equal(loaded.transform(X), fitted.embedding_)


def test_a_program_with_another_default_dtype_reads_the_same_model(saved, fitted):
    torch.set_default_dtype(torch.float64)
    try:
        loaded = DRE.load(saved)
    finally:
        torch.set_default_dtype(torch.float32)
    np.testing.assert_array_equal(loaded.transform(X), fitted.embedding_)


class OwnEstimator(DRE):
    """A class of the user's."""


def test_a_class_of_your_own_is_loaded_by_itself(tmp_path):
    OwnEstimator(schedule=SCHEDULE, encoder="mlp(4)", device="cpu").fit(X).save(tmp_path / "model")
    assert type(OwnEstimator.load(tmp_path / "model")) is OwnEstimator
    with pytest.raises(ModelFileError, match="'OwnEstimator': load it by that class"):
        DRE.load(tmp_path / "model")


def test_an_encoder_of_your_own_may_compute_while_it_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(ENCODERS, "_members", ENCODERS.members())  # unknown again after this test

    @dataclass(frozen=True)
    class ReadsNumbers(Encoder, name="reads-numbers"):
        def build(self, shape: tuple[int, ...], n_components: int) -> nn.Module:
            widths = [int(width) for width in torch.linspace(shape[0], n_components, 3)]  # which takes memory
            return nn.Sequential(nn.Linear(widths[0], widths[1]), nn.ReLU(), nn.Linear(widths[1], widths[2]))

    model = DRE(schedule="x: gaussian(5) -> kl * 1", encoder=ReadsNumbers(), device="cpu").fit(X)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(DRE.load(tmp_path / "model").transform(X), model.embedding_)


def test_a_device_that_is_no_text_is_saved_as_one(tmp_path):
    DRE(schedule=SCHEDULE, encoder="mlp(4)", device=torch.device("cpu")).fit(X).save(tmp_path / "model")  # type: ignore[arg-type]
    assert DRE.load(tmp_path / "model").device == "cpu"


@pytest.mark.parametrize("encoder", [name for name, kind in ENCODERS.members().items() if kind.__module__.startswith("dre.")])
def test_every_encoder_can_be_described_without_memory(encoder):
    plan, shape = ENCODERS.parse(encoder), (3, 13, 10)
    assert limits.is_built_in(plan)
    built = limits.specs(plan.build(shape, 2).state_dict())
    with cheaply(nbytes=10 * 2**20):
        assert limits.encoder_specs(plan, shape, 2, len(built)) == built


def test_a_model_that_could_not_be_opened_again_is_not_written(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_TENSORS", 3)
    with pytest.raises(ValueError, match=r"can't write the model.*stages=False"):
        fitted.save(tmp_path / "model")
    monkeypatch.setattr(archive, "MAX_TENSORS", 100)
    monkeypatch.setattr(limits, "MAX_TEXT", 20)
    with pytest.raises(ValueError, match="characters, the limit is 20"):
        fitted.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


# Format 1: two files that were written before format 2, and their maps at that time.

IMAGES_1 = FORMAT_1.with_name("format-1-images.safetensors")
MAPS_1 = {
    (FORMAT_1, None): [[-0.40782231, 0.058161408], [-0.22192205, 0.44731268], [-0.37557101, 0.10366169]],
    (FORMAT_1, 0): [[-0.43113145, 0.15274325], [-0.2112544, 0.34397426], [-0.32734871, 0.098884016]],
    (IMAGES_1, None): [[0.89696145, -0.036450773], [1.0251119, -0.31697085], [0.34442365, 0.5415982]],
    (IMAGES_1, 0): [[0.90328157, -0.041054904], [1.0345078, -0.32761335], [0.348171, 0.53547615]],
}


@pytest.mark.parametrize(("path", "stage"), MAPS_1, ids=str)
def test_a_file_of_format_1_gives_the_map_that_it_gave(path, stage):
    rows = np.random.default_rng(0).normal(size=(47, *((6,) if path == FORMAT_1 else (9, 8))))
    with pytest.warns(UserWarning, match=f"{path} has the format 1.*not noticed"):
        model = DRE.load(path)
    np.testing.assert_allclose(model._map.embed(rows[:3], stage), MAPS_1[path, stage], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*format 1")
def test_a_file_of_format_1_has_the_parameters_of_today_and_is_saved_as_format_2(tmp_path):
    model = DRE.load(FORMAT_1)
    assert (model.batch_size, model.learning_rate, model.optimizer) == ("fixed(20)", None, Optimizer(0.01, clip=1.0))
    assert model.schedule_ == Schedule.parse(SCHEDULE)
    assert list(model.feature_names_in_) == list("abcdef")
    model.save(tmp_path / "model")
    assert Parts.read(tmp_path / "model").configuration["format"] == 2
    assert str(DRE.load(tmp_path / "model").get_params()) == str(model.get_params())
    assert str(DRE.load(IMAGES_1).recipe_.encoder) == "patch-mlp(4, depth=1, filters=3, n_pcs=5, pixel_weight=0.5)"


@pytest.mark.filterwarnings("ignore:.*format 1")
def test_damaged_weights_of_format_1_are_refused(tmp_path):
    content = bytearray(FORMAT_1.read_bytes())
    content[-10] ^= 1
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match="it is not what was saved"):
        DRE.load(tmp_path / "model")


# Backbones, whose module is the user's, and whose head and settings are the file's.


@pytest.fixture(scope="module")
def with_backbone(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    images = np.random.default_rng(0).random((40, 6, 6))
    path = tmp_path_factory.mktemp("backbone") / "model"
    backbone = Backbone(nn.Conv2d(1, 4, 3), "mlp(8)", n_pcs=3)
    DRE(schedule="features: gaussian(5) -> kl * 1", encoder=backbone, random_state=0, device="cpu").fit(images).save(path)
    return path.read_bytes()


def with_option(**values: object) -> Edit:
    return lambda parts: parts.configuration["recipe"]["recipe"]["encoder"]["backbone"].update(values)


@pytest.mark.parametrize(
    "change",
    [
        with_option(head={"encoder": "mlp(4000, depth=14)"}),
        with_option(head={"encoder": "mlp(16, depth=300000)"}),
        with_option(head={"encoder": "model-a"}),
        with_option(size=3_000_000),
        with_option(size={"tuple": [4096, 4097]}),
        with_option(size={"tuple": [8, 8, 8]}),
        with_option(mean={"tuple": [0.5] * 10_000}, std={"tuple": [0.5] * 10_000}, size=4096),
        with_option(std={"tuple": [0.5] * 10_000}),
        with_option(n_pcs=10**12, head=None),
        with_field(n_components=10**8),
    ],
)
def test_a_file_with_a_backbone_costs_no_more_than_it_holds(change, with_backbone, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(with_backbone)
    assert DRE.load(path, encoder=nn.Conv2d(1, 4, 3)).row_shape_ == (6, 6)
    edit(path, change)
    with cheaply(), pytest.raises(ModelFileError, match=str(path)):
        DRE.load(path, encoder=nn.Conv2d(1, 4, 3))
