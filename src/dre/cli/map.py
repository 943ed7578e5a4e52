"""What commands share of MAP: places from a file, or those that a model gives to DATA after each of its stages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre.cli.completion import rows
from dre.cli.data import file_of, opened
from dre.cli.wrong_use import WrongUseError, refusing

if TYPE_CHECKING:
    from dre.io.readers import Source
    from dre.model.estimator import DRE

Array = Any  # of numpy, which is not imported before it is needed: Tab is to be quick
MODEL = ".safetensors"
COMPONENT = "dre"  # dre1, dre2, …: what columns of places are called
CELLS, KEY = ".h5ad", "obsm/X_dre"  # where an .h5ad has its places

Map = Annotated[
    str,
    typer.Argument(
        metavar="MAP", show_default=False, help="A model that `dre fit` wrote, or places as `dre transform` writes them."
    ),
]
DataOfMap = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        autocompletion=rows,
        show_default=False,
        help="The rows that were mapped, as `dre fit` takes them; a model needs them, places do without.",
    ),
]


@dataclass(frozen=True, eq=False)
class OpenedMap:
    """Places of rows, and all that is known of the rows."""

    stages: list[Array]  # (n, components) each: after every stage of a model, or the one map of a file
    titles: list[str]  # what each stage is
    metadata: dict[str, Array] = field(default_factory=dict)  # (n,) each
    names: Array | None = None  # (n,), those of the rows
    rows: Any = None  # what was mapped, where DATA was given
    columns: list[str] | None = None  # the names of its columns, where it has any
    model: DRE | None = None  # where MAP is one

    @property
    def places(self) -> Array:
        return self.stages[-1]


def lost(places: Path, data: str) -> list[Path | None]:
    """What writing places would lose: DATA, but for an .h5ad, to which they are added."""
    return [] if places.suffix.lower() == CELLS else [file_of(data)]


def is_model(said: str) -> bool:
    return said.lower().endswith(MODEL)


@contextmanager
def reading_model(said: str | Path) -> Iterator[None]:
    """A file that is no model, or not there, was named wrongly."""
    if not Path(said).is_file():
        raise WrongUseError(f"{said} is not there, or no file: pass a model that `dre fit` wrote")
    with refusing():
        yield


def load_model(said: str | Path, device: str = "auto") -> DRE:
    from dre.model.estimator import DRE

    with reading_model(said):
        return DRE.load(said, device=None if device == "auto" else device)


def open_map(
    map_: str, data: str | None = None, *, device: str = "auto", every_stage: bool = False, colour: str | None = None
) -> OpenedMap:
    """MAP with DATA. Of a model only the last stage, unless all are wanted; ``colour`` may be a column beside its features."""
    return map_of(map_, None if data is None else opened(data), device=device, every_stage=every_stage, colour=colour)


def map_of(
    map_: str, source: Source | None, *, device: str = "auto", every_stage: bool = False, colour: str | None = None
) -> OpenedMap:
    """The same with rows that were opened already."""
    if not is_model(map_):
        return _of_file(map_, source)
    if source is None:
        raise WrongUseError(f"{map_} is a model, which maps rows: name them too, as in {map_} rows.csv")
    from dre.cli.columns import features

    model = load_model(map_, device)
    return _of_model(model, features(model, source, colour), every_stage)


def _of_model(model: DRE, source: Source, every_stage: bool) -> OpenedMap:
    last = len(model.stages_) - 1
    chosen = [i for i, weights in enumerate(model.stages_) if weights is not None or i == last]
    chosen = chosen if every_stage else chosen[-1:]
    stages = [model.transform(source.rows, stage=None if i == last else i) for i in chosen]
    titles = [f"stage {i}: {model.schedule_[i]}" for i in chosen]
    return OpenedMap(stages, titles, dict(source.metadata), source.names, source.rows, source.columns, model)


def _of_file(said: str, source: Source | None) -> OpenedMap:
    places, beside = _places(said)
    if source is None:
        return OpenedMap([places], [said], beside.metadata, beside.names)
    n = source.rows.shape[0]
    if n != len(places):
        raise WrongUseError(f"{said} has {len(places):,} places and DATA {n:,} rows: pass the rows that were mapped")
    names = beside.names if source.names is None else source.names
    return OpenedMap([places], [said], {**beside.metadata, **source.metadata}, names, source.rows, source.columns)


def _places(said: str) -> tuple[Array, Source]:
    """The columns dre1, dre2, … of a table, or all of a file that has but a few; what else a table has is told of the rows."""
    import numpy as np

    from dre.cli.columns import as_classes
    from dre.data.rows import is_rows, read_all
    from dre.io.readers.source import Source, summarize_names

    found = opened(f"{said}:{KEY}" if Path(said).suffix.lower() == CELLS else said)
    held = np.asarray(read_all(found.rows) if is_rows(found.rows) else found.rows)
    columns = found.columns or []
    ours = [i for i, name in enumerate(columns) if name.lower().startswith(COMPONENT) and name[len(COMPONENT) :].isdigit()]
    if not ours:
        if held.ndim != 2 or not 2 <= held.shape[1] <= 3:
            shape = " × ".join(f"{size:,}" for size in held.shape)
            raise WrongUseError(
                f"{said} holds {shape} values, not places in two dimensions: pass what `dre transform` wrote, or a table with "
                f"the columns {COMPONENT}1 and {COMPONENT}2" + (f"; it has {summarize_names(columns)}" if columns else "")
            )
        return held.astype(np.float32), found
    others = {name: as_classes(held[:, i]) for i, name in enumerate(columns) if i not in ours}
    return held[:, ours].astype(np.float32), Source(held, names=found.names, metadata={**others, **found.metadata})
