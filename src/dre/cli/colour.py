"""What colours a map: a column, of the places or of DATA, a feature or not; or a file with a value for every row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre.cli.wrong_use import WrongUseError, refusing

if TYPE_CHECKING:
    from dre.cli.map import OpenedMap
    from dre.io.readers import Source


def check_colour(said: str, source: Source) -> None:
    """Whether rows have it, before they are embedded."""
    if said not in source.metadata and said not in (source.columns or []) and not Path(said).expanduser().exists():
        raise _nowhere(said, [*source.metadata, *(source.columns or [])])


def colour_of(said: str, found: OpenedMap) -> tuple[str, Any]:
    """Its name, and a value for every row."""
    if said in found.metadata:
        return said, found.metadata[said]
    if found.columns is not None and said in found.columns:
        from dre.cli.columns import columns

        return said, columns(found, [said])[said]
    path = Path(said).expanduser()
    if path.exists():
        from dre.io.readers.labels import read_labels

        with refusing():
            return path.name, read_labels(path, len(found.places))
    raise _nowhere(said, [*found.metadata, *(found.columns or [])])


def _nowhere(said: str, columns: list[str]) -> WrongUseError:
    from dre.io.readers.source import summarize_names

    return WrongUseError(f"--colour {said}: neither a column nor a file that is there; columns: {summarize_names(columns)}")
