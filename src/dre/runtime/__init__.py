"""Device, precision of matrix products, Triton support and random streams."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor, nn

from dre.runtime.float64 import float64_device
from dre.runtime.host_memory import free_bytes
from dre.runtime.isolated_rng import IsolatedRNG as IsolatedRNG
from dre.runtime.opaque import is_opaque as is_opaque
from dre.runtime.torch_state import FULL, TF32, matmul_precision
from dre.runtime.window import Window

PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Runtime:
    """Device and precision of a run.

    Parameters
    ----------
    device : torch.device
    precision : {"float32", "bfloat16"}
        Of the encoder during training. Distances, targets and losses are always computed in float32 or float64.
    captures : bool
        Whether training steps may be captured as CUDA graphs.
    """

    device: torch.device
    precision: str = "float32"
    captures: bool = False

    @classmethod
    def on(cls, device: str | torch.device = "auto", precision: str = "auto") -> Runtime:
        """Resolve ``"auto"``: a GPU if there is one, and bfloat16 where the GPU computes in it natively."""
        chosen = resolve_device(device)
        if precision not in PRECISIONS:
            raise ValueError(f"precision={precision!r}; known: {', '.join(PRECISIONS)}")
        if precision == "auto":
            precision = "bfloat16" if chosen.type == "cuda" and _has_bfloat16(chosen) else "float32"
        return cls(chosen, precision, captures=chosen.type == "cuda")

    def autocast(self) -> AbstractContextManager[object]:
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def generator(self, seed: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(seed)

    def place(self, encoder: nn.Module) -> nn.Module:
        """Move the encoder to the device; on a GPU with channels last, which its convolutions prefer."""
        encoder = encoder.to(self.device)
        return encoder.to(memory_format=torch.channels_last) if self.device.type == "cuda" else encoder  # type: ignore[call-overload]

    def __str__(self) -> str:
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else str(self.device)
        return f"{name}, {self.precision}"


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """Return a device that works, or raise a ValueError that names the alternatives."""
    if device == "auto":
        has_gpu = torch.cuda.is_available()
        if has_gpu:
            _check_fork(device)
        return torch.device("cuda" if has_gpu else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as problem:
        raise ValueError(f"device={device!r} is unknown to torch; use 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'") from problem
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={str(device)!r}, but torch finds no CUDA device; use device='cpu' or 'auto'")
    if chosen.type == "cuda":
        _check_fork(device)
    try:
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, NotImplementedError, AssertionError, ImportError) as problem:
        reason = _why_unusable(chosen, problem)
        raise ValueError(f"device={str(device)!r} can't be used here ({reason}); use device='cpu' or 'auto'") from problem
    return chosen


def _why_unusable(device: torch.device, problem: Exception) -> str:
    """Say in one line why a device can't be used: torch appends a list of all its backends."""
    if device.type == "mps" and not torch.backends.mps.is_available():
        return "torch finds no Apple GPU"
    return str(problem).partition("\n")[0].partition(". ")[0]


def _check_fork(device: str | torch.device) -> None:
    """Raise a ValueError in a child that was forked after its parent has used a GPU: CUDA does not work there."""
    if getattr(torch.cuda, "_is_in_bad_fork", lambda: False)():
        raise ValueError(
            f"device={str(device)!r}: a GPU can't be used in a process that was forked from one that uses it. "
            "Start workers by multiprocessing.get_context('spawn') or joblib's backend 'loky', or pass device='cpu'."
        )


def available_bytes(device: str = "cpu") -> int | None:
    """Free memory of the device in bytes, within the limits of this process; None if the system does not say."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    return free_bytes()


def _has_bfloat16(device: torch.device) -> bool:
    """Older cards emulate it, slowly."""
    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)


@contextmanager
def full_float32() -> Iterator[None]:
    """Switch off tf32 and autocast."""
    with matmul_precision(FULL), _without_autocast():
        yield


@contextmanager
def tf32_products() -> Iterator[None]:
    """Allow products of the ten leading bits, which GPUs compute several times as fast, unless a thread needs them in full."""
    with matmul_precision(TF32), _without_autocast():
        yield


@contextmanager
def _without_autocast() -> Iterator[None]:
    with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
        yield


@cache
def has_triton() -> bool:
    """It comes with torch builds for NVIDIA GPUs."""
    return importlib.util.find_spec("triton") is not None


@cache
def has_numba() -> bool:
    """It compiles kernels for a CPU; without it the same sums are computed by torch."""
    return importlib.util.find_spec("numba") is not None


def triton_applies(x: Tensor) -> bool:
    """Whether the kernels run on the device of x: they need tf32 and bfloat16, so Ampere or newer."""
    return x.device.type == "cuda" and torch.version.hip is None and has_triton() and _is_ampere(x.device)


@cache
def _is_ampere(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= (8, 0)


def on_device_of(x: Tensor) -> AbstractContextManager[object]:
    """Make the device of x current: Triton launches kernels on the current device."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


@dataclass(frozen=True)
class RandomStreams:
    """Random numbers addressed by seed, purpose, stage, epoch and rank.

    A stream depends on its address alone, not on what was drawn before, so that any epoch can be entered from the outside.

    >>> streams = RandomStreams(0, torch.device("cpu"))
    >>> a, b = (streams.generator("batches", epoch=7) for _ in range(2))
    >>> torch.rand(1, generator=a) == torch.rand(1, generator=b)
    tensor([True])
    """

    seed: int
    device: torch.device
    stage: int = 0
    rank: int = 0
    window: Window | None = None  # of rows on a disk; None: rows in any order

    @property
    def in_float64(self) -> RandomStreams:
        """The same streams where float64 can be drawn."""
        return replace(self, device=float64_device(self.device))

    def of_stage(self, stage: int) -> RandomStreams:
        return replace(self, stage=stage)

    def seed_of(self, purpose: str, epoch: int = 0) -> int:
        address = f"{self.seed}/{purpose}/{self.stage}/{epoch}" + (f"/{self.rank}" if self.rank else "")
        return int.from_bytes(hashlib.sha256(address.encode()).digest()[:8], "little") >> 1  # torch takes 63 bits

    def generator(self, purpose: str, epoch: int = 0) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(self.seed_of(purpose, epoch))

    def order(self, n: int, purpose: str, epoch: int = 0) -> Tensor:
        """Return a random order of n rows; of rows on a disk, one that reads it nearly in sequence."""
        if self.window is not None:
            return self.window.order(n, self.in_float64.generator(purpose, epoch)).to(self.device)
        generator = self.generator(purpose, epoch)
        return torch.randperm(n, generator=generator, device=generator.device)

    def isolated(self, purpose: str, epoch: int = 0, *, exchange: bool = False) -> IsolatedRNG:
        return IsolatedRNG(self.seed_of(purpose, epoch), self.device, exchange=exchange)
