"""The one error that opening a model file ends in, whatever is wrong with the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dre.notation import NotationError

SHOWN = 600  # characters of a message: a hostile text may be long


class ModelFileError(ValueError):
    """The file is not a model of this package, or it is damaged."""


@contextmanager
def as_model_file_error(path: str | os.PathLike[str]) -> Iterator[None]:
    """Re-raise every error as ModelFileError that names the file.

    Checks inside raise ModelFileError with what follows the name: ``"is damaged: ..."``. Interrupts pass through.
    """
    try:
        yield
    except ModelFileError as problem:
        raise ModelFileError(f"{path} {_shorten(str(problem))}") from problem
    except NotationError as problem:
        raise ModelFileError(
            f"{path} names something that is not known here; import the module that defines it before loading. "
            f"{_shorten(str(problem))}"
        ) from problem
    except Exception as problem:
        raise ModelFileError(f"{path} is damaged, or not a model that dre saved: {_shorten(repr(problem))}") from problem


def _shorten(message: str) -> str:
    return message if len(message) <= SHOWN else f"{message[:SHOWN]} …"
