"""Atomic writes: files are written under a temporary name and then renamed; existing ones are overwritten on request alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_absent(path: str | os.PathLike[str], *, force: bool) -> None:
    """Raise a FileExistsError if the file exists and must not be overwritten.

    >>> check_absent("a file that does not exist", force=False)
    """
    if not force and Path(path).is_file():
        raise FileExistsError(f"{path} exists: pass force=True to overwrite it, or choose another name")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path; what was written there replaces ``path`` if the block ends without an error.

    The temporary file has the same name, since some writers choose their format by the suffix. It lies in a new folder on the
    same disk, so that the rename is atomic.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "scores.json")) as part:
    ...         _ = part.write_text("{}")
    ...         print(os.listdir(folder) == ["scores.json"])
    ...     print(os.listdir(folder))
    False
    ['scores.json']
    """
    path = Path(path)
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)) / path.name
    try:
        yield part
        os.chmod(part, 0o666 & ~_umask())  # some writers create files that only their owner can read
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
        part.parent.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
