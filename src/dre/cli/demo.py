"""``dre demo``: run the main commands on the digits dataset of scikit-learn, and show each as typed."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dre.cli.echo import echo
from dre.cli.options import Force, UsageError

PLOT = "pip install 'deep-recursive-embedding[plot]'"


def demo(
    context: typer.Context,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the model, the embedding and the figure.")
    ] = Path("dre-demo"),
    force: Force = False,
) -> None:
    """Run the main commands on handwritten digits, in less than half a minute.

    Fits a model to 1,347 digits and embeds 450 others. Needs no data and no network. Each command is printed as you would type
    it, followed by its output.

    **Examples:**

    - `dre demo`

    - `dre demo -o somewhere --force`
    """
    if output.exists() and (not output.is_dir() or (any(output.iterdir()) and not force)):
        raise UsageError(f"{output} already exists: pass --force to overwrite its files, or another --output")
    output.mkdir(parents=True, exist_ok=True)
    try:
        for description, command in _steps(output):
            echo(f"\n{description}\n\n$ dre {shlex.join(command)}")
            _run(context, [*command, *(["--force"] if force and "-o" in command else [])])
    finally:
        if not any(output.iterdir()):  # interrupted before the first file
            output.rmdir()
    echo(f"\n{_next_steps(output)}")


def _steps(folder: Path) -> list[tuple[str, list[str]]]:
    """A description of each step, and its command."""
    model, embedding, figure = (str(folder / name) for name in ("digits.safetensors", "embedding.csv", "digits.png"))
    steps = [
        (
            "Fit a model to handwritten digits of 8 × 8 pixels. The labels are only used for the scores.",
            ["fit", "digits", "-o", model, "--recipe", "fast", "--seed", "0", "--labels", "digit"],
        ),
        ("Embed the digits of the test set.", ["transform", model, "digits:test", "-o", embedding]),
        ("Score the map of the test set after each stage.", ["evaluate", "digits:test", model, "--labels", "digit"]),
    ]
    if find_spec("matplotlib") is not None:
        steps.append(("Draw the map of all digits.", ["plot", model, "digits:all", "-o", figure, "--color", "digit"]))
    return steps


def _run(context: typer.Context, command: list[str]) -> None:
    code = context.find_root().command.main(command, prog_name="dre", standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _next_steps(folder: Path) -> str:
    model = shlex.quote(str(folder / "digits.safetensors"))
    steps = {
        f"dre explore {model} digits:all --open": "open the map in a browser",
        f"dre info {model}": "describe the model",
        "dre fit your.csv -o your.safetensors": "fit your own data",
        "dre --help": "see all commands",
    }
    if find_spec("matplotlib") is None:
        steps = {PLOT: "needed for dre plot", **steps}
    width = max(map(len, steps))
    lines = [f"    {command:<{width}s}  # {purpose}" for command, purpose in steps.items()]
    return "\n".join([f"All files are in {folder}. Next steps:", "", *lines])
