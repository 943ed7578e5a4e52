"""How a file is read: which columns are features, labels and names, and what happens to missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dre.data.table_preparation import TablePreparation
from dre.io.readers.source import SourceError
from dre.notation import unknown

POLICIES = ("error", "drop", "mean", "median")


@dataclass(frozen=True)
class ReadOptions:
    """The user's choices for a file. Everything else is decided by the columns' kinds and values.

    Parameters
    ----------
    columns : sequence of str, default=()
        Features, and no others. ``"c-f"`` are all columns from c to f.
    drop : sequence of str, default=()
        Columns that are left out of everything.
    labels : sequence of str, default=()
        Columns that are metadata, not features.
    id : str, default=None
        The column with the names of the rows.
    categories : bool, default=False
        Whether columns of yes and no, and texts of at most 20 values, are features too; of at most 1,000 if ``columns`` names
        them.
    missing : {"error", "drop", "mean", "median"}, default="error"
        What happens to missing values of features.
    decimal : {".", ","}, default=None
        Decimal mark of a text table; None finds it.
    vector : str, default=None
        The column of vectors to map, if a table has several.
    size : (height, width), default=None
        Pixels to which images are resized; None takes the size that most of them have.
    coordinates : bool, default=False
        Whether the table is a map: its features are the columns dre1, dre2, …, or else all numbers that name no row.
    where_possible : bool, default=False
        Whether options that a format cannot follow are ignored instead of refused.
    features : sequence of str, default=()
        Features of an earlier table, by name, such as those of a model; nothing else is decided then.
    owner : str, default="the model"
        Whose features these are, for messages.
    row_shape : tuple of int, default=()
        Shape of the rows of a model, to which images are resized.
    fill : mapping of str to float, default=empty
        Replacements for the missing values of these features.
    preparation : TablePreparation, default=None
        That of a model or of an earlier table, whose columns ``features`` names.
    standardize : bool, default=None
        Whether numbers beside categories are divided by their standard deviations; None: yes.
    allow_external : bool, default=False
        Whether an HDF5 file may name other files that hold some of its content: external storage, external links and
        virtual datasets. They can be any files that you can read.
    """

    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    labels: Sequence[str] = ()
    id: str | None = None
    categories: bool = False
    missing: str = "error"
    decimal: str | None = None
    vector: str | None = None
    size: tuple[int, int] | None = None
    coordinates: bool = False
    where_possible: bool = False
    features: Sequence[str] = ()
    owner: str = "the model"
    row_shape: tuple[int, ...] = ()
    fill: Mapping[str, float] = field(default_factory=dict)
    preparation: TablePreparation | None = None
    standardize: bool | None = None
    allow_external: bool = False

    @property
    def allows_gaps(self) -> bool:
        """Whether rows may lack values: they are left out, or filled in."""
        return self.missing != "error" or bool(self.fill)

    def __post_init__(self) -> None:
        if self.missing not in POLICIES:
            raise SourceError(unknown("missing", self.missing, list(POLICIES)))
        if self.decimal not in (None, ".", ","):
            raise SourceError(f"decimal={self.decimal!r}: must be '.' or ','")
