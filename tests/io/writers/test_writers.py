"""Embeddings written to files in pieces, and read back."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from dre.atomic import atomic_write
from dre.io.readers import open_source
from dre.io.writers import FORMATS, OutputSpec, check_writable, open_sink

EMBEDDING = np.random.default_rng(0).normal(size=(23, 3)).astype(np.float32)
NAMES = np.array([f'cell "{i}", =1+1\n<b>' if i == 4 else f"cell {i}" for i in range(23)])


def written(path: Path, spec: OutputSpec, *, force: bool = False) -> None:
    with open_sink(path, spec, force=force) as sink:
        for part in np.array_split(EMBEDDING, 4):
            sink.write(part)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".tsv", ".csv.gz", ".parquet"])
def test_what_is_written_piece_by_piece_is_read_back_to_the_bit(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map{suffix}"
    written(path, OutputSpec(23, 3))
    found = open_source(path)
    rows = found.rows if isinstance(found.rows, np.ndarray) else found.rows.read(0, 23).numpy()
    assert np.array_equal(rows.astype(np.float32), EMBEDDING)
    if suffix != ".npy":
        assert found.columns == ["dre1", "dre2", "dre3"]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
@pytest.mark.parametrize("gaps", [[0, 1], [5], [29], [3, 4, 5, 17, 28, 29], list(range(7))])
def test_rows_that_are_not_kept_are_nan_where_they_stand(tmp_path: Path, suffix: str, gaps: list[int]) -> None:
    kept = np.ones(23 + len(gaps), dtype=bool)
    kept[[min(gap, len(kept) - 1) for gap in gaps]] = False
    kept[np.flatnonzero(kept)[23:]] = False  # where two gaps meet at the end
    written(tmp_path / f"map{suffix}", OutputSpec(len(kept), 3, kept=kept))
    pandas = pytest.importorskip("pandas")
    path = tmp_path / f"map{suffix}"
    found = {".npy": np.load, ".csv": pandas.read_csv, ".parquet": pandas.read_parquet}[suffix](path)
    found = np.asarray(found, dtype=np.float32)
    assert found.shape == (len(kept), 3)
    assert np.array_equal(found[kept], EMBEDDING)
    assert np.isnan(found[~kept]).all()


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
def test_row_names_are_written_beside_the_embedding(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map{suffix}"
    written(path, OutputSpec(23, 3, names=NAMES))
    found = open_source(path)
    names = found.names if found.names is not None else found.metadata["name"]
    assert [str(name).split() for name in names] == [str(name).split() for name in NAMES]


def test_h5ad_output_is_a_copy_of_the_input_with_the_embedding(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    cells, out = tmp_path / "cells.h5ad", tmp_path / "mapped.h5ad"
    with h5py.File(cells, "w") as file:
        file["X"] = np.ones((23, 5), np.float32)
        for table, count in (("obs", 23), ("var", 5)):
            file.create_group(table).attrs["_index"] = "_index"
            file[table]["_index"] = [f"{table}{i}".encode() for i in range(count)]
    for _ in range(2):
        written(out, OutputSpec(23, 3, source=cells), force=True)
    rows = open_source(f"{out}:obsm/X_dre").rows
    assert np.array_equal(rows.read(0, 23).numpy(), EMBEDDING)
    with h5py.File(cells) as file:
        assert "obsm" not in file


def test_h5ad_output_needs_h5ad_input(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"map\.h5ad.*input.*\.npy"):
        written(tmp_path / "map.h5ad", OutputSpec(23, 3))
    assert not list(tmp_path.iterdir())


def interrupted(path: Path, end: type[BaseException]) -> None:
    with open_sink(path, OutputSpec(23, 3), force=True) as sink:
        sink.write(EMBEDDING[:5])
        raise end


@pytest.mark.parametrize("suffix", list(FORMATS))
@pytest.mark.parametrize("end", [KeyboardInterrupt, ValueError])
def test_an_interrupted_write_leaves_an_existing_file_as_it_was(tmp_path: Path, suffix: str, end: type[BaseException]) -> None:
    if suffix == ".h5ad":
        pytest.skip("needs the input file; the same code moves the result")
    for before in (None, b"as it was"):
        path = tmp_path / f"map{suffix}"
        if before is not None:
            path.write_bytes(before)
        with pytest.raises(end):
            interrupted(path, end)
        assert [each.read_bytes() for each in tmp_path.iterdir()] == ([] if before is None else [before])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("map.xlsx", "expected a name that ends in"),
        ("there.csv", "force=True"),
        ("folder.csv", "is a folder"),
        ("no/m.csv", "create it"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises((ValueError, FileExistsError), match=message):
        check_writable(tmp_path / name)


def test_the_suffix_is_returned_and_an_unknown_suffix_is_refused_with_an_example(tmp_path: Path) -> None:
    assert check_writable(tmp_path / "map.TSV.gz") == ".tsv.gz"
    assert check_writable(tmp_path / "m.safetensors", [".safetensors"]) == ".safetensors"
    with pytest.raises(ValueError, match=r"ends in \.safetensors, such as m\.safetensors"):
        check_writable(tmp_path / "m.pt", [".safetensors"])


def test_an_input_is_never_overwritten_even_with_force(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to(tmp_path / "x.csv")
    assert check_writable(tmp_path / "x.csv", force=True, read=[None, tmp_path / "y.csv"]) == ".csv"
    for name in ("x.csv", "link.csv"):
        with pytest.raises(ValueError, match="would be overwritten"):
            check_writable(tmp_path / name, force=True, read=[tmp_path / "x.csv"])


def test_columns_may_have_titles(tmp_path: Path) -> None:
    written(tmp_path / "scores.csv", OutputSpec(23, 3, columns=("a", "b", "c")))
    assert open_source(tmp_path / "scores.csv").columns == ["a", "b", "c"]


@pytest.mark.parametrize("end", [None, KeyboardInterrupt, ValueError])
def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path, end: type[BaseException] | None) -> None:
    path = tmp_path / "scores.json"
    path.write_text("as it was")
    with nullcontext() if end is None else pytest.raises(end), atomic_write(path) as part:
        part.write_text("new")
        assert path.read_text() == "as it was"
        if end is not None:
            raise end
    assert path.read_text() == ("new" if end is None else "as it was")
    assert list(tmp_path.iterdir()) == [path]


def test_space_that_was_reserved_for_cells_is_given_back(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"] = np.ones((23, 5), np.float32)
    written(tmp_path / "map.h5ad", OutputSpec(23, 3, source=tmp_path / "cells.h5ad"))
    assert (tmp_path / "map.h5ad").stat().st_size < (tmp_path / "cells.h5ad").stat().st_size + 20_000
