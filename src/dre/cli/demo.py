"""``dre demo``: the main commands on the digits that ship with scikit-learn, each shown as it would be typed."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dre.cli.data import Force
from dre.cli.wrong_use import WrongUseError

PLOT = "pip install 'deep-recursive-embedding[plot]'"


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the model, the places and the picture go.")
    ] = Path("dre-demo"),
    force: Force = False,
) -> None:
    """See what it does, on handwritten digits, in half a minute.

    Learns a map of 1,347 of them, and places 450 more on it. Needs no data and no network. Every command is shown as you would
    type it, with what it prints.

    **Examples:**

    - `dre demo`

    - `dre demo -o somewhere --force`
    """
    if output.exists() and (not output.is_dir() or (any(output.iterdir()) and not force)):
        raise WrongUseError(f"{output} is there already: pass --force to write over what is in it, or another --output")
    output.mkdir(parents=True, exist_ok=True)
    try:
        for say, command in _steps(output):
            typer.echo(f"\n{say}\n\n$ dre {shlex.join(command)}")
            _run([*command, *(["--force"] if force and "-o" in command else [])])
    finally:
        if not any(output.iterdir()):  # stopped before there was anything
            output.rmdir()
    typer.echo(f"\n{_next(output)}")


def _steps(folder: Path) -> list[tuple[str, list[str]]]:
    """What is done, and the words that do it."""
    model, places, picture = (str(folder / name) for name in ("digits.safetensors", "places.csv", "digits.png"))
    steps = [
        (
            "Learn a map of handwritten digits, 8 × 8 pixels each. Labels are for the scores: it learns without them.",
            ["fit", "digits", "-o", model, "--recipe", "fast", "--seed", "0", "--labels", "digit"],
        ),
        ("Place digits that it has not seen, by a forward pass.", ["transform", model, "digits:test", "-o", places]),
        ("How good is the map of those, after each stage?", ["evaluate", "digits:test", model, "--labels", "digit"]),
    ]
    if find_spec("matplotlib") is not None:
        steps.append(("Draw it.", ["plot", model, "digits:all", "-o", picture, "--colour", "digit"]))
    return steps


def _run(command: list[str]) -> None:
    from dre.cli import app

    code = app()(command, standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _next(folder: Path) -> str:
    model = shlex.quote(str(folder / "digits.safetensors"))
    draw = [] if find_spec("matplotlib") is not None else [f"{PLOT}    # for pictures: dre plot"]
    return "\n".join(
        [
            f"All of it is in {folder}. Go on with",
            "",
            *(
                f"    {line}"
                for line in (
                    *draw,
                    f"dre explore {model} digits:all --open    # the map as a page",
                    f"dre info {model}    # what the model is",
                    "dre fit your.csv -o your.safetensors    # your own data",
                    "dre --help",
                )
            ),
        ]
    )
