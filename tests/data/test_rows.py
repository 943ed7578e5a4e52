"""Rows that are read piece by piece give the map of the array of the same values, and are never asked for all at once."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import scipy.sparse
import torch
from torch import Tensor

from dre import DRE, DivergedError
from dre.data.rows import is_rows, read_all
from dre.data.scaling import ScaledRows, Scaling
from dre.data.validation import check_rows
from dre.datasets.infinite_mnist import BaseDigits, InfiMNIST

N = 90
GRAPH = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"
IN_BATCH = "x: gaussian(5, scope=batch) -> kl * 2; h1: fuzzy(5, scope=batch) -> ce * 1"
SHAPES = [(7,), (12, 10), (10, 12, 3), (3, 12, 12)]


class Stream:
    """Rows over an array, which remembers what it was asked for."""

    def __init__(self, X: np.ndarray) -> None:
        self._X = torch.from_numpy(X)
        self.shape = tuple(X.shape)
        self.asked: list[int] = []

    def read(self, start: int, stop: int) -> Tensor:
        assert 0 <= start <= stop <= self.shape[0]
        self.asked.append(stop - start)
        return self._X[start:stop]

    def take(self, ids: Tensor) -> Tensor:
        self.asked.append(len(ids))
        return self._X[ids]


def some(shape: tuple[int, ...] = (7,), n: int = N) -> np.ndarray:
    return np.random.default_rng(0).normal(3, 2, size=(n, *shape)).astype(np.float32)


def cheap(**others: object) -> DRE:
    options = {
        "schedule": GRAPH,
        "encoder": "mlp(16)",
        "batch_size": 40,
        "learning_rate": 1e-3,
        "random_state": 0,
        "device": "cpu",
    }
    return DRE(**(options | others))


@pytest.fixture(scope="module")
def fitted() -> DRE:
    return cheap().fit(some())


# The same map.


@pytest.mark.parametrize("schedule", [GRAPH, IN_BATCH], ids=["graph", "in-batch"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_stream_gives_the_bits_of_the_array(shape, schedule):
    X = some(shape)
    encoder = "mlp(16)" if len(shape) == 1 else "model-b(norm=true)"
    streamed, held = (cheap(schedule=schedule, encoder=encoder).fit(rows) for rows in (Stream(X), X))
    np.testing.assert_array_equal(streamed.embedding_, held.embedding_)
    np.testing.assert_array_equal(streamed.transform(Stream(X)), held.transform(X))
    np.testing.assert_array_equal(streamed.transform(X, stage=0), held.transform(Stream(X), stage=0))
    np.testing.assert_array_equal(streamed.embedding_, streamed.transform(Stream(X)))
    assert streamed.n_features_in_ == held.n_features_in_ == shape[0]
    assert [record["loss"] for record in streamed.history_] == [record["loss"] for record in held.history_]


@pytest.mark.parametrize("augment", ["none", "noise(0.3)", lambda x: x.flip(-1)], ids=["none", "behind", "before"])
@pytest.mark.parametrize(("encoder", "shape"), [("mlp(16, n_pcs=5)", (7,)), ("patch-mlp(16, n_pcs=12)", (8, 6))], ids=str)
def test_so_it_does_behind_a_computed_front(encoder, shape, augment, monkeypatch):
    monkeypatch.setattr("dre.encoder.pca_front.SAMPLE_ROWS", N // 2)
    monkeypatch.setattr("dre.encoder.pca_front.SAMPLE_PER_AXIS", 1)  # so that a sample is taken
    X = some(shape)
    schedule = "features: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"
    streamed, held = (cheap(schedule=schedule, encoder=encoder, augment=augment).fit(rows) for rows in (Stream(X), X))
    np.testing.assert_array_equal(streamed.embedding_, held.embedding_)
    np.testing.assert_array_equal(streamed.embedding_, streamed.transform(Stream(X)))
    np.testing.assert_array_equal(streamed.transform(X, stage=0), held.transform(Stream(X), stage=0))
    assert len(np.unique(streamed.embedding_, axis=0)) == N  # a front that was never computed would put all in one place


@pytest.mark.parametrize("batches", ["fixed(40)", "shuffled(40)", "edges(16)", "neighborhoods(4, 3)"])
def test_so_it_does_for_every_way_of_drawing(batches):
    X = some()
    streamed, held = (cheap(batch_size=batches, augment="noise(0.3)").fit(rows) for rows in (Stream(X), X))
    np.testing.assert_array_equal(streamed.embedding_, held.embedding_)


def test_so_it_does_over_many_chunks(monkeypatch):
    monkeypatch.setattr("dre.encoder.forward.CHUNK_ROWS", 16)
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 7 * 13)
    X, stream = some(), Stream(some())
    model = cheap().fit(stream)
    np.testing.assert_array_equal(model.embedding_, cheap().fit(X).embedding_)
    np.testing.assert_array_equal(model.transform(stream), model.transform(X))


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_rows_of_other_numbers_are_read_as_they_are(dtype):
    X = (some() * 10).clip(0).astype(dtype)
    np.testing.assert_array_equal(cheap().fit(Stream(X)).embedding_, cheap().fit(X).embedding_)


def test_ranges_of_a_stream_give_the_parts_of_its_map(fitted, monkeypatch):
    X = some(n=200)
    whole = fitted.transform(Stream(X))
    parts = [fitted.transform(Stream(X[a:b])) for a, b in ((0, 1), (1, 77), (77, 200))]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-5)
    monkeypatch.setattr("dre.encoder.forward.CHUNK_ROWS", 50)
    parts = [fitted.transform(Stream(X[a : a + 100])) for a in (0, 100)]  # whole chunks: to the bit
    np.testing.assert_array_equal(np.concatenate(parts), fitted.transform(Stream(X)))


def test_a_model_that_was_fitted_on_a_stream_is_saved_like_any_other(tmp_path):
    X = some((12, 10))
    model = cheap(encoder="model-b").fit(Stream(X))
    model.save(tmp_path / "model.safetensors")
    loaded = DRE.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.transform(Stream(X)), model.embedding_)
    assert loaded.n_features_in_ == 12


def test_fit_transform_and_a_refit_on_an_array(fitted):
    X = some()
    np.testing.assert_array_equal(cheap().fit_transform(Stream(X)), fitted.embedding_)
    model = cheap().fit(Stream(some((4,))))
    np.testing.assert_array_equal(model.fit(X).embedding_, fitted.embedding_)


def test_names_of_columns_are_forgotten_when_a_stream_is_fitted():
    X = some((3,))
    model = cheap().fit(pandas.DataFrame(X, columns=["a", "b", "c"])).fit(Stream(X))
    assert not hasattr(model, "feature_names_in_")


# What is asked for.


@pytest.mark.parametrize("schedule", [GRAPH, IN_BATCH, "h1: gaussian(5) -> kl * 2"], ids=["graph", "in-batch", "hidden"])
def test_a_stream_is_asked_for_chunks_and_batches_alone(schedule, monkeypatch):
    monkeypatch.setattr("dre.encoder.forward.CHUNK_ROWS", 16)
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 7 * 20)
    stream = Stream(some(n=300))
    model = cheap(schedule=schedule, batch_size="fixed(25)").fit(stream)
    assert max(stream.asked) == 25  # a batch, and no more
    stream.asked.clear()
    model.transform(stream)
    assert max(stream.asked) == 16
    assert sum(stream.asked) == 300


def test_rows_in_any_order_are_scaled_and_laid_out_as_the_encoder_reads_them():
    X = some((5, 4, 3))
    scaling = Scaling.fit(X)
    rows = ScaledRows(Stream(X), scaling, torch.device("cpu"))
    expected = ((torch.from_numpy(X).double() - scaling.mean) / scaling.scale).float().movedim(-1, 1)
    assert rows.shape == (N, 3, 5, 4)
    ids = torch.tensor([80, 3, 3, 0, 41])
    assert torch.equal(rows.take(ids), expected[ids])
    assert torch.equal(rows.read(7, 60), expected[7:60])
    assert rows.take(ids).is_contiguous()


def test_the_scaling_of_a_stream_is_that_of_the_array(monkeypatch):
    X = some((5, 4))
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 100)
    one, other = Scaling.fit(Stream(X)), Scaling.fit(X)
    assert torch.equal(one.mean, other.mean)
    assert one.scale == other.scale


def test_the_stream_of_digits_is_trained_on_and_embedded():
    images = np.random.default_rng(0).integers(0, 255, (30, 28, 28)).astype(np.uint8)
    rows = InfiMNIST(BaseDigits(images, np.arange(30) % 10, tests=5), range(30, 10**6), device="cpu")
    train, test = rows[:60], rows[10**5 : 10**5 + 40]
    model = cheap(encoder="model-b").fit(train)
    np.testing.assert_array_equal(model.embedding_, cheap(encoder="model-b").fit(train.images(0, 60).numpy()).embedding_)
    np.testing.assert_array_equal(model.transform(test), model.transform(test.images(0, 40).numpy()))


def test_arrays_of_all_kinds_are_no_streams():
    X = some()
    assert not any(is_rows(x) for x in (X, torch.from_numpy(X), X.tolist(), scipy.sparse.csr_array(X), None, "rows"))
    table = pandas.DataFrame(X[:, :2], columns=["read", "take"])
    assert not is_rows(table)
    assert is_rows(Stream(X))


def test_what_can_be_an_array_too_is_still_read_piece_by_piece(monkeypatch):
    digits = BaseDigits(np.zeros((30, 28, 28), np.uint8), np.arange(30) % 10, tests=5)
    rows = InfiMNIST(digits, range(10**6), device="cpu")
    monkeypatch.setattr(InfiMNIST, "__array__", lambda *given, **named: pytest.fail("all of it was made"))
    assert is_rows(rows)
    assert cheap(encoder="mlp(16)").fit(rows[:60]).transform(rows[60:80]).shape == (20, 2)


def test_rows_are_read_whole_in_chunks(monkeypatch):
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 7 * 20)
    stream = Stream(some())
    found = read_all(stream)
    np.testing.assert_array_equal(found, some())
    assert found.dtype == np.float32
    assert stream.asked == [20, 20, 20, 20, 10]
    monkeypatch.setattr("dre.data.rows.available_bytes", lambda: None)  # where that can't be told
    np.testing.assert_array_equal(read_all(stream, np.float64), some())


# What is wrong is said.


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_a_value_that_is_not_finite_is_named_with_its_row(value, name, fitted, monkeypatch):
    monkeypatch.setattr("dre.data.rows.CHUNK_VALUES", 7 * 20)
    monkeypatch.setattr("dre.encoder.forward.CHUNK_ROWS", 20)
    X = some()
    X[53, 2] = value
    for job in (cheap().fit, fitted.transform):
        with pytest.raises(ValueError, match=f"X contains {name}, first in row 53"):
            job(Stream(X))


def test_a_batch_that_is_not_finite_makes_the_loss_say_so():
    class Broken(Stream):
        def take(self, ids: Tensor) -> Tensor:
            return super().take(ids) * np.nan

    with pytest.raises(DivergedError, match="the loss became nan"):
        cheap().fit(Broken(some()))


def test_rows_that_do_not_keep_their_promise_are_named(fitted):
    class TooFew(Stream):
        def read(self, start: int, stop: int) -> Tensor:
            return super().read(start, stop)[1:]

    class Numpy(Stream):
        def read(self, start: int, stop: int) -> Tensor:
            return super().read(start, stop).numpy()

    class Wide(Stream):
        def take(self, ids: Tensor) -> Tensor:
            return super().take(ids)[:, None]

    X = some()
    with pytest.raises(TypeError, match=r"TooFew\.read.*\(89, 7\).*\(90, 7\)"):
        fitted.transform(TooFew(X))
    with pytest.raises(TypeError, match=r"Numpy\.read.*ndarray"):
        cheap().fit(Numpy(X))
    with pytest.raises(TypeError, match=r"Wide\.take.*tensor"):
        cheap().fit(Wide(X))


def test_a_stream_of_another_shape_is_refused(fitted):
    with pytest.raises(ValueError, match="X has 5 features, but DRE is expecting 7"):
        fitted.transform(Stream(some((5,))))
    with pytest.raises(ValueError, match=r"rows of the shape \(7, 3\), but the model was fitted on \(7,\)"):
        fitted.transform(Stream(some((7, 3))))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        cheap().fit(Stream(some(n=1)))
    with pytest.raises(ValueError, match="hold no values"):
        cheap().fit(Stream(np.zeros((5, 4, 0), np.float32)))
    with pytest.raises(ValueError, match="1D array"):
        cheap().fit(Stream(np.zeros(5, np.float32)))


def test_what_is_checked_beforehand_does_not_grow_with_the_stream():
    stream = Stream(some())
    stream.shape = (10**12, 7)
    model = cheap()
    assert check_rows(model, stream, fitting=True) is stream  # to go through as many values would take hours
    assert model.n_features_in_ == 7
    assert stream.asked == []


def test_a_fit_that_fails_leaves_the_model_as_it_was(fitted):
    before = fitted.embedding_.copy()
    bad = some((3,))
    bad[0] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        fitted.fit(Stream(bad))
    assert fitted.n_features_in_ == 7
    np.testing.assert_array_equal(fitted.embedding_, before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")
@pytest.mark.parametrize("made_on", ["cpu", "cuda"])
def test_a_gpu_reads_a_stream_wherever_it_is_made(made_on):
    images = np.random.default_rng(0).integers(0, 255, (30, 28, 28)).astype(np.uint8)
    rows = InfiMNIST(BaseDigits(images, np.arange(30) % 10, tests=5), range(30, 10**6), device=made_on)[:200]
    held = rows.images(0, 200).cpu().numpy()
    scaling, device = Scaling.fit(rows), torch.device("cuda")
    streamed = ScaledRows(rows, scaling, device).take(torch.arange(199, -1, -1, device=device))
    assert torch.equal(streamed.cpu()[:, 0], scaling.apply(held).flip(0))  # to the bit: both divide in float64
    model = cheap(encoder="model-b", device="cuda").fit(rows)
    assert np.isfinite(model.embedding_).all()
    extent = np.ptp(model.embedding_, axis=0).max()
    assert np.abs(model.transform(held) - model.embedding_).max() < 1e-3 * extent
