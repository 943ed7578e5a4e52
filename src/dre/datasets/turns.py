"""One process at a time makes what several want: the others wait, and find it made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def turn(target: Path) -> Iterator[None]:
    """Held by one at a time for each target, which may have appeared while we waited: look again inside.

    The lock is the operating system's and ends with the process that holds it, however that ends; the empty file beside the
    target means nothing by itself. Where there is no such lock (on Windows, on some network drives, in a folder that can't be
    written to) nobody waits, and what is done twice costs time alone: ``dre.datasets.files.whole`` replaces a target at once.
    """
    with ExitStack() as held:
        with suppress(ImportError, OSError):
            import fcntl

            target.parent.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context(target.with_name(f".{target.name}.lock").open("ab"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            # To close the file is not enough: a process that was forked meanwhile has it open too.
            held.callback(fcntl.flock, lock, fcntl.LOCK_UN)
        yield
