"""A saved model: one safetensors file, whole or absent, that gives the same map again and holds no data."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from dre import CE, DRE, KL, MLP, DeepTSNE, DeepUMAP, Gaussian, ModelB, ModelFileError, Optimizer, Recipe, Schedule, Stage
from dre.augment import Noise
from dre.batches import Fixed
from dre.loss import LOSSES, Loss, Step
from dre.model.archive import HEADER

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


class OwnModule(nn.Module):
    """Two layers that share a weight, dropout, a batch norm and a buffer."""

    def __init__(self, d: int = 6, width: int = 6) -> None:
        super().__init__()
        self.first = nn.Linear(d, width)
        self.body = nn.ModuleDict({"hidden": nn.Sequential(nn.Linear(width, d), nn.BatchNorm1d(d), nn.Dropout(0.3))})
        self.out = nn.Linear(d, 2)
        self.register_buffer("offset", torch.ones(2))
        if d == width:
            self.body["hidden"][0].weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.body["hidden"](self.first(x).relu())) + self.offset


OWN_SCHEDULE = "x: gaussian(5) -> kl * 2; body.hidden: gaussian(5) -> kl * 1"


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(47, 6))


@pytest.fixture(scope="module")
def fitted(X) -> DRE:
    return cheap().fit(X)


def header(path: Path) -> dict:
    """What stands in the header, read by hand as the format's description says."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length])


def configuration(path: Path) -> dict:
    return json.loads(header(path)["__metadata__"][HEADER])


# The same map again.


@pytest.mark.parametrize("stage", [None, 0, 1, -1])
@pytest.mark.parametrize(
    ("encoder", "shape"),
    [("mlp(16)", (6,)), ("model-a(norm=true)", (6,)), ("model-b", (5, 4)), ("model-b(filters=4/8, norm=true)", (4, 5, 3))],
)
def test_a_loaded_model_gives_the_same_bits(encoder, shape, stage, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, *shape)) * 255
    model = cheap(encoder=encoder).fit(X)
    model.save(tmp_path / "model.safetensors")
    loaded = DRE.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.transform(X, stage=stage), model.transform(X, stage=stage))


def test_a_model_gives_the_same_bits_in_a_new_process(fitted, X, tmp_path):
    fitted.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    program = (
        "import sys, numpy as np, torch; from dre import DRE; torch.set_num_threads(1); X = np.load('X.npy')\n"
        "model = DRE.load('model', device='cpu')\n"
        "np.savez('Y.npz', last=model.transform(X), first=model.transform(X, stage=0))\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)
    found = np.load(tmp_path / "Y.npz")
    np.testing.assert_array_equal(found["last"], fitted.transform(X))
    np.testing.assert_array_equal(found["first"], fitted.transform(X, stage=0))


def test_a_loaded_model_saves_to_the_same_model(fitted, X, tmp_path):
    fitted.save(tmp_path / "one")
    DRE.load(tmp_path / "one", device="cpu").save(tmp_path / "two")
    assert header(tmp_path / "one").keys() == header(tmp_path / "two").keys()
    assert configuration(tmp_path / "one") == configuration(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_loaded_model_knows_its_course(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = DRE.load(str(tmp_path / "model"))
    assert loaded.history_ == fitted.history_
    assert loaded.schedule_ == fitted.schedule_
    assert loaded.recipe_ == fitted.recipe_
    assert not loaded.encoder_.training


def test_a_loaded_model_can_be_fitted_again(fitted, X, tmp_path):
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(DRE.load(tmp_path / "model", device="cpu").fit(X).embedding_, fitted.embedding_)


def test_without_its_stages_a_file_is_smaller_and_keeps_the_last_map(fitted, X, tmp_path):
    fitted.save(tmp_path / "all")
    fitted.save(tmp_path / "last", stages=False)
    assert (tmp_path / "last").stat().st_size < 0.6 * (tmp_path / "all").stat().st_size
    loaded = DRE.load(tmp_path / "last")
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(loaded.transform(X, stage=-1), fitted.transform(X))
    with pytest.raises(ValueError, match="stages=False"):
        loaded.transform(X, stage=0)
    assert len(fitted.stages_) == 2  # saving less has not changed the model


def test_what_is_saved_is_what_was_fitted_whatever_was_set_since(X, tmp_path):
    model = cheap().fit(X)
    model.set_params(n_components=5, encoder="model-a", schedule="x: fuzzy(5) -> ce * 9")
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.schedule_ == Schedule.parse(SCHEDULE)


# What is in the file.


def test_the_file_is_safetensors_with_a_json_header(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model", framework="numpy") as file:
        assert set(file.keys()) == set(header(tmp_path / "model")) - {"__metadata__"}
    about = configuration(tmp_path / "model")
    assert about["format"] == 2
    assert about["recipe"]["recipe"]["schedule"] == {"schedule": str(Schedule.parse(SCHEDULE))}


def test_the_file_holds_neither_the_data_nor_the_embedding(X, tmp_path):
    planted = X.copy()
    planted[11] = 12345.678 + np.arange(6)
    model = cheap().fit(planted)
    model.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    for values in (planted[11], model._map.scaling(torch.from_numpy(planted)).numpy()[11], model.embedding_[11]):
        for value in values:
            for dtype in ("float32", "float64"):
                assert np.asarray(value, dtype).tobytes() not in content
    assert b"12345" not in content
    for name, entry in header(tmp_path / "model").items():
        assert name == "__metadata__" or len(planted) not in entry["shape"]


def test_what_training_leaves_as_it_was_is_in_the_file_once(X, tmp_path):
    model = cheap(encoder="mlp(16, n_pcs=4)").fit(X)
    model.save(tmp_path / "model")
    fronts = [name for name in header(tmp_path / "model") if "features." in name]
    assert sorted(fronts) == ["weights.features.axes", "weights.features.offset"]
    loaded = DRE.load(tmp_path / "model", device="cpu")
    for stage in (0, 1):
        np.testing.assert_array_equal(loaded.transform(X, stage=stage), model.transform(X, stage=stage))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_the_file_does_not_grow_with_the_data(tmp_path):
    sizes = []
    for n in (40, 400):
        cheap(batch_size="shuffled(500)").fit(np.random.default_rng(0).normal(size=(n, 6))).save(tmp_path / "model", force=True)
        sizes.append(sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in tensors(tmp_path / "model")))
    assert sizes[0] == sizes[1]


def tensors(path: Path) -> list[dict]:
    return [entry for name, entry in header(path).items() if name != "__metadata__"]


def test_there_is_no_pickle_in_the_file(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    assert len(content) == 8 + length + max(entry["data_offsets"][1] for entry in tensors(tmp_path / "model"))  # nothing beside
    assert b"PK\x03\x04" not in content  # nor a zip, torch's own form

    def refuse(*args, **kwargs):
        raise AssertionError("a pickle was read")

    for place in ("pickle.load", "pickle.loads", "pickle.Unpickler", "torch.load"):
        monkeypatch.setattr(place, refuse)
    DRE.load(tmp_path / "model")


# Damage.


def edited(path: Path, changes: dict) -> None:
    """Change the configuration in the header, and leave the weights and all that the format checks as they are."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    fields = json.loads(content[8 : 8 + length])
    fields["__metadata__"][HEADER] = json.dumps(json.loads(fields["__metadata__"][HEADER]) | changes)
    text = json.dumps(fields).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "cosine"},
        {"n_components": 3},
        {"history": []},
        {"earlier_stages": [False]},
        {"about": {"class": "DRE", "parameters": {}, "feature_names_in": None}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_edited_configuration_is_refused(changes, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    edited(tmp_path / "model", {})
    DRE.load(tmp_path / "model")  # written anew, but not changed
    edited(tmp_path / "model", changes)
    with pytest.raises(ModelFileError, match="damaged"):
        DRE.load(tmp_path / "model")


def test_a_scale_that_was_edited_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model", framework="pt") as file:
        content = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = file.metadata()
    content["scaling.scale"] *= 2
    save_file(content, tmp_path / "edited", about)
    with pytest.raises(ModelFileError, match="damaged"):
        DRE.load(tmp_path / "edited")


def test_a_flipped_bit_is_refused_or_changes_nothing(fitted, X, tmp_path):
    fitted.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in (*range(0, 400, 3), *rng.integers(0, len(content), 300)):
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "changed").write_bytes(changed)
        try:
            loaded = DRE.load(tmp_path / "changed", device="cpu")
        except ModelFileError:
            refused += 1
            continue
        np.testing.assert_array_equal(loaded.transform(X), fitted.embedding_)
        np.testing.assert_array_equal(loaded.transform(X, stage=0), fitted.transform(X, stage=0))
    assert refused > 400


# Writing.


def test_a_file_is_replaced_on_request_alone_and_nothing_is_left_beside_it(fitted, X, tmp_path):
    (tmp_path / "model").write_text("what was there before")
    with pytest.raises(FileExistsError, match="model exists: pass force=True to overwrite it"):
        fitted.save(tmp_path / "model")
    assert (tmp_path / "model").read_text() == "what was there before"
    fitted.save(tmp_path / "model", force=True)
    fitted.save(tmp_path / "model", stages=False, force=True)
    assert os.listdir(tmp_path) == ["model"]
    np.testing.assert_array_equal(DRE.load(tmp_path / "model").transform(X), fitted.embedding_)


def test_the_place_of_the_file_is_never_half_written(fitted, tmp_path, monkeypatch):
    from dre.model import archive

    seen = []
    save_file = archive.save_file

    def spy(tensors, filename, metadata):
        seen.append(Path(filename))
        save_file(tensors, filename, metadata)
        assert not (tmp_path / "model").exists()

    monkeypatch.setattr(archive, "save_file", spy)
    fitted.save(tmp_path / "model")
    assert seen[0].parent.parent == tmp_path  # on the same file system, so that the move is one step
    assert seen[0] != tmp_path / "model"


def test_a_file_has_the_permissions_that_the_umask_gives(fitted, tmp_path):
    before = os.umask(0o027)
    try:
        fitted.save(tmp_path / "model")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o640


# Modules of the user's.


@pytest.fixture
def own(X, tmp_path) -> DRE:
    torch.manual_seed(0)
    model = cheap(encoder=OwnModule(), schedule=OWN_SCHEDULE).fit(X)
    model.save(tmp_path / "own")
    return model


@pytest.mark.parametrize("stage", [None, 0, 1])
def test_a_model_with_a_module_of_your_own_is_loaded_with_that_module(own, stage, X, tmp_path):
    module = OwnModule()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    loaded = DRE.load(tmp_path / "own", encoder=module)
    np.testing.assert_array_equal(loaded.transform(X, stage=stage), own.transform(X, stage=stage))
    assert loaded.encoder is module
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_shared_weights_are_saved(own, X, tmp_path):
    state = DRE.load(tmp_path / "own", encoder=OwnModule()).encoder_.state_dict()
    assert torch.equal(state["first.weight"], own.encoder_.first.weight)
    assert torch.equal(state["body.hidden.0.weight"], own.encoder_.first.weight)


def test_without_the_module_the_error_names_it_and_says_how_to_pass_it(own, tmp_path):
    with pytest.raises(ModelFileError, match=r"OwnModule.*DRE\.load\(path, encoder=\.\.\.\)"):
        DRE.load(tmp_path / "own")


@pytest.mark.parametrize("module", [OwnModule(7), OwnModule(6, 9), nn.Linear(6, 2)], ids=["wide", "wider inside", "another"])
def test_a_module_that_does_not_fit_is_refused(own, module, tmp_path):
    with pytest.raises(ModelFileError, match="do not fit the encoder"):
        DRE.load(tmp_path / "own", encoder=module)


# The estimator around it.


def test_load_gives_the_class_that_was_saved(X, tmp_path):
    kinds = [cheap(), DeepTSNE(perplexity=4, encoder="mlp(4, depth=1)", random_state=1, device="cpu")]
    kinds += [DeepUMAP(n_neighbors=5, min_dist=0.2, encoder="mlp(4, depth=1)", batch_size=50, learning_rate=1e-3, device="cpu")]
    for model in kinds:
        model.fit(X, observers=[lambda event: event.run.end_fit()]).save(tmp_path / "model", force=True)
        for kind in (DRE, DeepTSNE, DeepUMAP):
            loaded = kind.load(tmp_path / "model", device="cpu")
            assert type(loaded) is type(model)
            assert loaded.get_params() == model.get_params()


@pytest.mark.parametrize(
    "parameters",
    [
        {"schedule": Schedule.parse(SCHEDULE)},
        {"schedule": Schedule(Stage("x", Gaussian(5.5), 0.5 * KL(alpha=0.5) + 2 * CE(min_dist=0.01), 2, lr=1e-3, refresh=1))},
        {"encoder": MLP(12, depth=2)},
        {"batch_size": Fixed(20), "learning_rate": 1e-3},
        {"batch_size": "edges(16)"},
        {"batch_size": 20},
        {"augment": Noise(0.25)},
        {"augment": "noise(0.25)"},
        {
            "recipe": Recipe(Schedule.parse(SCHEDULE), MLP(8), Fixed(20), Optimizer(1e-2, clip=1.0)),
            "schedule": None,
            "encoder": None,
        },
        {"recipe": "paper", "schedule": None, "recursions": 0, "n_neighbors": 5, "perplexity": 4.5},
        {"n_components": np.int64(3), "perplexity": np.float64(4), "verbose": False},
    ],
    ids=str,
)
def test_parameters_survive(parameters, X, tmp_path):
    model = cheap(**parameters).fit(X, observers=[lambda event: event.run.end_fit()])
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model", device="cpu")
    assert loaded.get_params() == model.get_params()
    assert loaded.recipe_ == model.recipe_
    assert [type(value) for value in loaded.get_params().values()] == [
        type(value.item() if isinstance(value, np.generic) else value) for value in model.get_params().values()
    ]


def test_a_recipe_with_a_module_of_your_own_survives(X, tmp_path):
    recipe = Recipe(Schedule.parse(OWN_SCHEDULE), OwnModule(), Fixed(20), Optimizer())
    model = DRE(recipe, device="cpu", random_state=0).fit(X)
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model", encoder=OwnModule(), device="cpu")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.recipe.schedule == recipe.schedule


def test_a_random_state_that_has_no_text_is_left_out(X, tmp_path):
    model = cheap(random_state=np.random.RandomState(0)).fit(X)
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model")
    assert loaded.random_state is None
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_a_model_is_loaded_onto_the_device_that_is_asked_for_or_that_it_was_made_with(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert DRE.load(tmp_path / "model").device == fitted.device == "cpu"
    loaded = DRE.load(tmp_path / "model", device="auto")
    assert loaded.device == "auto"
    loaded = DRE.load(tmp_path / "model", device="cpu")
    assert {p.device.type for p in loaded.encoder_.parameters()} == {"cpu"}
    with pytest.raises(ValueError, match="device='abacus'"):
        DRE.load(tmp_path / "model", device="abacus")


def test_the_names_of_features_are_kept(X, tmp_path):
    frame = pd.DataFrame(X, columns=["ä", "b c", "d", "e", "f", "g"])
    model = cheap().fit(frame)
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == list(model.feature_names_in_)
    assert loaded.n_features_in_ == 6
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.transform(frame[frame.columns[::-1]])
    assert list(loaded.get_feature_names_out()) == ["dre1", "dre2"]


def test_the_number_of_features_is_kept_for_images(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 5, 4))
    model = cheap(encoder=ModelB()).fit(X)
    model.save(tmp_path / "model")
    assert DRE.load(tmp_path / "model").n_features_in_ == model.n_features_in_


# Losses of the user's.


@dataclass(frozen=True)
class Spread(Loss, name="spread-for-this-test"):
    strength: float = 1.0

    def __call__(self, step: Step) -> Tensor:
        return -self.strength * step.y.var()


def test_a_loss_of_your_own_is_known_again_where_its_class_is(X, tmp_path):
    schedule = Schedule(Stage("x", Gaussian(5), KL() + 0.1 * Spread(2.5), 2))
    model = cheap(schedule=schedule).fit(X)
    model.save(tmp_path / "model")
    loaded = DRE.load(tmp_path / "model", device="cpu")
    assert loaded.schedule_ == loaded.schedule == schedule
    np.testing.assert_array_equal(loaded.transform(X), model.embedding_)


def test_a_loss_whose_class_is_not_imported_is_named_with_the_remedy(X, tmp_path, monkeypatch):
    cheap(schedule=Schedule(Stage("x", Gaussian(5), Spread(2.5), 2))).fit(X).save(tmp_path / "model")
    monkeypatch.delitem(LOSSES._members, "spread-for-this-test")
    with pytest.raises(ModelFileError, match=r"(?s)import the module that defines it.*unknown loss 'spread-for-this-test'"):
        DRE.load(tmp_path / "model")


def test_an_encoder_for_a_model_that_has_its_own_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"encoder of its own.*without encoder="):
        DRE.load(tmp_path / "model", encoder=torch.nn.Linear(6, 2))
