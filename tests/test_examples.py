"""The scripts in examples/ parse, call commands that exist, and do what they say under a stand-in for Slurm."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer
from typer.core import TyperGroup

from dre import DRE
from dre.cli import app

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.sh"))
SLURM = {  # what the scripts call, for one node
    "srun": 'exec "$@"',
    "scontrol": "echo localhost",
    "dre": f'exec {sys.executable} -m dre "$@"',
    "torchrun": f'exec {sys.executable} -W ignore -m torch.distributed.run "$@"',
}


def commands(script: Path) -> list[list[str]]:
    """The command lines of a script that call dre, from `dre` on."""
    text = script.read_text().replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [words[words.index("dre") :] for words in lines if "dre" in words]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse_and_their_options_exist(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert os.access(script, os.X_OK)
    group = typer.main.get_command(app())
    assert isinstance(group, TyperGroup)
    found = commands(script)
    assert found
    for _, name, *words in found:
        numbers = ["1" if word == "$SLURM_CPUS_PER_TASK" else word for word in words]
        group.commands[name].make_context(name, numbers)  # parses, and runs nothing


def run(folder: Path, script: str, *arguments: str, **variables: str) -> None:
    """Run a script in a folder, with programs in place of Slurm's."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name, line in SLURM.items():
        (programs / name).write_text(f"#!/usr/bin/env bash\n{line}\n")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(
        ["bash", str(EXAMPLES / script), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def rows(folder: Path, n: int = 300) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    (folder / "in").mkdir()
    for i, part in enumerate(np.array_split(X, 3)):
        pl.DataFrame(part, schema=list("abcd")).write_parquet(folder / "in" / f"{i}.parquet")
    return X


@pytest.mark.slow
def test_an_array_of_jobs_embeds_each_row_once(tmp_path: Path) -> None:
    X = rows(tmp_path)
    model = DRE(schedule="x: gaussian(5) -> kl * 1", encoder="mlp(8)", random_state=0, device="cpu")
    model.fit(pl.DataFrame(X, schema=list("abcd"))).save(tmp_path / "model.safetensors")
    for task in ("1", "0"):
        run(
            tmp_path,
            "slurm_transform.sh",
            *("model.safetensors", "in/*.parquet", "out"),
            SLURM_CPUS_PER_TASK="1",
            SLURM_ARRAY_TASK_ID=task,
            SLURM_ARRAY_TASK_COUNT="2",
        )
    found = pl.concat([pl.read_parquet(path) for path in (tmp_path / "out").glob("*.parquet")]).sort("row")
    assert found["row"].to_list() == list(range(300))
    expected = model.transform(pl.DataFrame(X, schema=list("abcd")))
    np.testing.assert_allclose(found.select("dre1", "dre2").to_numpy(), expected, atol=1e-5)


@pytest.mark.slow
def test_two_processes_of_a_job_fit_one_model(tmp_path: Path) -> None:
    X = rows(tmp_path)
    run(
        tmp_path,
        "slurm_fit.sh",
        *("in", "model.safetensors", "saved"),
        SLURM_JOB_NODELIST="localhost",
        SLURM_JOB_ID="7",
        SLURM_NNODES="1",
        SLURM_GPUS_ON_NODE="2",
        CUDA_VISIBLE_DEVICES="",
    )
    model = DRE.load(tmp_path / "model.safetensors")
    assert model.transform(pl.DataFrame(X, schema=list("abcd"))).shape == (300, 2)
