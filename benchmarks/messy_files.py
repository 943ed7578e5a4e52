"""Files as people have them: 240 shops of four kinds in tables of every form, vectors, photos and cells."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
N, KINDS = 240, ("bakery", "café", "kiosk", "market")
MEASURES = ("area", "rent", "rating", "distance")
FEATURES = list(MEASURES)
RNG_SEED = 0


def shops() -> dict[str, list[Any]]:
    """Columns of a table: an id, a postal code, a date, four measures in different units, a kind, and what is not a feature."""
    rng = np.random.default_rng(RNG_SEED)
    kind = np.arange(N) % len(KINDS)
    area = 40 + 60 * np.array([0, 1, 0, 1])[kind] + rng.normal(0, 9, N)
    rating = 2 + 1.2 * np.array([0, 0, 1, 1])[kind] + rng.normal(0, 0.2, N)
    distance = 1 + 1.5 * np.array([0, 1, 1, 0])[kind] + rng.normal(0, 0.25, N)
    rent = rng.lognormal(7.5, 0.5, N)  # the widest column, and it says nothing about the kind
    days = np.datetime64("2019-01-07") + rng.integers(0, 1500, N)
    return {
        "shop_id": [f"S{100_000 + 37 * i}" for i in rng.permutation(N)],
        "zip": [f"{code:05d}" for code in rng.integers(1000, 99_999, N)],
        "opened": [str(day) for day in days],
        "area": area.round(1).tolist(),
        "rent": rent.round(2).tolist(),
        "rating": rating.round(2).tolist(),
        "distance": distance.round(3).tolist(),
        "kind": [KINDS[k] for k in kind],
        "chain": ["yes" if each else "no" for each in rng.integers(0, 2, N)],
        "country": ["DE"] * N,
        "page": [f"https://example.com/shop/{i}" for i in range(N)],
    }


@dataclass(frozen=True)
class MessyFile:
    """A file, and what should become of it.

    Parameters
    ----------
    name : str
        Of the file or folder.
    about : str
        What is messy about it, for the documentation.
    write : callable
        Writes it to a path.
    options : tuple of str, default=()
        Options of ``dre fit``.
    features : list of str or None, default=None
        Columns that are mapped; None if they have no names.
    error : str, default=""
        What the message says, if the file cannot be mapped as it is.
    accuracy : float, default=0.9
        1-NN accuracy that the map must reach; 0 if the file has no labels.
    """

    name: str
    about: str
    write: Callable[[Path], None]
    options: tuple[str, ...] = ()
    features: list[str] | None = None
    error: str = ""
    accuracy: float = 0.9


def _text(
    path: Path,
    table: dict[str, list[Any]],
    *,
    separator: str = ",",
    encoding: str = "utf-8",
    number: Callable[[float], str] = repr,
    before: str = "",
    row_names: bool = False,
) -> None:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator="\n")
    writer.writerow(table)
    for i, record in enumerate(zip(*table.values(), strict=True)):
        cells = [number(each) if isinstance(each, float) else each for each in record]
        writer.writerow([i + 1, *cells] if row_names else cells)
    path.write_bytes((before + file.getvalue()).encode(encoding))


def _german(value: float) -> str:
    """1.234,5"""
    return f"{value:,}".translate(str.maketrans(",.", ".,"))


def _with_gaps() -> dict[str, list[Any]]:
    table = shops()
    for column, gap, rows in (("area", "", (3, 50, 51)), ("rating", "NA", (7,)), ("kind", "", (9, 10))):
        table[column] = [gap if i in rows else value for i, value in enumerate(table[column])]
    return table


def _with_word() -> dict[str, list[Any]]:
    table = shops()
    table["area"][11] = "about 50"
    return table


def _with_units() -> dict[str, list[Any]]:
    table = shops()
    table["rent"] = [f"€ {value:,.2f}" for value in table["rent"]]
    table["rating"] = [f"{20 * value:.1f} %" for value in table["rating"]]
    return table


def _with_notes() -> dict[str, list[Any]]:
    return {**shops(), "note": [f'said "hello, {i}"\nand left; twice' for i in range(N)]}


def _ragged(path: Path) -> None:
    _text(path, shops())
    lines = path.read_text().splitlines()
    lines[5] += ",one,two"
    path.write_text("\n".join(lines))


def _frame(table: dict[str, list[Any]]) -> Any:
    import polars as pl

    return pl.DataFrame(table).with_columns(pl.col("opened").str.to_date())


def _vectors(names: tuple[str, ...]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import polars as pl

        rng, table = np.random.default_rng(RNG_SEED), shops()
        centers = 4 * rng.normal(size=(len(KINDS), 32))
        frame: dict[str, Any] = {"id": list(range(N)), "year": list(range(1900, 1900 + N)), "kind": table["kind"]}
        vectors = {name: (centers[np.arange(N) % len(KINDS)] + rng.normal(size=(N, 32))).astype(np.float32) for name in names}
        frame |= {name: pl.Series(values.tolist(), dtype=pl.List(pl.Float32)) for name, values in vectors.items()}
        pl.DataFrame(frame).write_parquet(path)

    return write


def _photos(path: Path) -> None:
    """Squares of four colors, of all sizes and modes, in a folder per kind."""
    from PIL import Image

    rng = np.random.default_rng(RNG_SEED)
    colors = np.array([[220, 40, 40], [40, 200, 60], [50, 60, 220], [230, 220, 60]])
    for i in range(80):
        kind, height, width = i % len(KINDS), *rng.integers(40, 90, 2)
        pixels = np.clip(colors[kind] + rng.normal(0, 20, (height, width, 3)), 0, 255).astype(np.uint8)
        folder = path / KINDS[kind]
        folder.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(pixels)
        image = image.convert(("RGB", "RGBA", "P")[i % 3])
        image.save(folder / f"photo {i}.png")


def _cells(path: Path) -> None:
    """Raw counts of 60 genes, in the layout of AnnData."""
    import h5py

    rng = np.random.default_rng(RNG_SEED)
    kind = np.arange(N) % len(KINDS)
    rates = rng.gamma(0.5, 2.0, (len(KINDS), 60))
    counts = rng.poisson(rates[kind] * rng.lognormal(1, 0.5, (N, 1))).astype(np.float32)
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        file["X"] = counts
        for table, names in (("obs", [f"cell {i}" for i in range(N)]), ("var", [f"gene {i}" for i in range(60)])):
            group = file.create_group(table)
            group.attrs.update({"encoding-type": "dataframe", "_index": "_index", "column-order": []})
            group.create_dataset("_index", data=np.array(names, dtype=object), dtype=h5py.string_dtype())
        file["obs"].create_dataset("kind", data=np.array([KINDS[k] for k in kind], dtype=object), dtype=h5py.string_dtype())


def _genes(path: Path) -> None:
    """A header of 16,000 names in one line."""
    rng = np.random.default_rng(RNG_SEED)
    kind = np.arange(60) % 2
    values = (rng.random((60, 16_000)) + kind[:, None] * (np.arange(16_000) < 4000)).round(2)
    lines = [",".join(["kind", *(f"gene_{i}" for i in range(16_000))])]
    lines += [",".join([KINDS[kind[i]], *map(str, values[i])]) for i in range(60)]
    path.write_text("\n".join(lines))


def _json_lines(path: Path) -> None:
    table = shops()
    records = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    path.write_text("\n".join(map(json.dumps, records)))


def text(make: Callable[[], dict[str, list[Any]]] = shops, **how: Any) -> Callable[[Path], None]:
    """Write a table as text, in some form."""
    return lambda path: _text(path, make(), **how)


def frame(method: str) -> Callable[[Path], None]:
    """Write the table by a method of polars."""

    def write(path: Path) -> None:
        getattr(_frame(shops()), method)(path)

    return write


def _texts_alone() -> dict[str, list[Any]]:
    return {name: values for name, values in shops().items() if name in ("kind", "page")}


LABELED = ("--labels", "kind")
TITLE = "Shops of the region\nprinted 2024-03-01\n\n"
COMMENTS = "# shops\n# of a region\n"
_german_text = text(separator=";", encoding="latin-1", number=_german)
_r_text = text(separator=" ", row_names=True)
_different = "ids, postal codes, dates, texts, a constant, units that differ"
GAPS = text(_with_gaps)
TEXTS = (
    MessyFile("plain.csv", _different, text(), LABELED, FEATURES),
    MessyFile("german.csv", "semicolons, decimal commas, `1.234,5`, Latin-1", _german_text, LABELED, FEATURES),
    MessyFile("excel.txt", "tabs, UTF-16", text(separator="\t", encoding="utf-16"), LABELED, FEATURES),
    MessyFile("comments.txt", "bars, comments", text(separator="|", before=COMMENTS), LABELED, FEATURES),
    MessyFile("title.csv", "a title above the header", text(before=TITLE), LABELED, FEATURES),
    MessyFile("write_table.txt", "R's `write.table`: row names without a header", _r_text, LABELED, FEATURES),
    MessyFile("units.csv", "currencies and percents", text(_with_units), LABELED, FEATURES),
    MessyFile("notes.csv", "texts with quotes, separators and line breaks", text(_with_notes), LABELED, FEATURES),
    MessyFile("gaps.csv", "empty cells and `NA`, also in labels", GAPS, LABELED, error="missing values in 4 of 240 rows"),
    MessyFile("gaps.csv", "the same", GAPS, (*LABELED, "--missing", "median"), FEATURES),
    MessyFile("gaps.csv", "the same", GAPS, (*LABELED, "--missing", "drop"), FEATURES),
    MessyFile("word.csv", "a word among numbers", text(_with_word), LABELED, error="'about 50' is not a number"),
    MessyFile("ragged.csv", "a line that is too long", _ragged, LABELED, error="line 6 has 13 values, the first line 11"),
    MessyFile("texts.csv", "no numbers at all", text(_texts_alone), error="no column of numbers"),
    MessyFile("answers.csv", "yes and no as a feature", text(), (*LABELED, "--categories"), [*FEATURES, "chain"]),
    MessyFile("genes.csv", "16,000 columns", _genes, LABELED, [f"gene_{i}" for i in range(16_000)]),
)
OTHERS = (
    MessyFile("sheet.xlsx", "a spreadsheet with dates", frame("write_excel"), LABELED, FEATURES),
    MessyFile("lines.jsonl", "JSON lines", _json_lines, LABELED, FEATURES),
    MessyFile("table.feather", "Arrow", frame("write_ipc"), LABELED, FEATURES),
    MessyFile("table.parquet", "Parquet", frame("write_parquet"), LABELED, FEATURES),
    MessyFile("embeddings.parquet", "vectors beside an id and a year", _vectors(("embedding",)), LABELED),
    MessyFile("several.parquet", "several vectors", _vectors(("title", "body")), LABELED, error="several columns of vectors"),
    MessyFile("several.parquet", "the same", _vectors(("title", "body")), (*LABELED, "--vector", "body")),
    MessyFile("photos", "all sizes and modes, a folder per kind", _photos, ("--labels", "folder", "--size", "24")),
    MessyFile("cells.h5ad", "raw counts of cells", _cells, LABELED, [f"gene {i}" for i in range(60)]),
)
FILES = (*TEXTS, *OTHERS)
