"""Tasic 2018: 23,822 cells of the mouse's cortex in 4 classes and 133 clusters; also their published colours and maps."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre.datasets.allen import SAMPLES, Tables, check_same_genes
from dre.datasets.dataset import Array, Dataset, Part
from dre.datasets.files import File, Folder, corrupt, read
from dre.datasets.remembered import remembered
from dre.datasets.scrna import principal_components
from dre.datasets.split import split_ids

SUBFOLDER = "tasic2018"
ALLEN = "https://celltypes.brain-map.org/api/v2/well_known_file_download/"
DATE = "2018-06-14"
REGIONS = {  # no checksums are published: those inside the zips are verified, and the numbers of cells and clusters
    "VISp": File(f"mouse_VISp_gene_expression_matrices_{DATE}.zip", SUBFOLDER, f"{ALLEN}694413985"),
    "ALM": File(f"mouse_ALM_gene_expression_matrices_{DATE}.zip", SUBFOLDER, f"{ALLEN}694413179"),
}
LEFT_OUT = ("Low Quality", "No Class", "")
CELLS, CLUSTERS = 23_822, 133
PER = 1_000_000

LABELS = File(
    "tasic-sample_heatmap_plot_data.csv",
    SUBFOLDER,
    "https://raw.githubusercontent.com/berenslab/rna-seq-tsne/694d440bd9d56a1cbe4f7f1f8edbbd2d751f3382/data/"
    "tasic-sample_heatmap_plot_data.csv",
    "sha256:57a682d4a46ca76562bf8b9837550e9aac656501349590985b66e18b660a9369",
)
MAPS_FROM = "https://raw.githubusercontent.com/dkobak/low-dim-embeddings-review/{}/results/embeddings/Tasic-et-al/{}.npy"
MAPS = {
    name: File(f"reference-embeddings/{name}.npy", SUBFOLDER, MAPS_FROM.format(commit, name), f"sha256:{checksum}")
    for name, commit, checksum in (
        (
            "tsne-p30",
            "470d486e058e12adfbebde6135996a787e3c2e50",
            "b7a6244f2c6af4370c2df0b2a19a678a8bf6e8ed4e402a849a4ec0949a8ea8a7",
        ),
        (
            "umap-n15",
            "470d486e058e12adfbebde6135996a787e3c2e50",
            "9744f93731a4fb75570db866b1ba6225418b9561fdd801c2b8eebdb06667e1fd",
        ),
        (
            "phate-n5",
            "10f96cad20486571e057047c48a4a76ba5be0eab",
            "7bf0f96798e42a0fc966133970e16995927a4f4e70988977c102c3d456c30ce1",
        ),
        (
            "LE-n100",
            "10f96cad20486571e057047c48a4a76ba5be0eab",
            "cb810b5c7ad09517c1897b5e36b3b1616bbdf7a3281fb92622bf76690c5c5eb7",
        ),
        (
            "mds",
            "470d486e058e12adfbebde6135996a787e3c2e50",
            "7b1bf4450fa384b7594fdcf1d5502b8de166e518a87f1df6413a119cc0d4ac71",
        ),
    )
}
ABOUT = """Tasic et al. 2018 (Nature 563, 72): single-cell transcriptomes of the mouse's primary visual and anterior lateral
motor cortex, {cells:,} cells ("Low Quality" and "No Class" left out). Rows: counts in exons per million, log(1 + x), the
{genes:,} genes that vary most, PCA to {components} (random_state 0); genes and PCA chosen on the training part. 75/25 split,
stratified by class, random_state 0. Labels: class and cluster. (c) 2018 Allen Institute for Brain Science, under its terms of
use."""


def load(folder: Folder = None, *, genes: int = 3000, components: int = 50) -> Dataset:
    """Vectors float32 (17866, 50) and (5956, 50), from the two zips as published or the folders in them.

    The matrices have a thousand million values: reading them takes some minutes and 4 GB of memory, once; the vectors are kept
    in the cache.
    """
    regions = [Tables.of(file, f"mouse_{region}_{DATE}", folder) for region, file in REGIONS.items()]
    cells = [_cells(tables) for tables in regions]
    levels = {level: np.concatenate([np.array(kept[level]) for kept in cells]) for level in ("class", "cluster")}
    found = len(levels["class"]), len(np.unique(levels["cluster"]))
    if found != (CELLS, CLUSTERS):
        path = " and ".join(str(tables.path) for tables in regions)
        raise corrupt(path, f"cells and clusters are {found}, expected {(CELLS, CLUSTERS)}", ALLEN)
    train, test = split_ids(levels["class"])
    settings = {"content": [tables.digest() for tables in regions], "genes": genes, "components": components, "per": PER}
    vectors = remembered(
        "tasic2018",
        settings,
        lambda: principal_components(*_expression(regions, cells, train, test, genes), components),
    )
    parts = [
        Part.of(rows, {name: labels[ids] for name, labels in levels.items()})
        for rows, ids in ((vectors["train"], train), (vectors["test"], test))
    ]
    about = ABOUT.format(cells=CELLS, genes=genes, components=components)
    return Dataset("tasic2018", "Tasic 2018", parts[0], parts[1], about)


def _cells(tables: Tables) -> dict[str, list[str]]:
    """The cells of a region that have a class and a cluster."""
    rows = zip(*tables.columns(SAMPLES, "sample_name", "class", "cluster"), strict=True)
    kept = [row for row in rows if row[1] not in LEFT_OUT and row[2] not in LEFT_OUT]
    return {name: [row[i] for row in kept] for i, name in enumerate(("sample", "class", "cluster"))}


def _expression(
    regions: list[Tables], cells: list[dict[str, list[str]]], train: Array, test: Array, genes: int
) -> tuple[Array, Array]:
    """log(1 + counts per million) of the genes that vary most among the training cells, float32 (cells, genes)."""
    check_same_genes(*regions)
    read_all = [tables.counts(kept["sample"]) for tables, kept in zip(regions, cells, strict=True)]
    blocks = [region for region, _ in read_all]
    factors = PER / np.maximum(np.concatenate([totals for _, totals in read_all]), 1)
    share = np.zeros(len(factors))
    share[train] = 1 / len(train)
    variances = []
    for block in _logged(blocks, factors):
        mean = block @ share
        variances.append(block.power(2) @ share - mean**2)
    varies = np.concatenate(variances)
    chosen = np.zeros(len(varies), dtype=bool)
    chosen[np.argsort(-varies, kind="stable")[:genes]] = True
    kept, at = [], 0
    for block in _logged(blocks, factors):
        kept.append(block[chosen[at : at + block.shape[0]]].toarray().astype(np.float32))
        at += block.shape[0]
    rows = np.concatenate(kept).T  # (cells, genes)
    return rows[train], rows[test]


def _logged(blocks: list[list[Any]], factors: Array) -> Iterator[Any]:
    """The blocks of the regions side by side, (genes, cells), one at a time: all of them at once are several GB."""
    import scipy.sparse

    for beside in zip(*blocks, strict=True):
        block = scipy.sparse.hstack(beside, format="csr", dtype=np.float64)
        block.data = np.log1p(block.data * factors[block.indices])
        yield block


@dataclass(frozen=True, eq=False)
class Labels:
    """The published labels of all cells, in the order of the published maps."""

    samples: Array  # (23822,), the names of the cells
    levels: dict[str, Array]  # "class" and "cluster", (23822,) each
    colours: dict[str, dict[str, str]]  # of each level: the colour of each name, "#EF4136"


@dataclass(frozen=True, eq=False)
class ReferenceMaps:
    maps: dict[str, Array]  # by name, "tsne-p30": (23822, 2)
    labels: Labels


def labels(folder: Folder = None) -> Labels:
    """Classes and clusters with their published colours; needs the table of labels alone, not the counts."""
    rows = list(csv.DictReader(io.StringIO(read(LABELS, folder).decode("utf-8"))))
    levels, colours = {}, {}
    for level in ("class", "cluster"):
        names = [row[f"{level}_label"].strip() for row in rows]
        levels[level] = np.array(names)
        colours[level] = dict(sorted(zip(names, (row[f"{level}_color"] for row in rows), strict=True)))
    return Labels(np.array([row["sample_name"] for row in rows]), levels, colours)


def reference_maps(folder: Folder = None) -> ReferenceMaps:
    """Published maps of these cells (de Bodt et al. 2025, from 50 principal components), with the labels of their rows."""
    maps = {name: np.load(io.BytesIO(read(file, folder)), allow_pickle=False) for name, file in MAPS.items()}
    return ReferenceMaps(maps, labels(folder))
