"""Checkpoints of a fit: files in a folder, from which it is resumed. Like model files they are safetensors, and run no code."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dre.atomic import atomic_write
from dre.data.fingerprint import HASH
from dre.model.digest import tensor_bytes

FORMAT = 1
HEADER = "dre checkpoint"
KEPT = 2  # files: the last one, and the one before in case the disk has damaged it
NAME = re.compile(r"checkpoint-(\d+)\.safetensors")
TENSOR = "$tensor"  # key of the number of a tensor, in place of the tensor


class CheckpointError(ValueError):
    """A checkpoint can't be used; the message says why."""


class _DamagedError(CheckpointError):
    """It is not what was written."""


@dataclass(frozen=True)
class Checkpoint:
    """What a fit needs to continue."""

    identity: dict[str, str]  # what has to be the same: data, parameters, versions
    run: dict[str, Any]  # ``Run.state_dict()``
    scaling: dict[str, Tensor]
    history: list[dict[str, Any]]
    stages: list[dict[str, Tensor]]  # weights at the end of each stage
    observers: list[dict[str, Any]]  # states of those that have one

    def check(self, identity: dict[str, str]) -> None:
        """Raise a CheckpointError that lists what differs from the fit that is about to begin."""
        names = [name for name in {**self.identity, **identity} if self.identity.get(name) != identity.get(name)]
        if names:
            lines = [_difference(name, self.identity.get(name, "none"), identity.get(name, "none")) for name in names]
            raise CheckpointError("is that of another fit:\n" + "\n".join(lines))


def _difference(name: str, saved: str, given: str) -> str:
    """Two values of one name; of texts with several lines, those that differ."""
    if saved.partition(HASH)[0] == given.partition(HASH)[0]:
        return f"- {name}: the values differ"
    theirs, ours = ([" ".join(line.split()) for line in text.splitlines()] for text in (saved, given))
    left = [line for line in theirs if line not in ours] or ["nothing"]
    right = [line for line in ours if line not in theirs] or ["nothing"]
    if len(left) > 1 or len(right) > 1:
        return "\n    ".join([f"- {name}: the checkpoint has", *left, "this fit has", *right])
    return f"- {name}: the checkpoint has {left[0]}; this fit has {right[0]}"


class CheckpointFolder:
    """A folder with the last checkpoints of one fit. No other process can use it at the same time.

    Parameters
    ----------
    path : path-like
        It is created if it does not exist. Other files in it are left alone.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as path, CheckpointFolder(path) as folder:
    ...     for _ in range(3):
    ...         folder.write(Checkpoint({}, {"steps": 5}, {}, [], [], []))
    ...     print(sorted(os.listdir(path)), folder.latest().run)
    ['checkpoint-000002.safetensors', 'checkpoint-000003.safetensors'] {'steps': 5}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: int | None = None

    def __enter__(self) -> Self:
        self.check_unused(resume=True)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK):
                raise PermissionError("it is read-only")
            self._lock = _lock(self.path)
        except BlockingIOError:
            raise CheckpointError(
                f"{self.path} is in use by another fit: wait for it to end, or choose another folder"
            ) from None
        except OSError as problem:
            raise CheckpointError(
                f"{self.path} can't hold checkpoints: {problem}. Choose a folder that can be written to."
            ) from None
        return self

    def __exit__(self, *problem: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def check_unused(self, *, resume: bool) -> None:
        """Raise an error if there are checkpoints that are not to be resumed; it may be called without opening the folder."""
        if self.path.exists() and not self.path.is_dir():
            raise CheckpointError(f"{self.path} can't hold checkpoints: it is not a folder. Choose another name.")
        if not resume and self.files():
            raise FileExistsError(
                f"{self.path} has checkpoints of an earlier fit: pass resume=True to continue it, or choose another folder"
            )

    def files(self) -> list[Path]:
        """Return the checkpoints, the last one first."""
        found = [(int(match[1]), path) for path in self.path.glob("*") if (match := NAME.fullmatch(path.name))]
        return [path for _, path in sorted(found, reverse=True)]

    def latest(self) -> Checkpoint | None:
        """Read the last checkpoint that is not damaged; None if there is none at all."""
        problems: list[str] = []
        for path in self.files():
            try:
                found = _read(path)
            except _DamagedError as damage:
                problems.append(str(damage))
                continue
            if problems:
                warnings.warn(f"{problems[0]}. The one before it, {path.name}, is used.", stacklevel=2)
            return found
        if problems:
            raise CheckpointError(f"{'; '.join(problems)}. Remove {self.path} to begin again.")
        return None

    def write(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint, and remove all but the last ones."""
        before = self.files()
        number = int(NAME.fullmatch(before[0].name)[1]) + 1 if before else 1  # type: ignore[index]
        _write(self.path / f"checkpoint-{number:06}.safetensors", checkpoint)
        for old in before[KEPT - 1 :]:
            old.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all checkpoints, and the folder if nothing else is in it."""
        for path in self.files():
            path.unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()


def _lock(folder: Path) -> int | None:
    """Lock a folder for this process, where the system can: the lock ends with the process."""
    try:
        import fcntl
    except ImportError:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # network disks without locks
        os.close(descriptor)
        return None
    return descriptor


def _write(path: Path, checkpoint: Checkpoint) -> None:
    tensors = _Tensors()
    content = {"format": FORMAT, "checkpoint": tensors.pack(vars(checkpoint)), "tensors": tensors.digests}
    text = json.dumps(content)
    header = {HEADER: json.dumps({"sha256": _digest(text.encode()), "content": text})}
    try:
        with atomic_write(path) as part:
            save_file(tensors.held, part, header)
    except SafetensorError as problem:
        raise OSError(f"{path} cannot be written: {problem}") from problem


def _read(path: Path) -> Checkpoint:
    with _as_checkpoint_error(path):
        with safe_open(path, framework="pt") as file:
            header = json.loads(file.metadata()[HEADER])
            held = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - no dict
        if _digest(header["content"].encode()) != header["sha256"]:
            raise _DamagedError("its digest is another")
        content = json.loads(header["content"])
        if content["format"] != FORMAT:
            raise CheckpointError(
                f"{path} has the format {content['format']}, this dre reads {FORMAT}: use the version that wrote it"
            )
        if {name: _digest(tensor_bytes(value)) for name, value in held.items()} != content["tensors"]:
            raise _DamagedError("the digest of a tensor is another")
        return Checkpoint(**_unpack(content["checkpoint"], held))


@contextmanager
def _as_checkpoint_error(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        if isinstance(problem, CheckpointError) and not isinstance(problem, _DamagedError):
            raise
        reason = str(problem)[:300] or type(problem).__name__
        raise _DamagedError(f"the checkpoint {path} is damaged: {reason}") from problem


class _Tensors:
    """Tensors of nested lists and dicts, each content once: weights are often those of a stage's start, or of its end."""

    def __init__(self) -> None:
        self.held: dict[str, Tensor] = {}
        self.digests: dict[str, str] = {}
        self._known: dict[tuple[str, torch.dtype, torch.Size], str] = {}

    def pack(self, value: Any) -> Any:
        """Return JSON with a number in place of each tensor."""
        if isinstance(value, Tensor):
            return {TENSOR: self._hold(value.detach().cpu().contiguous())}
        if isinstance(value, dict):
            return {str(key): self.pack(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.pack(item) for item in value]
        return value

    def _hold(self, value: Tensor) -> str:
        key = (_digest(tensor_bytes(value)), value.dtype, value.shape)
        if key not in self._known:
            name = self._known[key] = str(len(self.held))
            self.held[name], self.digests[name] = value.clone(), key[0]
        return self._known[key]


def _unpack(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {TENSOR}:
            return tensors[value[TENSOR]].clone()
        return {key: _unpack(item, tensors) for key, item in value.items()}
    return [_unpack(item, tensors) for item in value] if isinstance(value, list) else value


def _digest(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()
