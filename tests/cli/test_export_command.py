"""``dre export``: a model in a file for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from dre import DRE
from dre.cli.options import EXPORT_TYPES
from dre.model.export import DTYPES

Run = Callable[..., int]
X = np.random.default_rng(0).normal(3, 2, (60, 6)).astype(np.float32)


@pytest.fixture
def model(tmp_path: Path) -> DRE:
    fitted = DRE(schedule="x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1", encoder="mlp(16)", random_state=0).fit(X)
    fitted.save(tmp_path / "m.safetensors")
    return fitted


def onnx_map(path: str, dtype: str = "float32") -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["embedding"], {"x": X.astype(dtype)})[0]


def test_the_file_has_the_map_of_the_model(dre: Run, model: DRE, capsys: pytest.CaptureFixture[str]) -> None:
    assert dre("export", "m.safetensors", "-o", "m.onnx") == 0
    np.testing.assert_allclose(onnx_map("m.onnx"), model.transform(X), atol=1e-4)
    assert "m.onnx" in (told := capsys.readouterr().out)
    assert "x (n, 6) float32 to embedding (n, 2) float32, compared with transform" in told


def test_stage_type_and_opset_are_taken(dre: Run, model: DRE) -> None:
    assert dre("export", "m.safetensors", "-o", "m.onnx", "--stage", 0, "--dtype", "float64", "--opset", 20) == 0
    np.testing.assert_allclose(onnx_map("m.onnx", "float64"), model.transform(X, stage=0), atol=1e-4)


def test_a_program_of_torch_is_written_too(dre: Run, model: DRE) -> None:
    assert dre("export", "m.safetensors", "-o", "m.pt2") == 0
    program = torch.export.load("m.pt2").module()
    np.testing.assert_allclose(program(torch.from_numpy(X)).detach().numpy(), model.transform(X), atol=1e-4)


WRONG = {
    "an old opset": (["-o", "new.onnx", "--opset", "11"], "--opset 11 is too old: the lowest that torch writes is 18"),
    "an unknown format": (["-o", "new.tflite"], "must end in .onnx or .pt2"),
    "an opset of torch": (["-o", "new.pt2", "--opset", "18"], "--opset 18 is for .onnx files alone"),
    "an existing file": (["-o", "m.onnx"], "m.onnx exists: pass --force"),
    "an absent folder": (["-o", "nowhere/m.onnx"], "there is no folder nowhere"),
    "an unknown type": (["-o", "new.onnx", "--dtype", "text"], "--dtype text: expected one of"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_options_are_usage_errors(dre: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    (tmp_path / "m.onnx").write_text("precious")
    options, message = WRONG[wrong]
    assert dre("export", "m.safetensors", *options) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.safetensors"]
    assert (tmp_path / "m.onnx").read_text() == "precious"


def test_a_missing_model_is_a_usage_error(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert dre("export", "nothing.safetensors", "-o", "m.onnx") == 2
    assert "nothing.safetensors does not exist" in capsys.readouterr().err


def test_the_types_that_are_completed_are_those_that_exist() -> None:
    assert EXPORT_TYPES == DTYPES


@pytest.mark.parametrize("options", [(), ("--device", "auto")])
def test_a_model_of_a_gpu_is_used_on_the_cpu_and_a_line_says_so(
    options: tuple[str, ...], dre: Run, model: DRE, capsys: pytest.CaptureFixture[str]
) -> None:
    model.set_params(device="cuda:99").save("gpu.safetensors")
    np.save("rows.npy", X)
    assert dre("transform", "gpu.safetensors", "rows.npy", "-o", "map.npy", *options) == 0
    np.testing.assert_array_equal(np.load("map.npy"), model.transform(X))
    assert "dre: the model stays on the CPU: device='cuda:99'" in capsys.readouterr().err
