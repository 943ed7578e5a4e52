"""``dre fit`` and ``dre transform`` with every input format, every output format and every usage error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dre import DRE
from dre.cli import main
from dre.cli.options import UsageError
from dre.io.readers import open_source
from dre.training.events import StageSkipped

X = load_digits().data[:90].astype(np.float32)
LABELS = load_digits().target[:90]
SHORT = ["--schedule", "x: gaussian(5) -> kl * 2; h1: gaussian(5) -> kl * 1", "--seed", "0", "--device", "cpu"]
Run = Callable[..., int]


def made(kind: str) -> str:
    """The digits as a file of this kind, and how it is named as DATA."""
    if kind == "npy":
        np.save("x.npy", X)
    elif kind == "npz":
        np.savez("x.npz", x=X, y=LABELS)
    elif kind in ("csv", "csv.gz", "parquet"):
        pandas = pytest.importorskip("pandas")
        table = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(64)]).assign(digit=[f"d{label}" for label in LABELS])
        table.to_parquet("x.parquet", index=False) if kind == "parquet" else table.to_csv(f"x.{kind}", index=False)
    elif kind == "h5":
        with pytest.importorskip("h5py").File("x.h5", "w") as file:
            file["group/x"] = X
        return "x.h5:group/x"
    elif kind == "zarr":
        pytest.importorskip("zarr").save("x.zarr", X)
    elif kind == "folder":
        image = pytest.importorskip("PIL.Image")
        Path("x.folder").mkdir()
        for i, pixels in enumerate(X):
            image.fromarray((16 * pixels.reshape(8, 8)).clip(0, 255).astype(np.uint8)).save(f"x.folder/{i:03}.png")
    return f"x.{kind}"


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "csv.gz", "parquet", "h5", "zarr", "folder"])
def test_every_kind_of_file_is_fitted_and_embedded_again(dre: Run, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = made(kind)
    assert dre("fit", data, "-o", "m.safetensors", "--embedding", "fitted.npy", *SHORT) == 0
    told = capsys.readouterr().out
    assert "trustworthiness" in told
    assert "stage 1  h1" in told
    assert dre("transform", "m.safetensors", data, "-o", "again.npy") == 0
    fitted, again = np.load("fitted.npy"), np.load("again.npy")
    assert fitted.shape == (90, 2)
    assert np.allclose(fitted, again, atol=1e-4 * np.ptp(fitted))


def test_the_command_learns_what_the_estimator_learns(dre: Run) -> None:
    assert dre("fit", made("npy"), "-o", "m.safetensors", "--embedding", "y.npy", *SHORT, "--n-components", 3) == 0
    theirs = DRE(schedule=SHORT[1], n_components=3, random_state=0, device="cpu").fit(X)
    assert np.allclose(np.load("y.npy"), theirs.embedding_, atol=1e-5)
    assert np.allclose(DRE.load("m.safetensors").transform(X), theirs.transform(X), atol=1e-5)


@pytest.mark.parametrize("piece", [7, 90])
@pytest.mark.parametrize("out", ["y.csv", "y.tsv.gz", "y.parquet", "y.npy"])
def test_coordinates_are_written_piece_by_piece_in_every_format(
    dre: Run, monkeypatch: pytest.MonkeyPatch, out: str, piece: int
) -> None:
    data = made("npy")
    assert dre("fit", data, "-o", "m.safetensors", *SHORT) == 0
    monkeypatch.setattr("dre.cli.transform.CHUNK", piece)
    assert dre("transform", "m.safetensors", data, "-o", out, "--stage", 0) == 0
    rows = open_source(out).rows
    coordinates = rows if isinstance(rows, np.ndarray) else rows.read(0, 90).numpy()
    assert np.allclose(coordinates, DRE.load("m.safetensors").transform(X, stage=0), atol=1e-4)


@pytest.mark.parametrize("labels", ["digit", "label", "labels.txt"])
def test_labels_are_a_column_or_a_file_and_no_feature(dre: Run, capsys: pytest.CaptureFixture[str], labels: str) -> None:
    head = ",".join([*(f"p{i}" for i in range(64)), "digit", "label"])
    lines = [",".join([*map(str, row), f"d{y}", str(y)]) for row, y in zip(X.tolist(), LABELS, strict=True)]
    Path("x.csv").write_text("\n".join([head, *lines]))
    Path("labels.txt").write_text("\n".join(map(str, LABELS)))
    assert dre("fit", "x.csv", "-o", "m.safetensors", "--labels", labels, *SHORT) == 0
    assert f"1-NN, {labels} 0." in capsys.readouterr().out
    assert DRE.load("m.safetensors").n_features_in_ == (64 if labels == "label" else 65)


def test_the_first_label_that_is_a_class_is_scored(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.savetxt("share.txt", np.linspace(0, 1, len(X)))
    np.savetxt("kind.txt", LABELS, fmt="%d")
    assert dre("fit", made("npy"), "-o", "m.safetensors", "--labels", "share.txt", "--labels", "kind.txt", *SHORT) == 0
    told = capsys.readouterr()
    assert "share.txt holds numbers, not classes, and is not scored" in told.err
    assert [line.rpartition(" ")[0] for line in told.out.splitlines() if "1-NN" in line] == ["1-NN, kind.txt"]


def test_info_says_what_a_model_is(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert dre("fit", made("npy"), "-o", "m.safetensors", *SHORT) == 0
    capsys.readouterr()
    assert dre("info", "m.safetensors") == 0
    told = capsys.readouterr().out
    for part in ("DRE for rows of 64 values", "2 stages", "encoder   mlp(256)", "x: gaussian(5) -> kl * 2", "loss"):
        assert part in told


def test_a_stage_that_was_undone_is_marked(
    dre: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trust = iter((0.5, 0.9))  # after the stage, and before it
    monkeypatch.setattr("dre.training.optional.sample_trust", lambda features, embedding: next(trust))
    monkeypatch.setattr("dre.training.loop.skip", lambda run, target: None)
    schedule = "x: gaussian(5) -> kl * 1; h1: gaussian(5) -> kl * 1 optional"
    fit = ["fit", made("npy"), "-o", "m.safetensors", "--schedule", schedule, "--device", "cpu"]
    for command in (fit, ["info", "m.safetensors"]):
        assert dre(*command) == 0
        stages = [line for line in capsys.readouterr().out.splitlines() if line.startswith("stage") and " loss " in line]
        assert [line.endswith("  undone") for line in stages] == [False, True]


def test_a_stage_that_was_skipped_is_named(
    dre: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def skip(run: object, target: object) -> StageSkipped:
        run.end_fit()  # type: ignore[attr-defined]
        return StageSkipped(run, (1.0, 2.0))  # type: ignore[arg-type]

    monkeypatch.setattr("dre.training.loop.skip", skip)
    schedule = "x: gaussian(5) -> kl * 1; h1: gaussian(5) -> kl * 1 optional"
    fit = ["fit", made("npy"), "-o", "m.safetensors", "--schedule", schedule, "--device", "cpu"]
    for command in (fit, ["info", "m.safetensors"]):
        assert dre(*command) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "stage 1  h1: gaussian(5) -> kl * 1 optional  not begun" in lines


WRONG = {
    "a name that is nothing": (["fit", "digts", "-o", "m.safetensors"], 2, "Did you mean 'digits'?"),
    "no model": (["fit", "x.npy", "-o", "m.pt"], 2, "such as m.safetensors"),
    "a folder that is not there": (["fit", "x.npy", "-o", "no/m.safetensors"], 2, "not a writable folder"),
    "a model that is there": (["fit", "x.npy", "-o", "there.safetensors"], 2, "--force"),
    "a map that is there": (["fit", "x.npy", "-o", "m.safetensors", "--embedding", "there.csv"], 2, "--force"),
    "labels from nowhere": (["fit", "x.npy", "-o", "m.safetensors", "--labels", "species"], 2, "neither a column"),
    "a schedule with a slip": (["fit", "x.npy", "-o", "m.safetensors", "--schedule", "x: gausian(5) -> kl * 2"], 2, "gaussian"),
    "a recipe of another name": (["fit", "x.npy", "-o", "m.safetensors", "--recipe", "atuo"], 2, "auto"),
    "fewer recursions than none": (["fit", "x.npy", "-o", "m.safetensors", "--recursions", "-1"], 2, "--recursions"),
    "a perplexity that is none": (["fit", "x.npy", "-o", "m.safetensors", "--perplexity", "0"], 2, "at least 1"),
    "a device that is none": (["fit", "x.npy", "-o", "m.safetensors", "--device", "gpu"], 2, "device='gpu'"),
    "two of a kind": (
        ["fit", "x.npy", "-o", "m.safetensors", "--schedule", "x: gaussian(5) -> kl * 2", "--recursions", "1"],
        2,
        "both given",
    ),
    "data that are written over": (
        ["fit", "x.npy", "-o", "m.safetensors", "--embedding", "x.npy", "--force"],
        2,
        "would be overwritten",
    ),
    "a file of another kind": (["fit", "there.csv", "-o", "m.safetensors"], 2, "there.csv"),
    "rows that can't be learned from": (["fit", "nan.npy", "-o", "m.safetensors"], 1, "NaN"),
    "no output": (["fit", "x.npy"], 2, "--output"),
    "an option that there is none of": (["fit", "x.npy", "-o", "m.safetensors", "--preplexity", "3"], 2, "--perplexity"),
    "no model to embed with": (["transform", "m.safetensors", "x.npy", "-o", "y.npy"], 2, "m.safetensors"),
    "a model that is none": (["info", "x.npy"], 2, "x.npy"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_what_goes_wrong_is_said_in_two_lines_and_leaves_nothing(
    dre: Run, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    arguments, code, remedy = WRONG[case]
    made("npy")
    np.save("nan.npy", np.full((30, 3), np.nan))
    for name in ("there.safetensors", "there.csv"):
        Path(name).write_text("mine")
    before = sorted(Path().iterdir())
    assert dre(*arguments) == code
    told = capsys.readouterr().err
    assert remedy in told
    assert "Traceback" not in told
    assert len(told.strip().splitlines()) <= 5
    assert sorted(Path().iterdir()) == before


def test_a_stage_that_is_not_there_and_rows_of_another_shape_are_refused_before_a_file_is_begun(
    dre: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dre("fit", made("npy"), "-o", "m.safetensors", *SHORT) == 0
    np.save("other.npy", X[:, :5])
    before = sorted(Path().iterdir())
    assert dre("transform", "m.safetensors", "x.npy", "-o", "y.npy", "--stage", 2) == 2
    assert "2 stage(s)" in capsys.readouterr().err
    assert dre("transform", "m.safetensors", "other.npy", "-o", "y.npy") == 2
    assert "rows of 5 values" in capsys.readouterr().err
    assert sorted(Path().iterdir()) == before


def test_a_column_that_was_no_feature_is_none_again(dre: Run) -> None:
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(X).assign(label=LABELS).to_csv("x.csv", index=False)
    assert dre("fit", "x.csv", "-o", "m.safetensors", "--labels", "label", "--embedding", "y.npy", *SHORT) == 0
    assert dre("transform", "m.safetensors", "x.csv", "-o", "z.npy") == 0
    assert np.allclose(np.load("y.npy"), np.load("z.npy"), atol=1e-4 * np.ptp(np.load("y.npy")))


def test_a_failure_that_nobody_foresaw_is_told_in_two_lines(
    dre: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: object, **named: object) -> None:
        raise RuntimeError("out of memory\nand much more")

    monkeypatch.setattr(DRE, "fit", fails)
    assert dre("fit", made("npy"), "-o", "m.safetensors", *SHORT) == 1
    told = capsys.readouterr().err
    assert told.splitlines()[0] == "dre: RuntimeError: out of memory"
    assert "--debug" in told.splitlines()[1]


def test_debug_shows_where_an_error_came_from(dre: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRE_DEBUG", "")
    monkeypatch.setattr(sys, "argv", ["dre", "--debug", "info", "nothing.safetensors"])
    with pytest.raises(UsageError, match=r"nothing\.safetensors"):
        main()


def test_a_column_that_is_called_as_labels_are_is_told_of(dre: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.savetxt("x.csv", np.column_stack([X[:, 20:24], LABELS]), delimiter=",", header="a,b,c,d,target", comments="", fmt="%g")
    assert dre("fit", "x.csv", "-o", "m.safetensors", *SHORT) == 0
    assert "pass --labels target" in capsys.readouterr().err
    assert dre("fit", "x.csv", "-o", "n.safetensors", "--labels", "target", *SHORT) == 0
    assert "--labels" not in capsys.readouterr().err
