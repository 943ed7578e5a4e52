""".csv and .tsv, compressed or not: a header, the names of the rows where they have any, and a column per component."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dre.io.writers.sink import Array, Embedding, Format

DIGITS = 9  # of which float32 can be read back as it was


class _Delimited:
    def __init__(self, file: Any, embedding: Embedding, delimiter: str) -> None:
        self._writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._names, self._at = embedding.names, 0
        # as pandas and R write the names of rows: in a column without a name
        self._writer.writerow([*([""] if self._names is not None else []), *embedding.columns])

    def write(self, places: Array) -> None:
        lines = [[f"{value:.{DIGITS}g}" for value in row] for row in places.tolist()]
        if self._names is not None:
            names = self._names[self._at : self._at + len(places)]
            lines = [[str(name), *line] for name, line in zip(names, lines, strict=True)]
        self._at += len(places)
        self._writer.writerows(lines)


@contextmanager
def open_delimited(path: Path, embedding: Embedding) -> Iterator[_Delimited]:
    name = path.name.lower()
    opening = gzip.open if name.endswith(".gz") else open
    with opening(path, "wt", encoding="utf-8", newline="") as file:
        yield _Delimited(file, embedding, "\t" if ".tsv" in name else ",")


FORMAT = Format((".csv", ".tsv", ".csv.gz", ".tsv.gz"), open_delimited)
