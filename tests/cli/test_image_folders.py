"""A folder of images on the command line: fit, labels by folder, options of the training, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dre import DRE

Run = Callable[..., int]
SHORT = ("--schedule", "features: gaussian(5) -> kl * 2", "--seed", 0, "--device", "cpu")


@pytest.fixture
def photos(dre: Run) -> Path:
    """60 images of two kinds and three sizes, in folders, beside a file that is none."""
    generator = np.random.default_rng(0)
    for i in range(60):
        kind = ("bright", "dark")[i % 2]
        folder = Path("photos", kind, *(["far"] if i % 10 == 1 else []))
        folder.mkdir(parents=True, exist_ok=True)
        low = 150 if kind == "bright" else 0
        pixels = generator.integers(low, low + 60, size=(10 + i % 3, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:02}.png")
    Path("photos/notes.txt").write_text("no image")
    return Path("photos")


def test_a_folder_becomes_a_map_with_folders_as_labels(dre: Run, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--encoder", "patch-mlp(16, depth=2)", "--augment", "flip + noise(0.1)", "--batch-size", 20)
    rate = ("--learning-rate", 0.003, "--size", "9x8", "--embedding", "y.csv")
    assert dre("fit", photos, "-o", "m.safetensors", "--labels", "top_folder", *options, *rate, *SHORT) == 0
    told = capsys.readouterr()
    assert "60 images, of 3 sizes, are cropped in the middle and resized to 9 × 8 pixels, height × width" in told.err
    assert "notes.txt is no image" in told.err
    assert "1-NN, top_folder " in told.out
    recipe = DRE.load("m.safetensors").recipe_
    texts = (str(recipe.encoder), str(recipe.augment), str(recipe.batches), recipe.optimizer.lr)
    assert texts == ("patch-mlp(16, depth=2)", "flip(0.5) + noise(0.1)", "auto(20)", 0.003)
    assert Path("y.csv").read_text().splitlines()[1].startswith("bright/00.png,")
    assert dre("evaluate", photos, "m.safetensors", "--labels", "folder") == 0
    assert "neighborhood_hit, folder" in capsys.readouterr().out
    assert dre("explore", "m.safetensors", photos, "-o", "m.html") == 0
    page = Path("m.html").read_text()
    assert "data:image/webp" in page
    assert "bright" in page


def test_folders_are_hinted_at_and_damaged_images_can_be_left_out(
    dre: Run, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "dark" / "03.png").write_bytes(b"no image")
    assert dre("fit", photos, "-o", "m.safetensors", *SHORT) == 2
    assert "03.png cannot be read" in (told := capsys.readouterr().err)
    assert "pass --missing drop to leave out images that can't be read" in told
    assert dre("fit", photos, "-o", "m.safetensors", "--missing", "drop", "--embedding", "y.csv", *SHORT) == 0
    told = capsys.readouterr().err
    assert "1 of 60 images cannot be read and is left out: dark/03.png" in told
    assert "the subfolders are kept as folder; --labels folder scores the map by them" in told
    assert "dark/03.png,nan,nan" in Path("y.csv").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--encoder", "patch-mpl"), "unknown encoder 'patch-mpl'; known: mlp, model-a.*Did you mean 'patch-mlp'"),
        (("--augment", "flop"), "unknown augmentation 'flop'; known: affine, color"),
        (("--batch-size", "egdes(5)"), "unknown batch sampler 'egdes'; known: auto, edges"),
        (("--batch-size", 0), "a batch needs at least 2 rows"),
        (("--batch-size", -5), "a batch needs at least 2 rows"),
        (("--learning-rate", 0), "--learning-rate 0.0: must be a positive number"),
        (("--device", "abacus"), "device='abacus' is unknown to torch"),
        (("--optimizer", "sgd"), "unknown optimizer 'sgd'; known: adam"),
        (("--schedule", "features: gaussian(5) -> kl * 2 unfreeze"), "needs a learning rate of its own"),
    ],
)
def test_wrong_options_are_refused_before_a_folder_is_read(
    dre: Run, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options, message
) -> None:
    monkeypatch.setattr("dre.io.readers.images._list", lambda folder: pytest.fail("the folder is read"))
    assert dre("fit", photos, "-o", "m.safetensors", *options) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert re.search(message, told)


def test_a_backbone_is_fitted_in_python(dre: Run, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schedule = "features: gaussian(5) -> kl * 2 @ 0.001 unfreeze"
    assert dre("fit", photos, "-o", "m.safetensors", "--schedule", schedule) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "has no backbone: fit it in Python, with DRE(encoder=Backbone(module))" in told
    assert dre("fit", photos, "-o", "m.safetensors", "--learning-rate", -1) == 2
    assert "--learning-rate -1.0: must be a positive number" in capsys.readouterr().err
