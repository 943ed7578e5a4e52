"""Tasic 2018: the tables as the Allen Institute publishes them, and the preprocessing."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from stand_ins import Network, held

from dre.datasets import CorruptFileError, DatasetNotFoundError, load, tasic2018

GENES, CELLS = 90, {"VISp": 70, "ALM": 50}
CLASSES = ("Glutamatergic", "GABAergic", "Non-Neuronal", "Low Quality", "No Class")
KEPT = [CLASSES[i % 5] for n in CELLS.values() for i in range(n) if i % 5 < 3]
CLUSTERS = 5


def counts() -> dict[str, np.ndarray]:
    """(genes, cells) by region; one count is so large that R writes it as 1e+05."""
    random = np.random.default_rng(0)
    scale = random.gamma(0.5, 60, GENES)
    made = {region: random.poisson(scale[:, None] * random.random((GENES, n))) for region, n in CELLS.items()}
    made["VISp"][4, 1] = 100_000
    return made


def tables(region: str) -> dict[str, str]:
    """The three tables of a region, in the form that R's write.csv gave them."""
    matrix, cells = counts()[region], [f"F1S4_1612{i:02d}_{region}" for i in range(CELLS[region])]
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(["", *cells])
    for gene, row in enumerate(matrix.tolist()):
        writer.writerow([f"{1000 + gene}", *row])
    samples = io.StringIO()
    writer = csv.writer(samples, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(["sample_name", "sample_id", "genotype", "class", "subclass", "cluster"])
    for i, cell in enumerate(cells):
        kind = CLASSES[i % 5]
        cluster = f"{kind}, kind {i % 2} " if i % 5 < 2 else kind  # a comma in quotes, a space at the end
        writer.writerow([cell, i, "Rbp4-Cre\xe9;Ai14", kind, "", cluster])
    genes = ['"gene_symbol","gene_id","chromosome","gene_entrez_id","gene_name"']
    genes += [f'"Gene{gene}",{50_000 + gene},"1",{1000 + gene},"a gene, named"' for gene in range(GENES)]
    prefix = f"mouse_{region}_2018-06-14"
    return {
        f"{prefix}_exon-matrix.csv": written.getvalue().replace(",100000,", ",1e+05,"),
        f"{prefix}_samples-columns.csv": samples.getvalue(),
        f"{prefix}_genes-rows.csv": "\n".join(genes),
        f"{prefix}_readme.txt": "exon and intron counts",
    }


def zipped(content: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(name, text.encode("latin-1"))
    return packed.getvalue()


def write(folder: Path, form: str = "zip", changed: dict[str, str] | None = None) -> Path:
    for region, file in tasic2018.REGIONS.items():
        content = {name: (changed or {}).get(name, text) for name, text in tables(region).items()}
        below = folder / "tasic2018" / (Path(file.name).stem if form == "extracted" else "")
        below.mkdir(parents=True, exist_ok=True)
        if form == "zip":
            (below / file.name).write_bytes(zipped(content))
        else:
            for name, text in content.items():
                (below / name).write_bytes(text.encode("latin-1"))
    return folder


@pytest.fixture(autouse=True)
def small(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasic2018, "CELLS", len(KEPT))
    monkeypatch.setattr(tasic2018, "CLUSTERS", CLUSTERS)
    monkeypatch.setattr(tasic2018, "BLOCK", 32)  # several blocks, the last one not full


def expected(genes: int, components: int) -> list[np.ndarray]:
    """The preprocessing anew, dense and plain: rows to train and to test, their classes."""
    both = [matrix[:, [i for i in range(CELLS[region]) if i % 5 < 3]] for region, matrix in counts().items()]
    X = np.concatenate(both, axis=1).T
    logs = np.log1p(X / X.sum(1, keepdims=True) * 1e6)
    classes = np.array(KEPT)
    train, test, train_classes, test_classes = train_test_split(logs, classes, test_size=0.25, stratify=classes, random_state=0)
    most = np.sort(np.argsort(-train.var(0), kind="stable")[:genes])
    pca = PCA(components, random_state=0).fit(train[:, most])
    return [pca.transform(train[:, most]), pca.transform(test[:, most]), train_classes, test_classes]


@pytest.mark.parametrize("form", ["zip", "extracted", "flat"])
def test_the_published_tables_become_components_of_the_genes_that_vary_most(form: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", form)
    before = held(folder)
    dataset = load("tasic2018", folder=folder, genes=30, n_components=6)
    train, test, train_classes, test_classes = expected(30, 6)
    signs = np.sign((train * dataset.train.rows).sum(0))  # a component and its opposite are the same
    np.testing.assert_allclose(dataset.train.rows, train * signs, atol=1e-3)
    np.testing.assert_allclose(dataset.test.rows, test * signs, atol=1e-3)
    np.testing.assert_array_equal(dataset.train.labels, train_classes)
    np.testing.assert_array_equal(dataset.test.labels, test_classes)
    assert dataset.train.rows.dtype == np.float32
    assert list(dataset.test.levels) == ["class", "cluster"]
    for part in (dataset.train, dataset.test):
        assert all(cluster.startswith(kind) for kind, cluster in zip(part.labels, part.levels["cluster"], strict=True))
        assert all(cluster == cluster.strip() for cluster in part.levels["cluster"])
    assert held(folder) == before


def test_the_order_of_columns_and_cells_need_not_be_the_same(tmp_path: Path) -> None:
    name = "mouse_ALM_2018-06-14_samples-columns.csv"
    header, *rows = tables("ALM")[name].splitlines()
    kept = [row for i, row in enumerate(rows) if i % 5 < 3]
    straight = load("tasic2018", folder=write(tmp_path / "a"), genes=30, n_components=6)
    turned = write(tmp_path / "b", changed={name: "\n".join([header, *kept])})  # cells without a class are not listed
    found = load("tasic2018", folder=turned, genes=30, n_components=6)
    np.testing.assert_array_equal(found.test.rows, straight.test.rows)


def test_it_is_computed_once_for_the_same_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "data")
    first = load("tasic2018", folder=folder, genes=30, n_components=6)
    monkeypatch.setattr(tasic2018, "_expression", lambda *_: pytest.fail("computed again"))
    np.testing.assert_array_equal(load("tasic2018", folder=folder, genes=30, n_components=6).test.rows, first.test.rows)
    for options in ({"genes": 29, "n_components": 6}, {"genes": 30, "n_components": 5}):
        with pytest.raises(pytest.fail.Exception, match="computed again"):
            load("tasic2018", folder=folder, **options)
    name = "mouse_VISp_2018-06-14_exon-matrix.csv"
    write(folder, changed={name: tables("VISp")[name].replace("1e+05", "1e+04")})
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        load("tasic2018", folder=folder, genes=30, n_components=6)


def test_missing_zips_are_asked_for_at_the_allen_institute(network: Network) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"mouse_VISp_gene_expression_matrices_2018-06-14\.zip"):
        load("tasic2018")
    network.pages = {file.url: zipped(tables(region)) for region, file in tasic2018.REGIONS.items()}
    assert len(load("tasic2018", genes=30, n_components=6).train.rows) == round(len(KEPT) * 0.75)
    assert [url.rsplit("/", 1)[-1] for url in network.asked] == ["694413985", "694413985", "694413179"]


def damaged(fault: str) -> dict[str, str]:
    """One table with one fault, by its name."""
    prefix = "mouse_ALM_2018-06-14"
    matrix, samples, genes = (f"{prefix}_{table}.csv" for table in ("exon-matrix", "samples-columns", "genes-rows"))
    content = tables("ALM")
    lines = {name: content[name].splitlines() for name in content}
    changed = {
        "a cell less": (samples, lines[samples][:-3]),
        "no clusters": (samples, [lines[samples][0].replace('"cluster"', '"group"'), *lines[samples][1:]]),
        "a gene less": (matrix, lines[matrix][:-1]),
        "a gene more": (matrix, [*lines[matrix], lines[matrix][-1]]),
        "two genes swapped": (matrix, [*lines[matrix][:3], lines[matrix][4], lines[matrix][3], *lines[matrix][5:]]),
        "a short row": (matrix, [*lines[matrix][:-1], lines[matrix][-1].rpartition(",")[0]]),
        "no number": (matrix, [*lines[matrix][:-1], lines[matrix][-1].rpartition(",")[0] + ",NA"]),
        "another cell": (matrix, [lines[matrix][0].replace("F1S4", "F2S4", 1), *lines[matrix][1:]]),
        "no genes": (genes, lines[genes][:1]),
    }[fault]
    return {changed[0]: "\n".join(changed[1])}


FAULTS = ["a cell less", "no clusters", "a gene less", "a gene more", "two genes swapped"]
FAULTS += ["a short row", "no number", "another cell", "no genes"]


@pytest.mark.filterwarnings("ignore:string or file could not be read:DeprecationWarning")
@pytest.mark.parametrize("fault", FAULTS)
def test_tables_that_do_not_fit_together_are_found_out(fault: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", changed=damaged(fault))
    with pytest.raises(CorruptFileError, match="mouse_ALM") as raised:
        load("tasic2018", folder=folder, genes=30, n_components=6)
    assert "Delete it and download it again from https://celltypes.brain-map.org" in str(raised.value)


def other_genes(fault: str) -> dict[str, str]:
    """Tables of one region that fit together, but not with those of the other region."""
    prefix = "mouse_ALM_2018-06-14"
    changed = {}
    for name in (f"{prefix}_exon-matrix.csv", f"{prefix}_genes-rows.csv"):
        header, *rows = tables("ALM")[name].splitlines()
        if fault == "another order":
            rows[3], rows[4] = rows[4], rows[3]
        elif fault == "another gene":
            rows[3] = rows[3].replace("1003", "777", 1)
        else:
            del rows[-1]
        changed[name] = "\n".join([header, *rows])
    return changed


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("another order", "gene 4 is 1003 in one and 1004 in the other"),
        ("another gene", "gene 4 is 1003 in one and 777 in the other"),
        ("fewer genes", "gene 90 is 1089 in one and missing in the other"),
    ],
)
def test_regions_with_other_genes_are_not_put_side_by_side(fault: str, message: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", changed=other_genes(fault))
    with pytest.raises(CorruptFileError, match=f"mouse_VISp.* or .*mouse_ALM.*{message}"):
        load("tasic2018", folder=folder, genes=30, n_components=6)


@pytest.mark.parametrize("fault", ["truncated", "changed", "empty"])
def test_a_damaged_zip_is_found_out_by_its_checksums(fault: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    path = folder / "tasic2018" / tasic2018.REGIONS["ALM"].name
    content = path.read_bytes()
    path.write_bytes({"truncated": content[:-50], "changed": content[:999] + b"??" + content[1001:], "empty": b""}[fault])
    with pytest.raises(CorruptFileError, match=path.name):
        load("tasic2018", folder=folder, genes=30, n_components=6)


def test_an_incomplete_folder_is_found_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "extracted")
    next(folder.rglob("mouse_ALM*genes-rows.csv")).unlink()
    with pytest.raises(CorruptFileError, match=r"mouse_ALM_2018-06-14_genes-rows\.csv is missing"):
        load("tasic2018", folder=folder, genes=30, n_components=6)
