"""The configuration of a model file, each field of the type that it was saved with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dre.data.preparation import Preparation
from dre.model.file_error import ModelFileError

RECORD: dict[str, type | tuple[type, ...]] = {  # fields of an epoch's record in the history
    "stage": int,
    "source": str,
    "epoch": int,
    "loss": (int, float),
    "seconds": (int, float),
}


@dataclass(frozen=True)
class Configuration:
    """Everything in a model file but its tensors; ``recipe`` and the parameters in ``about`` are still encoded."""

    about: dict[str, Any]
    recipe: dict[str, Any]
    metric: str
    n_components: int
    earlier_stages: list[bool]  # whether the weights of each stage before the last were saved
    unchanged: list[str]  # weights that are the same in all stages, and saved once
    history: list[dict[str, Any]]
    preparation: dict[str, Any] | None = None  # still as JSON

    @classmethod
    def parse(cls, content: dict[str, Any]) -> Configuration:
        """Check the JSON of a file; raise a ModelFileError that names the field."""
        n_components = _field(content, "n_components", int)
        if n_components < 1:
            raise ModelFileError(f"is damaged: n_components={n_components}")
        unchanged = _list(content, "unchanged", str)
        if len(set(unchanged)) < len(unchanged):
            raise ModelFileError("is damaged: 'unchanged' names a weight twice")
        return cls(
            about=_about(_field(content, "about", dict)),
            recipe=_field(content, "recipe", dict),
            metric=_field(content, "metric", str),
            n_components=n_components,
            earlier_stages=_list(content, "earlier_stages", bool),
            unchanged=unchanged,
            history=_list(content, "history", dict),
            preparation=_field(content, "preparation", dict) if "preparation" in content else None,
        )

    def check(self, n_stages: int, shape: tuple[int, ...], preparation: Preparation | None = None) -> None:
        """Raise a ModelFileError unless history, stages and names agree with the schedule and the rows."""
        if len(self.earlier_stages) >= n_stages:
            raise ModelFileError(f"is damaged: it has {len(self.earlier_stages) + 1} stages, its schedule {n_stages}")
        for record in self.history:
            for name, kind in RECORD.items():
                _field(record, name, kind)
            if not 0 <= record["stage"] < n_stages:
                raise ModelFileError(f"is damaged: its history has a stage {record['stage']}, its schedule {n_stages} stages")
        names = self.about["feature_names_in"]
        if preparation is not None:
            if shape != (len(preparation.names_out),) or names != preparation.columns:
                raise ModelFileError(
                    f"is damaged: its preparation does not give rows of the shape {shape}, or has other columns"
                )
        elif names is not None and (len(shape) != 1 or len(names) != shape[0]):
            raise ModelFileError(f"is damaged: it names {len(names)} features, but its rows have the shape {shape}")


def _about(about: dict[str, Any]) -> dict[str, Any]:
    if not _field(about, "class", str).isidentifier():
        raise ModelFileError(f"is damaged: its class is {about['class']!r}")
    _field(about, "parameters", dict)
    if about.get("feature_names_in", ...) is not None:
        _list(about, "feature_names_in", str)
    fill = _field(about, "fill_values", dict) if "fill_values" in about else {}  # absent in files of the first versions
    for name in fill:
        if not math.isfinite(_field(fill, name, (int, float))):
            raise ModelFileError(f"is damaged: fill_values has {fill[name]} for {name!r}, which is not finite")
    return about


def _field(content: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    if name not in content:
        raise ModelFileError(f"is damaged: it has no {name!r}")
    value = content[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ModelFileError(f"is damaged: {name!r} is of the wrong type, {type(value).__name__}")
    return value


def _list(content: dict[str, Any], name: str, kind: type) -> list[Any]:
    values: list[Any] = _field(content, name, list)
    if not all(isinstance(value, kind) for value in values):
        raise ModelFileError(f"is damaged: {name!r} has a value that is no {kind.__name__}")
    return values
