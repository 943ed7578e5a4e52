"""Bad input gets one clear error that names the remedy, and nothing is left half-done."""

from __future__ import annotations

import json
import os
import re
import struct
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn

from dre import DRE, KL, DivergedError, EarlyStopping, Gaussian, ModelFileError, Recipe, Schedule, Stage
from dre.batches import Fixed
from dre.data.validation import check_labels
from dre.encoder.mlp import MLP
from dre.loss import Loss, Step
from dre.model.archive import HEADER
from dre.optimizer import Optimizer

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


def some_rows(n: int = 40, d: int = 6) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return some_rows()


@pytest.fixture(scope="module")
def fitted(X) -> DRE:
    return cheap().fit(X)


@pytest.fixture
def saved(fitted, tmp_path) -> Path:
    fitted.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


# Values.


def test_the_column_of_a_gap_is_named_if_it_has_a_name(X):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "pct_mito", "c", "d", "e", "f"])
    gaps = table.mask(table.index.to_numpy()[:, None] * (table.columns == "pct_mito") == 11)
    with pytest.raises(ValueError, match=r"the first in row 11 in column 'pct_mito'\."):
        cheap().fit(gaps)
    model = cheap().fit(table)
    with pytest.raises(ValueError, match=r"the first in row 11 in column 'pct_mito'\."):
        model.transform(gaps)
    with pytest.raises(ValueError, match=r"the first in row 11 at \[1\]\."):
        cheap().fit(gaps.to_numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_a_value_that_is_not_finite_is_named_with_its_place(value, name, dtype, X, fitted):
    bad = X.astype(dtype)
    bad[7, 3] = bad[9, 1] = value
    remedy = "missing='median'" if name == "NaN" else "SimpleImputer"
    for call in (cheap().fit, fitted.transform):
        with pytest.raises(ValueError, match=rf"contains {name}: 2 value.* row 7 at \[3\].*{remedy}"):
            call(bad)


def test_a_value_that_is_not_finite_is_found_in_an_image_and_in_a_sparse_matrix(X):
    image = some_rows(20, 12).reshape(20, 3, 4)
    image[5, 1, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 5 at \[1, 2\]"):
        cheap().fit(image)
    dense = np.where(X > 0.5, X, 0.0)
    dense[0] = 0  # an empty row before it
    dense[8, 4] = np.nan
    with pytest.raises(ValueError, match=r"row 8 at \[4\]"):
        cheap().fit(scipy.sparse.csr_array(dense))


def test_large_finite_values_are_not_taken_for_infinite():
    X = some_rows().astype(np.float32) * np.float32(1e37)
    assert np.isfinite(cheap().fit(X).embedding_).all()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.array([["a", "b"], ["c", "d"]]), "[Cc]onvert"),
        (np.array([["a", 1.0], ["c", 2.0]], dtype=object), "could not convert string"),
        (np.ones((5, 3), dtype=complex), "[Cc]omplex"),
        (np.full((5, 3), "2020-01-01", dtype="datetime64[D]"), "convert or encode"),
        (np.empty((0, 3)), "0 sample"),
        (np.empty((5, 0)), "0 feature"),
        (np.empty((5, 0, 4)), r"\(0, 4\)"),
        (np.ones(5), "[Rr]eshape"),
        (np.float64(3), "[Rr]eshape|2D array"),
        (np.ones((5, 2, 2, 2, 2)), "reshape X"),
        (np.ones((1, 3)), r"minimum of 2 is required"),
        (None, "array|None"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(bad, message):
    model = cheap()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(bad)
    assert not hasattr(model, "encoder_")


@pytest.mark.parametrize("X", ["cells.csv", Path("cells.csv")])
def test_a_path_is_no_array_and_the_error_says_how_to_read_it(X):
    with pytest.raises(TypeError, match=re.escape("open_source('cells.csv').rows")):
        cheap().fit(X)


def test_a_sparse_matrix_that_would_not_fit_in_memory_is_refused_before_it_is_tried(monkeypatch):
    monkeypatch.setattr("dre.data.validation.available_bytes", lambda: 1000)
    with pytest.raises(ValueError, match="TruncatedSVD"):
        cheap().fit(scipy.sparse.csr_array(np.eye(40)))


# Shapes at transform.


@pytest.mark.parametrize("d", [5, 7])
def test_another_number_of_features_is_refused(d, fitted):
    with pytest.raises(ValueError, match=f"X has {d} features, but DRE is expecting 6 features"):
        fitted.transform(some_rows(4, d))


@pytest.mark.parametrize("shape", [(4, 5, 6), (4, 6, 5), (4, 30), (4, 5), (4, 5, 5, 1), (4, 5, 5, 3)])
def test_another_shape_of_image_is_refused_with_both_shapes(shape):
    model = cheap().fit(some_rows(40, 25).reshape(40, 5, 5))
    with pytest.raises(ValueError, match=rf"{re.escape(str(shape[1:]))}.*\(5, 5\)"):
        model.transform(np.ones(shape))


def test_images_are_refused_by_a_model_of_vectors(fitted):
    with pytest.raises(ValueError, match=r"\(6, 2\).*\(6,\)"):
        fitted.transform(np.ones((4, 6, 2)))


def test_transform_checks_that_there_are_rows(fitted):
    with pytest.raises(ValueError, match="0 sample"):
        fitted.transform(np.empty((0, 6)))


# Unfitted.


def test_an_unfitted_model_says_so(X, tmp_path):
    model = cheap()
    for call in (lambda: model.transform(X), lambda: model.save(tmp_path / "model"), model.get_feature_names_out):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["encoder_", "schedule_", "recipe_", "history_", "stages_"])
def test_what_is_learned_is_absent_before_fit_and_the_error_says_to_fit(name):
    assert not hasattr(cheap(), name)
    with pytest.raises(AttributeError, match=r"fit\(X\)"):
        getattr(cheap(), name)


# Parameters.


class OwnModule(nn.Module):
    def __init__(self, components: int = 2) -> None:
        super().__init__()
        self.h1 = nn.Linear(6, 8)
        self.out = nn.Linear(8, components)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.h1(x))


class GivesAPair(OwnModule):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


RECIPE = Recipe(Schedule.parse(SCHEDULE), MLP(16), Fixed(20), Optimizer())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"recipe": "papper"}, "unknown recipe 'papper'.*auto.*paper-tsne.*Did you mean 'paper'"),
        ({"recipe": 5}, "recipe"),
        ({"encoder": "model-c"}, "unknown encoder 'model-c'.*mlp.*model-a.*Did you mean"),
        ({"encoder": "mlp(16, deep=3)"}, "unknown argument of mlp 'deep'.*depth"),
        ({"encoder": "model-b"}, "reads images.*reshape X"),
        ({"encoder": OwnModule}, r"encoder.*class.*OwnModule\(\)"),
        ({"encoder": 5}, "encoder"),
        ({"encoder": OwnModule(3)}, "3 components.*n_components=2"),
        ({"encoder": GivesAPair()}, "tensor.*not tuple"),
        ({"schedule": "x: gaussian(5) -> kk * 2"}, "unknown loss 'kk'; known: .*\\bce\\b.*\\bkl\\b"),
        ({"schedule": "x: gauss(5) -> kl * 2"}, "unknown affinity 'gauss'.*fuzzy.*gaussian.*Did you mean 'gaussian'"),
        ({"schedule": "x: gaussian(5) kl * 2"}, "expected '->' between the affinity and the loss"),
        ({"schedule": "h9: gaussian(5) -> kl * 2"}, "unknown source 'h9'.*h1, "),
        ({"schedule": ""}, "at least one stage"),
        ({"schedule": 5}, "schedule"),
        ({"recursions": 2}, "recursions and schedule were both given"),
        ({"recipe": RECIPE, "schedule": None, "recursions": 2}, "recursions.*Recipe"),
        ({"schedule": None, "recursions": -1}, "recursions=-1"),
        ({"schedule": None, "recursions": 1.5}, "recursions=1.5.*integer"),
        ({"device": "abacus"}, "'auto', 'cpu', 'cuda'"),
        ({"device": None}, "'auto', 'cpu', 'cuda'"),
        ({"batch_size": 1}, "at least 2 rows"),
        ({"batch_size": 2.5}, "batch_size=2.5"),
        ({"batch_size": "fixd(20)"}, "'fixd'.*edges.*fixed"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0.*positive"),
        ({"learning_rate": 0}, "learning_rate=0: must be a positive number"),
        ({"learning_rate": float("nan")}, "learning_rate=nan: must be"),
        ({"learning_rate": True}, "learning_rate=True: expected a number"),
        ({"n_neighbors": True}, "n_neighbors=True: expected an integer"),
        ({"batch_size": True}, r"batch_size=True: expected a whole number.*'edges\(256\)'"),
        ({"batch_size": 12.5}, "batch_size=12.5: expected a whole number"),
        ({"batch_size": "-5"}, "at least 2 rows"),
        ({"batch_size": 0}, "at least 2 rows"),
        ({"batch_size": "edges("}, r"expected '\)' after the values of edges, found the end of the text"),
        ({"augment": ""}, "the name of an augmentation .*, found the end of the text"),
        ({"optimizer": "adam(-1.0)"}, "lr=-1.0.*positive"),
        ({"optimizer": "sgd(0.1)"}, "'sgd'.*adam"),
        ({"optimizer": 0.1}, "optimizer=0.1.*Optimizer"),
        ({"batch_size": "edges(8)", "schedule": "x: gaussian(5, scope=batch) -> kl * 1"}, "scope=graph"),
        ({"n_neighbors": "many"}, "n_neighbors='many'.*integer"),
        ({"n_neighbors": 1}, "n_neighbors=1.*at least 2"),
        ({"standardize": "no"}, "standardize='no'.*True or False"),
        ({"n_neighbors": 5, "perplexity": 7}, "perplexity=7.*n_neighbors=5.*one of them"),
        ({"min_dist": 0.3}, "min_dist=0.3.*DeepUMAP.*recipe='paper'"),
        ({"learning_rate": "fast"}, "learning_rate='fast'.*number"),
        ({"metric": "cosin"}, "'cosin'.*euclidean, cosine.*Did you mean 'cosine'"),
        ({"perplexity": "30"}, "perplexity='30': expected a number"),
        ({"perplexity": 0.5}, "perplexity=0.5: must be at least 1"),
        ({"augment": "nois"}, "unknown augmentation 'nois'.*noise"),
        ({"augment": 5}, "augment"),
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 2.0}, "n_components=2.0"),
        ({"random_state": "zero"}, "zero.*seed"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_named_and_what_is_known_is_listed(parameters, message, X):
    model = cheap(**parameters)
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        model.fit(X)
    assert not hasattr(model, "encoder_")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused_with_one_that_is(X):
    with pytest.raises(ValueError, match=r"no CUDA device.*'cpu'"):
        cheap(device="cuda").fit(X)


def test_numbers_of_numpy_are_numbers(X):
    plain = cheap(n_components=3, batch_size=20, learning_rate=0.001, perplexity=4).fit(X)
    options = {"batch_size": np.int64(20), "learning_rate": np.float64(0.001), "perplexity": np.float32(4)}
    numpy = cheap(n_components=np.int64(3), **options).fit(X)
    np.testing.assert_array_equal(numpy.embedding_, plain.embedding_)


@pytest.mark.parametrize("scope", ["graph", "batch"])
def test_a_perplexity_too_large_for_the_rows_is_adapted_with_a_warning(scope):
    schedule = f"x: gaussian(30, scope={scope}) -> kl * 1"
    with pytest.warns(UserWarning, match=r"perplexity 30 is too large for 20 rows; 6.333 is used.*smaller perplexity"):
        model = cheap(schedule=schedule, batch_size="shuffled(500)").fit(some_rows(20))
    assert np.isfinite(model.embedding_).all()


def test_neighbours_too_many_for_the_rows_are_adapted_with_a_warning():
    with pytest.warns(UserWarning, match="n_neighbors 15 is too large for 10 rows; 10 is used"):
        cheap(schedule="x: fuzzy(15) -> ce * 1").fit(some_rows(10))


# A loss that becomes NaN.


@dataclass(frozen=True)
class Breaks(Loss, name="breaks-at"):
    """Its third call gives NaN."""

    at: int = 3

    def __call__(self, step: Step) -> Tensor:
        CALLS.append(1)
        return KL()(step) * (float("nan") if len(CALLS) >= self.at else 1.0)


CALLS: list[int] = []


@pytest.fixture
def breaking() -> Schedule:
    CALLS.clear()
    return Schedule(Stage("x", Gaussian(5), KL(), 2), Stage("h1", Gaussian(5), Breaks(3), 9))


def test_a_loss_that_becomes_nan_names_its_stage_and_epoch(breaking, X):
    model = cheap(schedule=breaking)
    with pytest.raises(DivergedError, match=r"(?s)nan in stage 1 \(h1: .*\), epoch 3 of 9.*learning_rate"):
        model.fit(X)
    assert vars(model) == model.get_params()  # unfitted, as it was


def test_a_fit_that_fails_leaves_a_fitted_model_as_it_was(breaking, X):
    model = cheap().fit(X)
    before = model.transform(X)
    for change, bad in (
        ({"schedule": breaking}, X[:, :4]),
        ({"encoder": "none such"}, X[:, :3]),
        ({}, np.full((9, 2), np.nan)),
    ):
        with pytest.raises((DivergedError, ValueError)):
            model.set_params(**change).fit(bad)
        np.testing.assert_array_equal(model.transform(X), before)
        np.testing.assert_array_equal(model.embedding_, before)
        assert model.n_features_in_ == 6


# Files.


@pytest.mark.parametrize("part", [0.0, 1e-9, 0.001, 0.1, 0.5, 0.99, 0.999999])
def test_a_file_cut_short_is_refused(part, saved):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: -1 if part == 0.999999 else int(np.ceil(part * len(whole)))])
    with pytest.raises(ModelFileError, match=f"{saved}.*not a model.*or it is damaged"):
        DRE.load(saved)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\x00" * 100, b"\xff" * 100, np.random.default_rng(0).bytes(5000), b"a text\n" * 9]
)
def test_a_foreign_file_is_refused(content, saved):
    saved.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a model that dre saved"):
        DRE.load(saved)


def test_a_pickle_is_refused_and_not_run(fitted, saved):
    torch.save(fitted, saved)
    with pytest.raises(ModelFileError, match="not a model that dre saved"):
        DRE.load(saved)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_safetensors_file_of_others_is_refused(metadata, saved):
    safetensors.torch.save_file({"weight": torch.ones(3)}, saved, metadata)
    with pytest.raises(ModelFileError, match="safetensors file, but not one that dre saved"):
        DRE.load(saved)


def with_configuration(path: Path, change) -> None:
    """Write the file again with another configuration in its header."""
    with safetensors.safe_open(path, framework="pt") as file:
        text, tensors = file.metadata()[HEADER], {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    safetensors.torch.save_file(tensors, path, {HEADER: change(text)})


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("{", "[", 1),
        lambda text: "[]",
        lambda text: "null",
        lambda text: "{}",
        lambda text: '{"format": 2}',
        lambda text: text.replace("kl", "k1"),
        lambda text: text.replace("mlp(16)", "mlp(17)"),
        lambda text: text.replace("mlp(16)", "mlp(16, depth=9)"),
        *(
            lambda text, name=name: json.dumps({key: value for key, value in json.loads(text).items() if key != name})
            for name in ("about", "recipe", "metric", "earlier_stages", "history", "sha256")
        ),
        *(
            lambda text, name=name: json.dumps(json.loads(text) | {name: "damaged"})
            for name in ("about", "recipe", "metric", "earlier_stages", "unchanged", "sha256")
        ),
        lambda text: json.dumps(json.loads(text) | {"earlier_stages": [True] * 7}),
    ],
)
def test_a_damaged_configuration_is_refused(change, saved):
    with_configuration(saved, change)
    with pytest.raises(ModelFileError, match=str(saved)):
        DRE.load(saved)


def test_one_flipped_bit_in_the_weights_is_noticed(saved):
    content = bytearray(saved.read_bytes())
    content[-100] ^= 1
    saved.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"damaged.*another copy"):
        DRE.load(saved)


def test_a_file_of_a_later_format_asks_for_a_newer_dre(saved):
    with_configuration(saved, lambda text: json.dumps(json.loads(text) | {"format": 99}))
    with pytest.raises(ModelFileError, match=r"format 99.*reads 1 to 3"):
        DRE.load(saved)


@pytest.mark.parametrize("name", ["scaling.mean", "weights.out.bias", "stages.0.out.bias", "weights.h1.0.weight"])
def test_a_file_without_one_of_its_tensors_is_refused(name, saved):
    with safetensors.safe_open(saved, framework="pt") as file:
        metadata, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys() if key != name}  # noqa: SIM118
    safetensors.torch.save_file(tensors, saved, metadata)
    with pytest.raises(ModelFileError, match=str(saved)):
        DRE.load(saved)


def test_any_damaged_byte_of_the_header_is_refused_or_harmless(saved, X):
    whole = saved.read_bytes()
    length = 8 + struct.unpack("<Q", whole[:8])[0]
    for at in np.random.default_rng(0).integers(0, length, 150):
        saved.write_bytes(whole[:at] + bytes([whole[at] ^ 0x15]) + whole[at + 1 :])
        try:
            DRE.load(saved, device="cpu")
        except ModelFileError:
            continue  # any other error fails this test


def test_a_missing_file_is_named(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"no model file at {path}"):
            DRE.load(path)


@pytest.mark.parametrize("place", ["no/such/folder/model", "a file/model", "a folder"])
def test_a_path_that_cannot_be_written_is_named_and_nothing_is_left_behind(place, fitted, tmp_path):
    (tmp_path / "a file").write_text("text")
    (tmp_path / "a folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match=f"can't write the model to {tmp_path / place}.*[Cc]hoose a folder that exists"):
        fitted.save(tmp_path / place)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "problem", [OSError(28, "No space left on device"), safetensors.SafetensorError("no"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("step", ["dre.model.archive.save_file", "dre.model.archive.os.replace"])
def test_a_save_that_fails_leaves_the_file_that_was_there(step, problem, fitted, saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*args, **kwargs):
        if step.endswith("save_file"):
            Path(args[1]).write_bytes(b"half a model")
        raise problem

    monkeypatch.setattr(step, fail)
    with pytest.raises(KeyboardInterrupt if isinstance(problem, KeyboardInterrupt) else OSError):
        fitted.save(saved, force=True)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


@pytest.mark.parametrize("wrong", [{"clip": -1.0}, {"clip": 0.0}, {"eps": -1.0}, {"lr": float("nan")}, {"lr": "a"}])
def test_an_optimiser_that_would_climb_is_refused(wrong):
    with pytest.raises(ValueError, match="must be a positive number"):
        Optimizer(**wrong)


@pytest.mark.parametrize("observers", [[EarlyStopping], [3], print])
def test_what_cannot_watch_a_run_is_refused(observers, X):
    with pytest.raises(TypeError, match=r"such as EarlyStopping\(\)|pass a list"):
        cheap().fit(X, observers=observers)


@pytest.mark.parametrize("stage", ["h1", 1.0, 7, -3])
def test_a_stage_that_was_not_carried_out_is_refused(stage, X):
    with pytest.raises(ValueError, match=r"2 stage\(s\).*from 0"):
        cheap().fit(X).transform(X, stage=stage)


def test_an_encoder_without_the_sources_of_the_recipe_gets_a_remedy(X):
    with pytest.raises(ValueError, match=r"unknown source 'h1'.*recursions=0"):
        DRE("fast", encoder=torch.nn.Linear(X.shape[1], 2), device="cpu").fit(X)


def test_the_embedding_of_a_loaded_model_is_to_be_had_by_transform(saved):
    with pytest.raises(AttributeError, match=r"not saved with a model: transform\(X\)"):
        _ = DRE.load(saved).embedding_


@pytest.mark.parametrize("y", [[1.0, np.nan, 0.0], ["a", None, "b"], np.array(["a", np.nan, "b"], object), [1.0, np.inf, 0.0]])
def test_a_missing_label_of_a_loss_is_named(y):
    with pytest.raises(ValueError, match=r"y has 1 missing label\(s\), the first in row 1"):
        check_labels(y, 3)


@dataclass(frozen=True)
class Classes(KL, name="classes-by-test-validation"):
    """A loss of two classes: each is drawn together."""

    reads_labels = True

    def __call__(self, step: Step) -> torch.Tensor:
        return super().__call__(step) + step.labels.float().mean() * step.y.square().mean()


def test_labels_that_a_loss_reads_are_checked_in_a_fit():
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = DRE(schedule=Schedule(Stage("x", Gaussian(5), Classes(), 1)), encoder="mlp(4)", random_state=0, device="cpu")
    with pytest.warns(UserWarning, match="all 40 rows have the same label") as told:
        model.fit(X, np.full(40, -1))
    assert [each.filename for each in told] == [__file__]
    with pytest.raises(ValueError, match="1 missing label"):
        model.fit(X, np.where(np.arange(40) == 7, np.nan, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, np.arange(40) % 2)
        DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(4)", device="cpu").fit(X, np.full(40, -1))  # nothing reads them
