"""The Allen Institute's tables of one region: a matrix of counts (genes × cells), a table of its cells, one of its genes."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse

from dre.datasets.dataset import Array
from dre.datasets.files import File, Folder, corrupt, find, first

MATRIX, SAMPLES, GENES = "exon-matrix", "samples-columns", "genes-rows"
BLOCK = 512  # genes read at a time: as dense rows of some 15,000 cells they take 60 MB


@dataclass(frozen=True)
class Tables:
    """Where the three tables of a region lie: in a zip as published, or in the folder it was extracted to."""

    path: Path
    prefix: str  # "mouse_VISp_2018-06-14", how the names of the tables start
    url: str

    @classmethod
    def of(cls, file: File, prefix: str, folder: Folder = None) -> Tables:
        matrix = f"{prefix}_{MATRIX}.csv"
        path = first([file.name, f"{Path(file.name).stem}/{matrix}", matrix], file.subfolder, folder)
        if path is None:
            path = find(file, folder)
        return cls(path if path.name == Path(file.name).name else path.parent, prefix, file.url)

    @contextmanager
    def open(self, table: str) -> Iterator[IO[bytes]]:
        """A table as bytes. A zip has a checksum of each, which is verified where the table is read to its end."""
        name = f"{self.prefix}_{table}.csv"
        try:
            if self.path.is_dir():
                with (self.path / name).open("rb") as file:
                    yield file
            else:
                with zipfile.ZipFile(self.path) as archive, archive.open(self._member(archive, name)) as file:
                    yield file
        except FileNotFoundError as problem:
            raise corrupt(self.path, f"there is no {name} in it", self.url) from problem
        except (zipfile.BadZipFile, zlib.error, EOFError, csv.Error) as problem:
            raise corrupt(self.path, f"{name} in it can't be read ({problem})", self.url) from problem

    def _member(self, archive: zipfile.ZipFile, name: str) -> str:
        inside = [member for member in archive.namelist() if member.rsplit("/", 1)[-1] == name]
        if not inside:
            raise FileNotFoundError(name)
        return inside[0]

    def digest(self) -> str:
        """What tells one content from another: the checksums in the zip's directory, or those of the extracted tables."""
        digest = hashlib.sha256()
        if self.path.is_dir():
            for table in (MATRIX, SAMPLES, GENES):
                with self.open(table) as file:
                    while chunk := file.read(2**20):
                        digest.update(chunk)
        else:
            with zipfile.ZipFile(self.path) as archive:
                digest.update(repr([(item.filename, item.file_size, item.CRC) for item in archive.infolist()]).encode())
        return digest.hexdigest()

    def columns(self, table: str, *names: str) -> tuple[list[str], ...]:
        """Columns of the table of cells or of genes, which is Latin-1."""
        with self.open(table) as file:
            rows = csv.DictReader(io.TextIOWrapper(file, "latin-1", newline=""))
            missing = set(names) - set(rows.fieldnames or [])
            if missing:
                raise corrupt(self.path, f"{table} has no column {', '.join(sorted(missing))}", self.url)
            values = [tuple((row[name] or "").strip() for name in names) for row in rows]
        return tuple([value[i] for value in values] for i in range(len(names)))

    def genes(self) -> list[str]:
        """By their Entrez id, in the order of the matrix."""
        return self.columns(GENES, "gene_entrez_id")[0]

    def counts(self, cells: list[str]) -> tuple[list[Any], Array]:
        """The counts of these cells, float32 CSR blocks (genes, cells), and how many counts each cell has in all genes."""
        genes = self.genes()
        blocks: list[Any] = []
        totals, at = np.zeros(len(cells)), 0
        with self.open(MATRIX) as file:
            header = [name.strip().strip('"') for name in file.readline().decode("latin-1").split(",")][1:]
            columns = self._places(header, cells)
            while rows := list(_lines(file, BLOCK)):
                block = np.empty((len(rows), len(cells)), np.float32)
                for i, line in enumerate(rows):
                    gene, values = _values(line)
                    if gene not in genes[at + i : at + i + 1] or len(values) != len(header):
                        announced = f"{len(header):,} counts of the gene that its table of genes has there"
                        raise corrupt(self.path, f"row {at + i + 1} of its matrix is not {announced}", self.url)
                    block[i] = values[columns]
                totals += block.sum(axis=0, dtype=np.float64)
                blocks.append(scipy.sparse.csr_array(block))
                at += len(rows)
        if at != len(genes):
            raise corrupt(self.path, f"its matrix has {at:,} genes and its table of genes {len(genes):,}", self.url)
        return blocks, totals

    def _places(self, header: list[str], cells: list[str]) -> Array:
        place = {name: i for i, name in enumerate(header)}
        missing = [cell for cell in cells if cell not in place]
        if missing:
            raise corrupt(
                self.path, f"its matrix lacks {len(missing)} cells of its table of cells, {missing[0]} first", self.url
            )
        return np.array([place[cell] for cell in cells], dtype=int)


def check_same_genes(one: Tables, other: Tables) -> None:
    """The rows of two matrices can stand side by side only if both mean the same gene."""
    for row, (here, there) in enumerate(zip_longest(one.genes(), other.genes(), fillvalue="missing"), start=1):
        if here != there:
            said = f"both must list the same genes in the same order, and gene {row} is {here} in one and {there} in the other"
            raise corrupt(f"{one.path} or {other.path}", said, f"{one.url} or {other.url}")


def _lines(file: IO[bytes], most: int) -> Iterator[bytes]:
    for _ in range(most):
        line = file.readline()
        if not line:
            return
        yield line


def _values(line: bytes) -> tuple[str, Array]:
    """The gene and its counts in all cells; R writes 100000 as 1e+05, and whole numbers are read ten times as fast."""
    gene, _, rest = line.partition(b",")
    try:
        values = np.fromstring(rest.decode("ascii"), dtype=float if b"e" in rest or b"." in rest else np.int64, sep=",")
    except ValueError:
        values = np.empty(0)
    return gene.decode("latin-1").strip().strip('"'), values
