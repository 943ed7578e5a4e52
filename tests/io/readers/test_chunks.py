"""Chunks of HDF5 and zarr that unfold to more than their values are refused before they are decompressed."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dre.io.readers import SourceError, open_source

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
X = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
MIB = 2**20


def deflated(size: int, wbits: int = zlib.MAX_WBITS) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()


def hdf5(path: Path, shape: tuple[int, ...], chunk: bytes) -> None:
    with h5py.File(path, "w") as file:
        array = file.create_dataset("X", shape, "f4", chunks=shape, compression="gzip")
        array.id.write_direct_chunk((0, 0), chunk)


def zarr_folder(path: Path, shape: tuple[int, ...], codec: str, chunk: bytes) -> None:
    codecs = {"gzip": zarr.codecs.GzipCodec(), "zstd": zarr.codecs.ZstdCodec()}
    array = zarr.create_array(path, shape=shape, chunks=shape, dtype="f4", compressors=codecs[codec])
    array[:] = 1
    (path / "c/0/0").write_bytes(chunk)


@pytest.mark.parametrize("shape", [(64, 8), (64, 2048)], ids=["small", "large"])
def test_a_chunk_that_unfolds_too_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]) -> None:
    monkeypatch.setattr("dre.io.readers.chunks.available_bytes", lambda: 512 * MIB)
    size = 256 * MIB
    hdf5(tmp_path / "x.h5", shape, deflated(size))
    zarr_folder(tmp_path / "gzip.zarr", shape, "gzip", deflated(size, 31))
    zarr_folder(tmp_path / "zstd.zarr", shape, "zstd", numcodecs.Zstd().encode(np.zeros(size, np.uint8)))
    for name in ("x.h5", "gzip.zarr", "zstd.zarr"):
        with pytest.raises(SourceError, match=rf"{name} is damaged: a chunk.* bytes or more, where its values need at most"):
            open_source(tmp_path / name).rows.read(0, 1)


@pytest.mark.parametrize("options", [{}, {"compressors": None}, {"shards": (64, 8)}, {"zarr_format": 2}], ids=str)
@pytest.mark.parametrize("values", [X, np.zeros_like(X)], ids=["random", "zeros"])
def test_sound_chunks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, values: Any) -> None:
    monkeypatch.setattr("dre.io.readers.chunks.available_bytes", lambda: 1000)  # all chunks are suspicious
    zarr.create_array(tmp_path / "x.zarr", data=values, chunks=(10, 3) if "shards" not in options else (8, 4), **options)
    np.testing.assert_array_equal(open_source(tmp_path / "x.zarr").rows.read(0, 64).numpy(), values)


@pytest.mark.parametrize(
    "options", [{"compression": "gzip"}, {"compression": "lzf"}, {"compression": "gzip", "shuffle": True}], ids=str
)
def test_sound_chunks_of_hdf5_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any) -> None:
    monkeypatch.setattr("dre.io.readers.chunks.available_bytes", lambda: 1000)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(10, 3), fletcher32=True, **{"compression": "gzip", **options})
    np.testing.assert_array_equal(open_source(tmp_path / "x.h5").rows.read(0, 64).numpy(), X)


def test_chunks_that_could_not_be_compressed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dre.io.readers.chunks.available_bytes", lambda: 1000)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        array = file.create_dataset("X", X.shape, "f4", chunks=X.shape, compression="gzip")
        array.id.write_direct_chunk((0, 0), X.tobytes(), filter_mask=1)
    np.testing.assert_array_equal(open_source(tmp_path / "x.h5").rows.read(0, 64).numpy(), X)
