"""The ``dre`` command line: one module per command."""

from __future__ import annotations

import functools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from dre.cli.exit_codes import INTERRUPTED, USAGE_ERROR

PASSIVE = ("OMP_WAIT_POLICY", "passive")  # threads of libraries that wait for each other leave their cores to others
PACKAGE, TORCH = Path(__file__).parents[1], "Triggered internally at"  # which torch adds to its warnings
STOPPED = "interrupted by Ctrl-C; no incomplete file is left"
WITH_REMEDY = (ValueError, TypeError, OSError, ImportError, MemoryError)  # errors whose message is written for users

HELP = """Deep Recursive Embedding: two-dimensional maps of high-dimensional data, computed by a neural network.

The network is a model that embeds new rows as well. DATA is a file (.npy, .npz, .csv, .tsv, .xlsx, .jsonl, .arrow, .parquet,
.h5, .h5ad, .zarr), a folder of images, or the name of a dataset. MAP is a model, or a file of coordinates.
"""
EPILOG = """**Start here:**

- `dre demo`

- `dre fit cells.csv -o cells.safetensors`

- `dre transform cells.safetensors new.csv -o embedding.csv`

`dre fit --help` and the help of every other command show examples. Existing files are only overwritten with --force. Ctrl-C
never leaves an incomplete file.

**Exit codes:** 0 success; 1 the run failed; 2 usage error, nothing was computed; 130 interrupted by Ctrl-C; 143 and 129
stopped by SIGTERM and SIGHUP after a checkpoint was written.
"""


def app() -> typer.Typer:
    """All commands, in the order of a typical workflow."""
    from dre.cli.compare import compare
    from dre.cli.demo import demo
    from dre.cli.evaluate import evaluate
    from dre.cli.explore import explore
    from dre.cli.export import export
    from dre.cli.fit import fit
    from dre.cli.info import info
    from dre.cli.options import global_options
    from dre.cli.plot import plot
    from dre.cli.transform import transform

    panels: dict[str, list[Callable[..., None]]] = {
        "Fit and transform": [demo, fit, transform, info, export],
        "Visualize": [explore, plot],
        "Evaluate": [evaluate, compare],
    }
    application = typer.Typer(
        help=HELP,
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(global_options)
    for panel, commands in panels.items():
        for command in commands:
            application.command(rich_help_panel=panel)(_runnable(command))
    return application


def main() -> None:
    """Entry point of ``dre``. Prints an error with its remedy instead of a traceback, which --debug shows."""
    from dre.cli.options import DEBUG, UsageError
    from dre.progress.printable import printable

    os.environ.setdefault(*PASSIVE)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _Warnings()  # type: ignore[assignment]
            app()()
    except BrokenPipeError:  # the reader has seen enough, as in `dre transform … -o - | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is written when the program ends
        sys.exit(1)
    except Exception as problem:
        if os.environ.get(DEBUG):
            raise
        rank = "" if _rank() is None else f", rank {_rank()}"
        if isinstance(problem, UsageError) and _rank() not in (None, "0"):
            sys.exit(USAGE_ERROR)  # all ranks find the same
        print(f"dre{rank}: {printable(_message(problem))}", file=sys.stderr)
        sys.exit(USAGE_ERROR if isinstance(problem, UsageError) else 1)


def _rank() -> str | None:
    """The number of this process among those that torchrun has started; None if it is the only one."""
    is_one_of_several = "MASTER_ADDR" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"
    return os.environ.get("RANK") if is_one_of_several else None


def _runnable(command: Callable[..., None]) -> Callable[..., None]:
    """Run a command with its progress shown and its threads limited.

    Ctrl-C becomes one line and an exit code. Files need no cleanup: they are written atomically.
    """

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        from dre.progress.display import muted, shown

        is_first = _rank() in (None, "0")  # of several ranks, one tells what they do
        try:
            with (
                shown(verbose=is_first),
                nullcontext() if is_first else muted(),
                _limited(options.get("threads")),
            ):
                command(*arguments, **options)
        except KeyboardInterrupt:
            typer.echo(f"\ndre: {STOPPED}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except SystemExit as stop:
            if name := getattr(stop, "signal", None):
                typer.echo(f"dre: stopped by {name} after a checkpoint was written; --resume goes on there", err=True)
            raise

    return run


def _limited(threads: int | None) -> AbstractContextManager[None]:
    from dre.progress.activity import activity

    with activity("loading"), _ending_at_once():  # torch and others, which can take seconds
        import dre.io.readers
        import dre.model.estimator  # noqa: F401 - what every command needs
        from dre.runtime.threads import at_most_threads
    return at_most_threads(threads)


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process: libraries that are being loaded may swallow a KeyboardInterrupt."""

    def end(number: int, frame: FrameType | None) -> None:
        os.write(sys.stderr.fileno(), f"\ndre: {STOPPED}\n".encode())
        os._exit(INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored in the background of a shell, or set by a program
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Warnings:
    """Prints the warnings of this package, each text once. Those of libraries are not written for users."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(self, message: Warning | str, category: type[Warning], filename: str, *where: Any) -> None:
        from dre.cli.options import name_options
        from dre.progress.display import say

        # Our own name the line that called us, which is a line of a command; torch's can do so too.
        ours = category is UserWarning and Path(filename).is_relative_to(PACKAGE) and TORCH not in str(message)
        if ours and str(message) not in self._printed:
            self._printed.add(str(message))
            say(f"dre: {name_options(str(message))}")


def _message(problem: Exception) -> str:
    """The message of an error with a remedy; else the error's type and first line, and how to see the traceback."""
    from dre.cli.options import DEBUG, name_options
    from dre.runtime.ranks import RankError

    if isinstance(problem, (*WITH_REMEDY, RankError)) and str(problem):
        return name_options(str(problem))
    first_line = next((line for line in str(problem).splitlines() if line.strip()), "")
    kind = type(problem).__name__
    return f"{kind}{f': {first_line}' if first_line else ''}\nRun dre --debug, or set {DEBUG}=1, to see the traceback."
