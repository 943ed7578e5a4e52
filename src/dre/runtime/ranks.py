"""Ranks: processes that train one network together, each on its own share of the rows. No other file knows of them.

``torchrun`` starts the processes, or Ray does, or a program that has initialized ``torch.distributed`` itself. Every method
that exchanges data must be called by all ranks, in the same order.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from dre.runtime.scratch import empty

LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")  # set by torchrun, and by other launchers
# A rank that has ended closes its connections, which the others notice at once. Time passes only while the first rank works
# for all: it finds the coordinates of millions of rows.
PATIENCE = timedelta(hours=12)
DEALT = 2**20  # rows that are shuffled and dealt at a time
AGREED = 32  # steps after which ranks ask each other whether to end
ENDINGS = (None, "stage", "fit")  # the later one wins
FAILED = "dre: why rank {} failed"  # key of the store that connects the ranks
Result = TypeVar("Result")


class RankError(RuntimeError):
    """Ranks can't work together; the message says why."""


@dataclass(frozen=True)
class Ranks:
    """The processes of a fit, as one of them sees them.

    Parameters
    ----------
    rank : int
        The number of this process.
    size : int
        The number of processes.
    is_connected : bool
        Whether data are exchanged, as also a single rank of torchrun does. Else methods return what they were given.
    """

    rank: int = 0
    size: int = 1
    is_connected: bool = False

    @classmethod
    def current(cls) -> Ranks:
        """Return the ranks that this process belongs to; it alone outside of torchrun, or within ``alone()``."""
        if _is_alone.get() or not dist.is_available():
            return cls()
        if not dist.is_initialized():
            if not all(name in os.environ for name in LAUNCHED):
                return cls()
            with _naming_failures(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])):
                dist.init_process_group(_backend(), timeout=PATIENCE)
            atexit.register(_leave)
        return cls(dist.get_rank(), dist.get_world_size(), is_connected=True)

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that works for all, writes, and shows progress."""
        return self.rank == 0

    @property
    def captures(self) -> bool:
        """Whether an exchange can be captured in a CUDA graph: gloo takes its way through the host."""
        return not self.is_connected or "nccl" in str(dist.get_backend_config())

    def device(self, device: torch.device) -> torch.device:
        """Return the device of this rank, for one without a number, and make it current."""
        if not self.is_connected or device.type != "cuda" or device.index is not None:
            return device
        own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", self.rank)) % torch.cuda.device_count())
        torch.cuda.set_device(own)
        return own

    # Rows

    def deal(self, n: int, seed: int) -> Tensor:
        """Return the ids of this rank's rows of n, in increasing order: as many as every other rank has, at random.

        A rank then sees the same data as the others, whatever the order of the rows. Up to ``size - 1`` rows are left over.

        >>> shares = [Ranks(rank, 2).deal(7, seed=0).tolist() for rank in range(2)]
        >>> [len(share) for share in shares], len(set(shares[0] + shares[1]))
        ([3, 3], 6)
        """
        return self._deal(n, seed, self.rank)

    def dealt(self, n: int, seed: int) -> Tensor:
        """Return the ids of all ranks' rows, those of the first rank first: the order of what ``gather`` returns."""
        return torch.cat([self._deal(n, seed, rank) for rank in range(self.size)])

    def _deal(self, n: int, seed: int, rank: int) -> Tensor:
        generator, block = torch.Generator().manual_seed(seed), DEALT // self.size * self.size
        shares = []
        for start in range(0, n, block):
            order = torch.randperm(min(block, n - start), generator=generator)
            share = len(order) // self.size
            shares.append(start + order[rank * share : (rank + 1) * share].sort().values)
        return torch.cat(shares)

    # Exchange of tensors

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over all ranks, in place: one exchange of one flat buffer."""
        if not self.is_connected or not tensors:
            return
        flat = tensors[0].view(-1) if len(tensors) == 1 else torch.cat([each.reshape(-1) for each in tensors])
        with torch.no_grad():
            self._sum(flat)
            flat /= self.size
            if len(tensors) > 1:
                for each, part in zip(tensors, flat.split([each.numel() for each in tensors]), strict=True):
                    each.copy_(part.view_as(each))

    def _sum(self, flat: Tensor) -> None:
        with _naming_failures(self.rank, self.size):
            if _is_reached(flat):
                dist.all_reduce(flat)
                return
            there = flat.cpu()
            dist.all_reduce(there)
            flat.copy_(there)

    def add(self, x: Tensor) -> Tensor:
        """Return the sum over all ranks."""
        if not self.is_connected:
            return x
        total = x.clone()
        self._sum(total)
        return total

    def mean(self, value: float) -> float:
        """Return the mean of a number over all ranks."""
        return value if not self.is_connected else float(self.add(torch.tensor(value, dtype=torch.double))) / self.size

    def gather(self, x: Tensor) -> Tensor:
        """Return the tensors of all ranks, (size·m, ...), those of the first rank first. All must have the same shape."""
        if not self.is_connected:
            return x
        there = x.contiguous() if _is_reached(x) else x.cpu().contiguous()
        out = there.new_empty((self.size * len(there), *there.shape[1:]))
        with _naming_failures(self.rank, self.size):
            # newer torch calls the second one deprecated
            getattr(dist, "all_gather_single", dist.all_gather_into_tensor)(out, there)
        return out.to(x.device)

    def gather_with_gradient(self, y: Tensor) -> Tensor:
        """Return ``gather(y)``; the gradient of the own rows flows back, times ``size``, since ``average`` divides by it."""
        return y if not self.is_connected else _Gather.apply(y, self)  # type: ignore[no-untyped-call]

    def to_first(self, x: Tensor) -> Tensor | None:
        """Return ``gather(x)`` on the first rank, and None on the others."""
        if not self.is_connected:
            return x
        there = x.cpu().contiguous()
        with _naming_failures(self.rank, self.size):
            if not self.is_first:
                dist.send(there, 0)
                return None
            out = empty((self.size * len(there), *there.shape[1:]), there.dtype, what="the rows of all ranks")
            out[: len(there)] = there
            for rank in range(1, self.size):
                dist.recv(out[rank * len(there) : (rank + 1) * len(there)], rank)
        return out.to(x.device)

    def from_first(self, x: Tensor | None, device: torch.device) -> Tensor:
        """Return the tensor of the first rank, on all of them."""
        if not self.is_connected:
            assert x is not None
            return x
        shape, dtype = self.broadcast(None if x is None else (tuple(x.shape), x.dtype))
        there = torch.empty(shape, dtype=dtype) if x is None else x.cpu().contiguous()
        with _naming_failures(self.rank, self.size):
            dist.broadcast(there, 0)
        return there.to(device)

    def scatter(self, parts: Sequence[Tensor] | None, device: torch.device) -> Tensor:
        """Return the part that the first rank has for this one; parts may differ in length."""
        lengths, dtype = self.broadcast(None if parts is None else ([len(part) for part in parts], parts[0].dtype))
        with _naming_failures(self.rank, self.size):
            if parts is None:
                own = torch.empty(lengths[self.rank], dtype=dtype)
                dist.recv(own, 0)
                return own.to(device)
            for rank in range(1, self.size):
                dist.send(parts[rank].cpu().contiguous(), rank)
        return parts[0].to(device)

    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite tensors, in place, by those of the first rank."""
        if not self.is_connected:
            return
        with torch.no_grad():
            for each in tensors:
                each.copy_(self.from_first(each if self.is_first else None, each.device))

    # Agreement

    @contextmanager
    def sharing_errors(self) -> Iterator[None]:
        """Store this rank's error, so that the other ranks, which wait for this one, can report it."""
        if not self.is_connected:
            yield
            return
        with _naming_failures(self.rank, self.size):
            store, own = dist.distributed_c10d._get_default_store(), FAILED.format(self.rank)
            store.delete_key(own)  # of a fit before, whose error was caught
        try:
            yield
        except Exception as problem:
            if not isinstance(problem, RankError):
                with suppress(RuntimeError):  # the store is gone if the rank that holds it has ended
                    store.set(own, f"{type(problem).__name__}: {problem}")
            raise

    def broadcast(self, value: Any) -> Any:
        """Return the first rank's value on all ranks."""
        if not self.is_connected:
            return value
        held = [value]
        with _naming_failures(self.rank, self.size):
            dist.broadcast_object_list(held, 0)
        return held[0]

    def collect(self, value: Result) -> list[Result]:
        """Return the values of all ranks."""
        if not self.is_connected:
            return [value]
        held: list[Any] = [None] * self.size
        with _naming_failures(self.rank, self.size):
            dist.all_gather_object(held, value)
        return held

    def on_first(self, work: Callable[[], Result]) -> Result:
        """Return what ``work`` returns on the first rank, or raise its error, on all ranks."""
        if not self.is_connected:
            return work()
        result: Any = None
        problem: Exception | None = None
        if self.is_first:
            try:
                result = work()
            except Exception as caught:
                problem = caught
        result, problem = self.broadcast((result, problem))
        if problem is not None:
            raise problem
        return result  # type: ignore[no-any-return]

    def agree(self, facts: dict[str, str], remedy: str = "") -> None:
        """Raise a RankError that names what differs between the ranks, and how to change it."""
        added = [remedy] if remedy else []
        for rank, theirs in enumerate(all_facts := self.collect(facts)):
            differing = [name for name in facts if theirs.get(name) != all_facts[0][name]]
            if differing:
                lines = [f"- {name}: rank 0 has {all_facts[0][name]}; rank {rank} has {theirs.get(name)}" for name in differing]
                raise RankError(
                    "\n".join(["the ranks must fit the same data with the same parameters and versions:", *lines, *added])
                    + "\nTo fit a model of its own in each process, call fit inside `with dre.alone():`."
                )

    def ending(self, wish: str | None) -> str | None:
        """Return how the run ends for all, by what every rank wishes: None, "stage" or "fit"."""
        return ENDINGS[max(ENDINGS.index(each) for each in self.collect(wish))]


ALONE = Ranks()


class OwnRows:
    """Rows that are this rank's own share already: ``fit`` does not deal them. All ranks must have as many.

    Parameters
    ----------
    rows : array or Rows of shape (m, ...)
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks, ctx.rows = ranks, len(y)
        return ranks.gather(y.detach())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        start = ctx.ranks.rank * ctx.rows
        return grads[0][start : start + ctx.rows] * ctx.ranks.size, None


_is_alone = ContextVar("is alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Fit in this process alone inside, although others were started with it.

    >>> with alone():
    ...     Ranks.current()
    Ranks(rank=0, size=1, is_connected=False)
    """
    token = _is_alone.set(True)
    try:
        yield
    finally:
        _is_alone.reset(token)


def _backend() -> str:
    """NCCL between GPUs, if every rank of this machine has one of its own; gloo otherwise."""
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]))
    is_nccl = torch.cuda.is_available() and dist.is_nccl_available() and torch.cuda.device_count() >= ranks_here
    return "cpu:gloo,cuda:nccl" if is_nccl else "gloo"


def _is_reached(x: Tensor) -> bool:
    """Whether the backend takes tensors from where this one is; gloo reaches a GPU through the host."""
    return x.device.type == "cpu" or "nccl" in str(dist.get_backend_config())


@contextmanager
def _naming_failures(rank: int, size: int) -> Iterator[None]:
    try:
        yield
    except RuntimeError as problem:
        if isinstance(problem, RankError):
            raise
        failed = _failure_of_another(rank, size)
        if failed is not None:
            raise RankError(failed) from problem
        reason = str(problem).strip().splitlines() or [type(problem).__name__]
        raise RankError(
            f"rank {rank} of {size} can't reach the others: one has ended, or the connection is lost ({reason[0][:200]}). "
            "The rank that failed first has the cause. With checkpoints, start all ranks again with resume."
        ) from problem


def _failure_of_another(rank: int, size: int) -> str | None:
    """What another rank said of its error; None if it has said nothing, or the store ended with it."""
    try:
        store = dist.distributed_c10d._get_default_store()
        for other in range(size):
            if other != rank and store.check([FAILED.format(other)]):
                return f"rank {other} of {size} has failed: {store.get(FAILED.format(other)).decode()}"
    except (RuntimeError, ValueError):
        return None
    return None


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
