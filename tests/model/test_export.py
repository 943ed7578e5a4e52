"""The learned map in a file for other programs: it gives what ``transform`` gives, or there is no file."""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from torch import nn

from dre import DRE
from dre.data.gene_pca import CountNormalization, GenePCA
from dre.data.preparation import Prepared
from dre.model import export
from dre.model.export import DTYPES, ExportError
from dre.model.fitted import MapModule

SCHEDULE = "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1"
N, TOLERANCE = 60, 1e-4
SHAPES = {
    "mlp(16)": (6,),
    "mlp(16, n_pcs=4)": (6,),
    "model-a(width=20)": (6,),
    "patch-mlp(16, n_pcs=8)": (8, 8),
    "patch-mlp(16, n_pcs=8, pixel_weight=0)": (9, 7, 3),
    "model-b(filters=4/8, norm=true)": (8, 8, 3),
    "model-b(filters=4/8)": (9, 7),
    "strided(filters=4/8)": (3, 8, 8),
}
METRICS = {"euclidean": {}, "cosine": {"metric": "cosine"}, "correlation": {"metric": "correlation"}}
OPTIONS = METRICS | {"standardize": {"standardize": True}, "both": {"standardize": True, "metric": "correlation"}}
QUICK = list(zip(SHAPES, [*OPTIONS, *OPTIONS], strict=False))


class Own(nn.Module):
    """An encoder of a user, with attention over the values."""

    def __init__(self) -> None:
        super().__init__()
        self.h1 = nn.Linear(1, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.out = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.h1(x.flatten(1)[:, :, None]))
        return self.out(self.attention(h, h, h, need_weights=False)[0].mean(1))


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(x) if x.sum() > 0 else self.out(-x)


class Eigenvalues(Branching):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.linalg.eigvalsh(x[:, :, None] * x[:, None] + torch.eye(6)))


class Looping(Branching):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.out(row) for row in x])


class Noisy(Branching):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(x + torch.rand_like(x))


def rows(shape: tuple[int, ...] = (6,), scale: float = 2.0) -> np.ndarray:
    return np.random.default_rng(0).normal(3, scale, size=(N, *shape))


def fitted(X: np.ndarray | None = None, **options: object) -> DRE:
    known = {"schedule": SCHEDULE, "encoder": "mlp(16)", "random_state": 0, "device": "cpu"}
    return DRE(**(known | options)).fit(rows() if X is None else X)


def odd_rows(X: np.ndarray) -> dict[str, np.ndarray]:
    """Rows that a map must place as well, from those of a fit."""
    random = np.random.default_rng(1)
    return {
        "of the fit": X,
        "one": X[:1],
        "new": random.normal(X.mean(), 3 * X.std(), (1000, *X.shape[1:])),
        "far": X.mean() + 1e4 * (X[:5] - X.mean()),
        "zero": np.zeros_like(X[:3]),
        "constant": np.full_like(X[:3], 0.1),
        "tiny": 1e-20 * X[:3],
    }


def session(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    opened = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return lambda X: opened.run(["embedding"], {"x": X})[0]


def assert_same_map(run: Callable[[np.ndarray], np.ndarray], model: DRE, X: np.ndarray, stage: int | None = None) -> None:
    found, expected = run(X), model.transform(X, stage=stage)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=TOLERANCE)


def assert_agrees(path: Path, model: DRE, X: np.ndarray, dtype: str = "float32") -> None:
    for given in odd_rows(X).values():
        assert_same_map(session(path), model, given.astype(dtype))


def check(encoder: str, options: str, folder: Path) -> None:
    X = rows(SHAPES[encoder])
    model = fitted(X, encoder=encoder, **OPTIONS[options])
    path = folder / "map.onnx"
    model.to_onnx(path)
    assert_agrees(path, model, X)


@pytest.mark.parametrize(("encoder", "options"), QUICK)
def test_an_encoder_gives_the_same_map_in_onnxruntime(encoder, options, tmp_path):
    check(encoder, options, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("encoder", SHAPES)
def test_every_encoder_gives_the_same_map_with_every_metric(encoder, options, tmp_path):
    if (encoder, options) in QUICK:
        pytest.skip("is among the quick ones")
    check(encoder, options, tmp_path)


def test_a_module_of_a_user_gives_the_same_map(tmp_path):
    model = fitted(encoder=Own(), schedule="x: gaussian(5) -> kl * 2")
    model.to_onnx(tmp_path / "own.onnx")
    assert_agrees(tmp_path / "own.onnx", model, rows())


@pytest.mark.parametrize("value", [1e17, 1.3e19, 1e25, 1e38, np.inf, -np.inf, np.nan])
def test_a_row_that_transform_refuses_is_nan_and_leaves_the_others_alone(value, tmp_path):
    model = fitted()
    model.to_onnx(tmp_path / "map.onnx")
    model.to_torch_export(tmp_path / "map.pt2")
    X = rows()[:3].astype(np.float32)
    expected = model.transform(X)
    X[1, 4] = value
    with pytest.raises(ValueError, match="row 1"):
        model.transform(X)
    program = torch.export.load(tmp_path / "map.pt2").module()
    for run in (session(tmp_path / "map.onnx"), lambda X: program(torch.from_numpy(X)).detach().numpy()):
        assert np.isnan(run(X)[1]).all()
        np.testing.assert_allclose(run(X)[[0, 2]], expected[[0, 2]], atol=TOLERANCE)


def test_a_file_that_gives_coordinates_to_a_refused_row_is_not_written(tmp_path, monkeypatch):
    model = fitted()
    monkeypatch.setattr(MapModule, "forward", lambda self, x: self.encoder(torch.nan_to_num(self.scaling(x))))
    with pytest.raises(ExportError, match="deviates from transform by inf of a coordinate on rows too far out for transform"):
        model.to_onnx(tmp_path / "map.onnx")
    assert not (tmp_path / "map.onnx").exists()


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_may_have_the_type_that_was_asked_for(dtype, tmp_path):
    X = np.random.default_rng(0).integers(0, 255, (N, 8, 8)).astype(np.uint8)
    model = fitted(X, encoder="patch-mlp(16, n_pcs=8)", schedule="features: gaussian(5) -> kl * 2")
    model.to_onnx(tmp_path / "map.onnx", dtype=dtype)
    for given in (X, X[:1], np.zeros_like(X[:2]), np.full_like(X[:2], 255)):
        assert_same_map(session(tmp_path / "map.onnx"), model, given.astype(dtype))


def test_float64_rows_keep_their_digits(tmp_path):
    X = 1.7e9 + rows()  # seconds since 1970
    model = fitted(X)
    with pytest.warns(UserWarning, match="dtype='float64'"):
        model.to_onnx(tmp_path / "rounded.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.to_onnx(tmp_path / "map.onnx", dtype="float64")
    assert_same_map(session(tmp_path / "map.onnx"), model, X)


def test_each_stage_can_be_exported(tmp_path):
    model, X = fitted(), rows().astype(np.float32)
    model.to_onnx(tmp_path / "first.onnx", stage=0)
    assert_same_map(session(tmp_path / "first.onnx"), model, X, stage=0)
    assert not np.allclose(session(tmp_path / "first.onnx")(X), model.transform(X), atol=TOLERANCE)


def test_a_loaded_model_and_any_number_of_components_can_be_exported(tmp_path):
    fitted(n_components=5).save(tmp_path / "model.safetensors")
    model = DRE.load(tmp_path / "model.safetensors")
    model.to_onnx(tmp_path / "map.onnx")
    assert_agrees(tmp_path / "map.onnx", model, rows())


def test_the_file_says_what_it_is(tmp_path):
    names = [f"c{i}" for i in range(6)]
    model = fitted(pd.DataFrame(rows(), columns=names), metric="cosine")
    model.to_onnx(tmp_path / "map.onnx")
    found = onnx.load(tmp_path / "map.onnx")
    onnx.checker.check_model(found, full_check=True)
    about = {each.key: each.value for each in found.metadata_props}
    assert json.loads(about["dre.feature_names"]) == names
    assert json.loads(about["dre.row_shape"]) == [6]
    assert (about["dre.n_components"], about["dre.metric"]) == ("2", "cosine")
    (given,), (returned,) = found.graph.input, found.graph.output
    assert (given.name, returned.name) == ("x", "embedding")
    assert [each.dim_param or each.dim_value for each in given.type.tensor_type.shape.dim] == ["n", 6]


@pytest.mark.parametrize(("write", "name"), [("to_onnx", "map.onnx"), ("to_torch_export", "map.pt2")])
def test_no_path_of_this_machine_is_in_the_file(write, name, tmp_path):
    getattr(fitted(), write)(tmp_path / name)
    assert os.fsencode(Path(export.__file__).parents[1]) not in (tmp_path / name).read_bytes()


@pytest.mark.parametrize("opset", [18, 21])
def test_the_opset_is_that_which_was_asked_for(opset, tmp_path):
    model = fitted(rows((3, 8, 8)), encoder="strided(filters=4/8)")
    model.to_onnx(tmp_path / "map.onnx", opset=opset)
    assert [each.version for each in onnx.load(tmp_path / "map.onnx").opset_import] == [opset]
    assert_agrees(tmp_path / "map.onnx", model, rows((3, 8, 8)))


# The program of torch.export.


@pytest.mark.parametrize("encoder", ["mlp(16, n_pcs=4)", "patch-mlp(16, n_pcs=8)", "strided(filters=4/8)"])
def test_the_program_of_torch_gives_the_same_map(encoder, tmp_path):
    X = rows(SHAPES[encoder])
    model = fitted(X, encoder=encoder, metric="correlation")
    model.to_torch_export(tmp_path / "map.pt2")
    extra = {"dre.json": ""}
    program = torch.export.load(tmp_path / "map.pt2", extra_files=extra).module()
    for given in odd_rows(X).values():
        assert_same_map(lambda part: program(torch.from_numpy(part)).detach().numpy(), model, given.astype(np.float32))
    assert json.loads(extra["dre.json"])["dre.metric"] == "correlation"


# A preparation stays outside.


def test_of_genes_the_map_of_their_components_is_exported(tmp_path):
    counts = np.random.default_rng(0).poisson(5, (N, 6)).astype(np.float32)
    genes = [f"GENE{i}" for i in range(6)]
    pca = GenePCA(genes, torch.zeros(6), torch.arange(6), torch.eye(6)[:, :3], CountNormalization(1e4))
    model = fitted(Prepared(counts, pca))
    with pytest.warns(UserWarning, match=r"rows of 3 numbers, which model.prepare\(X\) makes.*'gene-pca'"):
        model.to_onnx(tmp_path / "map.onnx")
    found = session(tmp_path / "map.onnx")(model.prepare(counts))
    np.testing.assert_allclose(found, model.transform(counts), atol=TOLERANCE, rtol=TOLERANCE)
    about = onnxruntime.InferenceSession(tmp_path / "map.onnx").get_modelmeta().custom_metadata_map
    assert json.loads(about["dre.feature_names"]) == ["PC1", "PC2", "PC3"]
    assert json.loads(about["dre.preparation"])["config"]["columns"] == genes


# What can't be exported leaves no file.


@pytest.mark.parametrize(("write", "name"), [("to_onnx", "map.onnx"), ("to_torch_export", "map.pt2")])
def test_a_file_that_deviates_is_not_written(write, name, tmp_path, monkeypatch):
    model = fitted()
    module = type(model._map).module

    def moved(self: object, *args: object, **options: object) -> nn.Module:
        other = module(self, *args, **options)
        other.encoder.out.bias.data += 0.01
        return other

    monkeypatch.setattr(type(model._map), "module", moved)
    with pytest.raises(ExportError, match=r"deviates from transform by 0\.0.*nothing was written"):
        getattr(model, write)(tmp_path / name)
    assert not list(tmp_path.iterdir())
    getattr(model, write)(tmp_path / name, check=False)
    assert (tmp_path / name).is_file()


UNFIT = {
    "branches": (Branching, r"Branching: it branches on the values of rows, in .*test_export\.py, line \d+"),
    "no operator": (Eigenvalues, r"operator aten\._linalg_eigh"),
    "random": (Noisy, "deviates from transform"),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_a_module_that_is_unfit_is_refused_with_the_reason(kind, tmp_path, capfd):
    encoder, message = UNFIT[kind]
    model = fitted(encoder=encoder(), schedule="x: gaussian(5) -> kl * 2")
    with pytest.raises(ExportError, match=message):
        model.to_onnx(tmp_path / "map.onnx")
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("write", "name"), [("to_onnx", "map.onnx"), ("to_torch_export", "map.pt2")])
def test_a_module_that_fixes_the_number_of_rows_is_refused_with_the_remedy(write, name, tmp_path):
    model = fitted(encoder=Looping(), schedule="x: gaussian(5) -> kl * 2")
    with pytest.raises(ExportError, match=r"fixes the number of rows.*compute with all rows at once"):
        getattr(model, write)(tmp_path / name)
    assert not list(tmp_path.iterdir())


WRONG = {
    "an old opset": ({"opset": 12}, ValueError, "opset=12 is too old: the lowest that torch writes is 18"),
    "a future opset": ({"opset": 99}, ValueError, "opset=99.*can't write it"),
    "a text as opset": ({"opset": "new"}, TypeError, "opset='new'"),
    "an unknown type": ({"dtype": "complex64"}, ValueError, "dtype='complex64': expected one of float32"),
    "a stage that is not there": ({"stage": 7}, ValueError, "stage=7"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_options_are_refused(wrong, tmp_path):
    options, kind, message = WRONG[wrong]
    with pytest.raises(kind, match=message):
        fitted().to_onnx(tmp_path / "map.onnx", **options)
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_overwritten_on_request_alone(tmp_path):
    path = tmp_path / "map.onnx"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="force=True"):
        fitted().to_onnx(path)
    assert path.read_text() == "precious"
    fitted().to_onnx(path, force=True)
    onnx.load(path)


@pytest.mark.parametrize(("write", "suffix", "other"), [("to_onnx", ".onnx", ".pt2"), ("to_torch_export", ".pt2", ".onnx")])
def test_a_name_of_another_format_or_of_a_folder_is_refused_before_the_export(write, suffix, other, tmp_path, monkeypatch):
    model = fitted()
    monkeypatch.setattr(export.ExportJob, "module", lambda self: pytest.fail("the export has begun"))
    with pytest.raises(ValueError, match=f"map{other}: the name must end in {suffix}"):
        getattr(model, write)(tmp_path / f"map{other}")
    with pytest.raises(IsADirectoryError, match=f"is a folder: name a file in it, such as .*map{suffix}"):
        getattr(model, write)(tmp_path, force=True)


def test_a_folder_that_is_absent_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"):
        fitted().to_onnx(tmp_path / "nowhere" / "map.onnx")


@pytest.mark.parametrize("library", ["onnx", "onnxscript", "onnxruntime"])
def test_a_library_that_is_absent_is_named_with_the_remedy(library, tmp_path, monkeypatch):
    known = export.importlib.util.find_spec
    monkeypatch.setattr(export.importlib.util, "find_spec", lambda name: None if name == library else known(name))
    with pytest.raises(ImportError, match=rf"needs {library}: pip install 'deep-recursive-embedding\[onnx\]'"):
        fitted().to_onnx(tmp_path / "map.onnx")


def test_onnxruntime_is_needed_for_the_check_alone(tmp_path, monkeypatch):
    known = export.importlib.util.find_spec
    monkeypatch.setattr(export.importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else known(name))
    with pytest.raises(ImportError, match=r"needs onnxruntime: .*; with check=False it needs none"):
        fitted().to_onnx(tmp_path / "map.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    fitted().to_onnx(tmp_path / "map.onnx", check=False)
    assert (tmp_path / "map.onnx").is_file()


# The caller notices nothing else.


def test_an_export_is_silent_and_leaves_the_state_of_the_process_alone(tmp_path, capfd):
    model, X = fitted(), rows()
    before = model.transform(X)
    state = (torch.get_rng_state().numpy().tobytes(), torch.get_default_dtype(), logging.root.manager.disable)
    filters, streams = list(warnings.filters), (sys.stdout, sys.stderr)
    with torch.no_grad():
        model.to_onnx(tmp_path / "map.onnx")
        model.to_torch_export(tmp_path / "map.pt2")
        assert not torch.is_grad_enabled()
    assert (torch.get_rng_state().numpy().tobytes(), torch.get_default_dtype(), logging.root.manager.disable) == state
    assert (list(warnings.filters), (sys.stdout, sys.stderr)) == (filters, streams)
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(model.transform(X), before)
