"""A GPU without float64, as Apple's: everything that the default does is possible there, and gives the same kind of map."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from dre import DRE
from dre.metrics import trustworthiness
from dre.runtime import RandomStreams, resolve_device
from dre.runtime.float64 import float64_device, near_float64
from dre.runtime.window import Window
from pretend_gpu import MPS, PretendGPU, PretendTensor, pretend_gpu

DIGITS = load_digits()
X, IMAGES = DIGITS.data[:150], DIGITS.images[:150]
BANK = "from pca free 4 with 0.3*shepard follow 1 against bank"


@pytest.fixture
def gpu() -> Iterator[PretendGPU]:
    with pretend_gpu() as mode:
        yield mode


def fitted(schedule: str, rows: np.ndarray = X, **options: object) -> DRE:
    return DRE(schedule=schedule, random_state=0, device="mps:0", **({"encoder": "mlp(16)"} | options)).fit(rows)


# The pretended device refuses what the real one refuses.


def test_the_pretended_gpu_has_no_float64_and_does_not_mix_with_the_host(gpu):
    x = torch.ones(3, device=MPS)
    for wrong in (lambda: x.double(), lambda: torch.zeros(3, dtype=torch.double).to(MPS), lambda: x.mean(dtype=torch.double)):
        with pytest.raises(TypeError, match="float64"):
            wrong()
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(3)
    with pytest.raises((TypeError, RuntimeError)):
        x.numpy()
    assert x.cpu().sum() == 3
    assert gpu.to_host == [(3,)]


def test_float64_stays_on_devices_that_have_it():
    for kind in ("cpu", "cuda:1", "xpu"):
        assert float64_device(torch.device(kind)) == torch.device(kind)
    x = torch.ones(3)
    assert near_float64(x) is x


@pytest.mark.usefixtures("gpu")
def test_auto_is_not_such_a_gpu_which_has_to_be_asked_for():
    assert resolve_device("auto").type in ("cpu", "cuda")
    assert resolve_device("mps:0") == MPS


# The default.


def test_the_default_fits_and_transforms_as_on_a_cpu(gpu):
    model = DRE("fast", random_state=0, device="mps:0").fit(X)
    assert gpu.made > 1000
    assert all(isinstance(weight, PretendTensor) for weight in model.encoder_.parameters())
    on_cpu = DRE("fast", random_state=0, device="cpu").fit(X)
    trust = [trustworthiness(X, each.embedding_) for each in (model, on_cpu)]
    assert trust[0] > trust[1] - 0.02
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-4)


WAYS = {
    "the bank": (f"x: gaussian(5) -> kl * 2 {BANK}; x+h1: gaussian(5) -> kl(alpha=0.5) * 2 free 3 follow 1 optional", {}),
    "edges": ("x: gaussian(5) -> kl * 1; h1: fuzzy(5) -> ce(min_dist=0.1) * 1", {"batch_size": "edges(64)"}),
    "neighborhoods": ("x: gaussian(5) -> kl * 1", {"batch_size": "neighborhoods(20)"}),
    "batches": ("x: gaussian(5, scope=batch) -> kl * 1; h1: fuzzy(5, scope=batch) -> ce * 1", {}),
    "a front": ("features: gaussian(5) -> kl * 2", {"encoder": "mlp(16, n_pcs=8)"}),
    "noise": ("x: gaussian(5) -> kl * 1", {"augment": "noise(0.5) + local-noise(0.5)"}),
    "whitening": ("x: gaussian(5) -> kl * 1", {"optimizer": "adam(0.01, beta2=0.99, whiten=true)"}),
    "clipping": ("x: gaussian(5) -> kl * 1", {"optimizer": "adam(0.001, policy=constant, clip=1.0)"}),
    "cosine": ("x: gaussian(5) -> kl * 1", {"metric": "cosine"}),
    "correlation, standardized": ("x: gaussian(5) -> kl * 1", {"metric": "correlation", "standardize": True}),
    "a sample": ("x: gaussian(5) -> kl * 1", {"sample": 60}),
    "three components": (f"x: gaussian(5) -> kl * 2 {BANK}", {"n_components": 3}),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_fitting_works(way):
    schedule, options = WAYS[way]
    model = fitted(schedule, **options)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("encoder", ["patch-mlp(16, n_pcs=8)", "model-b(filters=4/8)", "strided(filters=4/8)"])
def test_images_work(encoder):
    source = "features" if encoder.startswith("patch") else "x"
    model = fitted(f"{source}: gaussian(5) -> kl * 1", IMAGES.astype(np.uint8), encoder=encoder, augment="affine")
    assert np.isfinite(model.transform(IMAGES)).all()


@pytest.mark.usefixtures("gpu")
def test_sums_on_a_grid_and_edges_by_row_work(monkeypatch):
    monkeypatch.setattr("dre.coordinates.free.EXACT_ROWS", {"cpu": 10, "cuda": 10})
    monkeypatch.setattr("dre.batches.SUMMED", 10)
    fitted(f"x: gaussian(5) -> kl * 2 {BANK}")
    fitted("x: gaussian(5) -> kl * 1", batch_size="edges(64)")


@pytest.mark.usefixtures("gpu")
def test_neighbors_of_the_user_are_taken_with_their_float64_distances():
    distances, indices = NearestNeighbors(n_neighbors=16).fit(X).kneighbors(X)
    assert distances.dtype == np.float64
    model = DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(16)", random_state=0, device="mps:0")
    assert model.fit(X, precomputed_knn=(indices, distances)).embedding_.shape == (150, 2)


@pytest.mark.usefixtures("gpu")
def test_rows_are_scaled_with_all_digits():
    far = 1e9 + X  # in float32 nothing would be left of X
    model = fitted("x: gaussian(5) -> kl * 1", far)
    assert trustworthiness(X, model.embedding_) > 0.7


@pytest.mark.usefixtures("gpu")
def test_the_order_of_rows_on_a_disk_is_that_of_a_cpu():
    window = Window(rows=2, blocks=3)
    orders = [RandomStreams(0, device, window=window).order(40, "rows") for device in (MPS, torch.device("cpu"))]
    assert isinstance(orders[0], PretendTensor)
    assert torch.equal(orders[0].cpu(), orders[1])


# Models that travel, and the module.


def test_a_model_gives_the_same_map_on_both_devices(tmp_path):
    with pretend_gpu():
        fitted("x: gaussian(5) -> kl * 2").save(tmp_path / "model.safetensors")
        here, there = (DRE.load(tmp_path / "model.safetensors", device=device).transform(X) for device in ("cpu", "mps:0"))
    np.testing.assert_allclose(here, there, atol=1e-5)


def test_a_pickle_has_tensors_of_the_cpu_alone_and_opens_anywhere():
    with pretend_gpu():
        model = fitted("x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1")
        before = model.transform(X)
        written = pickle.dumps(model)
        assert model._map.device == MPS  # the model itself stays there
        assert pickle.loads(written)._map.device == MPS
    assert b"pretend_gpu" not in written
    with pytest.warns(UserWarning, match=r"stays on the CPU: device='mps:0' can't be used here"):
        opened = pickle.loads(written)
    assert opened._map.device == torch.device("cpu")
    np.testing.assert_allclose(opened.transform(X), before, atol=1e-5)
    np.testing.assert_array_equal(opened.embedding_, model.embedding_)


def test_the_module_and_the_onnx_file_are_made_where_float64_is(tmp_path):
    with pretend_gpu():
        model = fitted("x: gaussian(5) -> kl * 2")
        module, expected = model.module(), model.transform(X)
        assert all(tensor.is_cpu for tensor in module.state_dict().values())
        np.testing.assert_allclose(module(torch.from_numpy(X)).detach().numpy(), expected, atol=1e-5)
        opened = pickle.loads(pickle.dumps(model.set_params(device="cpu")))
    opened.to_onnx(tmp_path / "map.onnx")
    assert (tmp_path / "map.onnx").is_file()


# Tensors on a GPU.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.uint8])
def test_a_tensor_on_a_gpu_gives_a_tensor_there_without_the_host(dtype):
    with pretend_gpu(has_float64=True) as gpu:
        rows = torch.from_numpy(X).to(dtype).to(MPS)
        model = fitted("x: gaussian(5) -> kl * 2", rows)
        expected = fitted("x: gaussian(5) -> kl * 2", rows.cpu().float().numpy()).transform(rows.cpu().float().numpy())
        gpu.to_host.clear()
        found = model.transform(rows)
        assert gpu.to_host == []
        assert found.device == MPS
        np.testing.assert_allclose(found.cpu().numpy(), expected, atol=1e-3)
        assert model.fit_transform(rows).device == MPS


def test_a_fit_never_copies_the_rows_to_the_host():
    with pretend_gpu(has_float64=True) as gpu:
        rows = torch.from_numpy(X).float().to(MPS)
        fitted("x: gaussian(5) -> kl * 2", rows, sample=100)
    assert not [shape for shape in gpu.to_host if shape[1:] == (64,) and shape[0] >= 100]  # smaller ones are weights


def test_the_first_value_on_a_gpu_that_is_not_finite_is_named():
    with pretend_gpu():
        rows = torch.from_numpy(X).float()
        rows[7, 3] = torch.nan
        with pytest.raises(ValueError, match=r"contains NaN: 1 value\(s\).*row 7 at \[3\]"):
            fitted("x: gaussian(5) -> kl * 2", rows.to(MPS))
        with pytest.raises(ValueError, match="Complex data not supported"):
            fitted("x: gaussian(5) -> kl * 2", torch.zeros(9, 3, dtype=torch.complex64, device=MPS))
        with pytest.raises(ValueError, match=r"1D array|Expected 2D"):
            fitted("x: gaussian(5) -> kl * 2", torch.zeros(9, device=MPS))


def test_a_model_on_the_cpu_takes_and_gives_tensors_of_a_gpu():
    model = DRE(schedule="x: gaussian(5) -> kl * 2", encoder="mlp(16)", random_state=0, device="cpu").fit(X)
    with pretend_gpu():
        rows = torch.from_numpy(X).float().to(MPS)
        found = model.transform(rows)
        assert found.device == MPS
        np.testing.assert_array_equal(found.cpu().numpy(), model.transform(X.astype(np.float32)))
        framed = model.set_output(transform="pandas").transform(rows)
        np.testing.assert_array_equal(framed.to_numpy(), found.cpu().numpy())
