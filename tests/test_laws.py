"""What holds for every model, whatever the data: nothing outside is touched, rows stay in their places, seeds decide."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dre import DRE, DeepTSNE, EarlyStopping
from dre.encoder.model_a import ModelA
from dre.encoder.model_b import ModelB
from dre.training.events import EpochEnded, StageBegan, StageEnded, StepEnded, TargetBegan

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"


def cheap(**others: object) -> DRE:
    return DRE(**({"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"} | others))


def some_rows(n: int = 60, d: int = 6) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


class WithDropout(nn.Module):
    def __init__(self, d: int = 6) -> None:
        super().__init__()
        self.h1 = nn.Sequential(nn.Linear(d, 16), nn.ReLU(), nn.Dropout(0.5))
        self.out = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.h1(x))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return some_rows()


# The world outside is left alone.


@pytest.mark.parametrize("writeable", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8"])
@pytest.mark.parametrize("shape", [(40, 6), (40, 4, 3)])
def test_the_bytes_of_the_input_are_untouched(shape, dtype, writeable):
    X = np.random.default_rng(0).integers(0, 255, shape).astype(dtype)
    X.flags.writeable = writeable
    before = X.tobytes()
    model = cheap().fit(X)
    model.transform(X, stage=0)
    model.transform(X)
    model.fit_transform(X)
    assert X.tobytes() == before


def test_a_tensor_and_a_sparse_matrix_are_untouched(X):
    import scipy.sparse

    tensor, sparse = torch.tensor(X), scipy.sparse.csr_array(np.where(X > 0, X, 0))
    before, values = tensor.clone(), sparse.data.copy()
    cheap().fit(tensor).transform(tensor)
    cheap().fit(sparse).transform(sparse)
    assert torch.equal(tensor, before)
    assert sparse.data.tobytes() == values.tobytes()


def global_states() -> tuple[bytes, ...]:
    kind, keys, *rest = np.random.get_state()
    return (
        keys.tobytes(),
        repr((kind, rest)).encode(),
        repr(random.getstate()).encode(),
        torch.get_rng_state().numpy().tobytes(),
    )


@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.parametrize("encoder", ["mlp(16)", "model-a", WithDropout()], ids=["mlp", "model-a", "dropout"])
def test_the_global_random_states_are_untouched(encoder, random_state, X, tmp_path):
    model = cheap(encoder=encoder, random_state=random_state, augment="noise(0.1)")
    before = global_states()
    model.fit(X)
    assert global_states() == before, "by fit"
    model.transform(X)
    model.transform(X, stage=0)
    assert global_states() == before, "by transform"
    model.save(tmp_path / "model")
    DRE.load(tmp_path / "model", encoder=encoder if isinstance(encoder, nn.Module) else None).transform(X)
    assert global_states() == before, "by save and load"


def test_the_global_random_states_do_not_matter(X):
    model = cheap(encoder=WithDropout(), random_state=3)
    first = model.fit(X).embedding_
    torch.rand(7), np.random.rand(7), random.random()
    np.testing.assert_array_equal(model.fit(X).embedding_, first)


def test_fit_does_not_change_the_module_it_is_given(X):
    module = WithDropout().eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = cheap(encoder=module).fit(X)
    assert model.encoder is module
    assert model.encoder_ is not module
    assert not module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert not torch.equal(model.encoder_.out.weight, before["out.weight"])  # while the copy has learned


def test_fit_is_silent_and_gives_no_warning(X, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cheap().fit(X).transform(X)
    assert capfd.readouterr() == ("", "")


# Row i in is row i out.


@pytest.mark.parametrize("shape", [(60, 6), (60, 5, 4)])
def test_permuted_rows_give_the_permuted_map(shape):
    X = np.random.default_rng(0).normal(size=shape)
    order = np.random.default_rng(1).permutation(len(X))
    model = cheap(encoder="model-b" if len(shape) > 2 else "mlp(16)").fit(X)
    np.testing.assert_allclose(model.transform(X[order]), model.transform(X)[order], atol=1e-5)
    assert np.abs(model.transform(X[order]) - model.transform(X)).max() > 1e-2


def test_a_row_has_its_place_whichever_rows_come_with_it(X):
    model = cheap().fit(X)
    alone = np.concatenate([model.transform(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_allclose(alone, model.transform(X), atol=1e-5)


@pytest.mark.parametrize("encoder", ["mlp(16)", WithDropout()], ids=["mlp", "dropout"])
def test_the_embedding_is_the_transform_of_the_fitted_rows(encoder, X):
    model = cheap(encoder=encoder).fit(X)
    np.testing.assert_array_equal(model.embedding_, model.transform(X))


def test_more_rows_than_a_chunk_come_out_in_order(X, monkeypatch):
    model = cheap().fit(X)
    whole = model.transform(X)
    monkeypatch.setattr("dre.encoder.forward.CHUNK_ROWS", 7)
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 50)
    np.testing.assert_allclose(model.transform(X), whole, atol=1e-5)
    np.testing.assert_allclose(cheap().fit(X).embedding_, model.embedding_, atol=1e-4)


# Seeds.


@pytest.mark.parametrize("encoder", ["mlp(16)", "model-a", WithDropout()], ids=["mlp", "model-a", "dropout"])
@pytest.mark.parametrize("batches", ["shuffled(20)", "fixed(20)", "edges(16)", "neighborhoods(4, 3)"])
def test_the_same_seed_gives_the_same_bits(encoder, batches, X):
    one, two = (cheap(encoder=encoder, batch_size=batches, augment="noise(0.5)").fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    assert [r["loss"] for r in one.history_] == [r["loss"] for r in two.history_]


def test_another_seed_gives_another_map(X):
    maps = [cheap(random_state=seed).fit(X).embedding_ for seed in (0, 1, None, None)]
    assert all(not np.array_equal(a, b) for i, a in enumerate(maps) for b in maps[:i])


def test_a_random_state_object_is_drawn_from(X):
    source = np.random.RandomState(0)
    one, two = (cheap(random_state=source).fit(X).embedding_ for _ in range(2))
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(one, cheap(random_state=np.random.RandomState(0)).fit(X).embedding_)


class Samples(WithDropout):
    """Draws at random in eval mode too, as a variational encoder does."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.h1(x)
        return self.out(h + 0.1 * torch.randn_like(h))


def test_an_encoder_that_always_draws_at_random_follows_the_seed_and_leaves_the_global_state_alone(X):
    encoder, maps = Samples(), []
    for _ in range(2):
        before = global_states()
        maps.append(cheap(encoder=encoder).fit(X).transform(X))
        assert global_states() == before
        torch.rand(3)
    np.testing.assert_array_equal(*maps)


@pytest.mark.parametrize("encoder", ["mlp(16)", WithDropout(4)], ids=["text", "module"])
def test_a_refit_equals_a_fresh_fit(encoder, X):
    model = cheap(encoder=encoder).fit(X[::2, :4] ** 2)
    again = model.fit(X[:, :4])
    fresh = cheap(encoder=encoder).fit(X[:, :4])
    assert again is model
    np.testing.assert_array_equal(model.embedding_, fresh.embedding_)
    np.testing.assert_array_equal(model.transform(X[:, :4], stage=0), fresh.transform(X[:, :4], stage=0))
    assert len(model.stages_) == len(fresh.stages_)
    assert len(model.history_) == len(fresh.history_)


@pytest.mark.parametrize("kind", [DRE, DeepTSNE])
def test_fit_transform_is_fit_and_then_transform(kind, X):
    def model():
        return cheap() if kind is DRE else DeepTSNE(perplexity=5, encoder="mlp(8, depth=1)", random_state=0, device="cpu")

    np.testing.assert_array_equal(model().fit_transform(X), model().fit(X).transform(X))


# Sizes.


@pytest.mark.parametrize(
    "batches", ["shuffled(7)", "fixed(7)", "auto(7)", "edges(7)", "neighborhoods(3, 2)", "shuffled(2)", "fixed(2)"]
)
@pytest.mark.parametrize("n", [23, 29])
def test_any_number_of_rows_can_be_cut_into_batches(n, batches):
    assert cheap(batch_size=batches).fit(some_rows(n)).embedding_.shape == (n, 2)


@pytest.mark.parametrize("batches", ["shuffled(1000)", "fixed(1000)", "edges(1000)", "neighborhoods(100, 9)"])
def test_fewer_rows_than_a_batch_are_enough(batches):
    model = cheap(batch_size=batches).fit(some_rows(17))
    assert np.isfinite(model.embedding_).all()


@pytest.mark.filterwarnings("ignore:perplexity:UserWarning")
@pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")
@pytest.mark.parametrize("schedule", [SCHEDULE, "x: fuzzy(5) -> ce * 2", "x: gaussian(5, scope=batch) -> kl * 2"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_handful_of_rows_can_be_fitted(n, schedule):
    model = cheap(schedule=schedule, batch_size="shuffled(500)").fit(some_rows(n))
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("scope", ["graph", "batch"])
def test_both_scopes_of_an_affinity_work_with_the_batches_of_the_default_recipe(scope, X):
    model = cheap(schedule=f"x: gaussian(5, scope={scope}) -> kl * 2").fit(X)
    assert np.isfinite(model.embedding_).all()


def test_one_row_can_be_transformed(X):
    model = cheap().fit(X)
    assert model.transform(X[:1]).shape == (1, 2)
    assert model.transform(X[:1], stage=0).shape == (1, 2)


@pytest.mark.parametrize("n_components", range(1, 11))
def test_a_map_has_any_number_of_dimensions(n_components, X):
    model = cheap(n_components=n_components).fit(X)
    assert model.embedding_.shape == (len(X), n_components)
    assert model.transform(X[:3]).shape == (3, n_components)
    assert model.embedding_.dtype == model.transform(X).dtype == np.float32


@pytest.mark.filterwarnings("ignore:perplexity:UserWarning")
@pytest.mark.parametrize(
    "X", [np.ones((30, 4)), np.repeat(np.eye(4), 10, axis=0), some_rows(30, 1)], ids=["constant", "few", "one"]
)
def test_rows_that_repeat_or_have_one_value_can_be_fitted(X):
    assert np.isfinite(cheap().fit(X).embedding_).all()


# Kinds of arrays.


@pytest.mark.parametrize(
    "convert",
    [
        *(np.dtype(name).type for name in ("float16", "float32", "int8", "int32", "int64", "uint8", "uint16", "bool")),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X[::-1].copy()[::-1],
        lambda X: X.tolist(),
        lambda X: X.astype(object),
        torch.tensor,
        lambda X: torch.tensor(X, dtype=torch.float32, requires_grad=True),
        lambda X: torch.tensor(X, dtype=torch.float16),
        lambda X: torch.tensor(X, dtype=torch.bfloat16),
        lambda X: torch.tensor(X, dtype=torch.bool),
    ],
)
def test_the_same_values_give_the_same_map_in_any_kind_of_array(convert):
    X = np.random.default_rng(0).integers(0, 2, (40, 12)).astype(np.float64)
    model, other = cheap().fit(X), cheap().fit(convert(X))
    np.testing.assert_allclose(other.embedding_, model.embedding_, atol=1e-4)
    np.testing.assert_array_equal(model.transform(convert(X)), model.transform(X))


def test_read_only_and_memory_mapped_arrays_give_the_same_map(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fixed = X.copy()
    fixed.flags.writeable = False
    for other in (mapped, fixed):
        np.testing.assert_array_equal(cheap().fit(other).embedding_, cheap().fit(X).embedding_)


@pytest.mark.parametrize(
    ("factor", "shift"), [(1e-4, 0), (255, 0), (1, 1e4), (255, 1e4), (1e12, -1e12), (1e-12, 0), (1e200, 0), (1e-200, 0)]
)
def test_the_map_does_not_depend_on_the_unit_or_the_origin_of_the_data(factor, shift, X):
    model, other = cheap().fit(X), cheap().fit(factor * X + shift)
    np.testing.assert_allclose(other.embedding_, model.embedding_, atol=1e-3)
    new = some_rows(5) / 2
    np.testing.assert_allclose(other.transform(factor * new + shift), model.transform(new), atol=1e-3)


# Images.


def images(c: int = 1) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (40, 8, 7, c)).astype(np.uint8)


@pytest.mark.parametrize("c", [1, 2, 3, 4])
def test_channels_may_come_first_or_last(c):
    X = images(c)
    last, first = (DRE("paper", schedule=SCHEDULE, random_state=0, device="cpu").fit(x) for x in (X, X.transpose(0, 3, 1, 2)))
    np.testing.assert_allclose(last.embedding_, first.embedding_, atol=1e-3)
    assert last.recipe_.encoder == first.recipe_.encoder == ModelB()


def test_an_image_without_channels_is_one_with_a_single_channel():
    X = images()
    plain, last = (DRE("paper", schedule=SCHEDULE, random_state=0, device="cpu").fit(x) for x in (X[..., 0], X))
    np.testing.assert_array_equal(plain.embedding_, last.embedding_)
    assert plain.recipe_.encoder == ModelB()


def test_the_paper_reads_vectors_with_model_a_and_images_with_model_b(X):
    assert DRE("paper", schedule=SCHEDULE, device="cpu").fit(X).recipe_.encoder == ModelA()
    assert DRE("paper", schedule=SCHEDULE, device="cpu").fit(images()).recipe_.encoder == ModelB()


def test_images_and_their_flat_rows_have_the_same_map_where_the_network_is_dense():
    X = images()[..., 0]
    np.testing.assert_array_equal(cheap().fit(X).embedding_, cheap().fit(X.reshape(len(X), -1)).embedding_)


# Stages and events.


def test_the_map_after_each_stage_can_be_asked_for(X):
    model = cheap(schedule=f"{SCHEDULE}; h2: gaussian(5) -> kl * 1").fit(X)
    last = model.transform(X)
    maps = [model.transform(X, stage=i) for i in (2, 1, 0)][::-1]
    assert len(model.stages_) == len(model.schedule_) == 3
    np.testing.assert_array_equal(model.transform(X), last)  # asking for a stage has changed nothing
    np.testing.assert_array_equal(maps[2], last)
    np.testing.assert_array_equal(model.transform(X, stage=-1), last)
    assert not np.allclose(maps[0], maps[1])


def test_the_map_after_the_first_stage_is_that_of_a_model_with_no_other():
    X = some_rows()
    first, _ = SCHEDULE.split(";")
    np.testing.assert_array_equal(cheap().fit(X).transform(X, stage=0), cheap(schedule=first).fit(X).embedding_)


@pytest.mark.parametrize("stage", [2, -3])
def test_a_stage_that_was_not_carried_out_is_an_error(stage, X):
    with pytest.raises(ValueError, match=r"2 stage\(s\)"):
        cheap().fit(X).transform(X, stage=stage)


def test_the_history_has_one_record_per_epoch(X):
    history = cheap().fit(X).history_
    assert [(r["stage"], r["source"], r["epoch"]) for r in history] == [(0, "x", 0), (0, "x", 1), (1, "h1", 0)]
    assert all(r["rows"] == len(X) and r["seconds"] > 0 and np.isfinite(r["loss"]) for r in history)
    assert all(type(value) in (int, str, float) for r in history for value in r.values())


def test_observers_see_every_event(X):
    events = []
    cheap(batch_size="shuffled(30)").fit(X, observers=[events.append])
    epoch = [StepEnded, StepEnded, EpochEnded]
    assert [type(e) for e in events] == [
        *[TargetBegan, StageBegan, *epoch, *epoch, StageEnded],
        *[TargetBegan, StageBegan, *epoch, StageEnded],
    ]


def test_an_observer_that_only_looks_does_not_change_the_map(X):
    np.testing.assert_array_equal(cheap().fit(X, observers=[lambda event: None]).embedding_, cheap().fit(X).embedding_)


def test_an_early_stop_ends_its_stage_and_the_next_begins(X):
    schedule = "x: gaussian(5) -> kl * 50; h1: gaussian(5) -> kl * 50"
    model = cheap(schedule=schedule).fit(X, observers=[EarlyStopping(patience=2, min_delta=10.0)])  # nothing improves that much
    assert [(r["stage"], r["epoch"]) for r in model.history_] == [(i, epoch) for i in range(2) for epoch in range(3)]
    assert len(model.stages_) == 2


def test_an_early_stop_lets_a_loss_fall(X):
    model = cheap(schedule="x: gaussian(5) -> kl * 20", learning_rate=1e-2).fit(X, observers=[EarlyStopping(10, 0.0)])
    losses = [r["loss"] for r in model.history_]
    assert len(losses) == 20
    assert losses[-1] < losses[0]


def test_an_observer_can_end_the_fit(X):
    def end(event):
        if isinstance(event, EpochEnded):
            event.run.end_fit()

    model = cheap().fit(X, observers=[end])
    assert len(model.history_) == len(model.stages_) == 1
    np.testing.assert_array_equal(model.transform(X, stage=0), model.embedding_)


def test_training_improves_the_map():
    X = np.repeat(10 * np.eye(4, 6), 15, axis=0) + some_rows()
    label = np.repeat(np.arange(4), 15)
    model = cheap(schedule="x: gaussian(5) -> kl * 40; h1: gaussian(5) -> kl * 20", learning_rate=1e-2).fit(X)
    distance = np.linalg.norm(model.embedding_[:, None] - model.embedding_[None], axis=2) + np.diag([np.inf] * len(X))
    assert (label[distance.argmin(1)] == label).mean() > 0.95
