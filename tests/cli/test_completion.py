"""Shell completion of commands, options, option values, data sets and files, without slow imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dre.baselines import NAMES as METHODS
from dre.cli.options import AUGMENTS, BATCHES, DEVICES, ENCODERS, METRICS, OPTIMIZERS, PROTOCOLS, RECIPES
from dre.datasets import NAMES

DRE = "import sys; sys.argv[0] = 'dre'; from dre.cli import main; main()"


def completed(line: str, folder: Path, program: str = DRE, **others: str) -> list[str]:
    """What the shell offers when Tab is pressed at the end of the line."""
    told = {"_DRE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), **others}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **told}, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.split()


def test_names_are_those_that_are_known() -> None:
    from dre import augment, batches, encoder, optimizer
    from dre.data import metric
    from dre.metrics import pairwise_pass
    from dre.plan import recipes

    assert set(RECIPES) == set(recipes.RECIPES)
    assert PROTOCOLS == pairwise_pass.PROTOCOLS
    assert tuple(metric.METRICS) == METRICS
    own = [
        tuple(name for name, kind in registry.members().items() if kind.__module__.startswith("dre."))  # not those of tests
        for registry in (encoder.ENCODERS, augment.augmentation.AUGMENTS, batches.BATCHES, optimizer.OPTIMIZERS)
    ]
    assert own == [ENCODERS, AUGMENTS[:-1], BATCHES, OPTIMIZERS]
    assert AUGMENTS[-1] == "none"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("dre f", ["fit"]),
        ("dre fit --perp", ["--perplexity"]),
        ("dre fit x.npy --recipe ", [*RECIPES]),
        ("dre fit x.npy --recipe paper-", ["paper-tsne", "paper-umap"]),
        ("dre fit x.npy --device ", [*DEVICES]),
        ("dre fit x.npy --encoder ", [*ENCODERS]),
        ("dre fit x.npy --encoder model", ["model-a", "model-b"]),
        ("dre fit x.npy --augment ", [*AUGMENTS]),
        ("dre fit x.npy --augment affine+fl", ["affine+flip"]),
        ("dre fit x.npy --batch-size e", ["edges"]),
        ("dre fit x.npy --optimizer ", [*OPTIMIZERS]),
        ("dre evaluate x.npy y.npy --protocol ", [*PROTOCOLS]),
        ("dre evaluate x.npy y.npy --metric ", [*METRICS]),
        ("dre compare x.npy --methods ", [*METHODS]),
        ("dre compare x.npy --methods pca,um", ["pca,umap"]),
        ("dre fit fash", ["fashion-mnist"]),
        ("dre fit mn", ["mnist"]),
        ("dre fit mni", ["mnist", "mnist-of-mine.csv"]),
        ("dre fit ", [*NAMES, "cells.csv", "mnist-of-mine.csv", "photos/"]),
        ("dre fit cel", []),  # the shell completes files itself, into folders too
        ("dre fit x.npy -o ", []),
        ("dre transform ", []),
    ],
)
def test_words_are_completed(tmp_path: Path, line: str, found: list[str]) -> None:
    if "mn" not in line or "mni" in line:
        (tmp_path / "mnist-of-mine.csv").touch()
    (tmp_path / "cells.csv").touch()
    (tmp_path / ".hidden.csv").touch()
    (tmp_path / "photos").mkdir()
    assert completed(line, tmp_path) == found


def test_all_commands_are_completed(tmp_path: Path) -> None:
    assert {"demo", "fit", "transform", "info", "export", "evaluate", "compare", "explore", "plot"} <= set(
        completed("dre ", tmp_path)
    )


def test_completing_is_quick_since_nothing_heavy_is_imported(tmp_path: Path) -> None:
    heavy = "{'torch', 'sklearn', 'scipy', 'matplotlib', 'pandas'} & set(sys.modules)"
    program = f"{DRE[:-7]}\ntry:\n    main()\nfinally:\n    print(*{heavy})"
    for line in ("dre ", "dre fit ", "dre fit x --recipe ", "dre compare x --methods "):
        assert not {"torch", "sklearn", "scipy", "matplotlib", "pandas"} & set(completed(line, tmp_path, program))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script(tmp_path: Path, shell: str) -> None:
    assert "_DRE_COMPLETE" in " ".join(completed("dre ", tmp_path, _DRE_COMPLETE=f"source_{shell}"))


def test_zsh_and_fish_complete_too(tmp_path: Path) -> None:
    for shell in ("zsh", "fish"):
        words = {"_TYPER_COMPLETE_ARGS": "dre fit x --recipe dee", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        told = " ".join(completed("dre ", tmp_path, _DRE_COMPLETE=f"complete_{shell}", **words))
        assert "deep-tsne" in told
        assert "auto" not in told
