"""HDF5 files whose content lies in other files are refused, unless that is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dre.cli.options import name_options
from dre.io.readers import ReadOptions, SourceError, open_source
from dre.io.writers import OutputSpec, open_sink

X = np.random.default_rng(0).normal(size=(12, 5))
ALLOWED = ReadOptions(allow_external=True)


def stored(file: Any, name: str, other: Path) -> None:
    X.tofile(other)
    file.create_dataset(name, X.shape, X.dtype, external=[(str(other), 0, X.nbytes)])


def linked(file: Any, name: str, other: Path) -> None:
    with h5py.File(other, "w") as source:
        source["deep/X"] = X
    file[name] = h5py.ExternalLink(str(other), "deep/X")


def virtual(file: Any, name: str, other: Path) -> None:
    with h5py.File(other, "w") as source:
        source["X"] = X
    layout = h5py.VirtualLayout(X.shape, X.dtype)
    layout[:] = h5py.VirtualSource(str(other), "X", X.shape)
    file.create_virtual_dataset(name, layout)


def cells(file: Any) -> None:
    for table, count in (("obs", 12), ("var", 5)):
        file.create_group(table).attrs["_index"] = "_index"
        file[table]["_index"] = [f"{table}{i}".encode() for i in range(count)]


@pytest.mark.parametrize("suffix", [".h5", ".h5ad"])
@pytest.mark.parametrize("outsource", [stored, linked, virtual])
def test_the_other_file_is_named_and_read_if_that_is_allowed(
    tmp_path: Path, suffix: str, outsource: Callable[[Any, str, Path], None]
) -> None:
    path, other = tmp_path / f"x{suffix}", tmp_path / "other.bin"
    with h5py.File(path, "w") as file:
        if suffix == ".h5ad":
            cells(file)
        outsource(file, "X", other)
    for part in (None, "X"):
        with pytest.raises(SourceError, match=r"x\.h5(ad)?: 'X' lies in another file, .*other\.bin; .*allow_external=True"):
            open_source(path, part=part)
        np.testing.assert_array_equal(open_source(path, part="X", options=ALLOWED).rows.read(0, 12).numpy(), X)


@pytest.mark.parametrize("outsource", [stored, linked, virtual])
@pytest.mark.parametrize("name", ["obs/age", "layers/counts", "uns/deep/down"])
def test_whatever_part_lies_elsewhere(tmp_path: Path, outsource: Callable[[Any, str, Path], None], name: str) -> None:
    path = tmp_path / "x.h5ad"
    with h5py.File(path, "w") as file:
        cells(file)
        file["X"] = X
        outsource(file, name, tmp_path / "other.bin")
    with pytest.raises(SourceError, match=rf"'{name}' lies in another file, .*other\.bin"):
        open_source(path)


def test_links_and_virtual_arrays_within_a_file_are_no_other_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a/X"] = X
        file["soft"], file["lost"], file["hard"] = h5py.SoftLink("/a/X"), h5py.SoftLink("/nowhere"), file["a"]
        layout = h5py.VirtualLayout(X.shape, X.dtype)
        layout[:] = h5py.VirtualSource(".", "a/X", X.shape)
        file.create_virtual_dataset("virtual", layout)
    for part in ("a/X", "soft", "virtual"):
        np.testing.assert_array_equal(open_source(tmp_path / "x.h5", part=part).rows.read(0, 12).numpy(), X)


def test_groups_within_groups_without_end_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["/".join("g" * 200) + "/X"] = X
    with pytest.raises(SourceError, match="groups within groups"):
        open_source(tmp_path / "x.h5")


def test_an_output_never_writes_through_a_link(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "victim.h5", "w") as file:
        file.create_group("obsm")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"], file["obsm"] = X, h5py.ExternalLink(str(tmp_path / "victim.h5"), "obsm")
    before = (tmp_path / "victim.h5").read_bytes()
    with (
        pytest.raises(ValueError, match="obsm is a link"),
        open_sink(tmp_path / "out.h5ad", OutputSpec(12, 2, source=tmp_path / "x.h5ad")),
    ):
        pass
    assert (tmp_path / "victim.h5").read_bytes() == before


def test_the_command_line_names_its_option() -> None:
    assert name_options("pass allow_external=True if") == "pass --allow-external if"
