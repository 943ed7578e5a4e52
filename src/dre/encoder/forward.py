"""Rows through the network as it stands: in eval mode, without gradients, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from threading import get_ident

import torch
from torch import Tensor, nn

from dre.data.rows import Rows, chunk_length, empty_rows
from dre.encoder.backbone_front import BackboneFront
from dre.encoder.module_error import naming_module
from dre.encoder.network import Network
from dre.encoder.pca_front import PCAFront, ProjectedRows, sparse_of
from dre.notation import unknown
from dre.progress.activity import activity
from dre.runtime import IsolatedRNG, full_float32, is_opaque
from dre.runtime.gpu_memory import in_smaller_pieces, piece
from dre.runtime.threads import all_threads, map_in_threads

CHUNK_ROWS = 8192  # at most, however small the rows: hidden layers can hold many times the values of a row
CPU_CHUNK_ROWS = 2048  # threads share the chunks
INPUT = "x"
READS_ROWS = "Its first layer must read rows of this shape."
FEATURE_NETWORK = "a network of features, such as a pretrained one, goes into encoder=Backbone(network)"


def chunk_rows(shape: tuple[int, ...], device: str = "cpu") -> int:
    """Number of rows of this shape that go through the network at a time, in fit and in transform, so that bits agree."""
    return piece(min(CPU_CHUNK_ROWS if device == "cpu" else CHUNK_ROWS, CHUNK_ROWS, chunk_length(shape)))


@in_smaller_pieces("embedding rows")
def outputs(encoder: nn.Module, rows: Rows, source: str | None = None, *, limit: int | None = None) -> Tensor:
    """Return the output of the encoder, or of its submodule ``source``, for the rows: (n, d), float32, on their device.

    ``source="x"`` is the input itself, flattened. ``limit`` stops after so many rows.
    """
    n = rows.shape[0] if limit is None else min(limit, rows.shape[0])
    if source != INPUT and (behind := _behind_front(encoder, rows)) is not None:
        encoder, rows = behind
        source = INPUT if source == "features" else source
    if source == INPUT:
        return rows.read(0, n).reshape(n, -1)
    device = next((p.device for p in encoder.parameters()), torch.device("cpu"))
    step = chunk_rows(rows.shape[1:], device.type)
    out: Tensor | None = None
    with evaluating(encoder), full_float32(), activity("embedding", n) as embedding:
        slices = [(start, min(n, start + step)) for start in range(0, n, step)]
        for (start, _), y in zip(slices, _chunks(encoder, rows, source, slices), strict=True):
            if out is None:
                out = empty_rows((n, y.shape[1]), y.device, rows)
            out[start : start + step] = y
            embedding.advance(len(y))
    assert out is not None  # there is at least one row
    return out


def _chunks(encoder: nn.Module, rows: Rows, source: str | None, slices: list[tuple[int, int]]) -> Iterator[Tensor]:
    """Yield the output for one slice after the other. Threads of a CPU share them if the network is a built-in one."""
    in_threads = type(encoder) is Network and encoder.scale.is_cpu and not isinstance(encoder.features, BackboneFront)
    with _output_of(encoder, source) as output_of, nullcontext() if in_threads else all_threads():
        if in_threads and getattr(rows, "thread_safe", False):
            yield from map_in_threads(lambda ends: output_of(rows.read(*ends)), slices)
        else:
            chunks = (rows.read(*ends) for ends in slices)
            yield from map_in_threads(output_of, chunks) if in_threads else map(output_of, chunks)


def _behind_front(encoder: nn.Module, rows: Rows) -> tuple[Network, ProjectedRows] | None:
    """Sparse rows behind a linear front, and the network that reads them; None for others."""
    front = encoder.features if isinstance(encoder, Network) else None
    if not isinstance(encoder, Network) or not isinstance(front, PCAFront) or not isinstance(front.patches, nn.Flatten):
        return None
    sparse = sparse_of(rows)
    return None if sparse is None else (encoder.without_features(), ProjectedRows(sparse, rows.shape[0], front))


@contextmanager
def _output_of(encoder: nn.Module, source: str | None) -> Iterator[Callable[[Tensor], Tensor]]:
    """Yield a function from rows to the output (rows, d) of the encoder, or of a submodule; threads may call it."""
    seen: dict[int, object] = {}  # by the thread that has called the submodule
    exchange, name = is_opaque(encoder), type(encoder).__name__

    def keep(module: nn.Module, args: object, output: object) -> None:
        # a copy: a later module may write into the same memory, as ReLU(inplace=True) does
        seen[get_ident()] = output.clone() if isinstance(output, Tensor) else output

    def compute(x: Tensor) -> Tensor:
        # An encoder that draws at random in eval mode too gives the same map every time, and leaves the global state alone.
        with torch.no_grad(), IsolatedRNG(0, x.device, exchange=exchange)():
            seen.pop(get_ident(), None)
            with nullcontext() if type(encoder) is Network else naming_module("encoder", name, tuple(x.shape[1:]), READS_ROWS):
                y = encoder(x)
        if source is not None:
            return _check_source(seen, source, x).reshape(len(x), -1)
        if not isinstance(y, Tensor) or y.ndim != 2 or len(y) != len(x):
            raise TypeError(
                f"the encoder {name} must return a tensor (rows, components), not {_describe(y)} for {len(x)} rows; "
                f"{FEATURE_NETWORK}"
            )
        return y

    hook = None if source is None else submodule(encoder, source).register_forward_hook(keep)
    try:
        yield compute
    finally:
        if hook is not None:
            hook.remove()


def _check_source(seen: dict[int, object], source: str, x: Tensor) -> Tensor:
    if get_ident() not in seen:
        raise ValueError(f"source {source!r}: the encoder's forward pass never calls this submodule")
    y = seen[get_ident()]
    if not isinstance(y, Tensor) or y.shape[:1] != x.shape[:1]:
        raise TypeError(f"source {source!r}: its output must be a tensor with one entry per row, not {_describe(y)}")
    return y


def submodule(encoder: nn.Module, source: str) -> nn.Module:
    known: dict[str, nn.Module] = dict(encoder.named_modules())
    if source not in known or source == "":
        remedy = "Pass a schedule with sources that this encoder has, or recursions=0."
        raise ValueError(f"{unknown('source', source, [INPUT, *(name for name in known if name)])} {remedy}")
    return known[source]


def check_sources(encoder: nn.Module, sources: list[str], rows: Rows, n_components: int) -> None:
    """Try every source on two rows, so that a wrong name costs a moment and not the stages before it."""
    y = outputs(encoder, rows, limit=2)
    if y.shape[1] != n_components:
        raise ValueError(
            f"the encoder {type(encoder).__name__} returns {y.shape[1]} components, but n_components={n_components}: end it in "
            f"nn.Linear(…, {n_components}); {FEATURE_NETWORK}"
        )
    for source in sources:
        outputs(encoder, rows, source, limit=2)


def products_of_row(encoder: nn.Module, rows: Rows) -> int:
    """Number of products by which the linear and convolutional layers of the encoder embed one row."""
    counts: list[int] = []

    def count(layer: nn.Module, args: object, output: Tensor) -> None:
        weight = layer.weight
        assert isinstance(weight, Tensor)
        counts.append(output[0].numel() * weight[0].numel())

    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    hooks = [part.register_forward_hook(count) for part in encoder.modules() if isinstance(part, kinds)]
    try:
        outputs(encoder, rows, limit=1)
    finally:
        for hook in hooks:
            hook.remove()
    return sum(counts)


@contextmanager
def hidden_outputs(encoder: nn.Module, names: Sequence[str]) -> Iterator[dict[str, Tensor]]:
    """Yield a dict that the outputs of these submodules are put into when the encoder is called inside the context."""
    found: dict[str, Tensor] = {}
    with ExitStack() as hooks:
        for name in names:
            hook = submodule(encoder, name).register_forward_hook(partial(_keep, found, name))
            hooks.callback(hook.remove)
        yield found


def _keep(found: dict[str, Tensor], name: str, module: nn.Module, args: object, output: Tensor) -> None:
    found[name] = output


@contextmanager
def evaluating(encoder: nn.Module) -> Iterator[None]:
    """Eval mode inside; outside every submodule is in the mode it was in (a frozen batch norm stays frozen)."""
    modes = [(module, module.training) for module in encoder.modules()]
    encoder.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _describe(y: object) -> str:
    return f"a tensor of the shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
