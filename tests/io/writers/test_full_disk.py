"""Every kind of output on a disk that is too small: one line that names the file, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

KINDS = [".npy", ".csv", ".tsv", ".csv.gz", ".parquet", ".h5ad", ".safetensors", ".png", ".svg", ".pdf", ".html", ".json"]
SIZE = 2**16
PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np

folder, inputs, limit, kinds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
rng = np.random.default_rng(0)
Y = rng.normal(size=(20_000, 2)).astype(np.float32)

def embedding(path):
    import h5py
    from dre.io.writers import OutputSpec, open_sink
    cells = inputs / "cells.h5ad"
    with h5py.File(cells, "w") as file:
        file["X"] = np.ones((20_000, 1), np.int8)
    yield
    with open_sink(path, OutputSpec(len(Y), 2, source=cells)) as sink:
        for part in np.array_split(Y, 7):
            sink.write(part)

def figure(path):
    from dre.plot import save, scatter
    drawn = scatter(Y)
    yield
    save(drawn, path)

def model(path):
    from dre import DRE
    plan = {"schedule": "x: gaussian(5) -> kl * 1", "encoder": "mlp(128, depth=2)"}
    fitted = DRE(**plan, random_state=0, device="cpu").fit(rng.normal(size=(40, 6)))
    yield
    fitted.save(path)

def page(path):
    from dre.explore.page import Explorer, ShownMap, StageView, write_page
    yield
    write_page(path, Explorer("map", [ShownMap("map", [StageView("", Y)])]))

def scores(path):
    from dre.compare.record import write_json
    yield
    write_json(path, Y.tolist())

WRITERS = {".safetensors": model, ".html": page, ".json": scores, ".png": figure, ".svg": figure, ".pdf": figure}
for kind in kinds:
    steps = WRITERS.get(kind, embedding)(folder / f"map{kind}")
    next(steps)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        next(steps, None)
        print(f"{kind}\\tno error")
    except OSError as problem:
        print(f"{kind}\\t{problem}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as problem:
        pytest.skip(f"no small disk can be mounted: {problem}")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def check_all(folder: Path, inputs: Path, limit: int) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), str(inputs), str(limit), *KINDS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    assert list(lines) == KINDS
    for kind, line in lines.items():
        assert line.startswith(f"{folder / 'map'}{kind} cannot be written: "), line
        assert line.endswith("; free some space, or choose another folder"), line
    assert os.listdir(folder) == []


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    check_all(small_disk, tmp_path, -1)


@pytest.mark.skipif(os.name != "posix", reason="the size of files is limited by POSIX systems")
@pytest.mark.slow
def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    check_all(tmp_path / "disk", tmp_path, SIZE)
