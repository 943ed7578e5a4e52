"""Tasic 2018: 23,822 cells of the mouse cortex in 4 classes and 133 clusters, with their published colors and maps."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse

from dre.datasets.dataset import Array, Dataset, DatasetSplit, stratified_ids
from dre.datasets.files import Folder, RemoteFile, cached_arrays, corrupt, find_first, locate, read_file
from dre.datasets.scrna import fit_pca

SUBFOLDER = "tasic2018"
ALLEN = "https://celltypes.brain-map.org/api/v2/well_known_file_download/"
DATE = "2018-06-14"
REGIONS = {  # without published checksums: those inside the zips and the numbers of cells and clusters are verified
    "VISp": RemoteFile(f"mouse_VISp_gene_expression_matrices_{DATE}.zip", SUBFOLDER, f"{ALLEN}694413985"),
    "ALM": RemoteFile(f"mouse_ALM_gene_expression_matrices_{DATE}.zip", SUBFOLDER, f"{ALLEN}694413179"),
}
EXCLUDED = ("Low Quality", "No Class", "")
CELLS, CLUSTERS = 23_822, 133
TARGET_SUM = 1_000_000
MATRIX, SAMPLES, GENES = "exon-matrix", "samples-columns", "genes-rows"
BLOCK = 512  # genes read at a time: as dense rows of some 15,000 cells they take 60 MB

LABELS = RemoteFile(
    "tasic-sample_heatmap_plot_data.csv",
    SUBFOLDER,
    "https://raw.githubusercontent.com/berenslab/rna-seq-tsne/694d440bd9d56a1cbe4f7f1f8edbbd2d751f3382/data/"
    "tasic-sample_heatmap_plot_data.csv",
    "sha256:57a682d4a46ca76562bf8b9837550e9aac656501349590985b66e18b660a9369",
)
MAPS_URL = "https://raw.githubusercontent.com/dkobak/low-dim-embeddings-review/{}/results/embeddings/Tasic-et-al/{}.npy"
_COMMIT_1, _COMMIT_2 = "470d486e058e12adfbebde6135996a787e3c2e50", "10f96cad20486571e057047c48a4a76ba5be0eab"
_MAPS = {
    "tsne-p30": (_COMMIT_1, "b7a6244f2c6af4370c2df0b2a19a678a8bf6e8ed4e402a849a4ec0949a8ea8a7"),
    "umap-n15": (_COMMIT_1, "9744f93731a4fb75570db866b1ba6225418b9561fdd801c2b8eebdb06667e1fd"),
    "phate-n5": (_COMMIT_2, "7bf0f96798e42a0fc966133970e16995927a4f4e70988977c102c3d456c30ce1"),
    "LE-n100": (_COMMIT_2, "cb810b5c7ad09517c1897b5e36b3b1616bbdf7a3281fb92622bf76690c5c5eb7"),
    "mds": (_COMMIT_1, "7b1bf4450fa384b7594fdcf1d5502b8de166e518a87f1df6413a119cc0d4ac71"),
}
MAPS = {
    name: RemoteFile(f"reference-embeddings/{name}.npy", SUBFOLDER, MAPS_URL.format(commit, name), f"sha256:{checksum}")
    for name, (commit, checksum) in _MAPS.items()
}
DESCRIPTION = """Tasic et al. 2018 (Nature 563, 72): single-cell transcriptomes of the mouse primary visual and anterior
lateral motor cortex, {cells:,} cells (without "Low Quality" and "No Class"). Rows: exon counts per million, log(1 + x), the
{genes:,} most variable genes, PCA to {components} (random_state 0); genes and PCA chosen on the training rows. 75/25 split,
stratified by class, random_state 0. Labels: class and cluster. (c) 2018 Allen Institute for Brain Science, under its terms of
use."""


@dataclass(frozen=True, eq=False)
class TasicLabels:
    """Published labels of all cells, in the order of the published maps.

    Parameters
    ----------
    samples : array of shape (23822,)
        Names of the cells.
    levels : dict of arrays of shape (23822,)
        ``"class"`` and ``"cluster"``.
    colors : dict of dict
        For each level, the color of each label, such as ``"#EF4136"``.
    """

    samples: Array
    levels: dict[str, Array]
    colors: dict[str, dict[str, str]]


@dataclass(frozen=True, eq=False)
class ReferenceMaps:
    """Published maps (23822, 2) by name, such as ``"tsne-p30"``, with the labels of their rows."""

    maps: dict[str, Array]
    labels: TasicLabels


def load_tasic2018(folder: Folder = None, *, genes: int = 3000, n_components: int = 50) -> Dataset:
    """Load the cells as vectors, float32 (17866, 50) to train and (5956, 50) to test.

    The first call parses about 10⁹ counts, which takes some minutes and 4 GB of memory; the cache keeps the vectors.

    Parameters
    ----------
    folder : path, default=None
        Folder with the two published zips or their extracted folders, see `dre.datasets.load`.
    genes : int, default=3000
        Number of genes, the most variable ones.
    n_components : int, default=50
        Number of principal components.

    Returns
    -------
    dataset : Dataset
    """
    regions = [RegionTables.find(file, f"mouse_{region}_{DATE}", folder) for region, file in REGIONS.items()]
    cells = [_labeled_cells(tables) for tables in regions]
    levels = {level: np.concatenate([np.array(kept[level]) for kept in cells]) for level in ("class", "cluster")}
    found = len(levels["class"]), len(np.unique(levels["cluster"]))
    if found != (CELLS, CLUSTERS):
        path = " and ".join(str(tables.path) for tables in regions)
        raise corrupt(path, f"it has {found} cells and clusters, expected {(CELLS, CLUSTERS)}", ALLEN)
    ids = stratified_ids(levels["class"])
    settings = {
        "content": [tables.digest() for tables in regions],
        "genes": genes,
        "components": n_components,
        "per": TARGET_SUM,
    }
    vectors = cached_arrays("tasic2018", settings, lambda: fit_pca(*_expression(regions, cells, *ids, genes), n_components))
    train, test = (
        DatasetSplit.from_levels(vectors[name], {level: labels[chosen] for level, labels in levels.items()})
        for name, chosen in zip(("train", "test"), ids, strict=True)
    )
    description = DESCRIPTION.format(cells=CELLS, genes=genes, components=n_components)
    return Dataset("tasic2018", "Tasic 2018", train, test, description)


def load_labels(folder: Folder = None) -> TasicLabels:
    """Load classes and clusters with their published colors; needs the table of labels, not the counts.

    Parameters
    ----------
    folder : path, default=None
        See `dre.datasets.load`.

    Returns
    -------
    labels : TasicLabels
    """
    rows = list(csv.DictReader(io.StringIO(read_file(LABELS, folder).decode("utf-8"))))
    levels, colors = {}, {}
    for level in ("class", "cluster"):
        names = [row[f"{level}_label"].strip() for row in rows]
        levels[level] = np.array(names)
        colors[level] = dict(sorted(zip(names, (row[f"{level}_color"] for row in rows), strict=True)))
    return TasicLabels(np.array([row["sample_name"] for row in rows]), levels, colors)


def reference_maps(folder: Folder = None) -> ReferenceMaps:
    """Load published maps of these cells (de Bodt et al. 2025, from 50 principal components), with labels.

    Parameters
    ----------
    folder : path, default=None
        See `dre.datasets.load`.

    Returns
    -------
    reference : ReferenceMaps
    """
    maps = {name: np.load(io.BytesIO(read_file(file, folder)), allow_pickle=False) for name, file in MAPS.items()}
    return ReferenceMaps(maps, load_labels(folder))


def _labeled_cells(tables: RegionTables) -> dict[str, list[str]]:
    """Names, classes and clusters of the cells of a region that have both labels."""
    rows = zip(*tables.columns(SAMPLES, "sample_name", "class", "cluster"), strict=True)
    kept = [row for row in rows if row[1] not in EXCLUDED and row[2] not in EXCLUDED]
    return {name: [row[i] for row in kept] for i, name in enumerate(("sample", "class", "cluster"))}


def _expression(
    regions: list[RegionTables], cells: list[dict[str, list[str]]], train: Array, test: Array, genes: int
) -> tuple[Array, Array]:
    """log(1 + counts per million) of the genes that vary most among the training cells, float32 (cells, genes)."""
    _check_same_genes(*regions)
    counts = [tables.counts(kept["sample"]) for tables, kept in zip(regions, cells, strict=True)]
    blocks = [region for region, _ in counts]
    factors = TARGET_SUM / np.maximum(np.concatenate([totals for _, totals in counts]), 1)
    weights = np.zeros(len(factors))
    weights[train] = 1 / len(train)
    variances = []
    for block in _log_blocks(blocks, factors):
        mean = block @ weights
        variances.append(block.power(2) @ weights - mean**2)
    variance = np.concatenate(variances)
    chosen = np.zeros(len(variance), dtype=bool)
    chosen[np.argsort(-variance, kind="stable")[:genes]] = True
    kept, position = [], 0
    for block in _log_blocks(blocks, factors):
        kept.append(block[chosen[position : position + block.shape[0]]].toarray().astype(np.float32))
        position += block.shape[0]
    rows = np.concatenate(kept).T  # (cells, genes)
    return rows[train], rows[test]


def _log_blocks(blocks: list[list[Any]], factors: Array) -> Iterator[Any]:
    """Join the regions block by block and take logs, (genes, cells); all blocks at once would need several GB."""
    for parts in zip(*blocks, strict=True):
        block = scipy.sparse.hstack(parts, format="csr", dtype=np.float64)
        block.data = np.log1p(block.data * factors[block.indices])
        yield block


@dataclass(frozen=True)
class RegionTables:
    """The Allen Institute's three tables of a region: counts (genes × cells), cells, and genes.

    They are read from the published zip or from the folder it was extracted to.

    Parameters
    ----------
    path : Path
        The zip or the folder.
    prefix : str
        Start of the names of the tables, such as ``"mouse_VISp_2018-06-14"``.
    url : str
        Origin, for errors.
    """

    path: Path
    prefix: str
    url: str

    @classmethod
    def find(cls, file: RemoteFile, prefix: str, folder: Folder = None) -> RegionTables:
        """Find the zip or the extracted tables, or download the zip."""
        matrix = f"{prefix}_{MATRIX}.csv"
        path = find_first([file.name, f"{Path(file.name).stem}/{matrix}", matrix], file.subfolder, folder)
        if path is None:
            path = locate(file, folder)
        return cls(path if path.name == Path(file.name).name else path.parent, prefix, file.url)

    @contextmanager
    def open(self, table: str) -> Iterator[IO[bytes]]:
        """Open a table; reading it to its end verifies the checksum that a zip has of it."""
        name = f"{self.prefix}_{table}.csv"
        try:
            if self.path.is_dir():
                with (self.path / name).open("rb") as file:
                    yield file
            else:
                with zipfile.ZipFile(self.path) as archive, archive.open(self._member(archive, name)) as file:
                    yield file
        except FileNotFoundError as problem:
            raise corrupt(self.path, f"{name} is missing in it", self.url) from problem
        except (zipfile.BadZipFile, zlib.error, EOFError, csv.Error) as problem:
            raise corrupt(self.path, f"{name} in it cannot be read ({problem})", self.url) from problem

    def _member(self, archive: zipfile.ZipFile, name: str) -> str:
        inside = [member for member in archive.namelist() if member.rsplit("/", 1)[-1] == name]
        if not inside:
            raise FileNotFoundError(name)
        return inside[0]

    def digest(self) -> str:
        """Identify the content by the checksums in the directory of the zip, or by hashing the extracted tables."""
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
        """Read columns of the table of cells or of genes, which are in Latin-1."""
        with self.open(table) as file:
            rows = csv.DictReader(io.TextIOWrapper(file, "latin-1", newline=""))
            missing = set(names) - set(rows.fieldnames or [])
            if missing:
                raise corrupt(self.path, f"{table} has no column {', '.join(sorted(missing))}", self.url)
            values = [tuple((row[name] or "").strip() for name in names) for row in rows]
        return tuple([value[i] for value in values] for i in range(len(names)))

    def genes(self) -> list[str]:
        """Read the Entrez ids of the genes, in the order of the matrix."""
        return self.columns(GENES, "gene_entrez_id")[0]

    def counts(self, cells: list[str]) -> tuple[list[Any], Array]:
        """Read the counts of these cells, as float32 CSR blocks (genes, cells), and the total count of each cell."""
        genes = self.genes()
        blocks: list[Any] = []
        totals, position = np.zeros(len(cells)), 0
        with self.open(MATRIX) as file:
            header = [name.strip().strip('"') for name in file.readline().decode("latin-1").split(",")][1:]
            columns = self._column_ids(header, cells)
            while lines := list(islice(file, BLOCK)):
                block = np.empty((len(lines), len(cells)), np.float32)
                for i, line in enumerate(lines, start=position):
                    gene, values = _parse_line(line)
                    if gene not in genes[i : i + 1] or len(values) != len(header):
                        expected = f"{len(header):,} counts of the gene in that row of its table of genes"
                        raise corrupt(self.path, f"row {i + 1} of its matrix does not hold {expected}", self.url)
                    block[i - position] = values[columns]
                totals += block.sum(axis=0, dtype=np.float64)
                blocks.append(scipy.sparse.csr_array(block))
                position += len(lines)
        if position != len(genes):
            raise corrupt(self.path, f"its matrix has {position:,} genes, its table of genes {len(genes):,}", self.url)
        return blocks, totals

    def _column_ids(self, header: list[str], cells: list[str]) -> Array:
        ids = {name: i for i, name in enumerate(header)}
        missing = [cell for cell in cells if cell not in ids]
        if missing:
            reason = f"its matrix lacks {len(missing)} cells of its table of cells, first {missing[0]}"
            raise corrupt(self.path, reason, self.url)
        return np.array([ids[cell] for cell in cells], dtype=int)


def _check_same_genes(one: RegionTables, other: RegionTables) -> None:
    """Raise `CorruptFileError` unless two regions list the same genes in the same order."""
    for row, (first, second) in enumerate(zip_longest(one.genes(), other.genes(), fillvalue="missing"), start=1):
        if first != second:
            reason = (
                f"both must list the same genes in the same order, but gene {row} is {first} in one and {second} in the other"
            )
            raise corrupt(f"{one.path} or {other.path}", reason, f"{one.url} or {other.url}")


def _parse_line(line: bytes) -> tuple[str, Array]:
    """Return the gene and its counts in all cells; R writes 100000 as 1e+05, and integers parse ten times as fast."""
    gene, _, rest = line.partition(b",")
    try:
        values = np.fromstring(rest.decode("ascii"), dtype=float if b"e" in rest or b"." in rest else np.int64, sep=",")
    except ValueError:
        values = np.empty(0)
    return gene.decode("latin-1").strip().strip('"'), values
