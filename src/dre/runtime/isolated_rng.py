"""Random numbers of their own for code that draws from torch's global random state, such as initialization and dropout."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverloadPacket
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")
# Functions of torch, by name, that draw at random and take a generator.
TAKE_GENERATOR = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "binomial"}
TAKE_GENERATOR |= {"uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_"}
TAKE_GENERATOR |= {"trunc_normal_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"}
TAKE_GENERATOR |= {"orthogonal_", "sparse_", "_standard_gamma", "_sample_dirichlet"}
FILLED = {"rand_like": "uniform_", "randn_like": "normal_"}  # these do not take one, but fill a tensor with the same numbers
# Those that draw without one. The global state lends them its place, for the time of the call. So it does to all other
# operators of torch that are tagged as random.
WITHOUT_GENERATOR = {"rand_like", "randn_like", "randint_like", "rrelu", "rrelu_", "gumbel_softmax", "dropout"}
WITHOUT_GENERATOR |= {"dropout1d", "dropout2d", "dropout3d", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"}
WITHOUT_GENERATOR |= {"multi_head_attention_forward", "scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu"}
WITHOUT_GENERATOR |= {f"fractional_max_pool{d}d{more}" for d in (2, 3) for more in ("", "_with_indices")}


class IsolatedRNG:
    """Generators in place of torch's global random state, for one thread.

    What torch draws on a CPU inside this context comes from a generator, and the global state stays as it is: threads neither
    wait for each other nor disturb each other. Some functions take no generator; these exchange the global state for the
    time of a call, one thread after the other. The global state of a GPU is exchanged for the time of the context, since a GPU
    computes gradients in threads of its own.

    Parameters
    ----------
    seed : int
    device : torch.device
        Beside the CPU.
    exchange : bool, default=False
        Exchange the global state of the CPU for the time of the context too. Code that ``is_opaque`` needs it.

    Examples
    --------
    >>> rng = IsolatedRNG(0, torch.device("cpu"))
    >>> with rng():
    ...     weight = torch.nn.Linear(3, 1).weight
    """

    def __init__(self, seed: int, device: torch.device, *, exchange: bool = False) -> None:
        self._seed, self._device, self._exchange = seed, device, exchange
        self._generators: dict[str, torch.Generator] = {}

    @classmethod
    def of(cls, generator: torch.Generator, *, exchange: bool = False) -> IsolatedRNG:
        """Draw from this generator, on its device. That of a GPU also seeds the draws on the CPU, anew at each call."""
        seed = generator.initial_seed()
        if generator.device.type != "cpu":
            state = generator.get_state().numpy().tobytes()  # a draw would have to wait for the GPU
            seed = int.from_bytes(hashlib.sha256(state).digest()[:8], "little") >> 1  # torch takes 63 bits
            torch.empty(1, device=generator.device).uniform_(generator=generator)  # so that the next call has another state
        rng = cls(seed, generator.device, exchange=exchange)
        rng._generators[generator.device.type] = generator
        return rng

    @contextmanager
    def __call__(self) -> Iterator[None]:
        on_gpu = _in_place_of_global(self.generator(self._device)) if self._device.type == "cuda" else nullcontext()
        with on_gpu, _in_place_of_global(self.generator(CPU)) if self._exchange else _OwnGenerators(self.generator):
            yield

    @property
    def state(self) -> dict[str, Tensor]:
        """The states of its generators, by the kind of their device."""
        return {kind: generator.get_state() for kind, generator in self._generators.items()}

    @state.setter
    def state(self, states: dict[str, Tensor]) -> None:
        for kind, state in states.items():
            self.generator(self._device if kind == self._device.type else torch.device(kind)).set_state(state)

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the generator of a device."""
        if device.type not in self._generators:
            self._generators[device.type] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device.type]


class _OwnGenerators(TorchFunctionMode):
    """Passes a generator to every function of torch that would draw from the global state."""

    def __init__(self, generator: Callable[[torch.device], torch.Generator]) -> None:
        super().__init__()
        self._generator = generator

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if not may_draw(name):
            return func(*args, **kwargs)
        device = _device_of(args, kwargs)
        has_generator = kwargs.get("generator") is not None or any(isinstance(value, torch.Generator) for value in args)
        if has_generator or device.type != "cpu":
            return func(*args, **kwargs)
        generator = self._generator(device)
        before = generator.get_state() if _is_checkpointed() else None
        drawn = _draw(generator, name, func, args, kwargs)
        if before is not None and not torch.equal(before, generator.get_state()):
            raise RuntimeError(
                f"the encoder draws random numbers ({name}) inside of torch.utils.checkpoint, which could not draw the same "
                "again for the gradients: draw them outside of the part that is checkpointed"
            )
        return drawn


@cache
def may_draw(name: str) -> bool:
    """Whether functions of this name draw at random: those listed, and torch's operators with the tag."""
    if name in TAKE_GENERATOR or name in WITHOUT_GENERATOR:
        return True
    operator = getattr(torch.ops.aten, name.partition(".")[0], None)  # "bernoulli.default" is an overload
    if not isinstance(operator, OpOverloadPacket):
        return False
    return any(torch.Tag.nondeterministic_seeded in getattr(operator, each).tags for each in operator.overloads())


def _draw(
    generator: torch.Generator, name: str, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function that may draw at random, with the generator."""
    if name in TAKE_GENERATOR:
        return func(*args, **{**kwargs, "generator": generator})
    if name in FILLED and not kwargs.get("requires_grad") and kwargs.get("device") is None:
        return getattr(torch.empty_like(*args, **kwargs), FILLED[name])(generator=generator)
    if name == "dropout":
        return _dropout(generator, *args, **kwargs)
    with _in_place_of_global(generator):
        return func(*args, **kwargs)


def _device_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device:
    """The device of the tensor that is filled, or of the one that is made."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            return value.device
    device = kwargs.get("device")
    return torch.get_default_device() if device is None else torch.device(device)


def _is_checkpointed() -> bool:
    """Whether what is computed now will be computed again for its gradients."""
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: None)(False)  # not public
    return hooks is not None and hooks[0].__module__ == "torch.utils.checkpoint"


def _dropout(  # noqa: PLR0917 - called as torch's own
    generator: torch.Generator,
    input: Tensor,  # noqa: A002 - the names of torch.nn.functional.dropout
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    train: bool | None = None,
) -> Tensor:
    """Set random values to zero, as torch's own dropout does, with a generator."""
    if not (training if train is None else train) or p == 0:
        return input
    factor = torch.empty_like(input).bernoulli_(1 - p, generator=generator)
    if p < 1:
        factor /= 1 - p
    return input.mul_(factor) if inplace else input * factor


_global_state = threading.RLock()


def _new_lock() -> None:
    global _global_state  # noqa: PLW0603 - a forked child would wait for a thread that it does not have
    _global_state = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


@contextmanager
def _in_place_of_global(generator: torch.Generator) -> Iterator[None]:
    """Let the global state of the generator's device continue the generator; both are right afterwards."""
    device = generator.device
    with _global_state:
        before = _get_state(device)
        _set_state(device, generator.get_state())
        try:
            yield
        finally:
            generator.set_state(_get_state(device))
            _set_state(device, before)


def _get_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_state(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
