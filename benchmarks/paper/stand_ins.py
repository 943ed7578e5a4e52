"""Data that a quick run does not have: scikit-learn's digits take their place, under a name of their own everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dre.datasets import Dataset, DatasetSplit, load
from paper.jobs import Selection
from paper.spec import ClaimComparison, Data, Figure, Row, Spec, Table

PREFIX = "digits-for-"  # of the name of a stand-in, which records and jobs bear
SIDE = 28  # of MNIST's images
LEVELS = {"imdb": ("sentiment", "stars"), "tasic2018": ("class", "cluster")}  # coarse and fine labels of data that have both


def stand_in_name(name: str) -> str:
    """Return the name of the digits in place of a data set.

    >>> stand_in_name("mnist-10k")
    'digits-for-mnist-10k'
    """
    return f"{PREFIX}{name}"


def stand_in_title(title: str) -> str:
    """Return the title of the digits in place of a data set.

    >>> stand_in_title("MNIST")
    'digits in place of MNIST'
    """
    return f"digits in place of {title}"


def stand_in(data: Data) -> Data:
    """Return the digits in place of a data set, cut and scored as that would be."""
    return replace(
        data,
        name=stand_in_name(data.name),
        title=stand_in_title(data.title),
        set="digits",
        options={},
        stand_in_for=data.name,
    )


def load_stand_in(data: Data) -> Dataset:
    """Load the digits in the shape of the missing data: images of 28 × 28 for MNIST and its kin, else 64 columns."""
    digits = load("digits", images=True)

    def shaped(part: DatasetSplit) -> DatasetSplit:
        rows = np.asarray(part.rows)
        images = np.kron(rows, np.ones((1, 3, 3)))[:, :SIDE, :SIDE] * 15  # 8 × 8 pixels of 0 to 16
        images = np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.uint8)
        shown = images if "mnist" in data.stand_in_for else rows.reshape(len(rows), -1)
        coarse, fine = LEVELS.get(data.stand_in_for, ("digit", "digit"))
        levels = {coarse: part.labels // 5, fine: part.labels}
        return DatasetSplit(shown, levels[coarse], levels)

    return replace(digits, title=data.title, train=shaped(digits.train), test=shaped(digits.test))


def replace_data(spec: Spec, missing: Iterable[str]) -> Spec:
    """Return the spec with stand-ins for missing data, without the published values of these."""
    names = {name: stand_in_name(name) for name in missing}
    made = {name: stand_in(data) if name in names else data for name, data in spec.data.items()}
    titles = {name: spec.data[name].title for name in names}
    return replace(
        spec,
        data={data.name: data for data in made.values()},
        tables=tuple(_table(table, names, titles) for table in spec.tables),
        figures=tuple(_figure(figure, names, titles) for figure in spec.figures),
        claims=tuple(
            replace(claim, comparisons=tuple(_comparison(each, names) for each in claim.comparisons)) for claim in spec.claims
        ),
    )


def replace_selected(selection: Selection, missing: Iterable[str]) -> Selection:
    """Return a selection with the names of the stand-ins."""
    names = {name: stand_in_name(name) for name in missing}
    return replace(selection, data=tuple(names.get(name, name) for name in selection.data))


def _table(table: Table, names: dict[str, str], titles: dict[str, str]) -> Table:
    def renamed(data: Iterable[str]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in data)

    return replace(
        table,
        about=_about(table.about, table.data, titles),
        data=renamed(table.data),
        not_run=tuple(replace(each, data=renamed(each.data)) for each in table.not_run),
        explained=tuple(replace(each, data=renamed(each.data)) for each in table.explained),
        published={name: values for name, values in table.published.items() if name not in names},
        not_differenced=renamed(table.not_differenced),
    )


def _figure(figure: Figure, names: dict[str, str], titles: dict[str, str]) -> Figure:
    def renamed(row: Row) -> Row:
        if row.data not in names:
            return row
        names_data = row.title.startswith(titles[row.data].split()[0].strip(","))
        title = stand_in_title(row.title) if names_data else f"digits, {row.title}"
        return replace(row, title=title, data=names[row.data])

    about = _about(figure.about, [row.data for row in figure.rows], titles)
    return replace(figure, about=about, rows=tuple(map(renamed, figure.rows)))


def _about(about: str, data: Iterable[str], titles: dict[str, str]) -> str:
    """Say before a text which of its data are not there."""
    replaced = list(dict.fromkeys(titles[name] for name in data if name in titles))
    if not replaced:
        return about
    return f"Here scikit-learn's digits are in place of: {'; '.join(replaced)}. In a full run: {about}"


def _comparison(comparison: ClaimComparison, names: dict[str, str]) -> ClaimComparison:
    def renamed(side: str) -> str:
        method, at, rest = side.partition("@")
        data, hash_, prefix = rest.partition("#")
        return f"{method}{at}{names.get(data, data)}{hash_}{prefix}"

    data = names.get(comparison.data, comparison.data)
    return replace(comparison, data=data, this=renamed(comparison.this), that=renamed(comparison.that))
