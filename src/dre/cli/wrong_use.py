"""Wrong use, told from a run that failed: what is refused before anything is computed ends with 2, and not with 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class WrongUseError(ValueError):
    """An option, a name or a file that can't be used: the command has to be another."""


@contextmanager
def refusing(*kinds: type[Exception]) -> Iterator[None]:
    """Around what looks at the command before anything is computed: what it refuses was wrong use."""
    try:
        yield
    except WrongUseError:
        raise
    except Exception as problem:
        if not isinstance(problem, kinds or (ValueError, TypeError)):
            raise
        raise WrongUseError(str(problem)) from problem
