"""A progress bar for training that is not ``dre.training.loop``'s, where someone watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dre.observe.progress import SECONDS_BETWEEN, is_interactive

Tick = Callable[[], object]  # called after every step


@contextmanager
def bar(title: str, steps: int, verbose: bool | None) -> Iterator[Tick]:
    """What to call after each of the steps. ``verbose=None`` shows a bar in a terminal or a notebook alone."""
    from tqdm.auto import tqdm

    watched = is_interactive()
    shown = verbose or (verbose is None and watched)
    with tqdm(
        total=steps, desc=title, disable=not shown, delay=1.0, mininterval=SECONDS_BETWEEN[watched], leave=False
    ) as uniform_like:
        yield uniform_like.update
