"""Use the installed package as a new user does, without extras. Started by check_wheel.py in an environment of its own.

Every function in ``CASES`` is a case: it fails with an exception. The cases share the current folder, in this order.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tarfile
import time
import traceback
import zipfile
from importlib.metadata import metadata, version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMAND = Path(sys.executable).with_name("dre")
SHORT = ("--recipe", "fast", "--seed", "0", "--device", "cpu")
ROWS = 300
EXTRA = "pip install 'deep-recursive-embedding[{}]'"
FAILED = 1  # exit code


def dre(*words: str, code: int = 0) -> str:
    """Run the command, and return what it printed."""
    done = subprocess.run([str(COMMAND), *words], capture_output=True, text=True, check=False)
    printed = done.stdout + done.stderr
    assert done.returncode == code, f"dre {' '.join(words)} ended with {done.returncode} instead of {code}:\n{printed}"
    assert "Traceback" not in printed, printed
    return printed


def source_files() -> set[str]:
    """Return the files of src/dre in the checkout."""
    files = (path for path in (ROOT / "src" / "dre").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT / "src").as_posix() for path in files}


def the_wheel_has_the_package_and_nothing_else() -> None:
    files = {name for name in zipfile.ZipFile(sys.argv[2]).namelist() if ".dist-info/" not in name}
    assert files == source_files(), sorted(files ^ source_files())
    assert "dre/py.typed" in files
    kinds = {Path(name).suffix for name in files if name.startswith("dre/explore/page/")}
    assert kinds == {".js", ".css", ".html"}, kinds


def the_source_archive_has_what_the_tests_need() -> None:
    with tarfile.open(sys.argv[1]) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "pyproject.toml",
        "Makefile",
        "constraints.txt",
        "constraints.lock",
        "release/smoke.py",
        "tests/conftest.py",
        "LICENSE",
    }
    assert needed <= files, sorted(needed - files)
    assert {f"src/{name}" for name in source_files()} <= files
    assert not [name for name in files if name.startswith((".venv", ".git/", "dist/", "out/"))]


def no_extra_is_installed() -> None:
    import dre as package

    assert Path(str(package.__file__)).is_relative_to(Path(sys.prefix)), package.__file__
    assert version("deep-recursive-embedding") == package.__version__
    for module in ("matplotlib", "datashader", "faiss", "h5py", "pandas", "PIL", "pooch", "pyarrow", "ray", "umap", "zarr"):
        assert find_spec(module) is None, f"{module} is installed"
    extras = set(metadata("deep-recursive-embedding").get_all("Provides-Extra") or [])
    assert {"plot", "files", "datasets", "baselines", "faiss", "bench", "ray"} <= extras, extras


def digits_are_fitted_saved_loaded_and_embedded_again() -> None:
    import numpy as np
    from sklearn.datasets import load_digits

    from dre import DRE

    X = load_digits().data[:ROWS]
    model = DRE(recipe="fast", random_state=0, device="cpu").fit(X)
    assert model.embedding_.shape == (ROWS, 2)
    model.save("digits.safetensors")
    assert np.array_equal(DRE.load("digits.safetensors").transform(X), model.transform(X))


def the_command_has_help() -> None:
    page = dre("--help")
    for name in ("demo", "fit", "transform", "info", "explore", "plot", "evaluate", "compare"):
        assert name in page, name
        assert "Examples" in dre(name, "--help")


def a_table_is_fitted_embedded_and_described() -> None:
    from sklearn.datasets import load_iris

    iris = load_iris()
    with Path("iris.csv").open("w", newline="") as file:
        rows = [[*values, iris.target_names[kind]] for values, kind in zip(iris.data, iris.target, strict=True)]
        csv.writer(file).writerows([[*iris.feature_names, "species"], *rows])
    dre("fit", "iris.csv", "-o", "iris.safetensors", "--labels", "species", *SHORT)
    dre("transform", "iris.safetensors", "iris.csv", "-o", "embedding.csv")
    assert len(Path("embedding.csv").read_text().splitlines()) == 151
    dre("info", "iris.safetensors")
    dre("evaluate", "iris.csv", "iris.safetensors", "--labels", "species")


def a_page_is_written() -> None:
    dre("explore", "iris.safetensors", "iris.csv", "-o", "iris.html")
    page = Path("iris.html").read_text()
    assert page.startswith("<!DOCTYPE html>"), page[:50]
    assert "sepal length" in page
    assert len(page) > 100_000, "the scripts of the page are missing"


def the_demo_runs_and_says_how_to_get_plots() -> None:
    assert EXTRA.format("plot") in dre("demo", "-o", "demo")
    assert {path.name for path in Path("demo").iterdir()} >= {"digits.safetensors", "embedding.csv"}


def commands_without_their_extra_name_it() -> None:
    assert EXTRA.format("plot") in dre("plot", "iris.safetensors", "iris.csv", "-o", "iris.png", code=FAILED)
    assert EXTRA.format("files") in dre("transform", "iris.safetensors", "iris.csv", "-o", "embedding.parquet", code=FAILED)
    for name in ("cells.parquet", "cells.h5", "cells.xlsx", "cells.zarr"):
        Path(name).mkdir() if name.endswith("zarr") else Path(name).write_bytes(b"anything")
        assert EXTRA.format("files") in dre("fit", name, "-o", "cells.safetensors", *SHORT, code=FAILED)
    assert "deep-recursive-embedding[" in dre("compare", "iris.csv", "--labels", "species", "-o", "compared", code=FAILED)


CASES = (
    the_wheel_has_the_package_and_nothing_else,
    the_source_archive_has_what_the_tests_need,
    no_extra_is_installed,
    digits_are_fitted_saved_loaded_and_embedded_again,
    the_command_has_help,
    a_table_is_fitted_embedded_and_described,
    a_page_is_written,
    the_demo_runs_and_says_how_to_get_plots,
    commands_without_their_extra_name_it,
)


def main() -> int:
    """Run all cases and print a line for each; 1 if one fails."""
    outcomes = {"passed": 0, "failed": 0, "skipped": 0}
    for case in CASES:
        began = time.perf_counter()
        try:
            case()
            outcome = "passed"
        except Exception:
            traceback.print_exc()
            outcome = "failed"
        outcomes[outcome] += 1
        print(f"{outcome}  {case.__name__.replace('_', ' ')}  ({time.perf_counter() - began:.1f} s)", flush=True)
    if "--record" in sys.argv[3:]:
        from record import record

        sys.argv = ["release/check_wheel.py", "--record"]  # the command of the result, without paths of this machine
        about = "the wheel alone in a new environment: its content, the estimator, the commands, messages that name an extra"
        record("reliability-wheel", {"about": about, "cases": len(CASES), "outcomes": outcomes}, seed=0)
    return int(outcomes["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
