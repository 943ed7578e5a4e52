"""Map files as people have them with `dre fit`, and record what is printed and how well labels are separated.

python benchmarks/messy.py             write results/messy.json
python benchmarks/messy.py --files F   also keep the files in the folder F
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from dre import DRE
from messy_files import FILES, MessyFile
from record import record

MODEL = "model.safetensors"
ACCURACY = re.compile(r"^1-NN, .+ (\d\.\d+)$", re.MULTILINE)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", type=Path, metavar="FOLDER", help="keep the files here")
    kept = options.parse_args().files
    with tempfile.TemporaryDirectory() as temporary:
        folder = temporary if kept is None else kept
        Path(folder).mkdir(parents=True, exist_ok=True)
        results = [measure(file, Path(folder)) for file in FILES]
    record("messy", results, seed=0)


def measure(file: MessyFile, folder: Path) -> dict[str, Any]:
    """Run one command; raise an AssertionError if the outcome is not the expected one."""
    path = folder / file.name
    if not path.exists():
        file.write(path)
    command = ["fit", file.name, "-o", MODEL, "--seed", "0", "--force", *file.options]
    run = subprocess.run([sys.executable, "-m", "dre", *command], cwd=folder, capture_output=True, text=True, check=False)
    found: dict[str, Any] = {
        "file": file.name,
        "about": file.about,
        "options": " ".join(file.options),
        "exit": run.returncode,
        "printed": [line.removeprefix("dre: ") for line in run.stderr.splitlines()],
    }
    if file.error:
        assert run.returncode == 2, run.stderr
        assert file.error in run.stderr, run.stderr
        return found
    assert run.returncode == 0, run.stderr
    names = getattr(DRE.load(folder / MODEL), "feature_names_in_", None)
    assert (None if names is None else names.tolist()) == file.features, names
    accuracy = float(ACCURACY.findall(run.stdout)[0])
    assert accuracy >= file.accuracy, accuracy
    return {**found, "accuracy": accuracy}


if __name__ == "__main__":
    main()
