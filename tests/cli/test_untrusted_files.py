"""Commands on files that are not what they seem: one line with the remedy, and exit code 2."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
Run = Callable[..., int]
X = np.random.default_rng(0).normal(size=(120, 4))


def outsourced(path: Path, values: np.ndarray) -> None:
    """An HDF5 file whose values lie in another file."""
    values.tofile(f"{path}.bin")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", values.shape, values.dtype, external=[(f"{path}.bin", 0, values.nbytes)])


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "x.h5", "-o", "m.safetensors"),
        ("evaluate", "x.h5", "map.npy"),
        ("evaluate", "x.npy", "map.h5"),
        ("plot", "map.npy", "x.h5", "-o", "a.png"),
        ("plot", "map.h5", "-o", "a.png"),
        ("explore", "map.h5", "x.h5", "-o", "a.html"),
        ("explore", "map.npy", "--beside", "map.h5", "-o", "a.html"),
        ("compare", "x.h5", "--methods", "pca", "-o", "a.png"),
    ],
)
def test_hdf5_in_several_files_needs_an_option(dre: Run, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    np.save("x.npy", X)
    np.save("map.npy", X[:, :2])
    outsourced(Path("x.h5"), X)
    outsourced(Path("map.h5"), X[:, :2].copy())
    assert dre(*command) == 2
    message = capsys.readouterr().err
    assert "'X' lies in another file" in message
    assert ".h5.bin; pass --allow-external if you trust" in message
    if command[0] != "fit":  # takes longer
        assert dre(*command, "--allow-external") == 0


@pytest.mark.skipif(os.name != "posix", reason="pipes are those of POSIX systems")
@pytest.mark.parametrize(
    "command",
    [
        ("fit", "pipe.csv", "-o", "m.safetensors"),
        ("fit", "x.npy", "--labels", "pipe.csv", "-o", "m.safetensors"),
        ("transform", "pipe.safetensors", "x.npy", "-o", "a.csv"),
        ("info", "pipe.safetensors"),
        ("plot", "pipe.csv", "-o", "a.png"),
        ("plot", "map.npy", "--color", "pipe.csv", "-o", "a.png"),
        ("explore", "map.npy", "--beside", "pipe.csv", "-o", "a.html"),
        ("evaluate", "x.npy", "pipe.csv"),
    ],
)
@pytest.mark.timeout(60)
def test_a_pipe_is_refused_at_once(dre: Run, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    np.save("x.npy", X)
    np.save("map.npy", X[:, :2])
    os.mkfifo("pipe.csv")
    os.mkfifo("pipe.safetensors")
    assert dre(*command) == 2
    assert "not a file" in capsys.readouterr().err


def test_the_target_of_a_link_is_written(dre: Run) -> None:
    np.save("map.npy", X[:, :2])
    Path("disk").mkdir()
    for name in ("a.png", "a.html"):
        Path(name).symlink_to(f"disk/{name}")
        assert dre("plot" if name == "a.png" else "explore", "map.npy", "-o", name) == 0
        assert Path(name).is_symlink()
        assert Path("disk", name).stat().st_size > 1000
    assert sorted(each.name for each in Path("disk").iterdir()) == ["a.html", "a.png"]
