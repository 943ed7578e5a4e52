"""Device, precision, random state and whether Triton kernels can run: the only file that knows of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Runtime:
    """Where a run computes, and in which precision the encoder does; distances, targets and losses are never below float32."""

    device: torch.device
    precision: str = "float32"
    records: bool = False  # whether the steps of a training may be recorded and replayed

    @classmethod
    def on(cls, device: str | torch.device = "auto", precision: str = "auto") -> Runtime:
        chosen = resolve_device(device)
        if precision not in PRECISIONS:
            raise ValueError(f"precision={precision!r}; known: {', '.join(PRECISIONS)}")
        if precision == "auto":
            precision = "bfloat16" if chosen.type == "cuda" and _computes_in_bfloat16(chosen) else "float32"
        return cls(chosen, precision, records=chosen.type == "cuda")

    def autocast(self) -> AbstractContextManager[object]:
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def generator(self, seed: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(seed)

    def place(self, encoder: nn.Module) -> nn.Module:
        """Move the encoder; on a GPU convolutions want the channels last in memory."""
        encoder = encoder.to(self.device)
        return encoder.to(memory_format=torch.channels_last) if self.device.type == "cuda" else encoder  # type: ignore[call-overload]

    def __str__(self) -> str:
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else str(self.device)
        return f"{name}, {self.precision}"


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as problem:
        raise ValueError(f"device={device!r} is none that torch knows; use 'auto', 'cpu', 'cuda' or 'cuda:1'") from problem
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r}, but torch sees no CUDA device here; use device='cpu' or 'auto'")
    try:
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, NotImplementedError, AssertionError) as problem:
        raise ValueError(f"device={device!r} can't be used here ({problem}); use device='cpu' or 'auto'") from problem
    return chosen


def _computes_in_bfloat16(device: torch.device) -> bool:
    """Older cards can only emulate it, slowly."""
    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)


def available_bytes(device: str = "cpu") -> int | None:
    """The memory that is free there; None where that can't be told, and the allocation itself will."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None


def full_float32() -> AbstractContextManager[None]:
    """Float32 as it is meant: without the shortened products (tf32, autocast) that may have been allowed around it."""
    return _products("highest")


def tf32_products() -> AbstractContextManager[None]:
    """Products of float32 by the ten leading bits, where a GPU is quicker at those."""
    return _products("high")


@contextmanager
def _products(precision: str) -> Iterator[None]:
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = precision != "highest"
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions


class IsolatedRNG:
    """Torch's global random state, swapped for one of our own while a network is built or trained.

    Initialisation and dropout draw from the global state and take no generator; with this they neither depend on it nor
    disturb it.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._device = device
        with _restored(device):
            torch.default_generator.manual_seed(seed)
            if device.type == "cuda":
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(seed)
            self._state = _states(device)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with _restored(self._device):
            _set_states(self._device, self._state)
            try:
                yield
            finally:
                self._state = _states(self._device)


def _states(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def _set_states(device: torch.device, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)


@contextmanager
def _restored(device: torch.device) -> Iterator[None]:
    before = _states(device)
    try:
        yield
    finally:
        _set_states(device, before)


@cache
def has_triton() -> bool:
    """It comes with torch where torch computes on NVIDIA's GPUs."""
    return importlib.util.find_spec("triton") is not None


def triton_applies(x: Tensor) -> bool:
    """Cards before Ampere have no products of ten bits, nor bfloat16, which the kernels are made for."""
    return x.device.type == "cuda" and torch.version.hip is None and has_triton() and _is_new_enough(x.device)


@cache
def _is_new_enough(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= (8, 0)


def on_device_of(x: Tensor) -> AbstractContextManager[object]:
    """Triton launches on the current device, whichever that is; inside, it is the one that x lies on."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
