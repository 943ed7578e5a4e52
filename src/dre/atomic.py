"""Atomic writes: files are written under a temporary name and then renamed; existing ones are overwritten on request alone.

A link is followed: its target is replaced or created, and the link stays. The file is on disk before it gets its name. What
killed processes have left behind is removed by the next write to the same folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: what killed processes leave stays there
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"  # suffix of a file in every temporary folder, locked as long as its process lives
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EBADF)  # locks, and fsync of a folder


class WriteError(OSError):
    """A file that cannot be written; the message names it and the remedy."""


def check_absent(path: str | os.PathLike[str], *, force: bool) -> None:
    """Raise a FileExistsError if the file exists and must not be overwritten.

    >>> check_absent("a file that does not exist", force=False)
    """
    if not force and Path(path).is_file():
        raise FileExistsError(f"{path} exists: pass force=True to overwrite it, or choose another name")


def link_target(path: str | os.PathLike[str]) -> Path:
    """The file that is written for ``path``: the target of a link, even if it does not exist yet; else the path itself."""
    target = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
    if os.path.islink(target):
        raise WriteError(f"{path} is a link that leads back to itself: remove it, or choose another name")
    return target


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path; what was written there replaces ``path`` if the block ends without an error.

    The temporary file has the same name, since some writers choose their format by the suffix. It lies in a new folder on the
    same disk, so that the rename is atomic. If ``path`` is a link, its target is replaced and the link stays.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "scores.json")) as part:
    ...         _ = part.write_text("{}")
    ...         print(os.listdir(folder) == ["scores.json"])
    ...     print(os.listdir(folder))
    False
    ['scores.json']
    """
    path, target = Path(path), link_target(path)
    remove_abandoned(target.parent)
    with _full_disk_named(path), _temporary_folder(target) as folder:
        part = folder / path.name
        yield part
        os.chmod(part, 0o666 & ~_umask())  # some writers create files that only their owner can read
        _sync(part)
        os.replace(part, target)
        _sync(target.parent)


@contextmanager
def _full_disk_named(path: Path) -> Iterator[None]:
    """Name the file and the remedy where libraries only say that there is no space, each in its own kind of error."""
    try:
        yield
    except Exception as problem:
        reason = next((os.strerror(code) for code in FULL if code == getattr(problem, "errno", None)), None)
        reason = reason or next((os.strerror(code) for code in FULL if os.strerror(code) in str(problem)), None)
        if reason is None:
            raise
        raise WriteError(f"{path} cannot be written: {reason.lower()}; free some space, or choose another folder") from problem


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary folders that killed processes of this user have left; those of living processes are locked."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder: Path) -> None:
    with suppress(OSError):
        if folder.stat().st_uid != os.geteuid():
            return
        files = list(folder.glob(f"*{LOCK}"))
        if not files:
            folder.rmdir()  # fails unless it is empty; its process then makes another one
            return
        lock = os.open(files[0], os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if its process lives
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


@contextmanager
def _temporary_folder(target: Path) -> Iterator[Path]:
    """A new folder beside the target. It is locked until it is gone, or until this process ends."""
    folder, lock = _new_folder(target)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _new_folder(target: Path) -> tuple[Path, int | None]:
    """A folder and the descriptor of its lock."""
    while True:
        try:
            folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}.", suffix=_mark(), dir=target.parent))
        except OSError as problem:
            if problem.errno in FULL:
                raise
            reason = os.strerror(problem.errno or errno.EIO).lower()
            remedy = "choose a folder that exists and can be written to"
            raise WriteError(f"{target} cannot be written: {reason}; {remedy}") from problem
        if fcntl is None:
            return folder, None
        try:
            return folder, _lock(folder / f"{folder.name}{LOCK}")
        except (FileNotFoundError, BlockingIOError):
            continue  # another process took the folder for abandoned before it was locked
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _lock(file: Path) -> int:
    """Create and lock a file; on a file system without locks it stays unlocked, and nobody removes its folder."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with _unless_unsupported():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(file)  # fails if another process has removed it in between
    except BaseException:
        os.close(lock)
        raise
    return lock


@contextmanager
def _unless_unsupported() -> Iterator[None]:
    """Ignore what a file system cannot do."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in UNSUPPORTED:
            raise


def _mark() -> str:
    """End of the names of temporary folders; it tells the computer, since locks may not reach others that share a disk."""
    try:
        computer = Path("/etc/machine-id").read_text().strip()
    except OSError:
        computer = ""
    return f".dre-{hashlib.sha256(f'{platform.node()} {computer}'.encode()).hexdigest()[:12]}"


_TEMPORARY = re.compile(rf"\..+\.\w{{8}}{re.escape(_mark())}")


def _sync(path: Path) -> None:
    """Let a file or the names in a folder reach the disk, where the system supports it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return  # Windows opens no folders
    try:
        with _unless_unsupported():
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
