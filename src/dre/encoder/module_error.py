"""Errors of networks that users pass: they name the network and the rows that it got."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class ModuleError(ValueError):
    """A network of the user's failed on rows; the error that it raised is the cause."""


@contextmanager
def naming_module(kind: str, name: str, shape: tuple[int, ...], remedy: str) -> Iterator[None]:
    """Raise what a network raises as a ModuleError that names the network, the shape of its rows and the remedy.

    >>> with naming_module("encoder", "Linear", (5,), "Read 5 values."):
    ...     torch.nn.Linear(3, 2)(torch.zeros(2, 5))
    Traceback (most recent call last):
    dre.encoder.module_error.ModuleError: the encoder Linear failed on rows of the shape (5,): mat1 ... Read 5 values.
    """
    try:
        yield
    except (torch.OutOfMemoryError, ModuleError):  # the former is told elsewhere, with advice
        raise
    except (RuntimeError, ValueError, IndexError, AssertionError) as problem:
        text = str(problem).partition("\n")[0] or type(problem).__name__
        raise ModuleError(f"the {kind} {name} failed on rows of the shape {shape}: {text.rstrip('.')}. {remedy}") from problem
