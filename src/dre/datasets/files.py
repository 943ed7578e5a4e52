"""Where the files of a dataset are: in a folder of yours, in the cache, or where they were published; checked before use."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dre.datasets.turns import turn

DATA, CACHE, OFFLINE = "DRE_DATA", "DRE_CACHE", "DRE_OFFLINE"
INSTALL = "pip install 'deep-recursive-embedding[datasets]'"
PATIENCE = 30  # seconds that a server may be silent

Folder = str | os.PathLike[str] | None


class DatasetNotFoundError(FileNotFoundError):
    """A file that is nowhere: says which, where it would come from and where to put it."""


class CorruptFileError(ValueError):
    """A file that is not what was published: says which, how that was seen and what to do."""


@dataclass(frozen=True)
class File:
    """A published file, and how to know that a copy of it is right."""

    name: str  # may have folders of its own in it
    subfolder: str  # of a data folder and of the cache
    url: str
    checksum: str = ""  # "md5:…" or "sha256:…"; empty where none was published
    inside: bool = False  # the checksum is of what a .gz holds: the headers of compressed copies differ


def read(file: File, folder: Folder = None) -> bytes:
    """The content, with the checksum verified; what a .gz holds where the checksum is of that."""
    path = find(file, folder)
    try:
        return verified(path, file)
    except CorruptFileError:
        cache = cache_folder()
        if cache is None or cache not in path.parents:
            raise
        return verified(download(file, folder), file)  # the cache is ours to mend


def find(file: File, folder: Folder = None) -> Path:
    """A copy as it lies there, unverified, or downloaded into the cache."""
    return first([file.name], file.subfolder, folder) or download(file, folder)


def first(names: Sequence[str], subfolder: str, folder: Folder = None) -> Path | None:
    """The first of these, files or folders, that is in any of the places; the place counts more than the name."""
    for place in places(subfolder, folder):
        for name in names:
            if (place / name).exists():
                return place / name
    return None


def places(subfolder: str, folder: Folder = None) -> list[Path]:
    """The folders that are looked into, in this order."""
    given = [Path(named).expanduser().absolute() for named in (folder, os.environ.get(DATA) or None) if named is not None]
    if folder is not None and not given[0].is_dir():
        raise DatasetNotFoundError(f"folder={str(folder)!r} is no folder that exists: give one that has the files, or None")
    cache = cache_folder()
    return [*(place for root in given for place in (root / subfolder, root)), *([cache / subfolder] if cache else [])]


def cache_folder() -> Path | None:
    """$DRE_CACHE, or the system's folder for such things; None where pooch, which knows it, is not installed."""
    if os.environ.get(CACHE):
        return Path(os.environ[CACHE]).expanduser().absolute()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("dre"))


def download(file: File, folder: Folder = None) -> Path:
    """Into the cache, once where several processes ask; what arrives incomplete or wrong never gets there."""
    if os.environ.get(OFFLINE):
        raise not_found(file, folder, f"{OFFLINE} is set: nothing is downloaded")
    try:
        import pooch
    except ImportError as problem:
        raise not_found(file, folder, f"pooch, which would download it, is missing: {INSTALL}") from problem
    target = Path(cache_folder() or pooch.os_cache("dre")) / file.subfolder / file.name
    try:
        with turn(target):
            if not _is_whole(target, file):
                fetch = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=2**16, timeout=PATIENCE)
                with whole(target) as arriving:
                    fetch(file.url, str(arriving), None)
                    verified(arriving, file, said=f"what {file.url} gave")
    except OSError as problem:  # of the network too: requests' errors are OSErrors
        raise not_found(file, folder, f"the download failed: {type(problem).__name__}: {problem}") from problem
    return target


def _is_whole(path: Path, file: File) -> bool:
    """Whether it is there and right: another process may have brought it while this one waited for its turn."""
    try:
        verified(path, file)
    except (OSError, CorruptFileError):
        return False
    return True


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Where to write what is to become the target, which it does if all goes well: it is there as a whole or not at all.

    Every caller has a place of its own to write to, and the last to finish wins.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{uuid.uuid4().hex}-{target.name}")
    try:
        yield partial
        _replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _replace(partial: Path, target: Path) -> None:
    try:
        os.replace(partial, target)
    except PermissionError:  # Windows, where another process has it open: it has just been put there
        if not target.exists():
            raise


def verified(path: Path, file: File, said: str = "") -> bytes:
    """The content of a copy, if it is what was published; ``said`` is what an error calls it."""
    said = said or str(path)
    content = path.read_bytes()
    if file.inside:
        content = unpacked(content, said, file.url)
    if file.checksum:
        kind, _, expected = file.checksum.partition(":")
        found = hashlib.new(kind, content, usedforsecurity=False).hexdigest()
        if found != expected:
            of = " of what it holds" if file.inside else ""
            raise corrupt(said, f"its {kind}{of} is {found}, expected {expected}", file.url)
    elif file.name.endswith(".zip"):
        _check_zip(content, said, file.url)
    return content


def _check_zip(content: bytes, said: str, url: str) -> None:
    """By the checksums in it, all that there is where none was published."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            bad = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as problem:
        raise corrupt(said, f"it is no whole zip ({problem})", url) from problem
    if bad is not None:
        raise corrupt(said, f"the checksum of {bad} in it is wrong", url)


def unpacked(content: bytes, said: str, url: str = "") -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as problem:  # not gzip at all, truncated, damaged
        raise corrupt(said, f"it can't be decompressed ({problem})", url) from problem


def corrupt(said: str | Path, why: str, url: str = "") -> CorruptFileError:
    remedy = f"Delete it and get it again from {url}" if url else "Delete it and get it again"
    return CorruptFileError(f"{said} is damaged or not the published file: {why}. {remedy}.")


def not_found(file: File, folder: Folder, why: str) -> DatasetNotFoundError:
    looked = "".join(f"\n    {place}" for place in places(file.subfolder, folder))
    named = os.environ.get(DATA)
    wrong = f"{DATA}={named} is no folder that exists\n" if named and not Path(named).expanduser().is_dir() else ""
    return DatasetNotFoundError(
        f"{file.name} is missing, and {why}\n"
        f"It comes from {file.url}\n"
        f"Looked in:{looked or ' no folder'}\n{wrong}"
        f"Put it into one of these, or name the folder that has it: load(..., folder=...) or the environment variable {DATA}."
    )
