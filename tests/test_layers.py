"""The architecture: which room may import which, what the core depends on, and what `import dre` costs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import dre

ROOT = Path(dre.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# A room may import the rooms before it, never those after it; imports inside functions count too.
CORE = [
    "notation",
    "progress",
    "runtime",
    "atomic",
    "data",
    "neighbors",
    "affinity",
    "loss",
    "optimizer",
    "encoder",
    "augment",
    "coordinates",
    "batches",
]
CORE += ["plan", "training"]
SEEN = ["metrics", "datasets", "io", "plot", "observe", "model"]  # observers score and draw maps, and models show theirs
ROOMS = [*CORE, *SEEN, "explore", "baselines", "compare", "ray", "scanpy", "cli"]

NEEDED_IN = {"cli": {"typer"}, "data": {"narwhals", "polars"}, "io": {"polars"}, "": {"lazy_loader"}}  # by single rooms
NEEDED = {"numba", "numpy", "torch", "sklearn", "scipy", "safetensors", "threadpoolctl", "tqdm"}  # by the core
EXTRAS = {
    "IPython",
    "PIL",
    "datashader",
    "faiss",
    "fastexcel",
    "filelock",
    "h5py",
    "matplotlib",
    "onnxruntime",
    "openTSNE",
    "pynndescent",
    "pandas",
    "pooch",
    "pyarrow",
    "ray",
    "tensorboard",
    "triton",
    "umap",
    "zarr",
}


def name_of(path: Path) -> str:
    return ".".join(["dre", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {name_of(path): path for path in FILES}


def room(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]  # "" for the package itself


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The modules that a file imports, and whether it does so inside a function."""

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((name.name, inside) for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: a relative import"
                for name in child.names:
                    whole = f"{child.module}.{name.name}"
                    yield (whole if whole in MODULES else str(child.module)), inside
            yield from visit(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    yield from visit(ast.parse(path.read_text()), False)


def test_rooms_import_only_the_rooms_above_them_and_there_is_no_cycle() -> None:
    assert {room(name) for name in MODULES if name not in ("dre", "dre.__main__")} == set(ROOMS)
    graph = {name: {other for other, _ in imports(path) if other in MODULES} for name, path in MODULES.items() if name != "dre"}
    upwards = [
        f"{name} imports {other}"
        for name, others in graph.items()
        for other in others
        if name != "dre.__main__" and other != "dre" and ROOMS.index(room(other)) > ROOMS.index(room(name))
    ]
    assert not upwards
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def test_libraries_are_imported_where_they_may_be() -> None:
    wrong = []
    for name, path in MODULES.items():
        for library, inside in ((whole.split(".")[0], inside) for whole, inside in imports(path)):
            if library == "dre" or library in sys.stdlib_module_names:
                continue
            is_kernel = library == "triton" and ".triton." in name
            allowed = NEEDED | NEEDED_IN.get(room(name), set())
            if not (library in allowed or is_kernel or (library in EXTRAS - {"triton"} and inside)):
                wrong.append(f"{name} imports {library}")
            if library == "faiss" and name != "dre.neighbors.search":
                wrong.append(f"{name} knows of faiss")
    assert not wrong


def test_kernels_are_imported_only_where_they_run() -> None:
    outside = {name: path for name, path in MODULES.items() if ".triton" not in name}
    eager = [
        f"{name} imports {other}"
        for name, path in outside.items()
        for other, inside in imports(path)
        if ".triton." in other and not inside
    ]
    assert not eager


def test_files_are_named_for_what_they_hold_and_their_first_line_says_it() -> None:
    for name, path in MODULES.items():
        assert not set(name.split(".")) & {"util", "utils", "helper", "helpers", "common", "base", "misc"}
        first = path.read_text().splitlines()[0]
        assert first.startswith('"""'), name
        assert len(first.strip('"')) > 15, name
        assert first.strip('"').endswith((".", ":")), name


def test_no_public_class_name_stands_twice() -> None:
    classes = Counter(
        node.name
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in classes.items() if count > 1]


def test_importing_dre_alone_imports_neither_torch_nor_scikit_learn() -> None:
    program = "import sys, dre; print(sorted({'torch', 'sklearn', 'numpy', 'scipy', 'faiss', 'tqdm'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(hasattr(dre, name) for name in dre.__all__)
    assert set(dre.__all__) <= set(dir(dre))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nothing"):
        importlib.import_module("dre").Nothing  # noqa: B018
