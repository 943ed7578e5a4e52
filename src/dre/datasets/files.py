"""Files of datasets: local copies first, then the cache, then a download; checksums are verified before use.

The environment variables ``DRE_DATA`` and ``DRE_CACHE`` name the folder of local copies and the cache; ``DRE_OFFLINE``
forbids downloads. The cache also keeps arrays that take long to compute.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre.atomic import atomic_write
from dre.datasets.dataset import Array

DATA, CACHE, OFFLINE = "DRE_DATA", "DRE_CACHE", "DRE_OFFLINE"
INSTALL = "pip install 'deep-recursive-embedding[datasets]'"
TIMEOUT = 30  # seconds without an answer from a server

Folder = str | os.PathLike[str] | None


class DatasetNotFoundError(FileNotFoundError):
    """A file that neither exists nor can be downloaded; the message names its origin and where to put it."""


class CorruptFileError(ValueError):
    """A file that differs from the published one; the message says how, and the remedy."""


@dataclass(frozen=True)
class RemoteFile:
    """A published file and its checksum.

    Parameters
    ----------
    name : str
        File name, possibly with folders.
    subfolder : str
        Folder of the dataset inside a data folder and the cache.
    url : str
    checksum : str, default=""
        ``"md5:…"`` or ``"sha256:…"``; empty where none is published.
    checks_content : bool, default=False
        Whether the checksum is that of the decompressed content of a .gz file: headers of compressed copies differ.
    """

    name: str
    subfolder: str
    url: str
    checksum: str = ""
    checks_content: bool = False


def read_file(file: RemoteFile, folder: Folder = None) -> bytes:
    """Read the verified content of a file, decompressed if the checksum is that of the content."""
    path = locate(file, folder)
    try:
        return read_verified(path, file)
    except CorruptFileError:
        cache = cache_folder()
        if cache is None or cache not in path.parents:
            raise  # only our own cache may be repaired
        return read_verified(download(file, folder), file)


def locate(file: RemoteFile, folder: Folder = None) -> Path:
    """Return the path of a local copy, not verified, or download the file into the cache."""
    return find_first([file.name], file.subfolder, folder) or download(file, folder)


def find_first(names: Sequence[str], subfolder: str, folder: Folder = None) -> Path | None:
    """Return the first existing file or folder; all names are tried in one folder before the next."""
    paths = (each / name for each in search_folders(subfolder, folder) for name in names)
    return next((path for path in paths if path.exists()), None)


def search_folders(subfolder: str, folder: Folder = None) -> list[Path]:
    """Return the folders to search, in order: ``folder``, $DRE_DATA, the cache."""
    roots = [Path(root).expanduser().absolute() for root in (folder, os.environ.get(DATA) or None) if root is not None]
    if folder is not None and not roots[0].is_dir():
        raise DatasetNotFoundError(f"folder={str(folder)!r} does not exist: pass the folder that has the files, or None")
    cache = cache_folder()
    return [*(each for root in roots for each in (root / subfolder, root)), *([cache / subfolder] if cache else [])]


def cache_folder() -> Path | None:
    """Return $DRE_CACHE or the system's cache folder, which only pooch knows; None without either."""
    if os.environ.get(CACHE):
        return Path(os.environ[CACHE]).expanduser().absolute()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("dre"))


def download(file: RemoteFile, folder: Folder = None) -> Path:
    """Download a file into the cache, once for all processes; incomplete or wrong content never reaches the cache."""
    if os.environ.get(OFFLINE):
        raise not_found(file, folder, f"{OFFLINE} is set, so nothing is downloaded")
    try:
        import pooch
    except ImportError as problem:
        raise not_found(file, folder, f"pooch is needed to download it: {INSTALL}") from problem
    target = Path(cache_folder() or pooch.os_cache("dre")) / file.subfolder / file.name
    try:
        with file_lock(target):
            if not _is_intact(target, file):  # another process may have downloaded it in the meantime
                target.parent.mkdir(parents=True, exist_ok=True)
                fetch = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=2**16, timeout=TIMEOUT)
                with atomic_write(target) as part:
                    fetch(file.url, str(part), None)
                    read_verified(part, file, name=f"the content of {file.url}")
    except OSError as problem:  # includes the network errors of requests
        raise not_found(file, folder, f"the download failed: {type(problem).__name__}: {problem}") from problem
    return target


@contextmanager
def file_lock(target: Path) -> Iterator[None]:
    """Let one process or thread at a time create ``target``; the others wait, and should look for it again.

    Where locks are not available (without filelock, on some network drives, in a read-only folder) nobody waits. Work is
    then done twice, but `dre.atomic.atomic_write` keeps the files complete.
    """
    with ExitStack() as stack:
        with suppress(ImportError, OSError, NotImplementedError):
            from filelock import FileLock

            target.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(target.with_name(f".{target.name}.lock")))
        yield


def cached_arrays(name: str, settings: dict[str, Any], compute: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """Return the result of ``compute`` from the cache, or compute and store it.

    Missing and damaged cache files are computed again; of several processes, one computes and the others wait.

    Parameters
    ----------
    name : str
        Start of the name of the cache file.
    settings : dict
        Everything that the result depends on, as JSON: a digest of the input, options, versions. The cache file is
        named after it.
    compute : callable
        Returns arrays by name.
    """
    cache = cache_folder()
    if cache is None:
        return compute()
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    path = cache / "computed" / f"{name}-{key}.npz"
    with file_lock(path):
        arrays = _load_arrays(path)
        if arrays is None:
            arrays = compute()
            _store_arrays(path, arrays)
    return arrays


def _load_arrays(path: Path) -> dict[str, Array] | None:
    """Load a cache file, or return None if it is missing, truncated or fails its checksums."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def _store_arrays(path: Path, arrays: dict[str, Array]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part:
            np.savez(part, **arrays)  # type: ignore[arg-type]  # numpy's stubs take the arrays for allow_pickle
    except OSError as problem:
        message = f"{path} cannot be written ({problem}), so the result is computed every time; set {CACHE}"
        warnings.warn(message, stacklevel=3)


def _is_intact(path: Path, file: RemoteFile) -> bool:
    try:
        read_verified(path, file)
    except (OSError, CorruptFileError):
        return False
    return True


def read_verified(path: Path, file: RemoteFile, name: str = "") -> bytes:
    """Read a copy of a file and verify it; errors call it ``name``, by default its path."""
    name = name or str(path)
    content = path.read_bytes()
    if file.checks_content:
        content = decompress(content, name, file.url)
    if file.checksum:
        algorithm, _, expected = file.checksum.partition(":")
        found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
        if found != expected:
            of = " of its content" if file.checks_content else ""
            raise corrupt(name, f"the {algorithm}{of} is {found}, expected {expected}", file.url)
    elif file.name.endswith(".zip"):
        _check_zip(content, name, file.url)
    return content


def _check_zip(content: bytes, name: str, url: str) -> None:
    """Verify the checksums inside a zip, for files without a published one."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            bad = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as problem:
        raise corrupt(name, f"it is not a complete zip file ({problem})", url) from problem
    if bad is not None:
        raise corrupt(name, f"the checksum of {bad} inside it is wrong", url)


def decompress(content: bytes, name: str, url: str = "") -> bytes:
    """Decompress the content of a .gz file."""
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as problem:  # not gzip, truncated, damaged
        raise corrupt(name, f"it cannot be decompressed ({problem})", url) from problem


def corrupt(name: str | Path, reason: str, url: str = "") -> CorruptFileError:
    """Build the error for a file that differs from the published one."""
    remedy = f"Delete it and download it again from {url}" if url else "Delete it and download it again"
    return CorruptFileError(f"{name} is damaged or not the published file: {reason}. {remedy}.")


def not_found(file: RemoteFile, folder: Folder, reason: str) -> DatasetNotFoundError:
    """Build the error for a file that neither exists nor can be downloaded."""
    searched = "".join(f"\n    {each}" for each in search_folders(file.subfolder, folder))
    data = os.environ.get(DATA)
    note = f"{DATA}={data} is not a folder\n" if data and not Path(data).expanduser().is_dir() else ""
    return DatasetNotFoundError(
        f"{file.name} is missing, and {reason}\n"
        f"It comes from {file.url}\n"
        f"Searched:{searched or ' no folder'}\n{note}"
        f"Put it into one of these folders, or pass its folder: load(..., folder=...) or the environment variable {DATA}."
    )
