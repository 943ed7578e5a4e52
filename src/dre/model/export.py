"""The learned map as a file for other programs: ONNX, and programs of ``torch.export``.

Scaling, PCA front and encoder are inside, and the number of rows is free. What was written is compared with ``transform``
before the file gets its name.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import dre
from dre.atomic import atomic_write, check_absent
from dre.data.preparation import to_file
from dre.data.scaling import Scaling
from dre.model.fitted import Array, FittedMap, MapModule
from dre.model.probe import probe_rows
from dre.model.quiet import quiet
from dre.runtime.torch_state import plain_torch

INPUT, OUTPUT = "x", "embedding"  # names in the file
OPSET, LOWEST_OPSET = 18, 18  # torch writes no older one; runtimes since 2023 read it
DTYPES = ("float32", "float64", "uint8", "int32", "int64")  # of the rows that the file takes
TOLERANCE = 1e-4  # of a coordinate, and of its size where it is larger than 1
FAR = 1e3  # how much farther out than those of the fit some of the compared rows are
BEYOND = 1e20  # and so far out are others that float32 can't compute with them
MAX_BYTES = 2**31 - 2**20  # of an ONNX file: that is all its format can hold
INSTALL = "pip install 'deep-recursive-embedding[onnx]'"
EXAMPLE_ROWS = 3  # from which torch traces the module
USUAL, SINGLE = "rows around those of the fit", "a single row"
ORDINARY = (USUAL, SINGLE)  # nothing but their number can be what a module does not read
FIXES_ROWS = "fixes the number of rows, as a Python loop over them does: compute with all rows at once"


class ExportError(ValueError):
    """A map that can't be exported; the message says why."""


@dataclass(frozen=True)
class ExportJob:
    """What to export, and how.

    Parameters
    ----------
    fitted : FittedMap
    stage : int, optional
        Use the weights at the end of this stage; default: the last.
    opset : int, optional
        Version of ONNX's operators, for ONNX alone.
    dtype : str
        Type of the rows that the file takes.
    check : bool
        Whether to compare the file with ``transform``.
    feature_names : list of str, optional
        Names of the columns, which are stored in the file.

    A preparation stays outside: the file reads the rows that it gives. Its JSON is stored in an ONNX file.
    """

    fitted: FittedMap
    stage: int | None = None
    opset: int | None = None
    dtype: str = "float32"
    check: bool = True
    feature_names: list[str] | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r}: expected one of {', '.join(DTYPES)}")

    @property
    def metadata(self) -> dict[str, str]:
        """What a program needs to know about the file."""
        fitted = self.fitted
        preparation = {} if fitted.preparation is None else {"dre.preparation": json.dumps(to_file(fitted.preparation)[0])}
        return preparation | {
            "dre.version": dre.__version__,
            "dre.n_components": str(fitted.n_components),
            "dre.metric": fitted.scaling.metric,
            "dre.row_shape": json.dumps(list(fitted.shape)),
            "dre.feature_names": json.dumps(self.feature_names),
        }

    def module(self) -> MapModule:
        return self.fitted.module(self.stage, prepares=False).cpu()

    def example(self) -> Tensor:
        return _as_dtype(probe_rows(self.fitted.scaling)[:EXAMPLE_ROWS], self.dtype)


def write_onnx(path: str | os.PathLike[str], job: ExportJob, *, force: bool = False) -> None:
    """Write a map as an ONNX file, from an input ``x`` of any number of rows to an output ``embedding``."""
    _check_target(path, ".onnx")
    opset = _check_opset(job.opset)
    _require("onnx", "onnxscript")
    if job.check:
        _require("onnxruntime", otherwise="; with check=False it needs none")
    _write(path, lambda: _onnx_bytes(job, opset), _onnx_runner if job.check else None, job, force=force)


def write_program(path: str | os.PathLike[str], job: ExportJob, *, force: bool = False) -> None:
    """Write a map as a program that ``torch.export.load`` reads, in any process with torch and without this package."""
    if job.opset is not None:
        raise ValueError(f"opset={job.opset}: a program of torch.export has none; leave it out, or write a .onnx file")
    _check_target(path, ".pt2")
    _write(path, lambda: _program_bytes(job), _program_runner if job.check else None, job, force=force)


FORMATS = {".onnx": write_onnx, ".pt2": write_program}


def _check_target(path: str | os.PathLike[str], suffix: str) -> None:
    """Raise an error if the name is that of a folder, or of another format."""
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it, such as {Path(path) / f'map{suffix}'}")
    if Path(path).suffix.lower() != suffix:
        raise ValueError(f"{path}: the name must end in {suffix}, by which programs know the format")


def _write(
    path: str | os.PathLike[str],
    content: Callable[[], bytes],
    runner: Callable[[bytes], Callable[[Array], Array]] | None,
    job: ExportJob,
    *,
    force: bool,
) -> None:
    check_absent(path, force=force)
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"can't write the map to {path}: there is no folder {Path(path).parent}. Create it first.")
    _warn_of_rounding(job)
    _warn_of_preparation(job)
    with plain_torch():
        written = content()
        if runner is not None:
            _compare(runner(written), job)
    with atomic_write(path) as part:
        part.write_bytes(written)


# ONNX


def _check_opset(opset: int | None) -> int:
    if opset is None:
        return OPSET
    if isinstance(opset, bool) or not isinstance(opset, int | np.integer):
        raise TypeError(f"opset={opset!r}: expected a whole number, such as {OPSET}")
    if opset < LOWEST_OPSET:
        raise ValueError(
            f"opset={opset} is too old: the lowest that torch writes is {LOWEST_OPSET}, which onnxruntime reads since 1.14"
        )
    return int(opset)


def _require(*libraries: str, otherwise: str = "") -> None:
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise ImportError(f"the export to ONNX needs {library}: {INSTALL}{otherwise}")


def _onnx_bytes(job: ExportJob, opset: int) -> bytes:
    module = job.module()
    size = sum(tensor.nbytes for tensor in module.state_dict().values())
    if size > MAX_BYTES:
        raise ExportError(
            f"the weights take {size / 2**30:.1f} GiB, more than the 2 GiB of an ONNX file: write a .pt2 file for torch.export"
        )
    with quiet(), _as_export_error(job):
        program = torch.onnx.export(
            module,
            (job.example(),),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("n")},),
            input_names=[INPUT],
            output_names=[OUTPUT],
            opset_version=opset,
            verbose=False,
        )
        assert program is not None
        model: Any = program.model_proto
    found = next(each.version for each in model.opset_import if each.domain == "")
    if found != opset:
        raise ValueError(f"opset={opset}: this version of torch can't write it; use {OPSET}, or install a newer torch")
    _strip(model)
    for name, value in job.metadata.items():
        model.metadata_props.add(key=name, value=value)
    written: bytes = model.SerializeToString()
    return written


def _strip(model: Any) -> None:
    """Remove what torch notes for debugging, such as the paths of source files on this machine."""
    graph = model.graph
    for holder in (model, graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        del holder.metadata_props[:]
        holder.doc_string = ""


def _onnx_runner(content: bytes) -> Callable[[Array], Array]:
    import onnxruntime  # type: ignore[import-untyped, unused-ignore]

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; what it warns of is not for users of the map
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as problem:
        raise ExportError(
            f"onnxruntime {onnxruntime.__version__} can't open the exported map ({_first_line(problem)}): "
            f"pass opset={LOWEST_OPSET}, or check=False for another runtime"
        ) from problem

    def run(rows: Array) -> Array:
        y: Array = session.run([OUTPUT], {INPUT: rows})[0]
        return y

    return run


# torch.export


def _program_bytes(job: ExportJob) -> bytes:
    with quiet(), _as_export_error(job):
        program = torch.export.export(job.module(), (job.example(),), dynamic_shapes=({0: torch.export.Dim("n")},))
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)  # paths of this machine
        file = io.BytesIO()
        torch.export.save(program, file, extra_files={"dre.json": json.dumps(job.metadata)})
    return file.getvalue()


def _program_runner(content: bytes) -> Callable[[Array], Array]:
    with quiet():
        module = torch.export.load(io.BytesIO(content)).module()

    def run(rows: Array) -> Array:
        with torch.no_grad():
            y: Array = module(torch.from_numpy(rows)).numpy()
        return y

    return run


# What the file gives, and what transform gives


def _compare(run: Callable[[Array], Array], job: ExportJob) -> None:
    """Raise an ExportError if the file places rows elsewhere than ``transform``."""
    compared = _compared_rows(job)
    for name, rows in compared.items():
        expected = job.fitted.embed(rows, job.stage) if name == USUAL else _expected(job, rows)
        worst = _deviation(_run(run, rows, name), expected)
        if not worst <= TOLERANCE:
            raise ExportError(
                f"the exported map deviates from transform by {worst:.2g} of a coordinate on {name}, more than {TOLERANCE:g}; "
                "nothing was written. A module that draws at random, or branches on its values, can't be exported."
            )


def _run(run: Callable[[Array], Array], rows: Array, name: str) -> Array:
    """Run the exported map, or raise an ExportError that says what it can't read."""
    try:
        return run(rows)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as problem:  # of onnxruntime, or of the program of torch
        reason = f"its module {FIXES_ROWS}" if name in ORDINARY and len(rows) != EXAMPLE_ROWS else _first_line(problem)
        raise ExportError(f"the exported map can't read {len(rows)} rows ({name}): {reason}; nothing was written") from problem


def _expected(job: ExportJob, rows: Array) -> Array:
    """What ``transform`` gives, row by row if it refuses one; NaN for those that it refuses."""
    try:
        return job.fitted.embed(rows, job.stage)
    except ValueError:
        if len(rows) == 1:
            return np.full((1, job.fitted.n_components), np.nan, np.float32)
    return np.concatenate([_expected(job, rows[i : i + 1]) for i in range(len(rows))])


def _deviation(found: Array, expected: Array) -> float:
    """The largest deviation of a coordinate, of its size where it is larger than 1; infinite where only one is NaN."""
    if found.shape != expected.shape or (np.isnan(found) != np.isnan(expected)).any():
        return np.inf
    apart = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    return float(np.nan_to_num(apart, nan=0.0, posinf=np.inf).max())


def _compared_rows(job: ExportJob) -> dict[str, Array]:
    """Rows around those of the fit, and unusual ones, by name."""
    scaling = job.fitted.scaling
    around = probe_rows(scaling)
    middle = around.mean(0, keepdim=True)
    rows = {
        USUAL: around,
        SINGLE: around[:1],
        "rows far from those of the fit": middle + FAR * (around - middle),
        "rows of zeros": torch.zeros_like(around[:2]),
        "constant rows": torch.full_like(around[:2], float(around.mean())),
        "rows too far out for transform": middle + BEYOND * (around - middle),
    }
    compared = {name: _as_dtype(values, job.dtype).numpy() for name, values in rows.items()}
    return compared | ({"rows with NaN or infinity": _damaged(compared[USUAL])} if np.dtype(job.dtype).kind == "f" else {})


def _damaged(rows: Array) -> Array:
    """Rows of which each has one value that is not finite, and a last one as it was."""
    damaged = rows[:4].copy()
    damaged[:3].reshape(3, -1)[:, -1] = np.nan, np.inf, -np.inf
    return damaged


def _as_dtype(rows: Tensor, dtype: str) -> Tensor:
    """Convert rows to the type of the input; numbers beyond it become its largest."""
    kind: torch.dtype = getattr(torch, dtype)
    if kind.is_floating_point:
        limits = torch.finfo(kind)
        return rows.clamp(limits.min, limits.max).to(kind)
    least, most = torch.iinfo(kind).min, torch.iinfo(kind).max
    return rows.round().clamp(float(least), float(most) * (1 - 2**-53)).to(kind)


def _warn_of_rounding(job: ExportJob) -> None:
    """Warn if float32 rounds the columns of the fit to more than the tolerance, as it does dates in seconds."""
    rounding = float(torch.finfo(torch.float32).eps) / 2
    if job.dtype == "float32" and _offset_ratio(job.fitted.scaling) * rounding > TOLERANCE:
        warnings.warn(
            "the values of X are so large beside their spread that float32 rounds them too much. "
            "Export with dtype='float64', and pass float64 rows.",
            stacklevel=5,  # the line that called to_onnx
        )


def _warn_of_preparation(job: ExportJob) -> None:
    """Warn that the file takes other rows than ``transform``, if the model makes them from a table or from genes."""
    if (preparation := job.fitted.preparation) is not None:
        width = len(preparation.names_out)
        warnings.warn(
            f"the file takes rows of {width} numbers, which model.prepare(X) makes of what you have: the preparation "
            f"{preparation.kind!r} is not in it",
            stacklevel=5,
        )


def _offset_ratio(scaling: Scaling) -> float:
    """The largest mean of a column, in units of the spread by which it is divided."""
    if scaling.column_mean is not None and scaling.column_std is not None:
        return float((scaling.column_mean / scaling.column_std).abs().max())
    return float((scaling.mean / scaling.scale).abs().max()) if scaling.metric == "euclidean" else 0.0


# Errors and messages of torch


@contextmanager
def _as_export_error(job: ExportJob) -> Iterator[None]:
    """Re-raise what torch says about a module that it can't export, in a sentence or two."""
    try:
        yield
    except (MemoryError, OSError, ImportError):
        raise
    except Exception as problem:
        encoder = type(job.fitted.encoder).__name__
        if "Constraints violated" in str(problem):
            raise ExportError(f"the encoder {encoder} {FIXES_ROWS}") from problem
        raise ExportError(
            f"torch can't export the encoder {encoder}: {_reason(problem)}. Use operators that the format has, and no branches "
            "of Python on the values of rows."
        ) from problem


def _reason(problem: BaseException) -> str:
    """The operator that has no counterpart, or else the first line about the deepest cause."""
    texts = []
    at: BaseException | None = problem
    while at is not None:
        texts.append(str(at))
        at = at.__cause__
    for text in texts:
        if missing := re.search(r"No (?:ONNX function|decompositions?) found for <OpOverload\(op='([\w.:]+)'", text):
            return f"ONNX has no counterpart of its operator {missing[1]}"
        if "data-dependent" in text:
            lines = re.findall(r'File "(.+)", line (\d+), in ', text)
            return "it branches on the values of rows" + (f", in {lines[-1][0]}, line {lines[-1][1]}" if lines else "")
    return _first_line(texts[-1])


def _first_line(problem: object) -> str:
    return next((line.strip().rstrip(".") for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
