"""How a column of a table becomes numbers, as a model's file tells it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Self

from dre.data.table_columns import BOOLEAN, CATEGORY, MAPPED

LARGEST = sys.float_info.max


@dataclass(frozen=True)
class ColumnEncoding:
    """How a column becomes numbers; ``dre.data.table_preparation`` says what the fields mean."""

    name: str
    kind: str
    center: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    fill: float | str | None = None

    @property
    def names_out(self) -> list[str]:
        return [f"{self.name}={value}" for value in self.categories] if self.kind == CATEGORY else [self.name]

    def to_json(self) -> dict[str, Any]:
        own = {"categories": list(self.categories)} if self.kind == CATEGORY else {"center": self.center}
        return {"name": self.name, "kind": self.kind, **own, "scale": self.scale, "fill": self.fill}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Return the encoding again; raise a ValueError for what ``to_json`` can't return."""
        kind = content.get("kind") if isinstance(content, dict) else None
        own = "categories" if kind == CATEGORY else "center"
        if kind not in MAPPED or content.keys() != {"name", "kind", own, "scale", "fill"}:
            raise ValueError("a column of its table is not a number, a boolean or a category with its fields")
        if not _is_number(content["scale"]) or content["scale"] <= 0:
            raise ValueError(f"scale={content['scale']!r} of a column of its table is not a positive number")
        if kind == CATEGORY:
            known, fill = content["categories"], content["fill"]
            if not isinstance(known, list) or not known or not all(isinstance(value, str) and value for value in known):
                raise ValueError("the categories of a column of its table are not texts")
            if len(set(known)) < len(known) or (fill is not None and fill not in known):
                raise ValueError("the categories of a column of its table stand twice, or lack the one that fills gaps")
            return cls(_text(content["name"]), kind, scale=float(content["scale"]), categories=tuple(known), fill=fill)
        center, fill = content["center"], content["fill"]
        if not _is_number(center) or not (fill is None or _is_number(fill)) or (kind == BOOLEAN and fill not in (None, 0, 1)):
            raise ValueError("a column of its table has a center that is no number, or a gap is filled in by none")
        fill = None if fill is None else float(fill)
        return cls(_text(content["name"]), kind, float(center), float(content["scale"]), fill=fill)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is not the name of a column")
    return name
