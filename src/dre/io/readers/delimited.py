""".csv and .tsv, compressed or not: columns of numbers are the rows, columns of texts stand beside them."""

from __future__ import annotations

from pathlib import Path

from dre.io.readers.source import Format, Source, SourceError, listed
from dre.io.readers.text_table import read_table


def open_delimited(path: Path, part: str | None = None) -> Source:
    try:
        table = read_table(path)
    except ValueError as problem:
        raise SourceError(str(problem)) from problem
    told = []
    if table.named_rows:
        told.append("the first column has no name: it was taken for the names of the rows")
    if table.texts:
        told.append(f"columns of texts are no features: {listed([repr(name) for name in table.texts])}")
    return Source(table.values, table.columns, table.names, table.texts, told)


FORMAT = Format((".csv", ".tsv", ".csv.gz", ".tsv.gz"), open_delimited)
