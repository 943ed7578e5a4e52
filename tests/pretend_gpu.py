"""A pretended GPU: tensors that say they are on "mps:0", computed on the CPU, which refuse what an Apple GPU refuses.

- A float64 tensor can't exist there, unless it pretends to be a GPU that has them.
- Its tensors do not meet those of the CPU in one operator, but for scalars, copies and indices.
- numpy can't read them. Copies to the host are counted.

What it can't show: operators that torch lacks on such a GPU, and how its results round.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from dre.runtime import float64

MPS = torch.device("mps", 0)  # without a number, torch would look for such a GPU
THERE = ("mps", "meta")
aten = torch.ops.aten
MIXING = {aten.copy_.default, aten._to_copy.default, aten.index.Tensor, aten.index_put_.default}
OriginalGenerator = torch.Generator


class PretendTensor(Tensor):
    """A tensor on the pretended device; ``inner`` has its values. To torch it is a meta tensor, for which autograd works."""

    is_meta, is_mps = False, True
    has_float64 = False  # of the device

    @staticmethod
    def __new__(cls, inner: Tensor) -> PretendTensor:
        return Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype, device="meta"
        )

    @property
    def device(self) -> torch.device:
        return MPS

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"{self.inner!r} on {MPS}"

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class PretendGPU(TorchDispatchMode):
    """Inside, tensors can be made on "mps:0"."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0  # operators whose result was there
        self.to_host: list[tuple[int, ...]] = []  # shapes of the tensors that were copied to the host

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = _run(func, args, kwargs or {})
        if func in MIXING and isinstance(args[-1 if func is aten.copy_.default else 0], PretendTensor):
            self.to_host += [tuple(found.shape)] if not isinstance(found, PretendTensor) else []
        self.made += any(isinstance(each, PretendTensor) for each in tree_flatten(found)[0])
        return found


class PretendGenerator(OriginalGenerator):
    """A generator that says it is on "mps:0", if it was made there."""

    def __new__(cls, device: Any = "cpu") -> PretendGenerator:
        kind = torch.device(device)
        made = super().__new__(cls, "cpu" if kind.type == "mps" else kind)
        made.where = MPS if kind.type == "mps" else kind
        return made

    @property
    def device(self) -> torch.device:
        return self.where


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    flat = tree_flatten((args, kwargs))[0]
    ours = [each for each in flat if isinstance(each, PretendTensor)]
    asked = kwargs.get("device")
    there = bool(ours) if asked is None else torch.device(asked).type in THERE
    if ours and func not in MIXING:
        others = [each for each in flat if isinstance(each, Tensor) and not isinstance(each, PretendTensor) and each.ndim]
        if others:
            raise RuntimeError(f"{func}: expected all tensors to be on the same device, found mps and cpu")
    if asked is not None and there:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    if func in (aten.copy_.default, aten.index_put_.default) and not isinstance(args[0], PretendTensor):
        there = False
    bare_args, bare_kwargs = tree_map(lambda each: each.inner if isinstance(each, PretendTensor) else each, (args, kwargs))
    found = func(*bare_args, **bare_kwargs)
    known = {id(each.inner): each for each in ours}  # what is changed in place is returned

    def wrap(each: Any) -> Any:
        if not isinstance(each, Tensor) or not there:
            return each
        if each.dtype in (torch.float64, torch.complex128) and not PretendTensor.has_float64:
            raise TypeError(f"{func}: cannot convert a MPS tensor to float64: the MPS framework does not support it")
        return known.get(id(each)) if id(each) in known else PretendTensor(each)

    return tree_map(wrap, found)


@contextmanager
def pretend_gpu(*, has_float64: bool = False) -> Iterator[PretendGPU]:
    """Let "mps:0" be a device for the time of the context, in this thread."""
    with pytest.MonkeyPatch.context() as patch, PretendGPU() as mode:
        patch.setattr(torch, "Generator", PretendGenerator)
        patch.setattr(PretendTensor, "has_float64", has_float64)
        if has_float64:
            patch.setattr(float64, "WITHOUT_FLOAT64", ())
        yield mode
