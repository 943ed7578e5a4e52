"""Arguments and options that commands share, with shell completion and usage errors. Does not import torch."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dre

if TYPE_CHECKING:
    from dre.io.readers.options import ReadOptions

DECIMAL = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,2})?")
DEBUG = "DRE_DEBUG"  # environment variable with the effect of --debug
RECIPES = ("auto", "fast", "paper", "paper-tsne", "paper-umap", "deep-tsne", "deep-umap")
ENCODERS = ("mlp", "model-a", "model-b", "patch-mlp", "strided")
AUGMENTS = ("affine", "color", "crop", "dropout", "elastic", "flip", "local-noise", "noise", "none")
BATCHES = ("auto", "edges", "fixed", "neighborhoods", "shuffled")
OPTIMIZERS = ("adam",)
DEVICES = ("auto", "cpu", "cuda")
EXPORT_TYPES = ("float32", "float64", "uint8", "int32", "int64")
PROTOCOLS = ("standard", "paper")
MISSING = ("error", "drop", "mean", "median")
METRICS = (
    "euclidean", "cosine", "correlation", "manhattan", "chebyshev", "minkowski", "canberra", "braycurtis", "hamming", "jaccard",
    "precomputed",
)  # fmt: skip
PARAMETERS = {  # what the library's errors name, as patterns, and the option with the same effect
    r"\bforce=True\b": "--force",
    r"\bresume=True\b": "--resume",
    r"\bcheckpoint=FOLDER\b": "--checkpoint FOLDER",
    r"\bimages=False\b": "--no-thumbnails",
    r"\blabel_placement='(\w+)'": r"--label-placement \1",
    r"\bdre\.explore\.atlas\b": "--atlas",
    r"\bmissing='(\w+)'": r"--missing \1",
    r"\bdecimal='(.)'": r"--decimal \1",
    r"\bdrop=\[…\]": "--drop",
    r"\bcolumns=\[…\]": "--columns",
    r"\bcategories=True\b": "--categories",
    r"\bstandardize=True\b": "--standardize",
    r"\bstandardize=False\b": "--no-standardize",
    r"\bmetric_kwds\['(\w+)'\]=(\S+): ": r"--metric-kwds \1=\2: ",
    r"\bmetric_kwds has\b": "--metric-kwds has",
    r"\bvector='(.+?)'": r"--vector \1",
    r"\ballow_external=True\b": "--allow-external",
    r"\bopset=(\w+)": r"--opset \1",
    r"\bdtype='(\w+)'": r"--dtype \1",
    r"\bcheck=False\b": "--no-check",
    r"\b(?:lr|learning_rate)=(\S+): must": r"--learning-rate \1: must",
    r"\bbatch_size=(\S+): a batch": r"--batch-size \1: a batch",
    r"\bpass encoder=Backbone\(module\)": "fit it in Python, with DRE(encoder=Backbone(module))",
    r"\bleave the model out\b": "drop --with-model",
    r"\bLeave the model out(?: of the page)?": "Drop --with-model",
    r"\bexport (?:it|the model) as ONNX": "use dre export -o FILE.onnx",
    r"[Dd]rop these rows, or fill them in with sklearn\.impute\.SimpleImputer": "Pass --missing drop, mean or median",
    r"Leave such rows out, or impute them": "Pass --missing drop, mean or median",
}


class UsageError(ValueError):
    """A wrong option, name or file, found before any computation; the command exits with 2 instead of 1."""


def name_options(message: str) -> str:
    """Replace Python parameters in an error message by the options of the command line.

    >>> name_options("a.png exists: pass force=True to overwrite it")
    'a.png exists: pass --force to overwrite it'
    """
    for parameter, option in PARAMETERS.items():
        message = re.sub(parameter, option, message)
    return message


@contextmanager
def as_usage_error(*kinds: type[Exception]) -> Iterator[None]:
    """Re-raise errors of these kinds as `UsageError`; by default ValueError, TypeError and FileExistsError."""
    try:
        yield
    except UsageError:
        raise
    except Exception as problem:
        if not isinstance(problem, kinds or (ValueError, TypeError, FileExistsError)):
            raise
        raise UsageError(name_options(str(problem))) from problem


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(dre.__version__)
        raise typer.Exit


def global_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Handle the options in front of the command; typer itself handles --version."""
    if debug:
        os.environ[DEBUG] = "1"


def split_names(text: str | None) -> list[str]:
    """Names of a comma-separated list.

    >>> split_names("age, size,c-f")
    ['age', 'size', 'c-f']
    """
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def parse_size(text: str | None) -> tuple[int, int] | None:
    """Height and width of images.

    >>> parse_size("64"), parse_size("64x48")
    ((64, 64), (64, 48))
    """
    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) > 2 or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise UsageError(f"--size {text}: expected a number of pixels, such as 64, or HEIGHTxWIDTH")
    return int(sides[0]), int(sides[-1])


def parse_metric_kwds(text: str | None) -> dict[str, float] | None:
    """Numbers by name. Weights of columns are many, and are passed in Python.

    >>> parse_metric_kwds("p=3"), parse_metric_kwds("p=1.5"), parse_metric_kwds(None)
    ({'p': 3}, {'p': 1.5}, None)
    """
    if text is None:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not name or name in found or not DECIMAL.fullmatch(value):
            hint = "; weights of columns are passed in Python: metric_kwds={'w': weights}" if name == "w" else ""
            raise UsageError(f"--metric-kwds {text}: expected numbers by their names, such as p=3{hint}")
        number = float(value)
        found[name] = int(number) if number.is_integer() else number
    return found


def read_options(
    columns: str | None,
    drop: str | None,
    labels: list[str],
    row_id: str | None,
    categories: bool,
    missing: str,
    decimal: str | None,
    vector: str | None,
    size: str | None,
    allow_external: bool,
) -> ReadOptions:
    """What the options of a command say about a file; a wrong one is a usage error."""
    from dre.io.readers.options import ReadOptions

    with as_usage_error():
        return ReadOptions(
            columns=split_names(columns),
            drop=split_names(drop),
            labels=labels,
            id=row_id,
            categories=categories,
            missing=missing,
            decimal=decimal,
            vector=vector,
            size=parse_size(size),
            allow_external=allow_external,
        )


def map_options(
    *,
    categories: bool,
    decimal: str | None,
    allow_external: bool,
    labels: Iterable[str] = (),
    standardize: bool | None = None,
) -> ReadOptions:
    """How DATA is read beside a map: rows that lack values have no place in it, and are left out."""
    from dre.io.readers.options import ReadOptions

    with as_usage_error():
        return ReadOptions(
            missing="drop",
            where_possible=True,
            categories=categories,
            decimal=decimal,
            labels=list(labels),
            standardize=standardize,
            allow_external=allow_external,
        )


def complete_one(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Complete a single name."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def complete_chain(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Complete the last name of a sum, ``affine+fl``."""

    def complete(incomplete: str) -> list[str]:
        before, plus, last = incomplete.rpartition("+")
        return [f"{before}{plus}{name}" for name in names if name.startswith(last.strip())]

    return complete


def complete_several(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Complete the last name of a comma-separated list, without names that it already holds."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        listed = before.split(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last) and name not in listed]

    return complete


def complete_data(incomplete: str) -> list[str]:
    """Complete names of datasets, together with matching files. If no dataset matches, the shell completes files itself."""
    from dre.datasets import NAMES

    datasets = [name for name in NAMES if name.startswith(incomplete)]
    files = [path for path in sorted(Path().iterdir()) if path.name.startswith(incomplete) and not path.name.startswith(".")]
    return [*datasets, *(f"{path}/" if path.is_dir() else str(path) for path in files)] if datasets else []


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        autocompletion=complete_data,
        show_default=False,
        help="Rows: a file (.npy, .npz, .csv, .tsv, also .gz, .xlsx, .jsonl, .arrow, .parquet, .h5, .h5ad, .zarr), a folder of "
        "images, or the name of a dataset. A colon selects a part of a file: cells.h5ad:obsm/X_pca.",
    ),
]
Map = Annotated[
    str,
    typer.Argument(
        metavar="MAP",
        show_default=False,
        help="A model written by `dre fit`, or a file of coordinates such as `dre transform` writes.",
    ),
]
DataOfMap = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        autocompletion=complete_data,
        show_default=False,
        help="The embedded rows, in any format that `dre fit` reads. Required with a model, optional with coordinates.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE", help="One label per row: a column of DATA, which is then not used as a feature, or a file."
    ),
]
SeveralLabels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="One label per row: a column of DATA, which is then not used as a feature, or a file. Repeat it for several; the "
        "first one is scored.",
    ),
]
SeveralScoredLabels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="One label per row: a column of DATA, which is then not used as a feature, or a file. Repeat it for several; "
        "each is scored.",
    ),
]
COLUMNS = "Columns of a table"  # panel of the help
Columns = Annotated[
    str | None,
    typer.Option(metavar="A,B,C-F", rich_help_panel=COLUMNS, help="Features: these columns alone; c-f are all from c to f."),
]
Drop = Annotated[
    str | None, typer.Option(metavar="A,B", rich_help_panel=COLUMNS, help="Leave these columns out of everything.")
]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", rich_help_panel=COLUMNS, help="Names of the rows, which every output carries."),
]
Categories = Annotated[
    bool,
    typer.Option(
        "--categories",
        rich_help_panel=COLUMNS,
        help="Use yes and no, and texts of at most 20 values, as features; of at most 1,000 if --columns names them.",
    ),
]
MapCategories = Annotated[
    bool,
    typer.Option(
        "--categories",
        rich_help_panel=COLUMNS,
        help="Compare coordinates with yes and no, and texts of at most 20 values, too. A model knows its columns.",
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        rich_help_panel=COLUMNS,
        autocompletion=complete_one(MISSING),
        help="Missing values: error, drop (such rows are NaN in the output), mean or median of the column.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="MARK", rich_help_panel=COLUMNS, help="Mark of decimals in a text table.", show_default="found"),
]
Vector = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", rich_help_panel=COLUMNS, help="The column of vectors to map, if there are several."),
]
Size = Annotated[
    str | None,
    typer.Option(metavar="N|HxW", rich_help_panel=COLUMNS, help="Pixels to which images are resized: 64, or 64x48."),
]
Standardize = Annotated[
    bool | None,
    typer.Option(
        "--standardize/--no-standardize",
        help="Divide each column by its standard deviation.",
        show_default="if a few columns of a table outweigh all others",
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_one(METRICS),
        help=f"Distance between rows: {', '.join(METRICS)} (DATA has the distances).",
    ),
]
MetricKwds = Annotated[
    str | None, typer.Option(metavar="NAME=NUMBER", help="Parameters of the metric: p=3 of minkowski.", show_default="its own")
]
AllowExternal = Annotated[
    bool,
    typer.Option("--allow-external", help="Read the other files in which an HDF5 file says that its content lies."),
]
Device = Annotated[
    str, typer.Option(metavar="NAME", autocompletion=complete_one(DEVICES), help="Compute device: auto, cpu, cuda, cuda:1.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
Threads = Annotated[  # applied to every command that has it, in dre.cli
    int | None,
    typer.Option(metavar="N", min=1, help="Number of threads, at most.", show_default="one per core"),
]
