"""The layers: what may import what, how modules are named, and what `import dre` costs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dre

ROOT = Path(dre.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
CORE = {
    "affinity",
    "augment",
    "batches",
    "distances",
    "encoder",
    "forward",
    "gpu",
    "layout",
    "learner",
    "loss",
    "neighbors",
    "notation",
    "optimiser",
    "order",
    "recipe",
    "recipes",
    "recording",
    "resolve",
    "rows",
    "runtime",
    "scaling",
    "schedule",
    "step",
    "target",
    "train",
}
CORE_NEEDS = {"numpy", "torch", "sklearn", "scipy"}  # scipy comes with scikit-learn
SHELL_NEEDS = CORE_NEEDS | {"safetensors", "tqdm", "typer"}
# only inside the function that needs them
EXTRAS = {"PIL", "datashader", "faiss", "h5py", "jinja2", "matplotlib", "openTSNE", "pandas", "pooch"}
EXTRAS |= {"pyarrow", "umap", "zarr"}


def part(path: Path) -> str:
    """The layer's name: the module or folder right under the package."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The dotted names a file imports, and whether it does so inside a function."""

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((name.name, inside) for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: a relative import"
                yield from ((f"{child.module}.{name.name}", inside) for name in child.names)
            yield from visit(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    yield from visit(ast.parse(path.read_text()), False)


def within(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(ROOT)))


core_files = [path for path in FILES if part(path) in CORE]
shell_files = [path for path in FILES if part(path) not in CORE and path != ROOT / "__init__.py"]


def test_every_part_of_the_core_is_there() -> None:
    assert {part(path) for path in core_files} == CORE


@within(core_files)
def test_the_core_imports_nothing_of_the_shell(path: Path) -> None:
    ours = {name.split(".")[1] for name, _ in imports(path) if name.startswith("dre.")}
    assert ours <= CORE


@within(core_files)
def test_the_core_needs_numpy_torch_and_scikit_learn_alone(path: Path) -> None:
    for name, inside in imports(path):
        package = name.split(".")[0]
        if package != "dre" and package not in sys.stdlib_module_names:
            assert package in CORE_NEEDS or (package in EXTRAS and inside) or (package == "triton" and part(path) == "gpu")


@within([path for path in FILES if part(path) != "gpu"])
def test_kernels_are_imported_only_where_they_run(path: Path) -> None:
    kernels = {f"dre.gpu.{file.stem}" for file in (ROOT / "gpu").glob("*.py")} - {"dre.gpu.__init__"}
    assert not {name for name, inside in imports(path) if name in kernels and not inside}


@within(shell_files)
def test_the_shell_imports_extras_only_where_they_are_used(path: Path) -> None:
    for name, inside in imports(path):
        package = name.split(".")[0]
        if package != "dre" and package not in sys.stdlib_module_names:
            assert package in SHELL_NEEDS or (package in EXTRAS and inside)


@within([path for path in core_files if path.name != "neighbors.py"])
def test_faiss_is_known_to_the_neighbours_alone(path: Path) -> None:
    assert "faiss" not in {name.split(".")[0] for name, _ in imports(path)}


@within(FILES)
def test_modules_are_named_for_what_they_hold(path: Path) -> None:
    names = {path.stem, *path.relative_to(ROOT).parent.parts}
    assert not {name.strip("_") for name in names} & {"util", "utils", "helper", "helpers", "common", "base"}


@within(FILES)
def test_the_first_line_of_a_file_says_its_idea(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first.startswith('"""')
    assert len(first.strip('"')) > 15
    assert first.strip('"').endswith((".", ":"))


def test_importing_dre_alone_imports_neither_torch_nor_scikit_learn() -> None:
    program = "import sys, dre; print(sorted({'torch', 'sklearn', 'numpy', 'scipy', 'faiss', 'tqdm'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there_and_the_type_checker_knows_the_same_ones() -> None:
    assert all(hasattr(dre, name) for name in dre.__all__)
    assert set(dre.__all__) <= set(dir(dre))
    tree = ast.parse((ROOT / "__init__.py").read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    told = {f"{node.module}.{node.names[0].name}" for node in ast.walk(typed) if isinstance(node, ast.ImportFrom)}
    assert told == {f"{getattr(dre, name).__module__}.{name}" for name in dre.__all__}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        importlib.import_module("dre").Nothing  # noqa: B018
