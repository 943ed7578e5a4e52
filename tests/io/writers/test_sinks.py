"""Places in a map to files, and back."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from dre.atomic import atomic_write
from dre.io.readers import open_source
from dre.io.writers import Embedding, check_writable, formats, open_sink

PLACES = np.random.default_rng(0).normal(size=(23, 3)).astype(np.float32)
NAMES = np.array([f'cell "{i}", =1+1\n<b>' if i == 4 else f"cell {i}" for i in range(23)])


def written(path: Path, embedding: Embedding, *, force: bool = False) -> None:
    with open_sink(path, embedding, force=force) as sink:
        for part in np.array_split(PLACES, 4):
            sink.write(part)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".tsv", ".csv.gz", ".parquet"])
def test_what_is_written_piece_by_piece_is_read_back_to_the_bit(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map{suffix}"
    written(path, Embedding(23, 3))
    found = open_source(path)
    rows = found.rows if isinstance(found.rows, np.ndarray) else found.rows.read(0, 23).numpy()
    assert np.array_equal(rows.astype(np.float32), PLACES)
    if suffix != ".npy":
        assert found.columns == ["dre1", "dre2", "dre3"]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
def test_names_of_rows_stand_beside_their_places(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map{suffix}"
    written(path, Embedding(23, 3, names=NAMES))
    found = open_source(path)
    names = found.names if found.names is not None else found.metadata["name"]
    assert [str(name).split() for name in names] == [str(name).split() for name in NAMES]


def test_cells_get_their_places_in_a_copy_of_their_file(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    cells, out = tmp_path / "cells.h5ad", tmp_path / "mapped.h5ad"
    with h5py.File(cells, "w") as file:
        file["X"] = np.ones((23, 5), np.float32)
        for table, count in (("obs", 23), ("var", 5)):
            file.create_group(table).attrs["_index"] = "_index"
            file[table]["_index"] = [f"{table}{i}".encode() for i in range(count)]
    for _ in range(2):
        written(out, Embedding(23, 3, source=cells), force=True)
    rows = open_source(f"{out}:obsm/X_dre").rows
    assert np.array_equal(rows.read(0, 23).numpy(), PLACES)
    with h5py.File(cells) as file:
        assert "obsm" not in file


def test_places_alone_make_no_h5ad(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="beside the cells"):
        written(tmp_path / "map.h5ad", Embedding(23, 3))
    assert not list(tmp_path.iterdir())


def interrupted(path: Path, end: type[BaseException]) -> None:
    with open_sink(path, Embedding(23, 3), force=True) as sink:
        sink.write(PLACES[:5])
        raise end


@pytest.mark.parametrize("suffix", list(formats()))
@pytest.mark.parametrize("end", [KeyboardInterrupt, ValueError])
def test_what_is_interrupted_leaves_nothing_and_what_was_there(tmp_path: Path, suffix: str, end: type[BaseException]) -> None:
    if suffix == ".h5ad":
        pytest.skip("needs the file of the cells; the same code moves it")
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
        ("there.csv", "pass --force"),
        ("folder.csv", "is a folder"),
        ("no/m.csv", "make it"),
    ],
)
def test_what_can_not_be_written_is_said_before_anything_is_computed(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=message):
        check_writable(tmp_path / name)


def test_a_name_says_what_is_written_and_other_names_are_refused_with_one_that_would_do(tmp_path: Path) -> None:
    assert check_writable(tmp_path / "map.TSV.gz") == ".tsv.gz"
    assert check_writable(tmp_path / "m.safetensors", [".safetensors"]) == ".safetensors"
    with pytest.raises(ValueError, match=r"ends in \.safetensors, such as m\.safetensors"):
        check_writable(tmp_path / "m.pt", [".safetensors"])


def test_what_is_read_is_not_written_over_even_when_forced(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to(tmp_path / "x.csv")
    assert check_writable(tmp_path / "x.csv", force=True, read=[None, tmp_path / "y.csv"]) == ".csv"
    for name in ("x.csv", "link.csv"):
        with pytest.raises(ValueError, match="is read, and would be written over"):
            check_writable(tmp_path / name, force=True, read=[tmp_path / "x.csv"])


def test_columns_may_have_titles_of_their_own(tmp_path: Path) -> None:
    written(tmp_path / "scores.csv", Embedding(23, 3, titles=("a", "b", "c")))
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
