"""A progress bar for work over all pairs of rows, if someone watches and it takes long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dre.observe.progress import is_interactive

SECONDS_BEFORE_A_BAR = 2.0


@contextmanager
def progress(title: str, steps: int) -> Iterator[Any]:
    from tqdm.auto import tqdm

    hidden = not is_interactive()
    with tqdm(total=steps, desc=title, disable=hidden, delay=SECONDS_BEFORE_A_BAR, leave=False) as bar:
        yield bar
