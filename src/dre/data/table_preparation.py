"""TablePreparation: from a table with numbers, booleans, categories and gaps to rows of numbers.

The work is done by scikit-learn: `SimpleImputer` fills gaps, `StandardScaler` shifts and divides numbers and booleans, and
`OneHotEncoder` encodes categories. In a model's file it is JSON, from which any program can prepare a row:

``{"named": true, "columns": [...]}``, where ``named`` tells whether columns are found by name (else by position), and each
column of the table, in the order of the result, is one of

``{"name": "mass", "kind": "number", "center": 4201.75, "scale": 801.9, "fill": 4050.0}``
    gives one value, ``(x - center) / scale``.
``{"name": "alive", "kind": "boolean", "center": 0.0, "scale": 1.0, "fill": 1.0}``
    gives one value, ``(x - center) / scale`` with x = 1 for true and 0 for false. True is also written ``yes``, ``y``, ``t``,
    ``ja``, ``oui``, ``si``, ``sí`` and ``1``, false ``no``, ``n``, ``f``, ``nein``, ``non`` and ``0``, in any case.
``{"name": "sex", "kind": "category", "categories": ["female", "male"], "scale": 1.41, "fill": "male"}``
    gives one value per category, ``1 / scale`` for the category of the row and 0 for all others. A value that is not listed
    gives zeros. Whole numbers are compared as texts without a fraction.

A missing value, also an empty text, is replaced by ``fill``: a number, 0 or 1, or a category. If ``fill`` is null, a missing
value is an error.

Two rows of different categories, or of true and false, are 1 apart, as two rows are whose number differs by a standard
deviation. ``benchmarks/mixed_tables.py`` measures other weights.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import narwhals as nw
import numpy as np
import torch
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import Tensor, nn

from dre.data.column_encoding import ColumnEncoding
from dre.data.column_names import check_known, check_unique, listed
from dre.data.foreign_rows import foreign_rows
from dre.data.preparation import Preparation, State
from dre.data.table_columns import BOOLEAN, CATEGORY, NUMBER, to_flags, to_numbers, to_texts
from dre.data.table_columns import missing as missing_values
from dre.data.validation import refuse_path, with_gaps
from dre.runtime.caller import level_of_caller

Array = np.ndarray[Any, Any]
POLICIES = {"error": None, "mean": "mean", "median": "median"}  # strategies of scikit-learn for numbers
MOST_FREQUENT = "most_frequent"  # strategy for booleans and categories
MISMATCH = math.sqrt(2.0)  # scale of categories: rows of different ones are 1 apart


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """Rows of numbers, with what was special about them.

    Parameters
    ----------
    rows : array of shape (n, d), float64
    filled : dict of arrays of shape (n,) of bool
        Which values of a column were missing, for columns that lack some.
    unknown : dict of list of str
        Values of rows, by column, that are none of its categories: one for each row.
    """

    rows: Array
    filled: dict[str, Array] = field(default_factory=dict)
    unknown: dict[str, list[str]] = field(default_factory=dict)

    @property
    def unknown_notes(self) -> list[str]:
        """A line for each column with unknown values."""
        return [
            f"{len(values):,} row{'s have values' if len(values) > 1 else ' has a value'} of {name!r} that the fit did not "
            f"have ({listed(sorted(set(values)))}): {'they are' if len(values) > 1 else 'it is'} placed without this column"
            for name, values in self.unknown.items()
        ]


class GapError(ValueError):
    """Missing values that nothing fills in; the message counts them by column, and names the remedy."""


@dataclass(frozen=True, eq=False)
class TablePreparation(Preparation):
    """Encodes categories and booleans, fills gaps, and brings columns to one unit, as scikit-learn does.

    Parameters
    ----------
    encodings : list of ColumnEncoding
        The columns that are read, in the order of the result.
    named : bool, default=True
        Whether they are found by name; else by position, in arrays.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({"size": [1.0, None, 5.0], "sex": ["f", "m", "m"]})
    >>> preparation = TablePreparation.fit(frame, {"size": "number", "sex": "category"}, missing="mean")
    >>> preparation.names_out
    ['size', 'sex=f', 'sex=m']
    >>> preparation.transform(frame).round(2).tolist()
    [[-1.22, 0.71, 0.0], [0.0, 0.0, 0.71], [1.22, 0.0, 0.71]]
    """

    kind = "table"

    encodings: list[ColumnEncoding]
    named: bool = True

    @classmethod
    def fit(
        cls,
        X: Any,
        kinds: Mapping[str, str],
        *,
        missing: str = "error",
        standardize: bool | None = None,
        named: bool = True,
        ids: Array | None = None,
    ) -> Self:
        """Learn categories, units and fills.

        Parameters
        ----------
        X : DataFrame, mapping of columns, or array
        kinds : mapping of str
            The kind of each column that is read: number, boolean or category.
        missing : {"error", "mean", "median"}, default="error"
            What fills the gaps of numbers; booleans and categories then get their most frequent value.
        standardize : bool, optional
            Whether numbers are divided by their standard deviation; by default if there are other columns beside them.
        named : bool, default=True
        ids : array of int, optional
            Rows from which it learns, some of them several times: those of ``dre.data.weights.RowWeights``. By default all.
        """
        check_missing(missing)
        if standardize is None:
            standardize = len(set(kinds.values())) > 1
        columns = _select(X, list(kinds), named=named)
        how: dict[str, Any] = {"missing": missing, "standardize": standardize, "ids": ids}
        encodings = [_fit_column(name, kind, columns[name], **how) for name, kind in kinds.items()]
        fitted = cls(encodings, named)
        counts = Counter(fitted.names_out if fitted._has_categories else ())
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise ValueError(f"two columns give the feature {twice[0]!r}: rename one of them")
        return fitted

    @property
    def _has_categories(self) -> bool:
        return any(each.kind == CATEGORY for each in self.encodings)

    @property
    def columns(self) -> list[str] | None:  # type: ignore[override]
        return [each.name for each in self.encodings] if self.named else None

    @property
    def sets_units(self) -> bool:  # type: ignore[override]
        return not self._reads_numbers

    @cached_property
    def names_out(self) -> list[str]:  # type: ignore[override]
        return [name for each in self.encodings for name in each.names_out]

    def transform(self, X: Any) -> Array:
        """Return rows of numbers, float64 (n, d), of a DataFrame or a mapping of columns; other columns are ignored.

        Values that are none of a column's categories give zeros, with a warning that counts them.
        """
        found = self.encode(X)
        for note in found.unknown_notes:
            warnings.warn(note, stacklevel=level_of_caller())
        return found.rows

    def encode(self, X: Any, *, allow_gaps: bool = False) -> EncodedTable:
        """Return rows of numbers, and tell which values were missing or are unknown.

        Missing values that nothing fills are an error; with ``allow_gaps``, such rows are NaN.
        """
        columns = _select(X, [each.name for each in self.encodings], named=self.named, all_numbers=self._reads_numbers)
        read = {each.name: _values(each, columns[each.name]) for each in self.encodings}
        n = len(next(iter(read.values())))
        if not n:
            raise ValueError("X has no rows: pass at least one")
        gaps = {name: missing_values(values) for name, values in read.items()}
        gaps = {name: mask for name, mask in gaps.items() if mask.any()}
        open_ = {each.name: gaps[each.name] for each in self.encodings if each.fill is None and each.name in gaps}
        if not allow_gaps:
            _refuse(open_, n)
        out = np.empty((n, len(self.names_out)))
        unknown: dict[str, list[str]] = {}
        places = self._places
        if self._quantities:
            block = np.column_stack([read[each.name] for each in self._quantities])
            out[:, [places[each.name].start for each in self._quantities]] = self._number_steps(block)
        for each in self.encodings:
            if each.kind == CATEGORY:
                out[:, places[each.name]], values = self._one_hot(each, read[each.name])
                unknown |= {each.name: values} if values else {}
        if open_:
            out[np.any(list(open_.values()), axis=0)] = np.nan
        return EncodedTable(out, gaps, unknown)

    @cached_property
    def _quantities(self) -> list[ColumnEncoding]:
        """Columns that give one value."""
        return [each for each in self.encodings if each.kind != CATEGORY]

    @property
    def _reads_numbers(self) -> bool:
        return all(each.kind == NUMBER for each in self.encodings)

    @cached_property
    def _places(self) -> dict[str, slice]:
        """Columns of the result, by column of the table."""
        stops = np.cumsum([len(each.names_out) for each in self.encodings]).tolist()
        return {each.name: slice(stop - len(each.names_out), stop) for each, stop in zip(self.encodings, stops, strict=True)}

    # scikit-learn's transformers, made of the encodings: those of a fit and those of a file compute the same bits

    def _number_steps(self, block: Array) -> Array:
        imputer, scaler = self._number_transformers
        rows: Array = scaler.transform(imputer.transform(block))
        return rows

    @cached_property
    def _number_transformers(self) -> tuple[SimpleImputer, StandardScaler]:
        fills = np.array([[np.nan if each.fill is None else each.fill for each in self._quantities]], dtype=np.float64)
        imputer = SimpleImputer(keep_empty_features=True).fit(fills)  # the mean of one row is this row
        scaler = StandardScaler()
        scaler.mean_ = np.array([each.center for each in self._quantities])
        scaler.scale_ = np.array([each.scale for each in self._quantities])
        scaler.n_features_in_ = len(self._quantities)
        return imputer, scaler

    def _one_hot(self, each: ColumnEncoding, texts: Array) -> tuple[Array, list[str]]:
        """Return the columns of a category, and the values that are unknown; a gap is none of them."""
        texts = texts[:, None]
        if each.fill is not None:
            imputer = SimpleImputer(strategy=MOST_FREQUENT, missing_values=None)
            texts = imputer.fit(np.array([[each.fill]], dtype=object)).transform(texts)
        known = np.array(each.categories, dtype=object)
        encoder = OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False).fit(known[:, None])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = encoder.transform(texts)
        return rows / each.scale, [text for text in texts[~rows.any(1), 0] if text is not None]

    # The file of a model

    def state(self) -> State:
        return {"named": self.named, "columns": [each.to_json() for each in self.encodings]}, {}

    @classmethod
    def restore(cls, config: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        if tensors or config.keys() != {"named", "columns"} or not isinstance(config["named"], bool):
            raise ValueError("its table needs its columns, and no tensors")
        if not isinstance(config["columns"], list) or not config["columns"]:
            raise ValueError("its table has no columns")
        return cls([ColumnEncoding.from_json(each) for each in config["columns"]], config["named"])

    def module(self) -> nn.Module | None:
        """Return a module that fills and scales numbers; None for a table with other columns."""
        return NumbersModule(self.encodings) if self._reads_numbers else None


class NumbersModule(nn.Module):
    """`TablePreparation` of numbers alone, as a module."""

    def __init__(self, encodings: Sequence[ColumnEncoding]) -> None:
        super().__init__()
        fills = [math.nan if each.fill is None else each.fill for each in encodings]
        for name, values in {
            "fill": fills,
            "center": [each.center for each in encodings],
            "unit": [each.scale for each in encodings],
        }.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.double))

    def forward(self, x: Tensor) -> Tensor:
        x = x.double()
        x = torch.where(x.isnan(), self.get_buffer("fill"), x)
        return (x - self.get_buffer("center")) / self.get_buffer("unit")


def check_missing(missing: Any) -> str:
    """Check the parameter ``missing``."""
    if not isinstance(missing, str) or missing not in POLICIES:
        raise ValueError(f"missing={missing!r}: expected {', '.join(map(repr, POLICIES))}")
    return missing


def _fit_column(
    name: str, kind: str, column: Any, *, missing: str, standardize: bool, ids: Array | None = None
) -> ColumnEncoding:
    fills = missing != "error"
    each = ColumnEncoding(name, kind)
    values = _values(each, column)  # of all rows, so that an error names the row of X
    values = values if ids is None else values[ids]
    present = values[~missing_values(values)]
    if not len(present):
        raise ValueError(f"the column {name!r} has no value at all: leave it out, columns=[...] names the others")
    if kind == CATEGORY:
        fill = _statistic(MOST_FREQUENT, values, None) if fills else None
        return replace(each, categories=tuple(sorted(set(present.tolist()))), scale=MISMATCH, fill=fill)
    strategy = MOST_FREQUENT if kind == BOOLEAN else POLICIES[missing]
    fill = float(_statistic(strategy, values, np.nan)) if fills and strategy is not None else None
    if kind == BOOLEAN or not standardize:
        return replace(each, fill=fill)
    filled = values if fill is None else np.where(np.isnan(values), fill, values)
    scaler = StandardScaler().fit(filled[~np.isnan(filled)][:, None])
    if not (np.isfinite(scaler.mean_).all() and np.isfinite(scaler.scale_).all()):
        raise ValueError(f"the column {name!r} has values whose squares float64 can't hold: divide it by a constant")
    return replace(each, center=float(scaler.mean_[0]), scale=float(scaler.scale_[0]), fill=fill)


def _statistic(strategy: str, values: Array, gap: Any) -> Any:
    """What a strategy of scikit-learn's imputer fills in."""
    return SimpleImputer(strategy=strategy, missing_values=gap).fit(values[:, None]).statistics_[0]


def _values(each: ColumnEncoding, column: Any) -> Array:
    """The values of a column: texts of categories, else float64."""
    if each.kind == CATEGORY:
        return to_texts(column)
    if each.kind == BOOLEAN:
        return to_flags(each.name, column)
    values = to_numbers(each.name, column)
    infinite = np.isinf(values)
    if infinite.any():
        raise ValueError(f"the column {each.name!r} has infinity in row {int(infinite.argmax())}: drop this row")
    return values


def _refuse(gaps: Mapping[str, Array], n: int) -> None:
    """Raise a GapError if there are gaps."""
    if not gaps:
        return
    parts = [f"{int(mask.sum()):,} in {name!r}, the first in row {int(mask.argmax())}" for name, mask in gaps.items()]
    rows = int(np.any(list(gaps.values()), axis=0).sum())
    raise GapError(
        f"missing values in {rows:,} of {n:,} rows: {listed(parts, '; ', quote=False)}. "
        "Fit with missing='median' or missing='mean', which fill them in, or drop these rows."
    )


def _select(X: Any, names: list[str], *, named: bool = True, all_numbers: bool = True) -> dict[str, Any]:
    """Return columns by name, from a DataFrame, a mapping, or an array whose columns have these names in this order."""
    check_unique(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if named and isinstance(frame, nw.DataFrame | Mapping):
        known = frame.columns if isinstance(frame, nw.DataFrame) else list(frame)
        check_known(names, known)
        return {name: frame.get_column(name) if isinstance(frame, nw.DataFrame) else frame[name] for name in names}
    if isinstance(frame, nw.DataFrame):
        X = frame.to_numpy()
    refuse_path(X, "X")
    if named and not all_numbers:
        first = "X.collect(), " if hasattr(X, "collect") else ""
        raise ValueError(f"the model reads the columns {listed(names)} by name: pass {first}a DataFrame with these columns")
    X = with_gaps(foreign_rows(X, names if named else None), "X")
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ValueError(f"X has the shape {X.shape}, but the model reads rows of {len(names)} columns")
    return dict(zip(names, X.T, strict=True))
