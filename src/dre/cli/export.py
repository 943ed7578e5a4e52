"""``dre export``: write a model as a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dre.cli.echo import echo
from dre.cli.options import EXPORT_TYPES, Force, UsageError, as_usage_error, complete_one


def export(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model written by `dre fit` or `DRE.save`.")
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="File for the map: .onnx, or .pt2 for `torch.export.load`."),
    ],
    stage: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Use the network as it was after this stage, counted from 0.", show_default="the last stage"
        ),
    ] = None,
    opset: Annotated[
        int | None, typer.Option(metavar="N", help="Version of ONNX's operators, 18 or newer.", show_default="18")
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(
            metavar="TYPE",
            autocompletion=complete_one(EXPORT_TYPES),
            help=f"Type of the rows that the file takes: {', '.join(EXPORT_TYPES)}.",
        ),
    ] = "float32",
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Compare the file with `dre transform`; if it deviates, write nothing.")
    ] = True,
    force: Force = False,
) -> None:
    """Write a model as ONNX, for programs without Python or torch, or as a program of torch.export.

    The file maps raw rows, x, to their coordinates, embedding: scaling and front are inside. The number of rows is free.

    **Examples:**

    - `dre export cells.safetensors -o cells.onnx`

    - `dre export photos.safetensors -o photos.onnx --dtype uint8`

    - `dre export cells.safetensors -o cells.pt2`
    """
    from dre.cli.map import load_model
    from dre.model.export import FORMATS, ExportError
    from dre.progress.activity import activity

    suffix = output.suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"-o {output}: the name must end in {' or '.join(FORMATS)}, which tells the format")
    if suffix != ".onnx" and opset is not None:
        raise UsageError(f"--opset {opset} is for .onnx files alone: leave it out")
    fitted = load_model(model, "cpu")
    with activity("exporting"):
        try:
            with as_usage_error(ValueError, TypeError, FileExistsError, FileNotFoundError, IsADirectoryError):
                if suffix == ".onnx":
                    fitted.to_onnx(output, stage=stage, opset=opset, dtype=dtype, check=check, force=force)
                else:
                    fitted.to_torch_export(output, stage=stage, dtype=dtype, check=check, force=force)
        except UsageError as problem:
            if isinstance(problem.__cause__, ExportError):  # not the user's options: the run failed
                raise problem.__cause__ from None
            raise
    checked = ", compared with transform" if check else ""
    echo(
        f"{output}, {output.stat().st_size / 2**20:.1f} MiB: x {_shape(fitted.row_shape_)} {dtype} to "
        f"embedding {_shape((fitted.n_components,))} float32{checked}"
    )


def _shape(row: tuple[int, ...]) -> str:
    """The shape of any number of rows.

    >>> _shape((28, 28))
    '(n, 28, 28)'
    """
    return f"(n, {', '.join(map(str, row))})"
