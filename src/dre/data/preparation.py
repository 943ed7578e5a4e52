"""Preparations: fitted steps from what users have, such as a table or counts of genes, to rows of numbers.

A preparation is part of a fitted model. It runs before the scaling, and is saved in the model's file as JSON and tensors;
nothing is pickled. To add one, write a subclass of `Preparation` in a file of its own, and name it in ``PREPARATIONS``. Fit it,
and pass it on with the data, ``model.fit(Prepared(X, preparation))``; ``model.transform(X)`` then takes the same kind of X.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from dre.data.rows import is_rows
from dre.data.validation import check_array

State = tuple[dict[str, Any], dict[str, Tensor]]
PREPARATIONS: dict[str, str] = {  # by kind: module and class, which is imported when a file names it
    "gene-pca": "dre.data.gene_pca.GenePCA",
    "table": "dre.data.table_preparation.TablePreparation",
}


class Preparation(ABC):
    """A fitted step from what users have to rows of numbers.

    Attributes
    ----------
    kind : str
        Its name in files, a key of ``PREPARATIONS``.
    columns : list of str or None
        Columns that it reads, by name: the model's ``feature_names_in_``. None if the columns of X have no names.
    names_out : list of str
        Names of the numbers that it gives.
    sets_units : bool
        Whether it decides how much each column weighs; the model then does not standardize the result.
    """

    kind: ClassVar[str]
    columns: list[str] | None
    names_out: list[str]
    sets_units: bool = False

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """Return an array (n, d), a sparse matrix or Rows. Errors name the column that is missing, and the remedy."""

    @abstractmethod
    def state(self) -> State:
        """Return what was learned, as JSON and as tensors."""

    @classmethod
    @abstractmethod
    def restore(cls, config: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """Return the preparation again. A file may be hostile: raise a ValueError for what ``state`` can't return."""

    def module(self) -> nn.Module | None:
        """Return the step as a module from raw rows to rows of numbers; None if no tensor can hold what it reads."""
        return None


@dataclass(frozen=True)
class Prepared:
    """Data together with a preparation that was fitted to them; ``are_rows`` if X are the rows that it gave before."""

    X: Any
    preparation: Preparation
    are_rows: bool = False


def apply(preparation: Preparation, X: Any) -> Any:
    """Return the rows of numbers that a preparation gives for X, checked as rows that a user passes."""
    given = X if isinstance(X, Prepared) else Prepared(X, preparation)
    rows = given.X if given.are_rows else preparation.transform(given.X)
    rows = rows if is_rows(rows) else check_array(rows, "X")
    if tuple(rows.shape[1:]) != (len(preparation.names_out),):
        raise ValueError(
            f"the preparation {preparation.kind!r} gave rows of the shape {tuple(rows.shape[1:])}, and names "
            f"{len(preparation.names_out)} columns: its transform must return one column per name"
        )
    return rows


def to_file(preparation: Preparation) -> State:
    """Return a preparation as the JSON and the tensors of a model file."""
    config, tensors = preparation.state()
    return {"kind": preparation.kind, "config": config}, tensors


def from_file(content: Any, tensors: dict[str, Tensor]) -> Preparation:
    """Return the preparation of a model file; raise a ValueError if it is not one."""
    if not isinstance(content, dict) or content.keys() != {"kind", "config"} or not isinstance(content["config"], dict):
        raise ValueError("its preparation needs a kind and a config")
    kind = content["kind"]
    if not isinstance(kind, str) or kind not in PREPARATIONS:
        raise ValueError(f"its preparation is {kind!r}, this dre knows {', '.join(PREPARATIONS) or 'none'}")
    module, name = PREPARATIONS[kind].rsplit(".", 1)
    restored: Preparation = getattr(importlib.import_module(module), name).restore(content["config"], tensors)
    for names in (restored.names_out, restored.columns or []):
        check_names(names)
    return restored


def check_names(names: Sequence[Any]) -> None:
    """Raise a ValueError unless these are names of columns, each of them once."""
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("its preparation has columns without a name, or with the same one")
